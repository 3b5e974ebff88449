/* SPDX-License-Identifier: MIT */
/*
 * containers_cc.cc -- containers of the C++ library, and of Boost: see containers.c.
 */
#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>
#ifdef HAVE_BOOST
# include <boost/container/flat_map.hpp>
# include <boost/container/map.hpp>
# include <boost/container/stable_vector.hpp>
# include <boost/unordered_map.hpp>
#endif

#include "containers.h"

namespace {

/* Memory of the segment. */
template <typename T> struct segment {
    using value_type = T;

    segment() = default;
    template <typename U> segment(const segment<U> &)
    {
    }
    T *
    allocate(std::size_t n)
    {
        return static_cast<T *>(take(n * sizeof(T)));
    }
    void
    deallocate(T *p, std::size_t)
    {
        give(p);
    }
    bool
    operator==(const segment &) const
    {
        return true;
    }
    bool
    operator!=(const segment &) const
    {
        return false;
    }
};

struct element {
    uint64_t value;
    char padding[PADDING];

    explicit element(uint64_t v) : value(v)
    {
    }
};

using pair = std::pair<const uint64_t, element>;
using map = std::map<uint64_t, element, std::less<uint64_t>, segment<pair>>;
using hashed = std::unordered_map<uint64_t, element, std::hash<uint64_t>,
                                  std::equal_to<uint64_t>, segment<pair>>;
using list = std::list<pair, segment<pair>>;
using movable = std::pair<uint64_t, element>;
#ifdef HAVE_BOOST
using boost_map =
    boost::container::map<uint64_t, element, std::less<uint64_t>, segment<pair>>;
using boost_flat =
    boost::container::flat_map<uint64_t, element, std::less<uint64_t>, segment<movable>>;
using boost_hashed = boost::unordered_map<uint64_t, element, boost::hash<uint64_t>,
                                          std::equal_to<uint64_t>, segment<pair>>;
using boost_vector = boost::container::stable_vector<movable, segment<movable>>;
#endif
using vector = std::vector<movable, segment<movable>>;

template <typename C>
void *
make()
{
    return new (take_apart(sizeof(C))) C();
}

template <typename C>
void
insert(void *all, uint64_t key, uint64_t value)
{
    must(static_cast<C *>(all)->emplace(key, element(value)).second);
}

template <typename C>
void
erase(void *all, uint64_t key)
{
    must(static_cast<C *>(all)->erase(key) == 1);
}

template <typename C>
uint64_t *
find(void *all, uint64_t key)
{
    C *c = static_cast<C *>(all);
    auto at = c->find(key);

    return at != c->end() ? &at->second.value : nullptr;
}

template <typename C>
void
walk(void *all, tell_element *tell, void *arg)
{
    const C *c = static_cast<const C *>(all);
    std::size_t n = 0;

    for (const auto &e : *c) {
        must(c->find(e.first) != c->end());
        n++;
        tell(e.first, e.second.value, arg);
    }
    must(n == c->size());
}

/* ---- A list and a vector, which are kept in order -------------------------------------------- */

template <typename C>
auto
place_of(C *c, uint64_t key)
{
    return std::find_if(c->begin(), c->end(),
                        [key](const auto &e) { return e.first >= key; });
}

template <typename C>
void
insert_in_order(void *all, uint64_t key, uint64_t value)
{
    C *c = static_cast<C *>(all);

    c->emplace(place_of(c, key), key, element(value));
}

/* What the library does with nodes, too: splice, reverse and swap. */
template <>
void
insert_in_order<list>(void *all, uint64_t key, uint64_t value)
{
    list *l = static_cast<list *>(all);
    list other;

    if (key % 2 == 0) {
        l->emplace(place_of(l, key), key, element(value));
        return;
    }
    other.emplace_back(key, element(value));
    l->splice(place_of(l, key), other);
    if (key % 4 != 1)
        return;
    other.swap(*l);
    other.reverse();
    other.reverse();
    other.swap(*l);
}

template <typename C>
void
erase_in_order(void *all, uint64_t key)
{
    C *c = static_cast<C *>(all);
    auto at = place_of(c, key);

    must(at != c->end() && at->first == key);
    c->erase(at);
}

template <typename C>
uint64_t *
find_in_order(void *all, uint64_t key)
{
    C *c = static_cast<C *>(all);
    auto at = place_of(c, key);

    return at != c->end() && at->first == key ? &at->second.value : nullptr;
}

template <typename C>
void
walk_in_order(void *all, tell_element *tell, void *arg)
{
    const C *c = static_cast<const C *>(all);
    uint64_t least = 0;
    std::size_t n = 0;

    for (const auto &e : *c) {
        must(e.first >= least);
        least = e.first + 1;
        n++;
        tell(e.first, e.second.value, arg);
    }
    must(n == c->size());
    for (auto at = c->rbegin(); at != c->rend(); ++at)
        n--;
    must(n == 0);
}

} // namespace

const struct container containers_cc[] = {
    {"std::map", make<map>, insert<map>, erase<map>, find<map>, walk<map>},
    {"std::unordered_map", make<hashed>, insert<hashed>, erase<hashed>, find<hashed>,
     walk<hashed>},
    {"std::list", make<list>, insert_in_order<list>, erase_in_order<list>,
     find_in_order<list>, walk_in_order<list>},
    {"std::vector", make<vector>, insert_in_order<vector>, erase_in_order<vector>,
     find_in_order<vector>, walk_in_order<vector>},
#ifdef HAVE_BOOST
    {"boost::container::map", make<boost_map>, insert<boost_map>, erase<boost_map>,
     find<boost_map>, walk<boost_map>},
    {"boost::container::flat_map", make<boost_flat>, insert<boost_flat>,
     erase<boost_flat>, find<boost_flat>, walk<boost_flat>},
    {"boost::unordered_map", make<boost_hashed>, insert<boost_hashed>,
     erase<boost_hashed>, find<boost_hashed>, walk<boost_hashed>},
    {"boost::container::stable_vector", make<boost_vector>, insert_in_order<boost_vector>,
     erase_in_order<boost_vector>, find_in_order<boost_vector>,
     walk_in_order<boost_vector>},
#endif
    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
};
