/* SPDX-License-Identifier: MIT */
/*
 * graph.cpp -- a graph of nodes that point to each other: ordinary pointers in a heap.
 *
 * The file is mapped at the same address in each run, so that a pointer stays valid.  A bridge
 * between two nodes is stored in both; a transaction keeps the two together.
 *
 * usage: graph add A B        a bridge from A to B and back
 *        graph grow N [SEED]  N random bridges, one transaction each; prints how many are committed
 *        graph path A B       the shortest way
 *        graph check          each bridge has its other end
 */
#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>

#include <xac_containers.hpp>

namespace {

struct node {
    using allocator_type = xac::allocator<char>;

    node(const char *called, const allocator_type &heap) : name(called, heap), next(heap)
    {
    }

    xac::string name;
    xac::vector<node *> next;
};

/* What the heap holds: nodes by name.  A map never moves its elements, so others may point to them. */
struct graph {
    static constexpr const char *xac_name = "graph/1";
    using allocator_type = xac::allocator<char>;

    explicit graph(const allocator_type &heap) : nodes(heap)
    {
    }

    node &
    at(const std::string &name)
    {
        auto found = nodes.find(std::string_view(name));

        if (found == nodes.end()) {
            allocator_type heap = nodes.get_allocator();
            found =
                nodes.try_emplace(xac::string(name.c_str(), heap), name.c_str()).first;
        }
        return found->second;
    }

    xac::map<xac::string, node> nodes;
    std::uint64_t bridges = 0;
    using xac_members = std::tuple<decltype(nodes)>;
};

void
add(xac::heap &heap, const std::string &a, const std::string &b)
{
    auto &g = *heap.find_or_construct<graph>("graph");
    node &from = g.at(a);
    node &to = g.at(b);

    from.next.push_back(&to);
    to.next.push_back(&from);
    g.bridges++;
}

void
grow(xac::env &env, xac::heap &heap, int n, unsigned seed)
{
    std::mt19937 random(seed);
    auto name = [&] { return "n" + std::to_string(random() % 1000); };

    for (int i = 0; i < n; i++) {
        std::string a = name(),
                    b = name(); /* outside: an attempt that is repeated has the same */
        auto bridges = env.transact([&] {
            add(heap, a, b);
            return heap.find<graph>("graph")->bridges;
        });
        std::cout << bridges << std::endl; /* committed: say so */
    }
}

/* Breadth first; what it remembers on the way is ordinary memory. */
std::string
path(const graph &g, const std::string &a, const std::string &b)
{
    auto start = g.nodes.find(std::string_view(a));
    std::unordered_map<const node *, const node *> before;
    std::deque<const node *> queue;

    if (start == g.nodes.end())
        return "none";
    before[&start->second] = nullptr;
    queue.push_back(&start->second);
    for (; !queue.empty(); queue.pop_front()) {
        const node *here = queue.front();

        if (std::string_view(here->name) == b) {
            std::string text(here->name);
            while ((here = before[here]) != nullptr)
                text = std::string(here->name) + " " + text;
            return text;
        }
        for (const node *next : here->next) {
            if (before.emplace(next, here).second)
                queue.push_back(next);
        }
    }
    return "none";
}

/* Each end is a node of the graph, and knows of the other end as often. */
bool
is_sound(const graph &g)
{
    std::uint64_t ends = 0;

    for (const auto &[name, from] : g.nodes) {
        if (name != from.name)
            return false;
        for (const node *to : from.next) {
            auto found = g.nodes.find(std::string_view(to->name));

            if (found == g.nodes.end() || &found->second != to
                || std::count(from.next.begin(), from.next.end(), to)
                       != std::count(to->next.begin(), to->next.end(), &from))
                return false;
            ends++;
        }
    }
    return ends == 2 * g.bridges;
}

} // namespace

int
main(int argc, char **argv)
{
    std::string command = argc > 1 ? argv[1] : "";

    try {
        xac::env env("graph.db");
        xac::heap heap(env, "graph.heap", 16 << 20);

        if (command == "add" && argc == 4) {
            env.transact([&] { add(heap, argv[2], argv[3]); });
        } else if (command == "grow" && argc >= 3) {
            grow(env, heap, std::stoi(argv[2]),
                 argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 1);
        } else if (command == "path" && argc == 4) {
            std::cout << env.query([&] {
                const auto *g = heap.find<graph>("graph");
                return g == nullptr ? "none" : path(*g, argv[2], argv[3]);
            }) << "\n";
        } else if (command == "check") {
            std::uint64_t bridges = 0;
            bool is_right = env.query([&] {
                const auto *g = heap.find<graph>("graph");
                heap.totals(); /* the allocator checks the heap */
                bridges = g == nullptr ? 0 : g->bridges;
                return g == nullptr || is_sound(*g);
            });
            std::cout << bridges << " bridges, " << (is_right ? "sound" : "wrong")
                      << "\n";
            return is_right ? 0 : 1;
        } else {
            std::cerr << "usage: graph add A B | grow N [SEED] | path A B | check\n";
            return 2;
        }
    } catch (const std::exception &e) {
        std::cerr << "graph: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
