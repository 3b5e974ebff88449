/* SPDX-License-Identifier: MIT */
/*
 * check_promote.c -- a standby becomes an environment of its own (libxac/ship/promote.h).
 *
 * GOAL    Killed in any of its calls, or failing in one, a promotion leaves a standby that nobody can open to write, or an
 *         environment; promoting again completes it, and no transaction is missing.  A standby of the old source
 *         that is beyond the fork, and the old source itself, are told so, and keep what they have.
 * METHOD  The pump and the judge of standby_env.h; the calls of sysfault.h; both ends of a connection.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "standby_pump.h"
#include "tests/common/sysfault.h"
#include "base/names.h"
#include "log/master.h"
#include "ship/promote.h"
#include "ship/receive.h"
#include "ship/send.h"

#define ALL 20

static uint64_t n_fault;

static bool
has(const char *name)
{
    char path[100];

    (void)snprintf(path, sizeof path, COPY "/%s", name);
    return file_exists(path);
}

/* promote -- ret as xac_promote(). */
static int
promote(uint64_t *lsnp)
{
    uint32_t generation = 0;
    int rc = xac_promote(COPY, &generation, lsnp);

    must(rc != 0 || generation > 1);
    return rc;
}

static uint32_t
generation(void)
{
    struct xac_master_slot m;
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_master_read(fd, &m));
    (void)close(fd);
    return m.generation;
}

/* make_standby -- which has log that is not redone; it is kept. */
static void
make_standby(void)
{
    uint64_t taken = 0;
    struct pump p;

    board->large_every = 7;
    board->checkpoint_every = 5;
    make_copy(8, 6);
    write_n(6);
    must_ok(pump_open(&p));
    must_ok(pump(&p, UINT64_MAX, &taken));
    must_ok(xac_standby_sync(p.s));
    must_eq(taken, ALL - 8);
    pump_close(&p);
    run_shell("cp -a " COPY " kept");
}

/* must_be_promoted -- anybody may open it. */
static void
must_be_promoted(void)
{
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(!has(XAC_FOLLOW_NAME));
    must(!has(XAC_RECEIVED_NAME));
    must(!has(XAC_BACKUP_NAME));
    must_ok(xac_recover_dir(fd, NULL, NULL, NULL));
    (void)close(fd);
    must_eq(must_be_state(COPY IN_COPY), ALL);
}

/* must_be_nobodys -- while it has xac.follow nobody writes there. */
static void
must_be_nobodys(void)
{
    int fd = open(COPY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (has(XAC_FOLLOW_NAME)) {
        must_refuse(xac_recover_dir(fd, NULL, NULL, NULL), XAC_ENOTLEADER);
        must_refuse(xInit(COPY, DURABLE), XAC_ENOTLEADER);
    }
    (void)close(fd);
}

static void
die_promoting(void *arg)
{
    uint64_t lsn;

    (void)arg;
    sysfault_arm(SYSFAULT_DIE, SYSFAULT_FILES | SYSFAULT_GROW | SYSFAULT_LOCK, n_fault,
                 0);
    must_ok(promote(&lsn));
    sysfault_disarm();
}

START_TEST(killed_in_any_call_it_is_done_again)
{
    uint64_t n = 0, standbys = 0, between = 0, lsn;
    uint32_t before;
    int status = 1;

    make_standby();
    before = generation();
    while (status != 0) {
        run_shell("rm -rf " COPY " && cp -a kept " COPY);
        n_fault = n += ENV_DEAR;
        status = proc_wait(proc_spawn(die_promoting, NULL));
        must(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        must_be_nobodys();
        if (has(XAC_FOLLOW_NAME) && generation() == before) { /* a standby, as it was */
            must_eq(follow_on(), 0);
            standbys++;
        } else if (has(XAC_FOLLOW_NAME)) {
            between++;
        }
        if (has(XAC_FOLLOW_NAME))
            must_ok(promote(&lsn));
        must_be_promoted();
    }
    must(standbys > 50 / ENV_DEAR);
    must(between > 1 / ENV_DEAR);
}
END_TEST

START_TEST(failing_in_a_call_it_is_done_again)
{
    static const int errors[] = {EIO, ENOSPC};
    bool is_hit = true;
    uint64_t n = 0, lsn;

    make_standby();
    while (is_hit) {
        int rc;

        run_shell("rm -rf " COPY " && cp -a kept " COPY);
        env_stale_message();
        sysfault_arm(SYSFAULT_FAIL, SYSFAULT_SYNCS | SYSFAULT_GROW | SYSFAULT_DATA, ++n,
                     errors[_i]);
        rc = promote(&lsn);
        is_hit = sysfault_hit() != NULL;
        sysfault_disarm();
        must(is_hit || rc == 0);
        must_be_nobodys();
        if (has(XAC_FOLLOW_NAME)) {
            must(rc != 0);
            must_ok(promote(&lsn));
        }
        must_be_promoted();
    }
    must(n > 20);
}
END_TEST

/* ---- Fencing --------------------------------------------------------------------------------- */

static int end[2];

static int
no_copy(void *arg, const char *slot, const char *to)
{
    (void)arg;
    (void)slot;
    (void)to;
    return xac_err(ENOSYS, "no copy in this test");
}

/* send_promoted -- a child: the standby that has been promoted is a source. */
static void
send_promoted(void *arg)
{
    struct xac_send_options o = {
        .dir = COPY, .slot = "one", .in = end[0], .out = end[0], .copy = no_copy};
    struct xac_send_report rep;

    (void)arg;
    (void)close(end[1]);
    (void)xac_send_run(&o, &rep);
}

/* follow_promoted -- a directory wants to follow it; ret the error, words noted. */
static int
follow_promoted(const char *dir)
{
    struct xac_receive_options o = {.dir = dir};
    struct xac_receive_report rep;
    pid_t pid;
    int rc;

    must_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end));
    pid = proc_spawn(send_promoted, NULL);
    (void)close(end[0]);
    o.in = o.out = end[1];
    rc = xac_receive_run(&o, &rep);
    (void)close(end[1]);
    proc_join(pid);
    return rc;
}

/* must_say_fork -- the error has words about it. */
static void
must_say_fork(uint64_t lsn)
{
    char words[100];

    (void)snprintf(words, sizeof words, "has parted from this one at LSN %llu;",
                   (unsigned long long)lsn);
    if (strstr(xac_err_text(), words) == NULL)
        env_fail(__FILE__, __LINE__, "not \"%s\": %s", words, xac_err_text());
}

START_TEST(who_is_beyond_the_fork_is_told_where_it_is)
{
    uint64_t lsn;

    make_standby();
    must_ok(promote(&lsn));
    run_shell("mv " COPY " promoted && mv kept " COPY);
    write_n(9); /* the old source goes on, and this standby with it */
    (void)follow_on();
    run_shell("mv " COPY " second && mv promoted " COPY);
    (void)signal(SIGPIPE, SIG_IGN);
    must_refuse(follow_promoted("second"), XAC_EFOREIGN);
    must_say_fork(lsn);
    /* It is a standby of the old source as before. */
    must_eq(judge("second"), ALL + 9);
    must_be_promoted();
}
END_TEST

START_TEST(the_old_source_does_not_follow)
{
    struct image *before;
    uint64_t lsn;

    make_standby();
    must_ok(promote(&lsn));
    (void)signal(SIGPIPE, SIG_IGN);
    before = image_take(ENV_DIR);
    must_refuse(follow_promoted(ENV_DIR), EINVAL);
    must(strstr(xac_err_text(), "xship rewind") != NULL);
    must_unchanged(before, ENV_DIR);
    image_free(before);
    write_n(5); /* it goes on, in a generation of its own */
    before = image_take(ENV_DIR);
    must_refuse(follow_promoted(ENV_DIR), XAC_EFOREIGN);
    must_say_fork(lsn);
    must_unchanged(before, ENV_DIR);
    image_free(before);
    must_eq(file_u64(ENV_FILE, 0), ALL + 5);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("promote");
    TCase *t = env_tcase_with(s, "promote", 300, setup);

    env_in_memory();
    tcase_add_test(t, killed_in_any_call_it_is_done_again);
    tcase_add_loop_test(t, failing_in_a_call_it_is_done_again, 0, 2);
    tcase_add_test(t, who_is_beyond_the_fork_is_told_where_it_is);
    tcase_add_test(t, the_old_source_does_not_follow);
    return env_main(s);
}
