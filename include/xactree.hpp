/* SPDX-License-Identifier: MIT */
/*
 * xactree.hpp -- libxactree for C++17: an ordered map of bytes as an object.
 *
 *     #include <xactree.hpp>
 *
 *     xac::env env("db");
 *     xac::mapping<char> m(env, "input.db", 1 << 30);
 *     xac::tree words(env, m.data(), m.size());
 *     env.transact([&] {
 *         words.put("one", "1");
 *         words.erase("two");
 *     });
 *     for (xac::tree_cursor c(words); c.next();)
 *         std::cout << c.key() << ": " << c.value() << '\n';
 *
 * xactree.h says what the calls below mean, and xac.hpp's rules hold.  Besides:
 *   (1) A tree ends before its mapping does, and a cursor before its tree.
 *   (2) A call that fails throws xac::error; without exceptions it prints the error and stops
 *       the program.  That a key is there, or is not, is a result.
 *   (3) A transaction that has failed already goes on to its end, and runs again: calls in it do
 *       not throw for that.
 */
#ifndef XACTREE_HPP
#define XACTREE_HPP

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xac.hpp"
#include "xactree.h"

namespace xac {

/* How a tree is made: struct xactree_config, with its defaults set. */
struct tree_config : xactree_config {
    tree_config() noexcept
    {
        xactree_config_init(this, sizeof(xactree_config));
    }
};

/* A tree that is open.  Moves, and closes its handle at the end; the tree stays. */
class tree {
  public:
    tree() noexcept = default;

    /* Open the tree in `length` bytes from `base` on; make it if there is none. */
    tree(env &in, void *base, std::size_t length, const tree_config &how = tree_config())
    {
        require(try_open(in, base, length, how));
    }
    tree(tree &&other) noexcept : tree_(std::exchange(other.tree_, nullptr))
    {
    }
    tree &
    operator=(tree &&other) noexcept
    {
        std::swap(tree_, other.tree_);
        return *this;
    }
    ~tree()
    {
        xactree_close(tree_);
    }

    /* ret  0; a code of xactree_open() or xactree_create(); XAC_EALREADY: it is open. */
    int
    try_open(env &in, void *base, std::size_t length,
             const tree_config &how = tree_config()) noexcept
    {
        if (tree_ != nullptr)
            return XAC_EALREADY;
        int rc = xactree_open(&tree_, in.get(), base, length);

        if (rc != ENOENT)
            return rc;
        rc = xactree_create(&tree_, in.get(), base, length, &how);
        return rc == EEXIST ? xactree_open(&tree_, in.get(), base, length) : rc;
    }

    /* For the calls of xactree.h. */
    xactree *
    get() const noexcept
    {
        return tree_;
    }

    /* Put an entry, in place of one that is there. */
    void
    put(std::string_view key, std::string_view value)
    {
        put_as(key, value, XACTREE_PUT, 0);
    }

    /* Put an entry; false: the key is there, and nothing has changed. */
    bool
    add(std::string_view key, std::string_view value)
    {
        return put_as(key, value, XACTREE_ADD, EEXIST);
    }

    /* Replace a value; false: the key is not there. */
    bool
    replace(std::string_view key, std::string_view value)
    {
        return put_as(key, value, XACTREE_REPLACE, ENOENT);
    }

    /* A copy of the value; nothing if the key is not there. */
    std::optional<std::string>
    find(std::string_view key) const
    {
        std::string value;
        std::size_t len = 0;

        for (value.resize(small);; value.resize(len)) {
            int rc = xactree_get(tree_, key.data(), key.size(), value.data(),
                                 value.size(), &len);

            if (rc == ENOENT)
                return std::nullopt;
            require(rc);
            if (len <= value.size())
                break;
        }
        value.resize(len);
        return value;
    }

    bool
    contains(std::string_view key) const
    {
        return is_there(xactree_get(tree_, key.data(), key.size(), nullptr, 0, nullptr),
                        ENOENT);
    }

    /* Take an entry out; false: the key is not there. */
    bool
    erase(std::string_view key)
    {
        return is_there(xactree_delete(tree_, key.data(), key.size()), ENOENT);
    }

    /* Take out the entries from a key on and below another one; ret how many. */
    std::uint64_t
    erase(std::optional<std::string_view> from, std::optional<std::string_view> to)
    {
        bound low(from), high(to);
        std::uint64_t n = 0;

        require(xactree_delete_range(tree_, low.get(), high.get(), &n));
        return n;
    }

    /* The number of entries, which reads them all. */
    std::uint64_t
    count(std::optional<std::string_view> from = {},
          std::optional<std::string_view> to = {}) const
    {
        bound low(from), high(to);
        std::uint64_t n = 0;

        require(xactree_count(tree_, low.get(), high.get(), &n));
        return n;
    }

    /*
     * Call fn(key, value) for each entry in order, on one snapshot.  The two are views that end
     * with the call; fn does not change the tree.  It returns nothing, or false to stop.
     */
    template <class F>
    void
    for_each(F &&fn, std::optional<std::string_view> from = {},
             std::optional<std::string_view> to = {}) const
    {
        bound low(from), high(to);
        visitor<std::remove_reference_t<F>> v{fn};
        int rc = xactree_scan(tree_, low.get(), high.get(), v.visit, &v);

#ifdef __cpp_exceptions
        if (v.thrown)
            std::rethrow_exception(v.thrown);
#endif
        if (rc != stopped)
            require(rc);
    }

    /* Verify the whole tree; an error tells the first violation in words. */
    xactree_report
    verify() const
    {
        xactree_report report;

        require(xactree_check(tree_, &report, sizeof report));
        return report;
    }

  private:
    friend class tree_cursor;
    static constexpr std::size_t small = 128; /* bytes of a value that are tried first */
    static constexpr int stopped = -1;        /* no code of the library                */

    /* Throw what `code` means; 0, and that the transaction has failed already, is no error. */
    static void
    require(int code)
    {
        if (code == 0 || code == XAC_FAILED)
            return;
#ifdef __cpp_exceptions
        throw error(code, std::string(xac_strerror(code)) + ": " + xactree_last_error());
#else
        std::fprintf(stderr, "xactree: %s: %s\n", xac_strerror(code),
                     xactree_last_error());
        std::abort();
#endif
    }

    static bool
    is_there(int code, int answer)
    {
        if (code != answer)
            require(code);
        return code != answer;
    }

    bool
    put_as(std::string_view key, std::string_view value, xactree_mode mode, int answer)
    {
        int rc =
            xactree_put(tree_, key.data(), key.size(), value.data(), value.size(), mode);

        return rc == 0 || is_there(rc, answer);
    }

    /* An end of a range for the calls of C. */
    class bound {
      public:
        explicit bound(const std::optional<std::string_view> &key) noexcept
            : is_set_(key.has_value()), bytes_{key ? key->data() : nullptr,
                                               key ? key->size() : 0}
        {
        }
        const xactree_bytes *
        get() const noexcept
        {
            return is_set_ ? &bytes_ : nullptr;
        }

      private:
        bool is_set_;
        xactree_bytes bytes_;
    };

    /* The function of a scan.  Its exceptions do not pass through C. */
    template <class F> struct visitor {
        F &fn;
        std::exception_ptr thrown = nullptr;

        static int
        visit(void *arg, const xactree_bytes *key, const xactree_bytes *value)
        {
            auto &self = *static_cast<visitor *>(arg);

#ifdef __cpp_exceptions
            try {
                return self.call(view_of(*key), view_of(*value));
            } catch (...) {
                self.thrown = std::current_exception();
                return stopped;
            }
#else
            return self.call(view_of(*key), view_of(*value));
#endif
        }

        int
        call(std::string_view key, std::string_view value)
        {
            if constexpr (std::is_void_v<std::invoke_result_t<F &, std::string_view,
                                                              std::string_view>>) {
                fn(key, value);
                return 0;
            } else {
                return fn(key, value) ? 0 : stopped;
            }
        }
    };

    static std::string_view
    view_of(const xactree_bytes &bytes) noexcept
    {
        return {static_cast<const char *>(bytes.data), bytes.len};
    }

    xactree *tree_ = nullptr;
};

/*
 * A place in a tree, at first nowhere.  It remembers its key: xactree.h says more.  The moves
 * return whether there is such an entry; if not, the cursor stays where it was.
 */
class tree_cursor {
  public:
    explicit tree_cursor(const tree &in)
    {
        tree::require(xactree_cursor_open(&cursor_, in.get()));
    }
    tree_cursor(tree_cursor &&other) noexcept
        : cursor_(std::exchange(other.cursor_, nullptr))
    {
    }
    tree_cursor &
    operator=(tree_cursor &&other) noexcept
    {
        std::swap(cursor_, other.cursor_);
        return *this;
    }
    ~tree_cursor()
    {
        xactree_cursor_close(cursor_);
    }

    bool
    first()
    {
        return tree::is_there(xactree_cursor_first(cursor_), ENOENT);
    }
    bool
    last()
    {
        return tree::is_there(xactree_cursor_last(cursor_), ENOENT);
    }
    bool
    next()
    {
        return tree::is_there(xactree_cursor_next(cursor_), ENOENT);
    }
    bool
    prev()
    {
        return tree::is_there(xactree_cursor_prev(cursor_), ENOENT);
    }

    /* To the first entry with a key of at least `key`. */
    bool
    seek(std::string_view key)
    {
        return tree::is_there(xactree_cursor_seek(cursor_, key.data(), key.size()),
                              ENOENT);
    }

    /* The key, valid until the next move.  An error: the cursor is nowhere. */
    std::string_view
    key() const
    {
        xactree_bytes bytes{nullptr, 0};

        tree::require(xactree_cursor_key(cursor_, &bytes));
        return tree::view_of(bytes);
    }

    /* A copy of the value as it is now.  An error: the entry was deleted, or there was none. */
    std::string
    value() const
    {
        std::string value;
        std::size_t len = 0;

        for (value.resize(tree::small);; value.resize(len)) {
            tree::require(
                xactree_cursor_value(cursor_, value.data(), value.size(), &len));
            if (len <= value.size())
                break;
        }
        value.resize(len);
        return value;
    }

  private:
    xactree_cursor *cursor_ = nullptr;
};

} // namespace xac

#endif /* XACTREE_HPP */
