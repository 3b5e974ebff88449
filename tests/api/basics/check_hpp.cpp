/* SPDX-License-Identifier: MIT */
/*
 * check_hpp.cpp -- the classes of xac.hpp.
 *
 * GOAL    Results arrive; what is not committed leaves no trace: an exception, limits of attempts
 *         and of time, a code other than 0, kill -9.  Objects move, and end once.
 * METHOD  A few cells.  A thread with a view commits to their page during an attempt, which then
 *         has a conflict.  The program is compiled with exceptions and, as check_hpp_plain, without.
 */
#include <xac.hpp>

#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include <sys/wait.h>

namespace {

[[noreturn]] void
fail(const char *what)
{
    std::fprintf(stderr, "check_hpp: not so: %s; %s\n", what, xac_last_error());
    std::exit(EXIT_FAILURE);
}

void
must(bool is_so, const char *what)
{
    if (!is_so)
        fail(what);
}

int
cell(xac::env &env, const xac::mapping<int> &x)
{
    return env.query([&] { return x[0]; });
}

/* Commit to the page of the cells, so that the transaction of the caller has a conflict. */
void
disturb(xac::env &env, const xac::mapping<int> &x)
{
    std::thread other([&] {
        auto *view = static_cast<int *>(xac_view_in(env.get(), x.data()));

        must(view != MAP_FAILED, "a view");
        must(env.try_transact([&] { view[1]++; }) == 0, "the other commits");
        must(xac_unview_in(env.get(), view) == 0, "the view ends");
    });
    other.join();
}

/* Results of every kind, also one that cannot be copied; nested transactions; queries. */
void
results_arrive(xac::env &env, const xac::mapping<int> &x)
{
    env.transact([&] { x[0] = 5; });
    must(env.transact([&] { return ++x[0]; }) == 6, "the result of a transaction");
    auto moved = env.transact([&] { return std::make_unique<int>(x[0]); });
    must(*moved == 6, "a result that only moves");
    int nested = env.transact([&] { return env.transact([&] { return ++x[0]; }); });
    must(nested == 7 && cell(env, x) == 7, "a nested transaction");
    env.query([&] { must(x[1] == 0, "a query without a result"); });
    must(x.size() == 3 && x.end() - x.begin() == 3, "the size");
}

/* The table of participants shows this process, in its query. */
static void
participants_are_listed(xac::env &env, const xac::mapping<int> &x)
{
    std::vector<xac_party> rows;

    env.query([&] {
        (void)x[0];
        rows = env.participants();
    });
    must(rows.size() == 1, "one row");
    must(rows[0].pid == static_cast<std::uint64_t>(getpid()), "of this process");
    must(rows[0].kind == XAC_PARTY_QUERY, "in a query");
    rows = env.participants();
    must(rows.size() == 1 && rows[0].kind == XAC_PARTY_IDLE, "which is over");
}

/* A file that nobody maps is called otherwise, and goes. */
static void
files_come_and_go(xac::env &env)
{
    {
        xac::mapping<int> x(env, "old", 3);

        env.transact([&] { x[0] = 5; });
    }
    env.rename("old", "new");
    {
        xac::mapping<int> x(env, "new", 3);

        must(cell(env, x) == 5, "what was committed under the old name");
#ifdef __cpp_exceptions
        try {
            env.remove("new");
            fail("a mapped file");
        } catch (const xac::error &e) {
            must(e.code() == EBUSY, "what remove() says of a mapped file");
        }
#endif
    }
    env.remove("new");
    must(access("new", F_OK) != 0 && access("old", F_OK) != 0, "both names");
}

/* A snapshot holds its state until its end, or longer if it has a name. */
void
snapshots_are_held(xac::env &env, const xac::mapping<int> &x)
{
    int before = cell(env, x);
    std::uint64_t id;
    {
        xac::snapshot held = env.snapshot();
        xac::snapshot moved = std::move(held);

        id = moved.id();
        env.transact([&] { x[0]++; });
        must(env.query_at(id, [&] { return x[0]; }) == before, "the state that is held");
        env.query_at(id, [&] { must(x[0] == before, "a query without a result"); });
        must(cell(env, x) == before + 1, "the present state");
    }
    must(xac_begin_query_at_in(env.get(), id) == XAC_ENOSTATE, "released");
    {
        xac::snapshot named = env.snapshot();

        id = named.id();
        named.keep("of check_hpp", std::chrono::seconds(1000));
    }
    must(env.query_at(id, [&] { return x[0]; }) == before + 1, "a named one stays");
    must(xac_snapshot_release_in(env.get(), id) == 0, "released by its number");
    must(xac::snapshot().release() == 0, "none is held");
}

/* Back to a savepoint, again and again; an exception goes back to it, too. */
void
savepoints_undo(xac::env &env, const xac::mapping<int> &x)
{
    int before = cell(env, x);

    env.transact([&] {
        x[0] = before + 1;
        {
            xac::savepoint outer = env.savepoint();

            x[0] = 100;
            outer.rollback();
            must(x[0] == before + 1, "undone");
            x[0] = 200;
            outer.rollback();
            must(x[0] == before + 1, "undone again");
            x[1]++;
            xac::savepoint inner = env.savepoint();
            x[1] = -1;
            inner.rollback();
        }
        must(x[1] != -1, "the inner one, then both released");
    });
    must(cell(env, x) == before + 1, "what was before it is committed");
#ifdef __cpp_exceptions
    env.transact([&] {
        x[0]++;
        try {
            xac::savepoint part = env.savepoint();

            x[0] = 300;
            throw 1;
        } catch (int) {
        }
    });
    must(cell(env, x) == before + 2, "an exception undoes a part");
    try {
        xac::savepoint none = env.savepoint();
        fail("a savepoint outside of a transaction");
    } catch (const xac::error &e) {
        must(e.code() == EPERM, "its error");
    }
#endif
}

/* Another thread stores for a transaction while it is open, and not later. */
void
threads_help(xac::env &env, const xac::mapping<int> &x)
{
    int before = cell(env, x);
    std::uint64_t last = 0;

    env.transact([&] {
        std::uint64_t txn = last = env.team();

        must(txn != 0 && txn == env.team(), "one number");
        std::thread([&] {
            xac::helper here(txn);

            x[0]++;
        }).join();
        must(x[0] == before + 1, "its store is seen");
    });
    must(cell(env, x) == before + 1, "and committed");
#ifdef __cpp_exceptions
    try {
        xac::helper late(last);
        fail("joined a transaction that is over");
    } catch (const xac::error &e) {
        must(e.code() == XAC_ENOTXN, "its error");
    }
    try {
        (void)env.team();
        fail("a team outside of a transaction");
    } catch (const xac::error &e) {
        must(e.code() == XAC_ENOTXN, "its error");
    }
#endif
}

/* What differs between a snapshot and the present, and states of the past by their number and time. */
void
changes_are_told(xac::env &env, const xac::mapping<int> &x)
{
    xac::snapshot held = env.snapshot();
    int n = 0, before = cell(env, x);
    xac_stats stats;
    must(xac_get_stats_in(env.get(), &stats, sizeof stats) == 0, "statistics");
    std::uint64_t old = stats.commit_number;
    auto then = std::chrono::system_clock::now();

    env.transact([&] { x[0]++; });
    xac::snapshot now = env.snapshot();
    auto note = [&](const xac_change &c) {
        must(c.length == 8 && *static_cast<const int *>(c.before) == before
                 && *static_cast<const int *>(c.after) == before + 1,
             "a range");
        must(c.address == static_cast<const void *>(&x[0]), "its place");
        n++;
    };
    env.diff(held.id(), now.id(), note);
    must(n == 1, "one range");
    n = 0;
    env.diff(xac::at_commit(old), now.id(), [&](const xac_change &) { return ++n == 1; });
    must(n == 1, "by the number of a commit, to the first change");
    must(env.query_at(xac::at_time(then), [&] { return x[0]; }) == before, "by a time");
    must(env.query_at(xac::at_commit(old), [&] { return x[0]; }) == before,
         "by a number");
#ifdef __cpp_exceptions
    n = 0;
    try {
        env.diff(held.id(), now.id(), [](const xac_change &) { throw 7; });
    } catch (int what) {
        n = what;
    }
    must(n == 7, "an exception leaves it");
#endif
}

/* A conflict is tried again; the limits end that, and the code of the function does.  Only the
   first attempt is disturbed: the second has the turn, and others wait for it. */
void
attempts_are_limited(xac::env &env, const xac::mapping<int> &x)
{
    int n = 0;
    int before = cell(env, x);
    auto fail_first = [&] {
        x[0]++;
        if (n++ == 0)
            disturb(env, x);
    };

    env.transact(fail_first);
    must(n == 2 && cell(env, x) == before + 1, "two attempts, one effect");

    xac::limits most;
    most.attempts = 1;
    n = 0;
    must(env.try_transact(fail_first, most) == XAC_ABORTED && n == 1, "one attempt");
    must(cell(env, x) == before + 1, "no effect");
    most.attempts = 2;
    n = 0;
    must(env.try_transact(fail_first, most) == 0 && n == 2, "the second attempt commits");

    most.attempts = 0;
    most.time = std::chrono::milliseconds(1);
    n = 0;
    auto wait_and_fail = [&] {
        std::this_thread::sleep_for(most.time);
        fail_first();
    };
    must(env.try_transact(wait_and_fail, most) == XAC_ABORTED && n == 1, "time");

    before = cell(env, x);
    int rc = env.try_transact([&] {
        x[0]++;
        return 77;
    });
    must(rc == 77 && cell(env, x) == before, "a code rolls back");
    n = 0;
    rc = env.try_transact([&] {
        n++;
        xac_abort_in(env.get());
    });
    must(rc == XAC_ABORTED && n == 1, "xac_abort_in() is not tried again");
}

/* A nested transaction cannot commit: the outermost one runs again, and no error is made of it. */
void
nested_failure_repeats_the_outermost(xac::env &env, const xac::mapping<int> &x)
{
    int n = 0;
    int before = cell(env, x);

    env.transact([&] {
        env.transact([&] {
            x[0]++;
            if (n++ == 0)
                disturb(env, x);
        });
    });
    must(n == 2 && cell(env, x) == before + 1, "two attempts of both");
}

#ifdef __cpp_exceptions
template <class E, class F>
void
must_throw(F &&fn, int code, const char *what)
{
    try {
        fn();
    } catch (const E &e) {
        must(e.code() == code && std::strlen(e.what()) > 0, what);
        const char *meaning = xac_strerror(code), *first = std::strstr(e.what(), meaning);
        must(first != nullptr && std::strstr(first + 1, meaning) == nullptr,
             "what() says once what the code means");
        return;
    }
    fail(what);
}

void
exceptions_roll_back(xac::env &env, const xac::mapping<int> &x)
{
    int before = cell(env, x);
    int n = 0;

    try {
        env.transact([&] {
            x[0] = -1;
            n++;
            throw std::runtime_error("thrown");
        });
        fail("an exception arrives");
    } catch (const std::runtime_error &e) {
        must(std::strcmp(e.what(), "thrown") == 0 && n == 1,
             "the exception itself, once");
    }
    must(cell(env, x) == before, "an exception rolls back");

    must_throw<xac::conflict>(
        [&] {
            env.transact([&] { x[0]++, disturb(env, x); }, {1, {}});
        },
        XAC_ABORTED, "limits are a conflict");
    must_throw<xac::error>([&] { xac::env again("hpp"); }, XAC_EALREADY, "open twice");
    must_throw<xac::error>([&] { xac::env none("none/none"); }, ENOENT, "no directory");
    must_throw<xac::error>([&] { env.query([&] { env.transact([] {}); }); }, XAC_EINQUERY,
                           "a transaction in a query");
    must(cell(env, x) == before, "the query has ended");

    int rc = env.try_transact([&] {
        x[0] = -1;
        throw std::bad_alloc();
    });
    must(rc == ENOMEM && cell(env, x) == before, "no memory is a code");
}
#endif

void
objects_move(xac::env &env)
{
    xac::env moved(std::move(env));
    must(env.get() == nullptr && moved.get() != nullptr, "an environment moves");
    env = std::move(moved);

    xac::mapping<int> a(env, "moved", 1);
    int *base = a.data();
    xac::mapping<int> b(std::move(a));
    must(a.data() == nullptr && b.data() == base, "a mapping moves");
    must(b.try_map(env, "other", 1) == XAC_EMAPPED, "a mapping maps one file");
    must(b.try_unmap() == 0 && b.try_unmap() == 0, "it ends once");
    must(b.try_map(env, "huge", SIZE_MAX / 2) == EFBIG, "too many");
    must(env.try_open("other") == XAC_EALREADY, "an environment is opened once");
}

/* A child commits and dies in the middle of its next transaction. */
void
killed_is_found_again()
{
    pid_t child = fork();

    if (child == 0) {
        xac::env env("killed");
        xac::mapping<int> x(env, "killed/cells", 2000);

        env.transact([&] { x[0] = x[1999] = 8; });
        env.transact([&] {
            x[0] = x[1999] = 9;
            kill(getpid(), SIGKILL);
        });
    }
    int status = 0;
    must(child > 0 && waitpid(child, &status, 0) == child, "a child");
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed");

    xac::env env("killed");
    xac::mapping<int> x(env, "killed/cells", 2000);
    must(env.query([&] { return x[0] == 8 && x[1999] == 8; }),
         "what was committed, only");
}

} // namespace

int
main()
{
    char dir[] = "/tmp/xac-test-XXXXXX";

    alarm(60); /* instead of a wait without end */
    must(mkdtemp(dir) != nullptr && chdir(dir) == 0, "a directory");
    killed_is_found_again();
    xac::env none;
    must(none.try_open("") == EINVAL && none.try_close() == 0, "no environment");
    {
        xac::options how;
        how.value[XAC_OPT_POLICY] = XAC_POLICY_OPTIMISTIC; /* the two may overlap */
        how.value[XAC_OPT_HISTORY] = XAC_HISTORY_COMMITS(1000);
        xac::env env("hpp", how);
        xac::mapping<int> x(env, "cells", 3);

        results_arrive(env, x);
        snapshots_are_held(env, x);
        savepoints_undo(env, x);
        threads_help(env, x);
        changes_are_told(env, x);
        participants_are_listed(env, x);
        attempts_are_limited(env, x);
        nested_failure_repeats_the_outermost(env, x);
#ifdef __cpp_exceptions
        exceptions_roll_back(env, x);
#endif
    }
    xac::options how;
    how.flags = XAC_NONDURABLE;
    xac::env env("other", how);
    objects_move(env);
    files_come_and_go(env);
    must(env.try_close() == 0, "close");
    must(chdir("/") == 0 && std::system((std::string("rm -rf ") + dir).c_str()) == 0,
         "remove");
    std::puts("check_hpp: all groups");
    return 0;
}
