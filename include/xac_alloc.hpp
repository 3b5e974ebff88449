/* SPDX-License-Identifier: MIT */
/*
 * xac_alloc.hpp -- allocators for containers in a heap (xac_malloc_in).  xac.hpp includes it.
 *
 * allocator<T>         has ordinary pointers.  All containers of the standard library work with it,
 *                      where the file is mapped at the same address in each run.
 * offset_allocator<T>  has pointers that are distances, for threads with views of their own: a
 *                      container that is made through one view is the same through another.  Of the
 *                      standard library's containers std::vector can use such pointers
 *                      everywhere; those of Boost.Interprocess and Boost.Container all can.
 *
 * Both are as large as a pointer, and find the heap's environment by its address.  They have no
 * default constructor, so that a container which was not given its heap does not compile.
 */
#ifndef XAC_ALLOC_HPP
#define XAC_ALLOC_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "xac_env.h"
#include "xac_error.hpp"
#include "xac_persist.hpp"

namespace xac {

/* ---- Pointers that are distances ------------------------------------------------------------ */

/*
 * offset_ptr<T> -- a pointer that stores its distance from itself.  Both lie in one segment (or the
 * pointer lies on the stack, for a while); the bytes of it must not be moved by memcpy().
 */
template <class T> class offset_ptr {
    template <class U> friend class offset_ptr;
    using at = std::conditional_t<std::is_void_v<T>, char, T>;

  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using difference_type = std::ptrdiff_t;
    using pointer = offset_ptr;
    using reference = std::add_lvalue_reference_t<T>;
    using iterator_category = std::random_access_iterator_tag;
    template <class U> using rebind = offset_ptr<U>;

    offset_ptr() noexcept : distance_(none)
    {
    }
    offset_ptr(T *p) noexcept : distance_(to(p))
    {
    }
    offset_ptr(const offset_ptr &other) noexcept : distance_(to(other.get()))
    {
    }
    template <class U, class = std::enable_if_t<std::is_convertible_v<U *, T *>>>
    offset_ptr(const offset_ptr<U> &other) noexcept : distance_(to(other.get()))
    {
    }
    /* What static_cast does with pointers, if it is no conversion. */
    template <class U, class = std::enable_if_t<!std::is_convertible_v<U *, T *>>,
              class = decltype(static_cast<T *>(std::declval<U *>()))>
    explicit offset_ptr(const offset_ptr<U> &other) noexcept
        : distance_(to(static_cast<T *>(other.get())))
    {
    }
    offset_ptr &
    operator=(const offset_ptr &other) noexcept
    {
        distance_ = to(other.get());
        return *this;
    }

    T *
    get() const noexcept
    {
        return distance_ == none ? nullptr
                                 : reinterpret_cast<T *>(hidden(self() + distance_));
    }
    T *
    operator->() const noexcept
    {
        return get();
    }
    reference
    operator*() const noexcept
    {
        return *get();
    }
    reference
    operator[](difference_type i) const noexcept
    {
        return get()[i];
    }
    explicit operator bool() const noexcept
    {
        return distance_ != none;
    }
    bool
    operator!() const noexcept
    {
        return distance_ == none;
    }
    template <class U = T>
    static offset_ptr
    pointer_to(std::enable_if_t<!std::is_void_v<U>, U> &object) noexcept
    {
        return offset_ptr(std::addressof(object));
    }

    offset_ptr &
    operator+=(difference_type n) noexcept
    {
        distance_ += static_cast<std::uintptr_t>(n) * sizeof(at);
        return *this;
    }
    offset_ptr &
    operator-=(difference_type n) noexcept
    {
        return *this += -n;
    }
    offset_ptr &
    operator++() noexcept
    {
        return *this += 1;
    }
    offset_ptr &
    operator--() noexcept
    {
        return *this += -1;
    }
    offset_ptr
    operator++(int) noexcept
    {
        offset_ptr before(*this);
        ++*this;
        return before;
    }
    offset_ptr
    operator--(int) noexcept
    {
        offset_ptr before(*this);
        --*this;
        return before;
    }
    friend offset_ptr
    operator+(offset_ptr p, difference_type n) noexcept
    {
        return p += n;
    }
    friend offset_ptr
    operator+(difference_type n, offset_ptr p) noexcept
    {
        return p += n;
    }
    friend offset_ptr
    operator-(offset_ptr p, difference_type n) noexcept
    {
        return p -= n;
    }
    friend difference_type
    operator-(const offset_ptr &a, const offset_ptr &b) noexcept
    {
        return static_cast<const at *>(a.get()) - static_cast<const at *>(b.get());
    }

  private:
    /* The byte behind the start of the pointer itself: nothing begins there. */
    static constexpr std::uintptr_t none = 1;

    /*
     * The compiler must not see where a number comes from.  It would take an address that is made
     * from that of the pointer itself for an address in the pointer itself, and move loads and stores
     * of the object across each other, or leave them out.
     */
    static std::uintptr_t
    hidden(std::uintptr_t address) noexcept
    {
        __asm__("" : "+r"(address));
        return address;
    }
    std::uintptr_t
    self() const noexcept
    {
        return hidden(reinterpret_cast<std::uintptr_t>(this));
    }
    std::uintptr_t
    to(const volatile void *p) const noexcept
    {
        return p == nullptr ? none : hidden(reinterpret_cast<std::uintptr_t>(p)) - self();
    }

    std::uintptr_t distance_;
};

#define XAC_COMPARE(op)                                                    \
 template <class T, class U>                                               \
 bool operator op(const offset_ptr<T> &a, const offset_ptr<U> &b) noexcept \
 {                                                                         \
  return a.get() op b.get();                                               \
 }
XAC_COMPARE(==)
XAC_COMPARE(!=)
XAC_COMPARE(<)
XAC_COMPARE(<=)
XAC_COMPARE(>)
XAC_COMPARE(>=)
#undef XAC_COMPARE

template <class T>
bool
operator==(const offset_ptr<T> &p, std::nullptr_t) noexcept
{
    return !p;
}
template <class T>
bool
operator==(std::nullptr_t, const offset_ptr<T> &p) noexcept
{
    return !p;
}
template <class T>
bool
operator!=(const offset_ptr<T> &p, std::nullptr_t) noexcept
{
    return !!p;
}
template <class T>
bool
operator!=(std::nullptr_t, const offset_ptr<T> &p) noexcept
{
    return !!p;
}

/* ---- Memory of a heap ------------------------------------------------------------------------ */

namespace detail {

/* take -- memory of the heap at `base`; inside a transaction. */
inline void *
take(void *base, std::size_t bytes, std::size_t alignment)
{
    xac_env *in = nullptr;
    void *start = xac_segment_of(base, &in);
    void *p = nullptr;

    if (start == base)
        p = alignment <= 16 ? xac_malloc_in(in, base, bytes)
                            : xac_aligned_alloc_in(in, base, alignment, bytes);
    else if (start != nullptr)
        errno = EINVAL;
    if (p == nullptr)
        throw_memory(errno);
    return p;
}

/* give -- a failure cannot be reported by a destructor, and to go on would lose memory or worse: the
   program ends, and the transaction with it. */
inline void
give(void *base, void *p) noexcept
{
    xac_env *in = nullptr;
    int rc = xac_segment_of(base, &in) == base ? xac_free_in(in, base, p) : EINVAL;

    if (rc == 0)
        return;
    std::fprintf(stderr, "xac: memory of a heap cannot be freed: %s: %s\n",
                 xac_strerror(rc), xac_last_error());
    std::abort();
}

template <class T>
std::size_t
bytes_of(std::size_t n)
{
    if (n > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())
                / sizeof(T))
        throw_memory(ENOMEM);
    return n * sizeof(T);
}

template <class T>
T *
address_in(T *p) noexcept
{
    return p;
}
template <class T>
T *
address_in(const offset_ptr<T> &p) noexcept
{
    return p.get();
}

/* What both allocators have.  Moved and swapped containers stay in their heap. */
template <class Derived, class T, class Pointer, class Base> class allocator_base {
  public:
    using value_type = T;
    using pointer = Pointer;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::false_type;
    using propagate_on_container_swap = std::false_type;
    using is_always_equal = std::false_type;

    explicit allocator_base(void *base) noexcept : base_(static_cast<char *>(base))
    {
    }

    Pointer
    allocate(size_type n)
    {
        must_persist<T>();
        return Pointer(static_cast<T *>(take(base(), bytes_of<T>(n), alignof(T))));
    }
    void
    deallocate(const Pointer &p, size_type) noexcept
    {
        give(base(), address_in(p));
    }
    template <class U, class... Args>
    void
    construct(U *p, Args &&...args)
    {
        must_persist<U>();
        ::new (static_cast<void *>(p)) U(std::forward<Args>(args)...);
    }

    /* The start of the heap. */
    void *
    base() const noexcept
    {
        return address_in(base_);
    }

  private:
    Base base_;
};

} // namespace detail

/* ---- The allocators -------------------------------------------------------------------------- */

/* allocator<T> -- for containers with ordinary pointers.  `base` is the start of the heap. */
template <class T>
class allocator : public detail::allocator_base<allocator<T>, T, T *, char *> {
    using base_class = detail::allocator_base<allocator<T>, T, T *, char *>;

  public:
    using xac_heap_allocator = allocator<char>; /* what it is made from; see is_ours */
    template <class U> struct rebind {
        using other = allocator<U>;
    };
    explicit allocator(void *base) noexcept : base_class(base)
    {
    }
    template <class U>
    allocator(const allocator<U> &other) noexcept : base_class(other.base())
    {
    }
};

/* offset_allocator<T> -- for containers with offset_ptr. */
template <class T>
class offset_allocator : public detail::allocator_base<offset_allocator<T>, T,
                                                       offset_ptr<T>, offset_ptr<char>> {
    using base_class =
        detail::allocator_base<offset_allocator<T>, T, offset_ptr<T>, offset_ptr<char>>;

  public:
    using xac_heap_allocator = offset_allocator<char>;
    using const_pointer = offset_ptr<const T>;
    using void_pointer = offset_ptr<void>;
    using const_void_pointer = offset_ptr<const void>;
    template <class U> struct rebind {
        using other = offset_allocator<U>;
    };
    explicit offset_allocator(void *base) noexcept : base_class(base)
    {
    }
    template <class U>
    offset_allocator(const offset_allocator<U> &other) noexcept : base_class(other.base())
    {
    }
};

template <class T, class U>
bool
operator==(const allocator<T> &a, const allocator<U> &b) noexcept
{
    return a.base() == b.base();
}
template <class T, class U>
bool
operator!=(const allocator<T> &a, const allocator<U> &b) noexcept
{
    return a.base() != b.base();
}
template <class T, class U>
bool
operator==(const offset_allocator<T> &a, const offset_allocator<U> &b) noexcept
{
    return a.base() == b.base();
}
template <class T, class U>
bool
operator!=(const offset_allocator<T> &a, const offset_allocator<U> &b) noexcept
{
    return a.base() != b.base();
}

} // namespace xac

#endif /* XAC_ALLOC_HPP */
