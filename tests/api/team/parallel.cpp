/* SPDX-License-Identifier: MIT */
/*
 * parallel.cpp -- parallel algorithms of the C++ library inside of a transaction (XAC_OPT_TEAM): for_each
 * and sort.  Exit code 0: what all their threads have stored is committed, or rolled back.
 */
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <execution>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include <xac.h>

namespace {

constexpr size_t n = 300032;

void
must(bool is, const char *what)
{
    if (is)
        return;
    std::fprintf(stderr, "not so: %s; %s\n", what, xLastError());
    std::exit(1);
}

/* How many threads add 1 to all numbers. */
size_t
add_one(unsigned *x)
{
    static std::mutex lock;
    std::set<std::thread::id> threads;

    std::for_each(std::execution::par, x, x + n, [&](unsigned &v) {
        if ((&v - x) % 1000 == 0) {
            std::lock_guard<std::mutex> hold(lock);
            threads.insert(std::this_thread::get_id());
        }
        v += 1;
    });
    return threads.size();
}

void
check(const unsigned *x, unsigned first)
{
    must(xbeginQuery() == 0, "xbeginQuery");
    must(std::all_of(std::execution::par, x, x + n,
                     [&](const unsigned &v) { return v == first + (&v - x) % 7; }),
         "what is committed");
    must(xendQuery() == 0, "xendQuery");
}

} // namespace

int
main()
{
    size_t most = 0;

    must(xSetOption(XAC_OPT_TEAM, 1) == 0, "option");
    must(xInit("db", std::getenv("DURABLY") != nullptr ? DURABLE : NONDURABLE) == 0,
         "xInit");
    auto *x = static_cast<unsigned *>(xMmap("x.db", n * sizeof(unsigned)));
    must(x != MAP_FAILED, "xMmap");
    must(xbegin() == 0, "xbegin");
    for (size_t i = 0; i < n; i++)
        x[i] = static_cast<unsigned>(i % 7);
    must(xend() == COMMITTED, "xend");
    /* On a busy machine one thread may do all of it before another one comes. */
    for (unsigned turn = 0; turn < 20 || (most < 2 && turn < 1000); turn++) {
        must(xbegin() == 0, "xbegin");
        most = std::max(most, add_one(x));
        must(xend() == COMMITTED, "xend");
        check(x, turn + 1);
        must(xbegin() == 0, "xbegin");
        add_one(x);
        std::sort(std::execution::par, x, x + n);
        must(std::is_sorted(x, x + n), "sorted");
        must(xAbort() == 0, "xAbort");
        must(xend() == ABORTED, "xend");
        check(x, turn + 1);
    }
    must(most > 1, "more than one thread");
    must(xShutdown() == 0, "xShutdown");
    return 0;
}
