/* SPDX-License-Identifier: MIT */
/*
 * xac_persist.hpp -- what may lie in a heap: checks at compile time, tags of types, and a hash that
 * is the same in each run.  xac.hpp includes it.
 *
 * The next run of a program may have other addresses of code, another seed of hash tables, and
 * other types.  must_persist<T>() refuses what can be seen to break then; doc/cpp.md has the list.
 * It looks at the elements of containers, too.  It sees members of a class only if the class lists
 * their types:
 *
 *     using xac_members = std::tuple<decltype(words), decltype(files)>;
 */
#ifndef XAC_PERSIST_HPP
#define XAC_PERSIST_HPP

#include <any>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "xac.h"

namespace xac {

/* ---- A hash for tables in a heap ------------------------------------------------------------ */

/*
 * hash<T> -- a hash function for std::unordered_map and others, the same in each process: of
 * numbers, enumerations, strings, pairs and tuples of these.  It is built on xac_hash().  For a
 * type of your own, specialize it, and keep the member xac_persistent_hash.
 *
 * Pointers have none: an address may be another in the next run, and in the view of a thread.
 */
template <class T, class = void> struct hash;

/* persistent_hash_base -- promises that a hash function gives the same value in each process.  A
   hash function of your own may have such a member instead. */
struct persistent_hash_base {
    using xac_persistent_hash = std::true_type;
};

namespace detail {

/* A bijection of 64 bits, the finalizer of splitmix64: numbers in a row get far apart. */
constexpr std::uint64_t
mix(std::uint64_t x) noexcept
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

constexpr std::uint64_t
combine(std::uint64_t a, std::uint64_t b) noexcept
{
    return mix(a + UINT64_C(0x9e3779b97f4a7c15) + mix(b));
}

template <class... T>
std::size_t
hash_all(const T &...value) noexcept
{
    std::uint64_t h = sizeof...(T);

    ((h = combine(h, hash<T>{}(value))), ...);
    return static_cast<std::size_t>(h);
}

} // namespace detail

template <class T>
struct hash<T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>>>
    : persistent_hash_base {
    std::size_t
    operator()(T value) const noexcept
    {
        return static_cast<std::size_t>(detail::mix(static_cast<std::uint64_t>(value)
                                                    + UINT64_C(0x9e3779b97f4a7c15)));
    }
};

template <class T>
struct hash<T, std::enable_if_t<std::is_same_v<T, float> || std::is_same_v<T, double>>>
    : persistent_hash_base {
    std::size_t
    operator()(T value) const noexcept
    {
        double wide = value == 0 ? 0 : static_cast<double>(value); /* -0.0 == 0.0 */
        std::uint64_t bits = 0;

        std::memcpy(&bits, &wide, sizeof bits);
        return static_cast<std::size_t>(detail::mix(bits));
    }
};

/* Strings of any allocator, and views of strings. */
template <class T>
struct hash<T, std::void_t<typename T::traits_type, typename T::value_type,
                           decltype(std::declval<const T &>().data()),
                           decltype(std::declval<const T &>().size())>>
    : persistent_hash_base {
    std::size_t
    operator()(const T &value) const noexcept
    {
        return static_cast<std::size_t>(
            xac_hash(&*value.data(), value.size() * sizeof(typename T::value_type)));
    }
};

template <class A, class B> struct hash<std::pair<A, B>> : persistent_hash_base {
    std::size_t
    operator()(const std::pair<A, B> &value) const noexcept
    {
        return detail::hash_all(value.first, value.second);
    }
};

template <class... T> struct hash<std::tuple<T...>> : persistent_hash_base {
    std::size_t
    operator()(const std::tuple<T...> &value) const noexcept
    {
        return std::apply([](const T &...each) { return detail::hash_all(each...); },
                          value);
    }
};

/* ---- What cannot persist -------------------------------------------------------------------- */

namespace detail {

template <class T, class = void> struct has_native_handle : std::false_type {
};
template <class T>
struct has_native_handle<T, std::void_t<typename T::native_handle_type>>
    : std::true_type {
};

template <class T> struct is_erased : std::false_type {
};
template <class R, class... A> struct is_erased<std::function<R(A...)>> : std::true_type {
};
template <> struct is_erased<std::any> : std::true_type {
};

template <class T> struct is_process_owner : std::false_type {
};
template <class T> struct is_process_owner<std::shared_ptr<T>> : std::true_type {
};
template <class T> struct is_process_owner<std::weak_ptr<T>> : std::true_type {
};
template <class T>
struct is_process_owner<std::unique_ptr<T, std::default_delete<T>>> : std::true_type {
};

/* Its allocator takes memory of a heap: a scoped_allocator_adaptor has the member by inheritance. */
template <class T, class = void> struct allocates_elsewhere : std::false_type {
};
template <class A, class = void> struct is_ours : std::false_type {
};
template <class A>
struct is_ours<A, std::void_t<typename A::xac_heap_allocator>> : std::true_type {
};
template <class T>
struct allocates_elsewhere<T, std::void_t<typename T::allocator_type>>
    : std::bool_constant<!is_ours<typename T::allocator_type>::value> {
};

template <class H, class = void> struct is_persistent_hash : std::false_type {
};
template <class H>
struct is_persistent_hash<H, std::void_t<typename H::xac_persistent_hash>>
    : std::true_type {
};
template <class T, class = void> struct hashes_otherwise : std::false_type {
};
template <class T>
struct hashes_otherwise<T, std::void_t<typename T::hasher>>
    : std::bool_constant<!is_persistent_hash<typename T::hasher>::value> {
};

/* The parts of a type that can be named, as a list of types; and what orders them. */
template <class... T> struct types {
};
template <class T, class = void> struct elements {
    using type = types<>;
};
template <class T>
struct elements<T, std::enable_if_t<!std::is_same_v<typename T::value_type, T>>> {
    using type = types<typename T::value_type>;
};
template <class A, class B> struct elements<std::pair<A, B>> {
    using type = types<A, B>;
};
template <class... T> struct elements<std::tuple<T...>> {
    using type = types<T...>;
};
template <class... T> struct elements<std::variant<T...>> {
    using type = types<T...>;
};
template <class T, class = void> struct parts : elements<T> {
};
template <class T>
struct parts<T, std::void_t<typename T::xac_members>>
    : elements<typename T::xac_members> {
};
template <class T, class = void> struct order_of {
    using type = types<>;
};
template <class T> struct order_of<T, std::void_t<typename T::key_compare>> {
    using type = types<typename T::key_compare>;
};

constexpr int depth_max = 8; /* of types in types: a type may be its own element */

template <class T, int depth> constexpr void persist_check();

template <int depth, class... T>
constexpr void
persist_check_all(types<T...>)
{
    if constexpr (depth < depth_max)
        (persist_check<std::remove_cv_t<std::remove_all_extents_t<T>>, depth + 1>(), ...);
}

template <class T, int depth>
constexpr void
persist_check()
{
    using Pointee = std::remove_pointer_t<T>;

    static_assert(!std::is_reference_v<T>, "xac: a reference cannot persist");
    static_assert(
        !std::is_function_v<
            T> && !std::is_function_v<Pointee> && !std::is_member_function_pointer_v<T>,
        "xac: a pointer to a function cannot persist: code has another address in "
        "the next run");
    static_assert(!is_erased<T>::value,
                  "xac: std::function and std::any cannot persist: they point to code");
    static_assert(!has_native_handle<T>::value,
                  "xac: a mutex or thread cannot persist: it belongs to one process");
    static_assert(
        !is_process_owner<T>::value,
        "xac: smart pointers of the standard library cannot persist: what they own "
        "lies outside of the heap");
    if constexpr (std::is_class_v<T>) {
        static_assert(
            !std::is_polymorphic_v<T>,
            "xac: a class with virtual functions cannot persist: its vtable has "
            "another address in the next run");
        static_assert(!allocates_elsewhere<T>::value,
                      "xac: the container takes memory outside of the heap: give it "
                      "xac::allocator or xac::offset_allocator");
        static_assert(
            !hashes_otherwise<T>::value,
            "xac: the hash may have another seed in the next run: use xac::hash, or "
            "promise that by a member xac_persistent_hash of the hash function");
        persist_check_all<depth>(typename parts<T>::type{});
        persist_check_all<depth>(typename order_of<T>::type{});
    }
}

} // namespace detail

/* must_persist<T>() -- does not compile if T, or an element of it, is seen not to persist. */
template <class T>
constexpr void
must_persist()
{
    detail::persist_check<std::remove_cv_t<std::remove_all_extents_t<T>>, 0>();
}

/* ---- Tags of types ------------------------------------------------------------------------- */

/*
 * type_tag -- what is stored beside an object with a name, so that a program with another type is
 * refused.
 *
 * Different are: the name of the type; its size and alignment, and those of its elements, if it is
 * a container, pair, tuple, variant or optional, or of its xac_members; the processor, and the
 * standard library with its mode.  The name is that of the compiler, which may differ between gcc and clang.  A class with
 * `static constexpr const char *xac_name = "order/1";` has that name instead: change it when you
 * change members in a way that keeps all sizes, for nothing else tells.
 */
struct type_tag {
    std::uint64_t size;
    std::uint64_t alignment;
    std::uint64_t layout; /* a hash of the sizes of all parts */
    std::string_view name;
    std::string_view abi;
};

namespace detail {

/* The text around the name of a type is the same for each type: int tells how long it is. */
template <class T>
constexpr auto
function_name() noexcept
{
    return std::string_view(__PRETTY_FUNCTION__);
}

template <class T>
constexpr std::string_view
compilers_name() noexcept
{
    constexpr std::string_view of_int = function_name<int>();
    constexpr std::string_view whole = function_name<T>();
    constexpr std::size_t before = of_int.rfind("= int") + 2;
    constexpr std::size_t behind = of_int.size() - before - 3;
    constexpr std::string_view rest = whole.substr(before);

    return rest.substr(0, rest.size() - behind);
}

template <class T, class = void> struct name_of {
    static constexpr std::string_view value = compilers_name<T>();
};
template <class T> struct name_of<T, std::void_t<decltype(T::xac_name)>> {
    static constexpr std::string_view value = T::xac_name;
};

template <class T, int depth> constexpr std::uint64_t layout_of() noexcept;

template <int depth, class... T>
constexpr std::uint64_t
layout_of_all(types<T...>) noexcept
{
    std::uint64_t h = sizeof...(T);

    if constexpr (depth < depth_max)
        ((h = combine(h, layout_of<T, depth + 1>())), ...);
    return h;
}

/* kind_of -- numbers of one size that are read differently. */
template <class T>
constexpr std::uint64_t
kind_of() noexcept
{
    return std::is_floating_point_v<T> ? 1
           : std::is_integral_v<T>     ? (std::is_signed_v<T> ? 2 : 3)
           : std::is_pointer_v<T>      ? 4
                                       : 0;
}

template <class T, int depth>
constexpr std::uint64_t
layout_of() noexcept
{
    using E = std::remove_cv_t<std::remove_all_extents_t<T>>;
    std::uint64_t h = combine(combine(sizeof(T), alignof(T)), kind_of<E>());

    if constexpr (std::is_class_v<E>)
        h = combine(h, layout_of_all<depth>(typename parts<E>::type{}));
    return h;
}

#define XAC_TEXT_OF_(x) #x
#define XAC_TEXT_OF(x)  XAC_TEXT_OF_(x)

/* The processor, the standard library, and what changes the bytes of its classes. */
inline constexpr std::string_view abi_text =
#if defined __x86_64__
    "x86-64"
#elif defined __aarch64__
    "aarch64"
#else
    "processor"
#endif
    "/" XAC_TEXT_OF(__SIZEOF_POINTER__) "/" XAC_TEXT_OF(__BYTE_ORDER__) " "
#if defined _GLIBCXX_RELEASE
                                                                        "libstdc++"
# if _GLIBCXX_USE_CXX11_ABI
                                                                        "/cxx11"
# endif
# ifdef _GLIBCXX_DEBUG
                                                                        "/debug"
# endif
#elif defined _LIBCPP_ABI_VERSION
                                                                        "libc++/" XAC_TEXT_OF(
                                                                            _LIBCPP_ABI_VERSION)
#else
                                                                        "unknown"
#endif
    ;

} // namespace detail

/* The tag of a type as this program is compiled. */
template <class T>
constexpr type_tag
tag_of() noexcept
{
    return {sizeof(T), alignof(T), detail::layout_of<T, 0>(), detail::name_of<T>::value,
            detail::abi_text};
}

} // namespace xac

#endif /* XAC_PERSIST_HPP */
