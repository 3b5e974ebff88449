/* SPDX-License-Identifier: MIT */
/*
 * check_header.cpp -- the public headers from C++, among headers with names like ours.
 *
 * GOAL    xac.h and xac_env.h compile as C++17 without warnings, work there, and without
 *         the short names leave other people's READ, PENDING and the like alone.
 * METHOD  this file is compiled twice: as it is with the Thesis names, and by
 *         check_header_plain.cpp with XAC_NO_SHORT_NAMES.
 */
#ifdef XAC_NO_SHORT_NAMES
enum other_library {
    READ,
    READ_WRITE,
    PENDING,
    FAILED,
    COMMITTED,
    ABORTED,
    DURABLE
};
static const int NONDURABLE = 17;
static int xInit, xbegin, xend, xStats;
#endif

#include <xac_env.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

static_assert(XAC_COMMITTED == 0, "documented");
static_assert(XAC_ENOINIT < 0 && XAC_ENOTENV < 0, "our codes are negative");

namespace {

[[noreturn]] void
fail(const char *what)
{
    std::fprintf(stderr, "%s: %s\n", what, xac_last_error());
    std::exit(EXIT_FAILURE);
}

/* A transaction as a scope, the way a C++ program would wrap it. */
template <typename F>
void
transact(F body)
{
    int rc;

    do {
        if (xac_begin() != 0)
            fail("xac_begin");
        body();
        rc = xac_end();
    } while (rc == XAC_ABORTED);
    if (rc != XAC_COMMITTED)
        fail("xac_end");
}

/* The same in an environment that is named. */
std::uint64_t
count_in(const char *dir, const char *file)
{
    xac_options o;

    xac_options_init(&o, sizeof o);
    o.flags = XAC_NONDURABLE;
    xac_env *env = xac_open(dir, &o);
    if (env == nullptr)
        fail("xac_open");
    auto *x = static_cast<std::uint64_t *>(xac_mmap_in(env, file, 4096));
    if (x == MAP_FAILED || xac_begin_in(env) != 0)
        fail("xac_begin_in");
    std::uint64_t value = ++x[0];
    if (xac_end_in(env) != XAC_COMMITTED || xac_close(env) != 0)
        fail("xac_end_in");
    return value;
}

} // namespace

int
main()
{
    char dir[] = "/tmp/xac-test-XXXXXX";
    std::uint64_t value = 0;
    void *base;

    if (mkdtemp(dir) == nullptr || chdir(dir) != 0)
        fail("mkdtemp");
#ifdef XAC_NO_SHORT_NAMES
    if (READ != 0 || NONDURABLE != 17 || xInit + xbegin + xend + xStats != 0)
        fail("names");
    if (xac_init("db", XAC_DURABLE) != 0)
        fail("xac_init");
#else
    if (xInit("db", DURABLE) != 0)
        fail("xInit");
#endif
    base = xac_mmap("input.db", 4 * 4096);
    if (base == MAP_FAILED)
        fail("xac_mmap");
    auto *x = static_cast<std::uint64_t *>(base);
    for (int i = 0; i < 10; i++)
        transact([x] { x[512]++; });
    transact([x, &value] { value = x[512]; });
    if (count_in("other", "other.db") != 1)
        fail("count_in");
    if (xac_shutdown() != 0)
        fail("xac_shutdown");
    if (std::system("rm -rf db input.db other other.db") != 0 || chdir("/") != 0
        || rmdir(dir) != 0)
        fail("clean up");
    std::printf("check_header: 10 increments, %llu found\n",
                static_cast<unsigned long long>(value));
    return value == 10 ? EXIT_SUCCESS : EXIT_FAILURE;
}
