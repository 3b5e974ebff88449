/* SPDX-License-Identifier: MIT */
/*
 * xac.hpp -- libxac for C++17: environments, mappings and transactions as objects.
 *
 *     #include <xac.hpp>
 *
 *     xac::env env("db");
 *     xac::mapping<int> x(env, "input.db", 1000);
 *     int now = env.transact([&] { return ++x[0]; });
 *
 * xac.h says what the calls below mean, and its calling rules hold.  Besides:
 *   (1) The function of a transaction may run several times.  A conflict undoes what it did to
 *       mappings, and nothing else.
 *   (2) An exception that leaves the function rolls the transaction back and goes on to the
 *       caller.  There is no other attempt.  If an outer transaction catches the exception of a
 *       nested one, what the nested one has stored is undone, and the outer one goes on.
 *   (3) The result of a transaction or a query is used after its end, so that it must be a copy.
 *       It may point into a mapping; the caller follows it in the next transaction only.
 *   (4) Without exceptions (-fno-exceptions) a call that would throw prints the error and stops
 *       the program.  The functions try_...() return a code instead: 0, an errno value or
 *       XAC_E..., for xac_strerror().
 */
#ifndef XAC_HPP
#define XAC_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "xac_env.h"
#include "xac_error.hpp"
#include "xac_persist.hpp"
#include "xac_team.h"

namespace xac {

/* When transact() gives up; 0: never.  Time is looked at between attempts: it does not end the
   wait of xac_begin(), which XAC_OPT_WAIT_MS does. */
struct limits {
    unsigned attempts = 0;
    std::chrono::milliseconds time{0};
};

/* What an environment is opened with: struct xac_options, with its defaults set. */
struct options : xac_options {
    options() noexcept
    {
        xac_options_init(this, sizeof(xac_options));
    }
};

/* A snapshot that is held, and released at the end of the object, which ends before its environment. */
class snapshot {
  public:
    snapshot() noexcept = default;
    explicit snapshot(xac_env *in)
    {
        check(xac_snapshot_in(in, &id_));
        env_ = in;
    }
    snapshot(snapshot &&other) noexcept
        : env_(std::exchange(other.env_, nullptr)), id_(std::exchange(other.id_, 0))
    {
    }
    snapshot &
    operator=(snapshot &&other) noexcept
    {
        std::swap(env_, other.env_);
        std::swap(id_, other.id_);
        return *this;
    }
    ~snapshot()
    {
        (void)release();
    }

    /* What others query it by. */
    std::uint64_t
    id() const noexcept
    {
        return id_;
    }

    /* 0 if it is not held any more. */
    int
    release() noexcept
    {
        xac_env *in = std::exchange(env_, nullptr);

        return in != nullptr ? xac_snapshot_release_in(in, id_) : 0;
    }

    /* As xac_snapshot_keep(): it outlives the object, and the process. */
    void
    keep(const char *name, std::chrono::seconds time)
    {
        check(xac_snapshot_keep_in(env_, id_, name,
                                   static_cast<std::uint32_t>(time.count())));
        env_ = nullptr;
    }

  private:
    xac_env *env_ = nullptr;
    std::uint64_t id_ = 0;
};

/* States of the past for query_at() and diff(): see XAC_AT_COMMIT() and XAC_AT_TIME() in xac_snapshot.h. */
constexpr std::uint64_t
at_commit(std::uint64_t number) noexcept
{
    return XAC_AT_COMMIT(number);
}

inline std::uint64_t
at_time(std::chrono::system_clock::time_point when) noexcept
{
    return XAC_AT_TIME(
        std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch())
            .count());
}

/*
 * A savepoint of the running transaction: a place to go back to.  At the end of the object it is
 * forgotten; if an exception ends it, the transaction is rolled back to it first.  Objects end in the opposite
 * order of their beginning, and before the transaction.
 */
class savepoint {
  public:
    explicit savepoint(xac_env *in)
        : env_(in), mark_(xac_savepoint_in(in)), n_(std::uncaught_exceptions())
    {
        if (mark_ == 0)
            check(errno);
    }
    savepoint(const savepoint &) = delete;
    savepoint &operator=(const savepoint &) = delete;
    ~savepoint()
    {
        if (std::uncaught_exceptions() > n_)
            (void)xac_rollback_to_in(env_, mark_);
        (void)xac_release_in(env_, mark_);
    }

    /* Undo all stores since: in all segments, heaps included.  It stays, and may be gone back to again. */
    void
    rollback()
    {
        int rc = xac_rollback_to_in(env_, mark_);

        check(rc == XAC_FAILED ? 0 : rc); /* done, and the transaction will be tried again */
    }

  private:
    xac_env *env_;
    std::uint64_t mark_;
    int n_;
};

/*
 * A thread that helps the transaction, or query, of another one, as long as the object lives: with the number
 * that env::team() gave the owner.  Objects of a thread end in the opposite order of their beginning, and before
 * the owner's transaction does.
 */
class helper {
  public:
    explicit helper(std::uint64_t txn)
    {
        check(xac_join(txn));
    }
    helper(const helper &) = delete;
    helper &operator=(const helper &) = delete;
    ~helper()
    {
        (void)xac_leave();
    }
};

/* An environment that is open.  Mappings end before it does. */
class env {
  public:
    env() noexcept = default;
    explicit env(const char *path, const options &how = options())
    {
        check(try_open(path, how));
    }
    env(env &&other) noexcept : env_(std::exchange(other.env_, nullptr))
    {
    }
    env &
    operator=(env &&other) noexcept
    {
        std::swap(env_, other.env_);
        return *this;
    }
    ~env()
    {
        try_close();
    }

    int
    try_open(const char *path, const options &how = options()) noexcept
    {
        if (env_ != nullptr)
            return XAC_EALREADY;
        env_ = xac_open(path, &how);
        return env_ != nullptr ? 0 : errno;
    }

    /* 0 if it is not open.  After XAC_EINTXN and EBUSY it is still open. */
    int
    try_close() noexcept
    {
        int rc = env_ != nullptr ? xac_close(env_) : 0;

        if (rc != XAC_EINTXN && rc != EBUSY)
            env_ = nullptr;
        return rc;
    }

    /* For the calls of xac_env.h. */
    xac_env *
    get() const noexcept
    {
        return env_;
    }

    /* Run fn() as a transaction, and again after a conflict; return its result. */
    template <class F>
    auto
    transact(F &&fn, limits most = {})
    {
        using R = std::invoke_result_t<F &>;
        static_assert(!std::is_reference_v<R>, "return a copy: rule (3)");

        if constexpr (std::is_void_v<R>) {
            check(run(fn, most));
        } else {
            std::optional<R> result;
            auto keep = [&] { result.emplace(fn()); };

            check(run(keep, most));
            return R(std::move(*result));
        }
    }

    /*
     * Run fn() as a transaction, and again after a conflict; return a code.
     *
     * in   fn   returns nothing, or an int: 0 to commit, another value to roll back.
     *           If xac::error or std::bad_alloc leave it, they become a code; every other
     *           exception ends the program.
     * ret  0: committed; XAC_ABORTED: see class conflict; what fn returned; else an error.
     */
    template <class F>
    int
    try_transact(F &&fn, limits most = {}) noexcept
    {
        using R = std::invoke_result_t<F &>;
        static_assert(std::is_void_v<R> || std::is_same_v<R, int>, "fn returns a code");

#ifdef __cpp_exceptions
        try {
            return run(fn, most);
        } catch (const error &e) {
            return e.code();
        } catch (const std::bad_alloc &) {
            return ENOMEM;
        }
#else
        return run(fn, most);
#endif
    }

    /* Run fn() as a query, once; return its result. */
    template <class F>
    auto
    query(F &&fn)
    {
        using R = std::invoke_result_t<F &>;
        static_assert(!std::is_reference_v<R>, "return a copy: rule (3)");

        check(xac_begin_query_in(env_));
        return finish<R>(fn);
    }

    /* A place in the running transaction to go back to.  (A transact() inside of another one takes one by
       itself: if it fails, only its own stores are undone.) */
    xac::savepoint
    savepoint()
    {
        return xac::savepoint(env_);
    }

    /* Remove a file that nobody maps, with all that was committed to it; see xac_remove(). */
    void
    remove(const char *name)
    {
        check(xac_remove_in(env_, name));
    }

    /* Rename a file that nobody maps; see xac_rename(). */
    void
    rename(const char *from, const char *to)
    {
        check(xac_rename_in(env_, from, to));
    }

    /* The number of the running transaction or query, for threads that are to help it: class helper. */
    std::uint64_t
    team()
    {
        std::uint64_t txn = 0;

        check(xac_team_in(env_, &txn));
        return txn;
    }

    /* Hold the present state. */
    xac::snapshot
    snapshot()
    {
        return xac::snapshot(env_);
    }

    /*
     * Call fn(const xac_change &) for each range of the mapped segments that differs between two states:
     * ids of snapshots, at_commit(), at_time().  If it returns a bool, true ends the walk.
     */
    template <class F>
    void
    diff(std::uint64_t from, std::uint64_t to, F &&fn)
    {
        change_visit<F> visit{fn};
        int rc = xac_diff_in(env_, from, to, change_visit<F>::once, &visit);

#ifdef __cpp_exceptions
        if (visit.failure)
            std::rethrow_exception(visit.failure);
#endif
        check(visit.is_over ? 0 : rc);
    }

    /* The rows of xac_participants(): what each participant does, and what it waits for. */
    std::vector<xac_party>
    participants() const
    {
        std::vector<xac_party> rows;
        auto add = [](void *arg, const xac_party *row) noexcept -> int {
#ifdef __cpp_exceptions
            try {
                static_cast<std::vector<xac_party> *>(arg)->push_back(*row);
            } catch (const std::bad_alloc &) {
                return ENOMEM;
            }
#else
            static_cast<std::vector<xac_party> *>(arg)->push_back(*row);
#endif
            return 0;
        };

        check(xac_participants_in(env_, add, &rows, sizeof(xac_party)));
        return rows;
    }

    /* Run fn() as a query at a snapshot of any participant, or at a state of the past, once; return its
       result. */
    template <class F>
    auto
    query_at(std::uint64_t id, F &&fn)
    {
        using R = std::invoke_result_t<F &>;
        static_assert(!std::is_reference_v<R>, "return a copy: rule (3)");

        check(xac_begin_query_at_in(env_, id));
        return finish<R>(fn);
    }

    /* Run fn() as a query that sees at least the state of a token, once; return its result.  See
       xac_begin_query_after(): it throws ETIMEDOUT if that is not here in time. */
    template <class F>
    auto
    query_after(const xac_token &token, std::chrono::milliseconds wait, F &&fn)
    {
        using R = std::invoke_result_t<F &>;
        static_assert(!std::is_reference_v<R>, "return a copy: rule (3)");

        check(xac_begin_query_after_in(env_, &token, wait_ms(wait)));
        return finish<R>(fn);
    }

    /* Run fn() as a query that sees all that was acknowledged before, at any node of the group, once; return its
       result.  See xac_begin_query_latest(). */
    template <class F>
    auto
    query_latest(std::chrono::milliseconds wait, F &&fn)
    {
        using R = std::invoke_result_t<F &>;
        static_assert(!std::is_reference_v<R>, "return a copy: rule (3)");

        check(xac_begin_query_latest_in(env_, wait_ms(wait)));
        return finish<R>(fn);
    }

    /* The token of the running query, or of what this thread has ended last; see xac_get_token(). */
    xac_token
    token() const
    {
        xac_token t{};

        check(xac_get_token_in(env_, &t));
        return t;
    }

    /* What has become of it: XAC_COMMITTED, XAC_ELOST, XAC_EUNCERTAIN, or an error; see xac_fate(). */
    int
    fate(const xac_token &token, std::chrono::milliseconds wait = {}) const noexcept
    {
        return xac_fate_in(env_, &token, wait_ms(wait));
    }

  private:
    /* Of a duration, within what the library takes. */
    static std::uint32_t
    wait_ms(std::chrono::milliseconds wait) noexcept
    {
        auto n = wait.count();

        return n <= 0 ? 0 : n >= UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(n);
    }

    /* A query that ends with its block, by an exception too. */
    struct open_query {
        xac_env *in;

        int
        end() noexcept
        {
            return xac_end_query_in(std::exchange(in, nullptr));
        }
        ~open_query()
        {
            if (in != nullptr)
                end();
        }
    };

    /* The rest of a query that has begun. */
    template <class R, class F>
    R
    finish(F &fn)
    {
        open_query open{env_};
        if constexpr (std::is_void_v<R>) {
            fn();
            check(open.end());
        } else {
            R result = fn();

            check(open.end());
            return result;
        }
    }

    /* A walk over changes: its function, and how it has ended.  No exception may leave a callback. */
    template <class F> struct change_visit {
        F &fn;
        bool is_over = false;
#ifdef __cpp_exceptions
        std::exception_ptr failure = nullptr;
#endif

        static int
        call(change_visit &self, const xac_change &change)
        {
            if constexpr (std::is_same_v<std::invoke_result_t<F &, const xac_change &>,
                                         bool>)
                self.is_over = self.fn(change);
            else
                self.fn(change);
            return self.is_over ? 1 : 0;
        }

        static int
        once(void *arg, const xac_change *change)
        {
            auto &self = *static_cast<change_visit *>(arg);

#ifdef __cpp_exceptions
            try {
                return call(self, *change);
            } catch (...) {
                self.failure = std::current_exception();
                return 1;
            }
#else
            return call(self, *change);
#endif
        }
    };

    /* A transaction that runs: its function, and what it has used of its limits. */
    template <class F> struct attempts {
        F &fn;
        limits most;
        std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
        unsigned n = 0;

        bool
        is_over() const
        {
            if (n == 0)
                return false;
            if (most.attempts != 0 && n >= most.attempts)
                return true;
            return most.time.count() != 0
                   && std::chrono::steady_clock::now() - start >= most.time;
        }

        /* The function for xac_transact_in(), which does not return XAC_ABORTED by itself. */
        static int
        once(void *arg)
        {
            auto &self = *static_cast<attempts *>(arg);

            if (self.is_over())
                return XAC_ABORTED;
            self.n++;
            if constexpr (std::is_same_v<std::invoke_result_t<F &>, int>) {
                return self.fn();
            } else {
                self.fn();
                return 0;
            }
        }
    };

    /* XAC_FAILED is no error: a nested transaction is done, and the outermost one tries again. */
    template <class F>
    int
    run(F &fn, limits most)
    {
        attempts<F> tried{fn, most};
        int rc = xac_transact_in(env_, attempts<F>::once, &tried);

        return rc == XAC_FAILED ? 0 : rc;
    }

    xac_env *env_ = nullptr;
};

/*
 * The beginning of a file as an array of T, mapped where pointers in it are valid
 * (XAC_SAME_ADDRESS).  A new file is zero bytes: no constructor runs.
 */
template <class T> class mapping {
    static_assert(std::is_trivially_copyable_v<T>,
                  "a file holds bytes: no virtual functions, no destructors");

  public:
    mapping() noexcept = default;
    mapping(env &in, const char *name, std::size_t count)
    {
        check(try_map(in, name, count));
    }
    mapping(mapping &&other) noexcept
        : env_(other.env_), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0))
    {
    }
    mapping &
    operator=(mapping &&other) noexcept
    {
        std::swap(env_, other.env_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~mapping()
    {
        try_unmap();
    }

    /* Outside of transactions.  EFBIG: so many T have no size in bytes. */
    int
    try_map(env &in, const char *name, std::size_t count) noexcept
    {
        must_persist<T>();
        auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

        if (data_ != nullptr)
            return XAC_EMAPPED;
        if (count > (SIZE_MAX - page) / sizeof(T))
            return EFBIG;
        std::size_t length = (count * sizeof(T) + page - 1) / page * page;
        void *base = xac_mmap_at_in(in.get(), name, 0, length, XAC_SAME_ADDRESS);

        if (base == MAP_FAILED)
            return errno;
        env_ = in.get();
        data_ = static_cast<T *>(base);
        size_ = count;
        return 0;
    }

    /* 0 if nothing is mapped.  After XAC_EINTXN and EBUSY it is still mapped. */
    int
    try_unmap() noexcept
    {
        int rc = data_ != nullptr ? xac_munmap_at_in(env_, data_) : 0;

        if (rc != XAC_EINTXN && rc != EBUSY) {
            data_ = nullptr;
            size_ = 0;
        }
        return rc;
    }

    T *
    data() const noexcept
    {
        return data_;
    }
    std::size_t
    size() const noexcept
    {
        return size_;
    }
    T &
    operator[](std::size_t i) const noexcept
    {
        return data_[i];
    }
    T *
    begin() const noexcept
    {
        return data_;
    }
    T *
    end() const noexcept
    {
        return data_ + size_;
    }

  private:
    xac_env *env_ = nullptr;
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace xac

#include "xac_heap.hpp" /* heaps, allocators, objects with names */

#endif /* XAC_HPP */
