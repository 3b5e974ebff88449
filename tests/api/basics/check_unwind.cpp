/* SPDX-License-Identifier: MIT */
/*
 * check_unwind.cpp -- C++ exceptions that leave xTransact().
 *
 * GOAL    An exception that a transaction's function throws arrives at the caller of xTransact(),
 *         the transaction is rolled back, and the next one commits: with destructors, in
 *         a nested xTransact(), and with a begin or a query in the function.  If it is caught inside of
 *         the outer transaction, only what the inner one has stored is undone.
 * METHOD  one cell; the function stores to it before it throws.
 */
#include <xac.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace {

std::uint64_t *cell;

[[noreturn]] void
fail(const char *what)
{
    std::fprintf(stderr, "check_unwind: not so: %s; %s\n", what, xac_last_error());
    std::exit(EXIT_FAILURE);
}

void
must(bool is_so, const char *what)
{
    if (!is_so)
        fail(what);
}

int n_destroyed;

struct guard {
    ~guard()
    {
        n_destroyed++;
    }
};

enum way {
    PLAIN,
    IN_BEGIN,
    IN_QUERY,
    NESTED,
    CAUGHT_WITHIN
};

int
store_and_throw(void *arg)
{
    guard g;

    *cell = 2;
    switch (*static_cast<way *>(arg)) {
    case IN_BEGIN:
        must(xbegin() == 0, "xbegin");
        break;
    case IN_QUERY:
        must(xbeginQuery() == 0, "xbeginQuery");
        break;
    default:
        break;
    }
    throw std::runtime_error("thrown");
}

int
transact_within(void *arg)
{
    guard g;

    *cell = 3;
    if (*static_cast<way *>(arg) == NESTED)
        return xTransact(store_and_throw, arg);
    try {
        (void)xTransact(store_and_throw, arg);
    } catch (const std::runtime_error &) {
        must(*cell == 3, "the part is undone, and nothing else");
        *cell = 4;
    }
    return 0;
}

int
store_1(void *)
{
    *cell = 1;
    return 0;
}

void
leave(way w)
{
    bool is_nested = w == NESTED || w == CAUGHT_WITHIN;
    bool is_caught = false;
    int rc = 0;

    n_destroyed = 0;
    try {
        rc = xTransact(is_nested ? transact_within : store_and_throw, &w);
    } catch (const std::runtime_error &) {
        is_caught = true;
    }
    must(is_caught == (w != CAUGHT_WITHIN), "the exception arrives");
    must(w != CAUGHT_WITHIN || rc == 0, "the outer transaction goes on");
    must(n_destroyed == (is_nested ? 2 : 1), "destructors run");
    must(xend() == XAC_ENOTXN, "no transaction is open");
    must(xbeginQuery() == 0 && (w == CAUGHT_WITHIN ? *cell == 4 : *cell <= 1)
             && xendQuery() == 0,
         "it is rolled back");
    must(xTransact(store_1, nullptr) == 0, "the next one commits");
}

} // namespace

int
main()
{
    char dir[] = "/tmp/xac-test-XXXXXX";

    must(mkdtemp(dir) != nullptr && chdir(dir) == 0, "mkdtemp");
    must(xInit("db", DURABLE) == 0, "xInit");
    void *base = xMmap("input.db", 4096);
    must(base != MAP_FAILED, "xMmap");
    cell = static_cast<std::uint64_t *>(base);
    for (way w : {PLAIN, IN_BEGIN, IN_QUERY, NESTED, CAUGHT_WITHIN})
        leave(w);
    must(xShutdown() == 0, "xShutdown");
    must(std::system("rm -rf db input.db") == 0 && chdir("/") == 0 && rmdir(dir) == 0,
         "clean up");
    std::printf("check_unwind: 5 ways\n");
    return EXIT_SUCCESS;
}
