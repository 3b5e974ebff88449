/* SPDX-License-Identifier: MIT */
/*
 * xac_containers.hpp -- the containers of the standard library with xac::allocator.
 *
 *     auto &index = *heap.find_or_construct<xac::map<xac::string, xac::vector<int>>>("index");
 *     index["word"].push_back(7);
 *
 * A container hands its heap to its elements (std::scoped_allocator_adaptor), so that containers in
 * containers need nothing more.  A string for a key is made as xac::string("word",
 * heap.allocator()).  The standard's std::pmr is for scratch memory only: its containers hold a
 * pointer to an object with virtual functions, and are refused in a heap.
 */
#ifndef XAC_CONTAINERS_HPP
#define XAC_CONTAINERS_HPP

#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <scoped_allocator>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "xac.hpp"

namespace xac {

template <class T> using scoped_allocator = std::scoped_allocator_adaptor<allocator<T>>;

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;
template <class T> using vector = std::vector<T, scoped_allocator<T>>;
template <class T> using deque = std::deque<T, scoped_allocator<T>>;
template <class T> using list = std::list<T, scoped_allocator<T>>;
template <class T> using forward_list = std::forward_list<T, scoped_allocator<T>>;
template <class T, class Less = std::less<>>
using set = std::set<T, Less, scoped_allocator<T>>;
template <class T, class Less = std::less<>>
using multiset = std::multiset<T, Less, scoped_allocator<T>>;
template <class K, class V, class Less = std::less<>>
using map = std::map<K, V, Less, scoped_allocator<std::pair<const K, V>>>;
template <class K, class V, class Less = std::less<>>
using multimap = std::multimap<K, V, Less, scoped_allocator<std::pair<const K, V>>>;
template <class T, class Hash = hash<T>, class Equal = std::equal_to<T>>
using unordered_set = std::unordered_set<T, Hash, Equal, scoped_allocator<T>>;
template <class K, class V, class Hash = hash<K>, class Equal = std::equal_to<K>>
using unordered_map =
    std::unordered_map<K, V, Hash, Equal, scoped_allocator<std::pair<const K, V>>>;

} // namespace xac

#endif /* XAC_CONTAINERS_HPP */
