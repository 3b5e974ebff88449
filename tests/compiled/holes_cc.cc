/* SPDX-License-Identifier: MIT */
/*
 * holes_cc.cc -- kinds of stores that only C++ has: see holes.c.
 */
#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <charconv>
#include <cstring>
#include <memory>
#include <istream>
#include <new>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "holes.h"

/* Pages behind the first: each store in one of its own. */
#define AT(k)      (at + (k)*4096)
#define P(type, k) ((type *)(void *)AT(k))

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

/* string_apart -- a string whose text has a page of its own: that of a std::allocator never lies there. */
static std::string &
string_apart(unsigned char *at)
{
    *P(unsigned char *, 0) = AT(1);
    P(std::size_t, 0)[1] = 0;   /* length */
    P(std::size_t, 0)[2] = 100; /* room */
    return *P(std::string, 0);
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

/* Streams, and numbers in texts: code of the library. */
STORE(stream_integers, std::istringstream in("1 2 3 4 5 6 7 8 1");
      in >> *P(short, 0) >> *P(int, 1) >> *P(long, 2) >> *P(long long, 3) >> *P(unsigned short, 4)
          >> *P(unsigned, 5) >> *P(unsigned long, 6) >> *P(unsigned long long, 7) >> *P(bool, 8);
      must_be(!in.fail()))
STORE(stream_fractions, std::istringstream in("1 2 3 0x4");
      in >> *P(float, 0) >> *P(double, 1) >> *P(long double, 2) >> *P(void *, 3);
      must_be(!in.fail()))
STORE(stream_wide, std::wistringstream in(L"1 2 3 4 5 6");
      in >> *P(short, 0) >> *P(int, 1) >> *P(long, 2) >> *P(double, 3) >> *P(unsigned, 4) >> *P(bool, 5);
      must_be(*P(double, 3) == 4))
STORE(stream_char, std::istringstream in("abc"); in >> *P(char, 0); in.get(*P(char, 1));
      *P(char, 2) = (char)in.get(); must_be(!in.fail()))
STORE(stream_array, std::istringstream in("word another"); in >> *reinterpret_cast<char(*)[9]>(at))
STORE(stream_read, std::istringstream in("some words\nand lines\nand more:more\nend of it");
      in.read(P(char, 0), 3); must_be(in.readsome(P(char, 1), 3) == 3); in.get(P(char, 2), 9);
      in.get(); in.getline(P(char, 3), 20); in.get(P(char, 4), 20, ':');
      in.getline(P(char, 5), 20, 'e'); must_be(!in.fail()))
STORE(stream_string, std::istringstream in("word"); in >> string_apart(at))
STORE(stream_line, std::istringstream in("a line"); std::getline(in, string_apart(at)))
STORE(stream_line_until, std::istringstream in("a line"); std::getline(in, string_apart(at), 'n'))
#if __cpp_lib_to_chars >= 201611L
STORE(to_chars, std::to_chars(P(char, 0), P(char, 0) + 9, 1.5f); std::to_chars(P(char, 1), P(char, 1) + 9, 1.5);
      std::to_chars(P(char, 2), P(char, 2) + 9, 1.5L);
      std::to_chars(P(char, 3), P(char, 3) + 9, 1.5, std::chars_format::fixed);
      std::to_chars(P(char, 4), P(char, 4) + 9, 1.5, std::chars_format::fixed, 2);
      std::to_chars(P(char, 5), P(char, 5) + 9, n))
STORE(from_chars, const char *s = "1.5"; std::from_chars(s, s + 3, *P(float, 0));
      std::from_chars(s, s + 3, *P(double, 1)); std::from_chars(s, s + 3, *P(long double, 2));
      std::from_chars(s, s + 3, *P(int, 3)))
#endif
