/* SPDX-License-Identifier: MIT */
/*
 * check_received.c -- the mark of how far a standby's log is synced (libxac/log/received.h).
 *
 * GOAL    Whatever a power cut leaves of a slot that has been written since the last sync, the one before is there.  The
 *         mark of another generation does not count.  A file without a valid slot, or of another version, is refused.
 * METHOD  The bytes of the file, by hand.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/sysfault.h"
#include "base/digest.h"
#include "base/names.h"
#include "log/received.h"
#include "log/received_format.h"

static const struct xac_master_slot master = {.identity = "0123456789abcde",
                                              .generation = 7};
static int dirfd;

static void
setup(void)
{
    env_setup();
    dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(dirfd >= 0);
}

/* must_read -- the mark of generation 7 is this; 0: it does not count. */
static void
must_read(uint64_t lsn)
{
    struct xac_received_mark mark;

    must_ok(xac_received_read(dirfd, &master, &mark));
    must_eq(mark.counts, lsn != 0);
    must_eq(mark.lsn, lsn);
}

/* tear -- the slot that holds an LSN is not valid any more. */
static void
tear(uint64_t lsn)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = i * (uint64_t)XAC_RECEIVED_STRIDE;

        if (file_u64(XAC_RECEIVED_NAME, at + 32) == lsn)
            file_write(XAC_RECEIVED_NAME, at + 32, "torn", 4);
    }
}

START_TEST(the_slot_that_is_synced_stays)
{
    struct xac_received r;

    must_read(0);
    xac_received_open(&r, dirfd, &master);
    must_ok(xac_received_note(&r, 8)); /* it does not count yet */
    must_ok(xac_received_sync(&r));
    must_read(0);
    must_ok(xac_received_begin(&r, 4096));
    must_read(4096);
    for (uint64_t lsn = 8000; lsn < 9000; lsn += 8) {
        must_ok(xac_received_note(&r, lsn));
        must_read(lsn);
    }
    tear(8992);
    must_read(4096);
    must_ok(xac_received_note(&r, 10000));
    must_ok(xac_received_sync(&r));
    must_ok(xac_received_note(&r, 12000));
    must_ok(xac_received_note(&r, 12008));
    must_read(12008);
    tear(12008);
    must_read(10000);
    xac_received_close(&r);
}
END_TEST

START_TEST(it_goes_on_after_a_kill)
{
    struct xac_received r;

    for (uint64_t i = 1; i < 6; i++) {
        xac_received_open(&r, dirfd, &master);
        sysfault_arm(SYSFAULT_COUNT, SYSFAULT_SYNCS, 0, 0);
        must_ok(xac_received_begin(&r, 1000 * i));
        must(sysfault_count() >= 2); /* what was there, and what is new */
        sysfault_arm(SYSFAULT_COUNT, SYSFAULT_SYNCS, 0, 0);
        must_ok(xac_received_begin(&r, 1000 * i));
        must_ok(xac_received_note(&r, 1000 * i + 8));
        must_eq(sysfault_count(), 0);
        sysfault_disarm();
        must_read(1000 * i + 8);
        tear(1000 * i + 8);
        must_read(1000 * i);
        xac_received_close(&r);
    }
}
END_TEST

START_TEST(another_generation_does_not_count)
{
    struct xac_master_slot later = master;
    struct xac_received_mark mark;
    struct xac_received r;

    xac_received_open(&r, dirfd, &master);
    must_ok(xac_received_begin(&r, 90000));
    xac_received_close(&r);
    later.generation = 8;
    must_ok(xac_received_read(dirfd, &later, &mark));
    must(!mark.counts);
    xac_received_open(&r, dirfd, &later);
    must_ok(xac_received_begin(&r, 5000));
    must_ok(xac_received_read(dirfd, &later, &mark));
    must(mark.counts);
    must_eq(mark.lsn, 5000);
    must_ok(xac_received_note(&r, 5008));
    must_read(0); /* the slot of generation 7 is the older one */
    xac_received_close(&r);
}
END_TEST

START_TEST(what_is_not_right_is_refused)
{
    struct xac_received_slot s;
    struct xac_received_mark mark;
    struct xac_received r;

    xac_received_open(&r, dirfd, &master);
    must_ok(xac_received_begin(&r, 4096));
    xac_received_close(&r);
    file_read(XAC_RECEIVED_NAME, 0, &s, sizeof s);
    for (size_t i = 0; i < sizeof s; i++) {
        struct xac_received_slot bad = s;

        ((uint8_t *)&bad)[i] ^= 0x20;
        file_write(XAC_RECEIVED_NAME, 0, &bad, sizeof bad);
        must_refuse(xac_received_read(dirfd, &master, &mark),
                    i >= 8 && i < 12 ? XAC_EVERSION : XAC_EDAMAGED);
        must(!mark.counts);
    }
    s.reserved[3] = 1;
    s.checksum = xac_xxh64(&s, 56);
    file_write(XAC_RECEIVED_NAME, 0, &s, sizeof s);
    must_refuse(xac_received_read(dirfd, &master, &mark), XAC_EDAMAGED);
    must_eq(truncate(XAC_RECEIVED_NAME, 0), 0);
    must_refuse(xac_received_read(dirfd, &master, &mark), XAC_EDAMAGED);
}
END_TEST

START_TEST(failed_calls_are_told)
{
    struct xac_received r;

    for (int i = 0; i < 2; i++) {
        bool is_hit = true;

        for (uint64_t n = 1; is_hit; n++) {
            int rc;

            (void)unlink(i == 0 ? XAC_RECEIVED_NAME : "none");
            xac_received_open(&r, dirfd, &master);
            env_stale_message();
            sysfault_arm(SYSFAULT_FAIL, SYSFAULT_FILES, n, EIO);
            rc = xac_received_begin(&r, 4096 * n);
            if (rc == 0)
                rc = xac_received_note(&r, 4096 * n + 8);
            if (rc == 0)
                rc = xac_received_sync(&r);
            is_hit = sysfault_hit() != NULL;
            sysfault_disarm();
            must_eq(rc, is_hit ? EIO : 0);
            xac_received_close(&r);
        }
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("received");
    TCase *t = env_tcase_with(s, "received", 60, setup);

    env_in_memory();
    tcase_add_test(t, the_slot_that_is_synced_stays);
    tcase_add_test(t, it_goes_on_after_a_kill);
    tcase_add_test(t, another_generation_does_not_count);
    tcase_add_test(t, what_is_not_right_is_refused);
    tcase_add_test(t, failed_calls_are_told);
    return env_main(s);
}
