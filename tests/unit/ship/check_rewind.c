/* SPDX-License-Identifier: MIT */
/*
 * check_rewind.c -- an old source becomes a standby of the environment that was its standby (libxac/ship/rewind.h).
 *
 * GOAL    Whatever both have done since they parted, the old one is afterwards, file by file, as the new one, and follows
 *         it on.  Killed in any of its calls, or failing in one, it is an environment as before, or nobody can use it, and
 *         another attempt completes it.  What cannot be done is refused before anything has changed.
 * METHOD  The two environments and the connection of rewind_env.h; the calls of sysfault.h.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "rewind_env.h"
#include "tests/common/sysfault.h"
#include "log/rewind_note.h"

static uint64_t n_fault;

/* go_on -- NEW commits more, and OLD follows. */
static void
go_on(void)
{
    session((struct session){.side = 1, .n = 12, .g_pages = 30, .checkpoint_every = 5});
    must_ok(follow_new());
    must_have_all();
}

/* ---- What both have done since ------------------------------------------------------------- */

/* parted_more -- variants of what happens behind the fork. */
static void
parted_more(int how)
{
    struct session old = {.n = 15, .g_pages = 20, .dies = how == 0};
    struct session new = {.side = 1, .n = 17, .g_pages = 24};

    if (how >= 2)
        old.checkpoint_every = new.checkpoint_every = 4;
    if (how == 3)
        old.large_every = new.large_every = 6;
    session(old);
    if (how >= 1)
        session(new);
    if (how >= 2) { /* several generations of both */
        old.dies = true;
        session(old);
        session(new);
        session(old);
    }
}

/* n_copies -- records of the old source from an LSN on that take bytes from other pages. */
static uint64_t
n_copies(uint64_t lsn)
{
    struct xac_followed got = {.blk = NULL};
    struct xac_source s;
    uint64_t n = 0;

    must_ok(xac_source_open(&s, OLD));
    must_ok(xac_source_seek(&s, 1, XAC_LSN_FIRST, 0));
    do {
        const struct xac_record *rec = NULL;

        must_ok(xac_source_next(&s, &got));
        while (got.blk != NULL && (rec = xac_record_next(got.blk, rec)) != NULL)
            n += rec->type == XAC_XCOPY && got.blk->lsn >= lsn;
    } while (got.blk != NULL);
    xac_source_close(&s);
    return n;
}

START_TEST(it_is_as_the_new_source_then)
{
    uint64_t lsn = part((struct session){.n = 10, .g_pages = 16, .checkpoint_every = 7});
    struct xac_receive_report rep;

    parted_more(_i);
    must(n_copies(lsn) > 2);
    must_ok(rewind_old(&rep));
    must(rep.was_rewound);
    must_eq(rep.fork_lsn, lsn);
    must(rep.pages > 0 && (_i == 3 || rep.pages < F_PAGES + 16));
    must_have_all();
    go_on();
    /* It can be promoted like any other standby. */
    must_ok(xac_promote(OLD, &(uint32_t){0}, &lsn));
    must_eq(must_be_as(OLD, 1), scene->n[1]);
}
END_TEST

/* Where redo would have to begin before the fork: pages that were not in their files when the old source died. */
START_TEST(what_was_not_in_its_files_comes_too)
{
    (void)part((struct session){.n = 12, .g_pages = 16, .dies = true});
    session((struct session){.side = 1, .n = 2, .g_pages = 16});
    must_rewind();
    go_on();
}
END_TEST

START_TEST(files_that_came_since_the_fork)
{
    char text[100] = "";

    (void)part((struct session){.n = 10, .g_pages = 16, .checkpoint_every = 7});
    session((struct session){.n = 3, .g_pages = 16, .extra = "of-old"});
    session((struct session){.n = 3, .g_pages = 16, .extra = "of-both"});
    session((struct session){.side = 1, .n = 3, .g_pages = 16, .extra = "of-both"});
    session((struct session){.side = 1, .n = 3, .g_pages = 16, .extra = "of-new"});
    must_rewind();
    must(!old_has("of-old"));
    must_be_same("of-both");
    must_be_same("of-new");
    file_read(OLD "/of-both", 0, text, 3);
    must(strcmp(text, "new") == 0);
    go_on();
}
END_TEST

/* The log before the fork stays for an archive, if it is kept; of the own log behind it nothing is left. */
START_TEST(nothing_is_left_of_the_log_behind_the_fork)
{
    uint64_t lsn =
        part((struct session){.n = 10, .g_pages = 16, .large_every = 8, .recycles = _i});
    uint8_t byte = 1;
    char name[100];

    session((struct session){.n = 40, .g_pages = 16, .large_every = 4, .recycles = _i});
    if (_i == 1)
        (void)unlink(OLD "/xac.log-kept");
    session((struct session){.side = 1, .n = 1, .g_pages = 16});
    must_rewind();
    (void)snprintf(name, sizeof name, OLD "/xac-log.%08llu",
                   (unsigned long long)(lsn / board->segment_bytes + 1));
    must(_i == 1 || file_exists(name));
    if (file_exists(name)) {
        file_read(name, XAC_SEGMENT_HEADER + lsn % board->segment_bytes, &byte, 1);
        must_eq(byte, 0);
    }
    must_eq(file_count(OLD, "xac-data.00000002"), 0);
    must_ok(xac_promote(OLD, &(uint32_t){0}, &lsn));
}
END_TEST

/* ---- Kills and failures ---------------------------------------------------------------------- */

/* make_parted -- with all that takes a step of its own; OLD is kept. */
static struct image *
make_parted(void)
{
    (void)part((struct session){.n = 6, .g_pages = 16, .checkpoint_every = 5});
    session((struct session){.n = 5, .g_pages = 20, .extra = "of-old"});
    session((struct session){.n = 5, .g_pages = 20, .extra = "of-both", .dies = true});
    session((struct session){
        .side = 1, .n = 8, .g_pages = 24, .extra = "of-both", .checkpoint_every = 3});
    return image_take(OLD);
}

/* must_be_nobodys -- while it has xac.rewind. */
static void
must_be_nobodys(void)
{
    uint32_t generation;
    struct xac_source s;
    uint64_t lsn;

    must_refuse(xInit(OLD, DURABLE), XAC_ENOTENV);
    must(strstr(xLastError(), "xship rewind") != NULL);
    must_refuse(xInit(OLD, XAC_READONLY), XAC_ENOTENV);
    must_refuse(xRecover(OLD), XAC_ENOTENV);
    must(xac_promote(OLD, &generation, &lsn) != 0);
    must_rc(xac_source_open(&s, OLD), XAC_ENOTENV);
    xac_source_close(&s);
}

static void
die_rewinding(void *arg)
{
    struct xac_receive_report rep;

    (void)arg;
    sysfault_arm(SYSFAULT_DIE, SYSFAULT_FILES | SYSFAULT_GROW | SYSFAULT_LOCK, n_fault,
                 0);
    (void)receive(true, &rep);
    sysfault_disarm();
}

/* rewind_dying -- ret whether it has come to its end. */
static bool
rewind_dying(void)
{
    pid_t source = link_start();
    int status = proc_wait(proc_spawn(die_rewinding, NULL));

    must(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    link_finish(source);
    return status == 0;
}

START_TEST(killed_in_any_call_it_is_done_again)
{
    uint64_t stride = env_number("XAC_STRIDE", 14 * ENV_DEAR), before = 0, under_way = 0;
    uint64_t n = 1 + env_seed() % stride;
    struct image *was = make_parted();

    for (bool is_done = false; !is_done; n += stride) {
        image_restore(was, OLD);
        n_fault = n;
        is_done = rewind_dying();
        if (old_has(XAC_REWIND_NAME)) {
            must_be_nobodys();
            under_way++;
        } else if (!old_has(XAC_FOLLOW_NAME)) {
            (void)unlink(OLD "/" XAC_REWIND_NAME "-new");
            must_unchanged(was, OLD);
            before++;
        } else {
            must_eq(must_be_whole(), scene->n[1]);
        }
        must_rewind();
    }
    must(before > 1 && under_way > 20 / ENV_DEAR);
    image_free(was);
}
END_TEST

START_TEST(failing_in_a_call_it_is_done_again)
{
    static const int errors[] = {EIO, ENOSPC};
    uint64_t stride = env_number("XAC_STRIDE", 8 * ENV_DEAR);
    uint64_t n = 1 + env_seed() % stride;
    struct image *was = make_parted();

    for (bool is_hit = true; is_hit; n += stride) {
        struct xac_receive_report rep;
        pid_t source;
        int rc;

        image_restore(was, OLD);
        env_stale_message();
        source = link_start();
        sysfault_arm(SYSFAULT_FAIL, SYSFAULT_SYNCS | SYSFAULT_GROW | SYSFAULT_DATA, n,
                     errors[_i]);
        rc = receive(true, &rep);
        is_hit = sysfault_hit() != NULL;
        sysfault_disarm();
        link_finish(source);
        must(is_hit || rc == 0);
        if (old_has(XAC_REWIND_NAME))
            must_be_nobodys();
        (void)unlink(OLD "/" XAC_REWIND_NAME "-new");
        if (!old_has(XAC_REWIND_NAME) && !old_has(XAC_FOLLOW_NAME))
            must_unchanged(was, OLD);
        must_rewind();
    }
    must(n > 20);
    image_free(was);
}
END_TEST

/* ---- What is refused --------------------------------------------------------------------------- */

/* must_refuse_rewind -- and nothing has changed. */
static void
must_refuse_rewind(int code, const char *words)
{
    struct image *was = image_take(OLD);
    struct xac_receive_report rep;

    must_refuse(rewind_old(&rep), code);
    if (strstr(xac_err_text(), words) == NULL)
        env_fail(__FILE__, __LINE__, "not \"%s\": %s", words, xac_err_text());
    must(!rep.was_rewound);
    must_unchanged(was, OLD);
    image_free(was);
    session((struct session){.n = 1, .g_pages = 20}); /* it goes on */
}

static void
make_simple(void)
{
    (void)part((struct session){.n = 10, .g_pages = 16, .checkpoint_every = 7});
    session((struct session){.n = 6, .g_pages = 20, .checkpoint_every = 4});
    session((struct session){.side = 1, .n = 6, .g_pages = 20});
}

START_TEST(without_being_told_to_it_does_not)
{
    make_simple();
    must_refuse(follow_new(), XAC_EFOREIGN);
    must(strstr(xac_err_text(), "xship rewind") != NULL);
    must_rewind();
}
END_TEST

START_TEST(own_log_that_is_too_short)
{
    char name[100];
    uint64_t lsn = part((struct session){.n = 10, .g_pages = 16, .checkpoint_every = 7});

    session((
        struct session){.n = 60, .g_pages = 16, .large_every = 5, .checkpoint_every = 4});
    session((struct session){.side = 1, .n = 1, .g_pages = 16});
    (void)snprintf(name, sizeof name, OLD "/xac-log.%08llu",
                   (unsigned long long)(lsn / board->segment_bytes + 1));
    must(unlink(name) == 0);
    must_refuse_rewind(XAC_ECUTOFF, "its own log does not reach back");
}
END_TEST

/* drop_log -- of NEW, before its redo position. */
static void
drop_log(void)
{
    struct xac_master_slot m;
    int fd = open(NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_master_read(fd, &m));
    (void)close(fd);
    must(m.redo_lsn > 2 * m.segment_bytes);
    for (uint64_t k = 1; k <= m.redo_lsn / m.segment_bytes; k++) {
        char name[100];

        (void)snprintf(name, sizeof name, NEW "/xac-log.%08llu", (unsigned long long)k);
        (void)unlink(name);
    }
}

START_TEST(log_of_the_source_that_is_too_short)
{
    make_simple();
    for (int i = 0; i < 2; i++)
        session((struct session){
            .side = 1, .n = 60, .g_pages = 20, .large_every = 3, .checkpoint_every = 4});
    drop_log();
    must_refuse_rewind(XAC_ECUTOFF, "begin anew");
}
END_TEST

START_TEST(sources_that_do_not_fit)
{
    make_simple();
    if (_i == 0) { /* another environment */
        run_shell("mv " NEW " kept && mv " OLD " kept-old");
        scene->n[0] = scene->n[1] = 0;
        session((struct session){.n = 3, .g_pages = 16});
        run_shell("mv " OLD " " NEW " && mv kept-old " OLD);
        scene->n[0] = 26;
        must_refuse_rewind(XAC_EFOREIGN, "another environment");
    } else if (_i == 1) { /* a history that has nothing in common, as far as is known */
        run_shell("sed -i 's/[0-9a-f]\\{32\\}$/0123456789abcdef0123456789abcdef/' " NEW
                  "/xac.history && sed -i '/^2 /d' " NEW "/xac.history");
        must_refuse_rewind(XAC_EFOREIGN, "no generation in common");
    } else { /* one that has not been promoted */
        struct xac_log_followers f = {.wakes = 0};
        int fd = open(OLD, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        must_ok(xac_slots_add(&f, "old", XAC_LSN_FIRST));
        must_ok(xac_slots_write(fd, &f));
        (void)close(fd);
        run_shell("rm -rf " NEW " && cp -a " OLD " " NEW);
        must_refuse_rewind(XAC_EFOREIGN, "not been promoted");
    }
}
END_TEST

static void
rename_g(void *arg)
{
    (void)arg;
    must_ok(xInit(NEW, DURABLE));
    must_ok(xRename(NEW "/g", NEW "/g2"));
    must_ok(xShutdown());
}

START_TEST(a_file_that_has_another_name_by_now)
{
    make_simple();
    proc_run(rename_g, NULL);
    must_refuse_rewind(XAC_EREPLACED, "another name there");
}
END_TEST

/* ---- A source that goes on ----------------------------------------------------------------------- */

static int (*plain_unlinkat)(int dirfd, const char *path, int flags);

/* end_whole -- the process ends as soon as the standby counts as whole.  It removes its log slowly, so that the source gets
   on before pages come. */
static int
end_whole(int dirfd, const char *path, int flags)
{
    int rc;

    proc_sleep_us(15000);
    rc = plain_unlinkat(dirfd, path, flags);

    if (strcmp(path, XAC_REWIND_NAME) == 0)
        _exit(0);
    return rc;
}

/* rewind_slowly -- a child. */
static void
rewind_slowly(void *arg)
{
    struct xac_receive_report rep;

    (void)arg;
    plain_unlinkat = xac_sys.unlinkat;
    xac_sys.unlinkat = end_whole;
    must_ok(receive(true, &rep));
    _exit(1); /* it has not become whole */
}

/* Pages come while the source writes them: it is whole only when it has the log up to the end of then. */
START_TEST(a_source_that_is_written_meanwhile)
{
    /* Each page changes once, so no log before that mends what came of it. */
    struct session new = {.side = 1,
                          .n = F_PAGES - 1,
                          .g_pages = 24,
                          .checkpoint_every = 1,
                          .walks = true,
                          .pause_us = 8000};
    struct image *was;

    (void)part((struct session){.n = 10, .g_pages = 16, .checkpoint_every = 7});
    session((struct session){.n = 15, .g_pages = 20, .large_every = 4});
    was = image_take(OLD);
    must_ok(link_hold(NULL, "old"));
    for (int i = 0; i < 2; i++) {
        pid_t writer, source, standby;

        image_restore(was, OLD);
        writer = proc_spawn(run_session, &new);
        is_source_slow = true;
        source = link_start();
        is_source_slow = false;
        standby = proc_spawn(rewind_slowly, NULL);
        proc_join(standby);
        link_finish(source);
        proc_join(writer);
        must(!old_has(XAC_REWIND_NAME));
        must(must_be_whole() >= 10);
        must_ok(follow_new());
        must_have_all();
    }
    image_free(was);
}
END_TEST

/* The wrong source for one that has begun already: it is told which. */
START_TEST(another_source_than_it_was_begun_with)
{
    struct xac_receive_report rep;
    struct image *was = make_parted();

    n_fault = 0;
    do { /* until just behind its note */
        image_restore(was, OLD);
        n_fault += 4;
        must(!rewind_dying());
    } while (!old_has(XAC_REWIND_NAME) || old_has(XAC_MASTER_NAME));
    run_shell("cp -a " NEW " kept");
    run_shell("sed -i 's/[0-9a-f]\\{32\\}$/0123456789abcdef0123456789abcdef/' " NEW
              "/xac.history");
    must_refuse(rewind_old(&rep), XAC_EFOREIGN);
    must(strstr(xac_err_text(), "of another source") != NULL);
    must_be_nobodys();
    run_shell("cp -a kept/xac.history " NEW);
    must_rewind();
    image_free(was);
}
END_TEST

START_TEST(a_damaged_note_is_noticed)
{
    struct xac_rewind_note note;
    struct image *was = make_parted();
    uint64_t size, seed = env_seed();
    uint8_t byte;
    int fd;

    n_fault = 0;
    do {
        image_restore(was, OLD);
        n_fault += 4;
        must(!rewind_dying());
    } while (!old_has(XAC_REWIND_NAME));
    fd = open(OLD, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must_ok(xac_rewind_note_read(fd, &note));
    must(note.n_files > 2 && note.whole_lsn == 0);
    xac_rewind_note_free(&note);
    size = file_size(OLD "/" XAC_REWIND_NAME);
    for (int i = 0; i < 300; i++) {
        uint64_t at = i < 100 ? (uint64_t)i : rnd_below(&seed, size);

        file_read(OLD "/" XAC_REWIND_NAME, at, &byte, 1);
        byte ^= 1;
        file_write(OLD "/" XAC_REWIND_NAME, at, &byte, 1);
        must_rc(xac_rewind_note_read(fd, &note), XAC_EDAMAGED);
        xac_rewind_note_free(&note);
        byte ^= 1;
        file_write(OLD "/" XAC_REWIND_NAME, at, &byte, 1);
    }
    must(truncate(OLD "/" XAC_REWIND_NAME, (off_t)size - 8) == 0);
    must_rc(xac_rewind_note_read(fd, &note), XAC_EDAMAGED);
    xac_rewind_note_free(&note);
    (void)close(fd);
    image_free(was);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("rewind");
    TCase *t = env_tcase_with(s, "rewind", 300, setup_scene);

    env_in_memory();
    tcase_add_loop_test(t, it_is_as_the_new_source_then, 0, 4);
    tcase_add_test(t, what_was_not_in_its_files_comes_too);
    tcase_add_test(t, files_that_came_since_the_fork);
    tcase_add_loop_test(t, nothing_is_left_of_the_log_behind_the_fork, 0, 2);
    tcase_add_test(t, killed_in_any_call_it_is_done_again);
    tcase_add_loop_test(t, failing_in_a_call_it_is_done_again, 0, 2);
    tcase_add_test(t, without_being_told_to_it_does_not);
    tcase_add_test(t, own_log_that_is_too_short);
    tcase_add_test(t, log_of_the_source_that_is_too_short);
    tcase_add_loop_test(t, sources_that_do_not_fit, 0, 3);
    tcase_add_test(t, a_file_that_has_another_name_by_now);
    tcase_add_test(t, a_source_that_is_written_meanwhile);
    tcase_add_test(t, another_source_than_it_was_begun_with);
    tcase_add_test(t, a_damaged_note_is_noticed);
    return env_main(s);
}
