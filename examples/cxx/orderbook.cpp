/* SPDX-License-Identifier: MIT */
/*
 * orderbook.cpp -- a book of orders to buy and sell: maps of queues, and accounts in a hash table.
 *
 * An order that meets others changes several queues and accounts; a transaction keeps them together,
 * so that money and shares are never made or lost.
 *
 * usage: orderbook trade N [SEED]   N random orders, one transaction each; prints how many are
 *                                   committed
 *        orderbook show             the best prices
 *        orderbook check            sums of money and shares
 */
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <tuple>

#include <xac_containers.hpp>

namespace {

constexpr int traders = 50;
constexpr std::int64_t money_each = 1000000;
constexpr std::int64_t shares_each = 1000;

struct order {
    int trader;
    std::int64_t count;
};
struct account {
    std::int64_t money = money_each;
    std::int64_t shares = shares_each;
};

/* What the heap holds.  The oldest order of the best price comes first. */
struct book {
    static constexpr const char *xac_name = "orderbook/1";
    using allocator_type = xac::allocator<char>;

    explicit book(const allocator_type &heap) : buy(heap), sell(heap), accounts(heap)
    {
        for (int i = 0; i < traders; i++)
            accounts[i];
    }

    xac::map<std::int64_t, xac::deque<order>, std::greater<>> buy;
    xac::map<std::int64_t, xac::deque<order>> sell;
    xac::unordered_map<int, account> accounts;
    std::uint64_t orders = 0;
    std::uint64_t trades = 0;
    using xac_members = std::tuple<decltype(buy), decltype(sell), decltype(accounts)>;
};

struct request {
    int trader;
    bool is_buy;
    std::int64_t price, count;
};

void
settle(book &b, int buyer, int seller, std::int64_t price, std::int64_t count)
{
    account &to = b.accounts.at(buyer);
    account &from = b.accounts.at(seller);

    to.money -= price * count;
    from.money += price * count;
    to.shares += count;
    from.shares -= count;
    b.trades++;
}

/* Meet the orders of the other side, the best price first; what is left waits on its own side. */
template <class Own, class Other, class Meets>
void
place(book &b, request r, Own &own, Other &other, Meets meets)
{
    while (r.count > 0 && !other.empty() && meets(other.begin()->first)) {
        auto level = other.begin();
        order &first = level->second.front();
        std::int64_t count = std::min(r.count, first.count);

        settle(b, r.is_buy ? r.trader : first.trader, r.is_buy ? first.trader : r.trader,
               level->first, count);
        r.count -= count;
        first.count -= count;
        if (first.count == 0)
            level->second.pop_front();
        if (level->second.empty())
            other.erase(level);
    }
    if (r.count > 0)
        own[r.price].push_back({r.trader, r.count});
}

void
trade(xac::env &env, xac::heap &heap, int n, unsigned seed)
{
    std::mt19937 random(seed);
    auto below = [&](unsigned bound) { return static_cast<int>(random() % bound); };

    for (int i = 0; i < n; i++) {
        request r = {below(traders), below(2) == 0, 90 + below(21), 1 + below(20)};
        auto orders = env.transact([&] {
            auto &b = *heap.find_or_construct<book>("book");

            if (r.is_buy)
                place(b, r, b.buy, b.sell, [&](std::int64_t p) { return p <= r.price; });
            else
                place(b, r, b.sell, b.buy, [&](std::int64_t p) { return p >= r.price; });
            return ++b.orders;
        });
        std::cout << orders << std::endl; /* committed: say so */
    }
}

template <class Side>
void
print(std::ostream &out, const char *name, const Side &side)
{
    std::int64_t count = 0;

    if (side.empty())
        return;
    for (const order &waiting : side.begin()->second)
        count += waiting.count;
    out << name << " " << count << " at " << side.begin()->first << "\n";
}

bool
check(xac::env &env, xac::heap &heap)
{
    std::int64_t money = 0, shares = 0;
    std::uint64_t orders = 0, trades = 0;
    bool is_right = true;

    env.query([&] {
        const auto *b = heap.find<book>("book");

        heap.totals(); /* the allocator checks the heap */
        if (b == nullptr)
            return;
        orders = b->orders;
        trades = b->trades;
        for (const auto &[trader, account] : b->accounts) {
            money += account.money;
            shares += account.shares;
        }
        is_right = money == traders * money_each && shares == traders * shares_each
                   && (b->buy.empty() || b->sell.empty()
                       || b->buy.begin()->first < b->sell.begin()->first);
    });
    std::cout << orders << " orders, " << trades << " trades, "
              << (is_right ? "sums right" : "sums wrong") << "\n";
    return is_right;
}

} // namespace

int
main(int argc, char **argv)
{
    std::string command = argc > 1 ? argv[1] : "";

    try {
        xac::env env("orderbook.db");
        xac::heap heap(env, "orderbook.heap", 16 << 20);

        if (command == "trade" && argc >= 3) {
            trade(env, heap, std::stoi(argv[2]),
                  argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 1);
        } else if (command == "show") {
            env.query([&] {
                const auto *b = heap.find<book>("book");
                if (b == nullptr)
                    return;
                print(std::cout, "buy", b->buy);
                print(std::cout, "sell", b->sell);
            });
        } else if (command == "check") {
            return check(env, heap) ? 0 : 1;
        } else {
            std::cerr << "usage: orderbook trade N [SEED] | show | check\n";
            return 2;
        }
    } catch (const std::exception &e) {
        std::cerr << "orderbook: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
