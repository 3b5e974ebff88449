/* SPDX-License-Identifier: MIT */
/*
 * refused.cpp -- programs that must not compile, one per number; for check_refused.sh.
 *
 * Each says behind its number what the compiler's message must contain.  CASE 0 is like the others,
 * but right: it compiles.
 */
#include <xac_containers.hpp>

#include <memory_resource>
#include <mutex>
#include <thread>

struct with_virtual {
    virtual ~with_virtual() = default;
};
struct derived : with_virtual {
    int value;
};
struct seeded_hash {
    std::size_t
    operator()(int n) const
    {
        return static_cast<std::size_t>(n) ^ reinterpret_cast<std::size_t>(&seed);
    }
    static inline int seed;
};
struct own_hash : xac::persistent_hash_base {
    std::size_t
    operator()(int n) const
    {
        return static_cast<std::size_t>(n);
    }
};
using text_map = xac::map<xac::string, xac::vector<int>>;

#if CASE == 0
using type =
    xac::map<int, xac::unordered_map<int, std::pair<int, xac::string>, own_hash>>;
#elif CASE == 1  /* a class with virtual functions cannot persist */
using type = with_virtual;
#elif CASE == 2  /* a class with virtual functions cannot persist */
using type = derived;
#elif CASE == 3  /* a class with virtual functions cannot persist */
using type = xac::vector<derived>;
#elif CASE == 4  /* a class with virtual functions cannot persist */
using type = xac::map<int, std::pair<int, xac::list<derived>>>;
#elif CASE == 5  /* std::function and std::any cannot persist */
using type = std::function<int(int)>;
#elif CASE == 6  /* std::function and std::any cannot persist */
using type = xac::vector<std::any>;
#elif CASE == 7  /* a pointer to a function cannot persist */
using type = int (*)(int);
#elif CASE == 8  /* a pointer to a function cannot persist */
using type = int (with_virtual::*)();
#elif CASE == 9  /* a pointer to a function cannot persist */
using type = xac::set<int, bool (*)(int, int)>;
#elif CASE == 10 /* takes memory outside of the heap */
using type = std::string;
#elif CASE == 11 /* takes memory outside of the heap */
using type = xac::vector<std::vector<int>>;
#elif CASE == 12 /* takes memory outside of the heap */
using type = std::pmr::vector<int>;
#elif CASE == 13 /* the hash may have another seed */
using type = xac::unordered_set<int, std::hash<int>>;
#elif CASE == 14 /* the hash may have another seed */
using type = xac::unordered_map<int, int, seeded_hash>;
#elif CASE == 15 /* the hash may have another seed */
using type = xac::vector<xac::unordered_set<int, seeded_hash>>;
#elif CASE == 16 /* a mutex or thread cannot persist */
using type = std::mutex;
#elif CASE == 17 /* a mutex or thread cannot persist */
using type = xac::vector<std::thread>;
#elif CASE == 18 /* smart pointers of the standard library cannot persist */
using type = std::shared_ptr<int>;
#elif CASE == 19 /* smart pointers of the standard library cannot persist */
using type = std::variant<int, std::unique_ptr<int>>;
#elif CASE == 20 /* a class with virtual functions cannot persist */
using type = derived[3];
#elif CASE == 21 /* xac::hash<int */
using type = xac::unordered_set<int *>;
#elif CASE == 22 /* no matching function|no matching constructor */
using type = text_map;
template struct std::pair<int, text_map>; /* its default constructor needs a heap */
std::pair<int, text_map> without_a_heap;
#elif CASE == 23 /* a file holds bytes */
using type = int;
template class xac::mapping<xac::string>;
#elif CASE == 24 /* return a copy */
using type = int;
int &
reference(xac::env &env, int &x)
{
    return env.transact([&]() -> int & { return x; });
}
#elif CASE == 25 /* a class with virtual functions cannot persist */
using type = int;
struct member {
    using allocator_type = xac::allocator<char>;
    xac::vector<derived> hidden;
};
void
fill(member &m)
{
    m.hidden.emplace_back(); /* seen when it is constructed */
}
#elif CASE == 26 /* std::function and std::any cannot persist */
struct type {
    xac::vector<std::function<void()>> *callbacks;
    using xac_members = std::tuple<xac::vector<std::function<void()>>>;
};
#elif CASE == 27 /* a pointer to a function cannot persist */
using type = int;
int
map_functions(xac::env &env, xac::mapping<void (*)()> &m)
{
    return m.try_map(env, "file", 1);
}
#endif

type *
use(xac::heap &heap)
{
    return heap.find<type>("name");
}

#if CASE != 16 && CASE != 7 && CASE != 8
void
make(xac::heap &heap)
{
    heap.find_or_construct<type>("name");
}
#endif
