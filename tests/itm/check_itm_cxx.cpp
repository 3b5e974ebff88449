/* SPDX-License-Identifier: MIT */
/*
 * check_itm_cxx.cpp -- language transactions in C++: exceptions, objects, operators new and delete.
 *
 * GOAL    An exception that leaves a block commits it; when the commit fails, the block is run again and the
 *         exception is thrown again; what is caught inside stays inside; objects are made and
 *         destroyed once; after it all libstdc++ counts no exception in flight.
 * METHOD  One segment; attempts fail by xac_abort() in a function that is declared pure.
 */
#include <xac_itm.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::uint64_t *x;
std::uint64_t outside;
int attempts;

[[noreturn]] void
fail(const char *what, int line)
{
    std::fprintf(stderr, "check_itm_cxx:%d: not so: %s; %s\n", line, what, xac_last_error());
    std::exit(EXIT_FAILURE);
}

#define must(c) ((c) ? (void)0 : fail(#c, __LINE__))

__attribute__((transaction_pure, noinline)) void
fail_first(int n)
{
    if (++attempts <= n)
        must(xac_abort() == 0);
}

std::uint64_t
value(int i)
{
    must(xac_begin_query() == 0);
    std::uint64_t v = x[i];
    must(xac_end_query() == 0);
    return v;
}

struct trouble {
    std::uint64_t what;
};

__attribute__((transaction_safe, noinline)) void
throw_one(std::uint64_t n)
{
    throw trouble{n};
}

/* An exception leaves the block: it commits, in the attempt that can. */
void
exception_commits(int n_failures)
{
    std::uint64_t got = 0;

    attempts = 0;
    outside = 0;
    try {
        __transaction_atomic
        {
            x[0]++;
            outside++;
            fail_first(n_failures);
            throw_one(outside);
            x[0] = 1000;
        }
    } catch (const trouble &t) {
        got = t.what;
    }
    must(got == 1);
    must(attempts == n_failures + 1);
    must(outside == 1);
    must(std::uncaught_exceptions() == 0);
}

/* In functions, for gcc 12 stops with an internal error at some handlers in a block itself. */
__attribute__((transaction_safe, noinline)) std::uint64_t
throw_and_catch(std::uint64_t *cell)
{
    try {
        ++*cell;
        throw_one(*cell);
    } catch (const trouble &t) {
        return t.what;
    }
    return 0;
}

/* Caught inside: the block goes on. */
void
exception_stays_inside(int n_failures)
{
    std::uint64_t got = 0;

    attempts = 0;
    __transaction_atomic
    {
        got = throw_and_catch(&x[1]);
        fail_first(n_failures);
        x[2]++;
    }
    must(got == value(1));
    must(attempts == n_failures + 1);
    must(std::uncaught_exceptions() == 0);
}

__attribute__((transaction_may_cancel_outer, noinline)) std::uint64_t
cancel_in_handler(std::uint64_t *cell, bool cancels)
{
    try {
        ++*cell;
        throw_one(5);
    } catch (const trouble &t) {
        if (cancels)
            __transaction_cancel[[outer]];
        return t.what;
    }
    return 0;
}

/* The attempt is left in a handler. */
void
attempt_ends_in_a_handler(bool cancels)
{
    std::uint64_t before = value(3), got = 0;

    __transaction_atomic[[outer]]
    {
        got = cancel_in_handler(&x[3], cancels);
    }
    must(got == (cancels ? 0 : 5));
    must(value(3) == before + !cancels);
    must(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr);
}

/* An exception of libstdc++, which has transactional versions of its own. */
void
exception_of_the_library(int n_failures)
{
    bool is_caught = false;

    attempts = 0;
    try {
        __transaction_atomic
        {
            x[7]++;
            fail_first(n_failures);
            throw std::runtime_error("a reason that is longer than any short string");
        }
    } catch (const std::runtime_error &e) {
        is_caught = std::strstr(e.what(), "short string") != nullptr;
    }
    must(is_caught);
    must(attempts == n_failures + 1);
}

int n_alive;

struct counted {
    std::uint64_t n;
    __attribute__((transaction_safe)) explicit counted(std::uint64_t v) : n(v)
    {
        n_alive++;
    }
    __attribute__((transaction_safe)) ~counted()
    {
        n_alive--;
    }
};

void
objects_follow_the_transaction()
{
    counted *kept = nullptr;

    n_alive = 0;
    for (int round = 0; round < 200; round++) {
        attempts = 0;
        __transaction_atomic
        {
            counted *p = new counted(1);
            counted *q = new counted(2);

            x[4] += p->n + q->n;
            delete p;
            fail_first(2);
            if (round == 0) {
                kept = q;
            } else {
                delete q;
                if (round % 2 == 0)
                    __transaction_cancel;
            }
        }
    }
    must(n_alive == 1);
    must(kept->n == 2);
    delete kept;
    must(value(4) == 3 * 101);
}

struct base {
    __attribute__((transaction_safe)) virtual std::uint64_t
    get(std::uint64_t n) const
    {
        return n;
    }
    virtual ~base() = default;
};

struct derived : base {
    __attribute__((transaction_safe)) std::uint64_t
    get(std::uint64_t n) const override
    {
        return 2 * n;
    }
};

base *volatile chosen;

void
virtual_functions_have_versions()
{
    chosen = new derived;
    base *b = chosen;

    __transaction_atomic { x[5] += b->get(21); }
    must(value(5) == 42);
    delete b;
}

} /* namespace */

int
main()
{
    char dir[] = "/tmp/check_itm_cxx.XXXXXX";
    pid_t pid = fork();

    must(pid >= 0);
    if (pid == 0) /* the same, as if there were other threads */
        must(xac_itm_side_by_side() == 0);
    must(mkdtemp(dir) != nullptr && chdir(dir) == 0);
    must(xac_init("db", XAC_NONDURABLE) == 0);
    x = static_cast<std::uint64_t *>(xac_mmap("input.db", 16 * 4096));
    must(static_cast<void *>(x) != MAP_FAILED);
    for (int n = 0; n < 4; n++) {
        exception_commits(n);
        exception_stays_inside(n);
        exception_of_the_library(n);
        attempt_ends_in_a_handler(n % 2 == 0);
    }
    must(value(0) == 4 && value(2) == 4 && value(7) == 4);
    objects_follow_the_transaction();
    virtual_functions_have_versions();
    must(xac_shutdown() == 0);
    must(std::system("rm -rf ../\"${PWD##*/}\"") == 0);
    if (pid != 0) {
        int status = 1;

        must(waitpid(pid, &status, 0) == pid && status == 0);
        std::puts("check_itm_cxx: passed");
    }
    return 0;
}
