/* SPDX-License-Identifier: MIT */
/*
 * holes_cc.cc -- kinds of stores that only C++ has: see holes.c.
 */
#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "holes.h"

struct base {
    virtual ~base() = default;
    long a = 1;
};
struct derived : base {
    long b = 2;
    void set(long v) { b = v; }
};
struct plain {
    long a, b, c, d;
};
struct with_copy {
    long a, b, c;
    with_copy(long v) : a(v), b(v), c(v) {}
    with_copy(const with_copy &o) : a(o.a + 1), b(o.b), c(o.c) {}
    with_copy &operator=(const with_copy &) = default;
};

__attribute__((noinline)) plain
make_plain(int v)
{
    return plain{v, v, v, v};
}

__attribute__((noinline)) with_copy
make_with_copy(int v)
{
    return with_copy(v);
}

STORE(constructor, new (at) derived)
STORE(new_plain, new (at) plain{1, 2, 3, 4})
STORE(new_zero, new (at) plain())
STORE(new_returned, new (at) plain(make_plain(n)))
STORE(new_returned_with_copy, new (at) with_copy(make_with_copy(n)))
STORE(assign_returned, *(plain *)at = make_plain(n))
STORE(assign_returned_with_copy, *(with_copy *)at = make_with_copy(n))
STORE(member, ((derived *)at)->set(n))
STORE(member_by_pointer, void (derived::*volatile f)(long) = &derived::set; (((derived *)at)->*f)(n))
STORE(lambda, auto f = [at](int v) { at[v] = 1; }; f(n))
STORE(reference, long &r = *(long *)at; r = n)
STORE(std_swap, ((long *)at)[0] = 4; std::swap(((long *)at)[0], ((long *)at)[5]))
STORE(copy, std::copy(from, from + n, at))
STORE(copy_longs, std::copy((const long *)from, (const long *)from + 4, (long *)at))
STORE(fill, std::fill(at, at + n, 3))
STORE(fill_longs, std::fill_n((long *)at, n, 3))
STORE(iota, std::iota((int *)at, (int *)at + n, 3))
STORE(sort, ((long *)at)[9] = 0; std::sort((long *)at, (long *)at + n))
STORE(pair, *(std::pair<long, int> *)at = std::make_pair(1L, 2))
STORE(array, *(std::array<long, 9> *)at = std::array<long, 9>{})
STORE(atomic, ((std::atomic<long> *)at)->store(1))
STORE(std_atomic_add, ++*(std::atomic<int> *)at)
STORE(uninitialized, std::uninitialized_copy((const long *)from, (const long *)from + 9, (long *)at))
STORE(string, auto s = new (at) std::string("short"); s->push_back('x'))
STORE(string_append, auto s = new (at) std::string(); s->append("abc"))
STORE(string_assign, auto s = new (at) std::string("x"); *s = "abcd")
STORE(string_long, auto s = new (at) std::string((const char *)from, 60); s->clear(); s->shrink_to_fit())
STORE(string_insert, auto s = new (at) std::string("x"); s->insert(0, "abc"); s->replace(1, 1, "yy"))
STORE(vector, auto v = new (at) std::vector<int>(); v->push_back(1); v->clear(); v->shrink_to_fit())
STORE(shared, auto s = new (at) std::shared_ptr<int>(); *s = std::make_shared<int>(3); s->reset())
STORE(bitset, ((std::bitset<200> *)at)->flip((size_t)n))
STORE(tuple, *(std::tuple<int, long, char> *)at = std::make_tuple(n, 2L, 'x'))
