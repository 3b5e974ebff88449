/* SPDX-License-Identifier: MIT */
/*
 * xac_heap.hpp -- heaps in files, and objects with names in them.  xac.hpp includes it.
 *
 *     xac::heap heap(env, "words", 64 << 20);
 *     env.transact([&] {
 *         auto &count = *heap.find_or_construct<xac::map<xac::string, int>>("count");
 *         ...
 *     });
 *
 * The calls of roots are made inside a transaction, find() also in a query.  The pointers that they
 * return are used there, too.  The directory of names takes the root area of the heap (xac_root_in)
 * for itself.  Its bytes:
 *
 *   000  8 magic           entry, in an allocation of its own
 *   008  4 version          00  8 next entry of the list, 0 none
 *   012  4 reserved         08  8 object
 *   016  8 x 29 lists       16  8 size, 24  8 alignment, 32  8 layout: type_tag
 *                           40  4, 44  4, 48  4 lengths of the name, the type's, the ABI's
 *                           52  4 reserved, then these three texts
 *
 * Places are distances from the start of the heap.  The list is chosen by xac_hash() of the name.
 */
#ifndef XAC_HEAP_HPP
#define XAC_HEAP_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xac.hpp"
#include "xac_alloc.hpp"
#include "xac_env.h"
#include "xac_error.hpp"
#include "xac_persist.hpp"

namespace xac {

constexpr std::size_t name_length_max = 255;  /* bytes of the name of an object     */
constexpr std::size_t type_length_max = 4000; /* a longer name of a type is cut off */

namespace detail {

constexpr std::uint64_t directory_magic = UINT64_C(0x31544f4f52434158); /* "XACROOT1" */
constexpr std::uint32_t directory_version = 1;

struct directory {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;
    std::uint64_t lists[29];
};
static_assert(sizeof(directory) <= XAC_ROOT_SIZE, "it lies in the root area");

struct entry {
    std::uint64_t next;
    std::uint64_t object;
    std::uint64_t size;
    std::uint64_t alignment;
    std::uint64_t layout;
    std::uint32_t name_length;
    std::uint32_t type_length;
    std::uint32_t abi_length;
    std::uint32_t reserved;
};
static_assert(sizeof(entry) == 56, "texts follow");

/* heap_names -- the directory of a heap, whatever the types are. */
class heap_names {
  public:
    heap_names(xac_env *in, void *base) : env_(in), base_(static_cast<char *>(base))
    {
    }

    /*
     * Find the object of that name.
     *
     * out  objectp  NULL: there is none
     * out  why      more words about an error; may be NULL
     * ret  0; EINVAL: no such name, or the root area holds other data; XAC_EVERSION; XAC_ELAYOUT;
     *      XAC_EDAMAGED: the file has been cut; as xac_root_in().
     */
    int
    find(std::string_view name, const type_tag &tag, void **objectp,
         std::string *why = nullptr)
    {
        std::uint64_t *link = nullptr;
        int rc = find_link(name, &link, why);

        *objectp = nullptr;
        if (rc != 0 || link == nullptr || *link == 0)
            return rc;
        if (!is_same(*entry_at(*link), tag)) {
            if (why != nullptr)
                *why = difference(*entry_at(*link), tag);
            return XAC_ELAYOUT;
        }
        *objectp = base_ + entry_at(*link)->object;
        return 0;
    }

    /* Give an object a name that is not in use. */
    void
    insert(std::string_view name, const type_tag &tag, void *object)
    {
        std::string_view type = tag.name.substr(0, type_length_max);
        auto *e = static_cast<entry *>(
            take(base_, sizeof(entry) + name.size() + type.size() + tag.abi.size(), 16));
        char *text = reinterpret_cast<char *>(e + 1);
        std::uint64_t *list = &made_directory()->lists[list_of(name)];

        *e = entry{*list,         distance(object), tag.size,
                   tag.alignment, tag.layout,       length(name),
                   length(type),  length(tag.abi),  0};
        text = put(text, name);
        text = put(text, type);
        put(text, tag.abi);
        *list = distance(e);
    }

    /* Forget a name that is in use. */
    void
    remove(std::string_view name)
    {
        std::uint64_t *link = nullptr;
        std::string why;

        if (find_link(name, &link, &why) != 0 || link == nullptr || *link == 0)
            throw_error(EINVAL, why);
        entry *e = entry_at(*link);
        *link = e->next;
        give(base_, e);
    }

  private:
    static std::size_t
    list_of(std::string_view name) noexcept
    {
        return xac_hash(name.data(), name.size())
               % (sizeof(directory::lists) / sizeof(std::uint64_t));
    }
    static std::uint32_t
    length(std::string_view text) noexcept
    {
        return static_cast<std::uint32_t>(text.size());
    }
    static char *
    put(char *at, std::string_view text) noexcept
    {
        std::memcpy(at, text.data(), text.size());
        return at + text.size();
    }
    std::uint64_t
    distance(const void *p) const noexcept
    {
        return static_cast<std::uint64_t>(static_cast<const char *>(p) - base_);
    }
    entry *
    entry_at(std::uint64_t distance) const noexcept
    {
        return reinterpret_cast<entry *>(base_ + distance);
    }
    static std::string_view
    name_of(const entry &e) noexcept
    {
        return {reinterpret_cast<const char *>(&e + 1), e.name_length};
    }
    static std::string_view
    type_of(const entry &e) noexcept
    {
        return {name_of(e).data() + e.name_length, e.type_length};
    }
    static std::string_view
    abi_of(const entry &e) noexcept
    {
        return {type_of(e).data() + e.type_length, e.abi_length};
    }

    static int
    fail(int code, std::string *why, const char *text)
    {
        if (why != nullptr)
            *why = text;
        return code;
    }

    /* The directory; NULL: the heap has none yet. */
    int
    find_directory(directory **dp, std::string *why) const
    {
        static const directory blank = {};
        auto *d = static_cast<directory *>(xac_root_in(env_, base_));

        if (d == nullptr)
            return fail(errno, why, xac_last_error());
        if (d->magic != directory_magic && std::memcmp(d, &blank, sizeof blank) != 0)
            return fail(EINVAL, why,
                        "the root area of the heap holds data of the program");
        if (d->magic == directory_magic && d->version != directory_version)
            return fail(XAC_EVERSION, why, "the directory of names in the heap");
        *dp = d->magic == directory_magic ? d : nullptr;
        return 0;
    }
    /* After find() has returned 0. */
    directory *
    made_directory() const
    {
        auto *d = static_cast<directory *>(xac_root_in(env_, base_));

        if (d == nullptr)
            throw_memory(errno);
        d->version = directory_version;
        d->magic = directory_magic;
        return d;
    }

    /* The link to the entry of that name, or the 0 at the list's end; NULL: no directory. */
    int
    find_link(std::string_view name, std::uint64_t **linkp, std::string *why) const
    {
        directory *d = nullptr;

        if (name.empty() || name.size() > name_length_max)
            return fail(EINVAL, why, "the name of an object has 1 to 255 bytes");
        int rc = find_directory(&d, why);
        if (rc != 0 || d == nullptr)
            return rc;
        std::uint64_t *link = &d->lists[list_of(name)];
        for (; *link != 0; link = &entry_at(*link)->next) {
            const entry &e = *entry_at(*link);

            if (e.name_length == 0) /* zeros stand where a file has been cut */
                return fail(XAC_EDAMAGED, why,
                            "the file of the heap has been cut, or is damaged: an entry of "
                            "its directory of names is empty");
            if (name_of(e) == name)
                break;
        }
        *linkp = link;
        return 0;
    }

    static bool
    is_same(const entry &e, const type_tag &tag)
    {
        return e.size == tag.size && e.alignment == tag.alignment
               && e.layout == tag.layout
               && type_of(e) == tag.name.substr(0, type_length_max)
               && abi_of(e) == tag.abi;
    }
    static std::string
    text_of(std::string_view type, std::string_view abi, std::uint64_t size,
            std::uint64_t alignment, std::uint64_t layout)
    {
        return std::string(type) + " (" + std::to_string(size) + " bytes, aligned to "
               + std::to_string(alignment) + ", layout " + std::to_string(layout % 100000)
               + ", " + std::string(abi) + ")";
    }
    static std::string
    difference(const entry &e, const type_tag &tag)
    {
        return "the object \"" + std::string(name_of(e)) + "\" was written as "
               + text_of(type_of(e), abi_of(e), e.size, e.alignment, e.layout)
               + ", and the program asks for "
               + text_of(tag.name, tag.abi, tag.size, tag.alignment, tag.layout);
    }

    xac_env *env_;
    char *base_;
};

/* The allocator that a type's constructor takes, if it has the member allocator_type. */
template <class T, class = void> struct allocator_of {
    using type = void;
};
template <class T> struct allocator_of<T, std::void_t<typename T::allocator_type>> {
    using type = typename T::allocator_type;
};

template <class A>
A
make_allocator(void *base)
{
    return A(typename A::xac_heap_allocator(base));
}

/* Construct at an address; a class with allocator_type gets the allocator as its last argument, or
   as its first after std::allocator_arg. */
template <class T, class... Args>
T *
construct_at(void *at, [[maybe_unused]] void *base, Args &&...args)
{
    using A = typename allocator_of<T>::type;

    if constexpr (!std::is_void_v<A>) {
        if constexpr (std::is_constructible_v<T, Args..., const A &>) {
            return ::new (at) T(std::forward<Args>(args)..., make_allocator<A>(base));
        } else {
            static_assert(
                std::is_constructible_v<T, std::allocator_arg_t, const A &, Args...>,
                "xac: no constructor takes these arguments and the allocator");
            return ::new (at) T(std::allocator_arg, make_allocator<A>(base),
                                std::forward<Args>(args)...);
        }
    } else if constexpr (std::is_constructible_v<T, Args...>) {
        return ::new (at) T(std::forward<Args>(args)...);
    } else {
        return ::new (at) T{std::forward<Args>(args)...};
    }
}

} // namespace detail

/* ---- Objects with names --------------------------------------------------------------------- */

/* roots -- a heap as it is seen through a mapping or a view; see heap and heap_view. */
class roots {
  public:
    /* The object of that name.  If there is none, it is made: T(args...), or T(args..., allocator)
       for a container.  Throws std::bad_alloc, layout_error, and what the constructor throws. */
    template <class T, class... Args>
    T *
    find_or_construct(std::string_view name, Args &&...args)
    {
        detail::heap_names names(env_, base_);
        T *object = find<T>(name);

        if (object != nullptr)
            return object;
        void *at = detail::take(base_, sizeof(T), alignof(T));
        undo made{base_, at};
        object = detail::construct_at<T>(at, base_, std::forward<Args>(args)...);
        undo_object<T> live{object};
        names.insert(name, tag_of<T>(), object);
        live.object = nullptr;
        made.at = nullptr;
        return object;
    }

    /* The object of that name, NULL if there is none.  Throws layout_error. */
    template <class T>
    T *
    find(std::string_view name) const
    {
        void *object = nullptr;
        std::string why;

        must_persist<T>();
        int rc = detail::heap_names(env_, base_).find(name, tag_of<T>(), &object, &why);
        if (rc != 0)
            throw_error(rc, why);
        return static_cast<T *>(object);
    }

    /* The same; ret 0, and *out is NULL if there is none; XAC_ELAYOUT; XAC_EVERSION; EINVAL: the root
       area holds other data, or no such name; else as xac_root_in(). */
    template <class T>
    int
    try_find(std::string_view name, T **out) const noexcept
    {
        void *object = nullptr;

        must_persist<T>();
        int rc = detail::heap_names(env_, base_).find(name, tag_of<T>(), &object);
        if (rc == 0)
            *out = static_cast<T *>(object);
        return rc;
    }

    /* End the object of that name, and forget it; false: there is none. */
    template <class T>
    bool
    destroy(std::string_view name)
    {
        T *object = find<T>(name);

        if (object == nullptr)
            return false;
        detail::heap_names(env_, base_).remove(name);
        object->~T();
        detail::give(base_, object);
        return true;
    }

    /* For containers without a name. */
    template <class T = char>
    xac::allocator<T>
    allocator() const noexcept
    {
        return xac::allocator<T>(base_);
    }
    template <class T = char>
    xac::offset_allocator<T>
    offset_allocator() const noexcept
    {
        return xac::offset_allocator<T>(base_);
    }

    /* Check the allocator's own data; inside a transaction or a query. */
    xac_heap_totals
    totals() const
    {
        xac_heap_totals all = {};

        check(xac_heap_check_in(env_, base_, &all, sizeof all));
        return all;
    }

    /* The start of the heap; NULL: it is not open. */
    void *
    base() const noexcept
    {
        return base_;
    }

  protected:
    roots() noexcept = default;
    roots(xac_env *in, void *base) noexcept : env_(in), base_(base)
    {
    }

    xac_env *env_ = nullptr;
    void *base_ = nullptr;

  private:
    /* What has been made goes, if an exception comes before all is done. */
    struct undo {
        void *base;
        void *at;
        ~undo()
        {
            if (at != nullptr)
                detail::give(base, at);
        }
    };
    template <class T> struct undo_object {
        T *object;
        ~undo_object()
        {
            if (object != nullptr)
                object->~T();
        }
    };
};

/*
 * heap -- a file that is mapped as a heap, where pointers in it are valid (XAC_SAME_ADDRESS).  A new
 * file has zero bytes, and becomes a heap with the first allocation.  If it is opened with more
 * bytes than before, the heap grows.
 */
class heap : public roots {
  public:
    heap() noexcept = default;
    heap(env &in, const char *name, std::size_t bytes)
    {
        check(try_map(in, name, bytes));
    }
    heap(heap &&other) noexcept
        : roots(std::exchange(other.env_, nullptr), std::exchange(other.base_, nullptr)),
          bytes_(std::move(other.bytes_))
    {
    }
    heap &
    operator=(heap &&other) noexcept
    {
        std::swap(env_, other.env_);
        std::swap(base_, other.base_);
        bytes_ = std::move(other.bytes_);
        return *this;
    }

    /* Outside of transactions; ret 0 or as xac_mmap_at_in(). */
    int
    try_map(env &in, const char *name, std::size_t bytes) noexcept
    {
        int rc = bytes_.try_map(in, name, bytes);

        if (rc == 0) {
            env_ = in.get();
            base_ = bytes_.data();
        }
        return rc;
    }

    /* 0 if nothing is mapped.  After XAC_EINTXN and EBUSY it is still mapped. */
    int
    try_unmap() noexcept
    {
        int rc = bytes_.try_unmap();

        if (bytes_.data() == nullptr)
            base_ = nullptr;
        return rc;
    }

    std::size_t
    size() const noexcept
    {
        return bytes_.size();
    }

  private:
    friend class heap_view;
    mapping<char> bytes_;
};

/*
 * heap_view -- the view of a heap that a thread has for itself: its transactions run beside those of
 * other threads.  Objects that are used through it have offset_allocator and offset_ptr.  The thread
 * that makes the view ends it.
 */
class heap_view : public roots {
  public:
    explicit heap_view(const heap &of)
    {
        void *view = of.base_ != nullptr ? xac_view_in(of.env_, of.base_) : MAP_FAILED;

        if (view == MAP_FAILED)
            check(of.base_ != nullptr ? errno : XAC_ENOTMAPPED);
        env_ = of.env_;
        base_ = view;
    }
    heap_view(const heap_view &) = delete;
    heap_view &operator=(const heap_view &) = delete;
    ~heap_view()
    {
        xac_unview_in(env_, base_);
    }
};

} // namespace xac

#endif /* XAC_HEAP_HPP */
