/* SPDX-License-Identifier: MIT */
/*
 * log_world.c -- see log_world.h.
 */
#include <config.h>

#include "log_world.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"

uint64_t world_seed;
uint64_t world_segment_bytes = SEGMENT_BYTES;
struct world *w;
struct xac_log the_log;
int dir_fd = -1;
struct plan plan;
const uint8_t world_identity[16] = "check_log, check";

static char dir[64];
static struct xac_sys real;

uint64_t
world_rnd(uint64_t *state, uint64_t n)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

void
world_sleep_us(unsigned us)
{
    struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

    (void)nanosleep(&ts, NULL);
}

_Noreturn void
world_must_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: not so: %s (%s)\n", file, line, what, xac_err_text());
    abort();
}

/* ---- the replaced table ----------------------------------------------------------- */

/* Per descriptor: the segment it is open on, 0 if none; and its name. */
static struct {
    uint64_t segment;
    uint64_t low, high; /* LSNs written and not synced through this descriptor's file */
    char name[32];
    bool is_short; /* the last write did only a part                                */
} fds[1024];

/* act -- count a call; ret true if it shall fail, errno set. */
static bool
act(enum call call, const char *name)
{
    uint64_t n;

    if (plan.only != NULL && strncmp(name, plan.only, strlen(plan.only)) != 0)
        return false;
    n = world_inc(plan.n[call]);
    if (plan.kill == call && n >= plan.kill_after && plan.kill_when == 0)
        (void)raise(SIGKILL);
    if (plan.fail == call && n >= plan.after && n - plan.after < plan.times) {
        errno = plan.error;
        return true;
    }
    return false;
}

static void
acted(enum call call, const char *name)
{
    if (plan.only != NULL && strncmp(name, plan.only, strlen(plan.only)) != 0)
        return;
    if (plan.kill == call && plan.n[call] > plan.kill_after && plan.kill_when > 0)
        (void)raise(SIGKILL);
}

void
world_plan_failure(enum call call, const char *only, uint64_t after, uint64_t times,
                   int error)
{
    plan.fail = call;
    plan.only = only;
    plan.after = world_get(plan.n[call]) + after;
    plan.times = times;
    plan.error = error;
}

void
world_plan_death(enum call call, const char *only, uint64_t after, int when)
{
    plan.kill = call;
    plan.only = only;
    plan.kill_after = world_get(plan.n[call]) + after;
    plan.kill_when = when;
}

/* dying_in -- true if this call, counted already, shall be the last, half done. */
static bool
dying_in(enum call call)
{
    return plan.kill == call && plan.kill_when == 1
           && world_get(plan.n[call]) > plan.kill_after;
}

static int
fake_openat(int at, const char *path, int flags, mode_t mode)
{
    unsigned long long number = 0;
    int fd;

    if (act(CALL_OPEN, path))
        return -1;
    fd = real.openat(at, path, flags, mode);
    if (fd >= 0) {
        must(fd < (int)(sizeof fds / sizeof fds[0]));
        memset(&fds[fd], 0, sizeof fds[fd]);
        (void)snprintf(fds[fd].name, sizeof fds[fd].name, "%s", path);
        if (sscanf(path, XAC_LOG_PREFIX "%8llu", &number) == 1)
            fds[fd].segment = number;
    }
    acted(CALL_OPEN, path);
    return fd;
}

static int
fake_dup_above(int fd, int least)
{
    int high = real.dup_above(fd, least);

    must(high < (int)(sizeof fds / sizeof fds[0]));
    if (high >= 0)
        fds[high] = fds[fd];
    return high;
}

static int
fake_close(int fd)
{
    bool failed = act(CALL_CLOSE, fds[fd].name);
    int rc;

    fds[fd].segment = 0;
    rc = real.close(fd);
    return failed ? -1 : rc;
}

static ssize_t
fake_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    ssize_t done;
    size_t wanted;

    if (act(CALL_PWRITE, fds[fd].name)
        || (fds[fd].is_short && act(CALL_PWRITE_REST, fds[fd].name)))
        return -1;
    if (plan.interrupts && world_rnd(&plan.rng, 2) == 0) {
        errno = EINTR;
        return -1;
    }
    wanted = n;
    if (plan.short_writes || dying_in(CALL_PWRITE))
        n = 1 + world_rnd(&plan.rng, n);
    done = real.pwrite(fd, buf, n, offset);
    fds[fd].is_short = done > 0 && (size_t)done < wanted;
    if (done > 0 && fds[fd].segment != 0) {
        uint64_t lsn = (fds[fd].segment - 1) * world_segment_bytes + (uint64_t)offset
                       - XAC_SEGMENT_HEADER;

        must((uint64_t)offset >= XAC_SEGMENT_HEADER);
        must((uint64_t)offset + (uint64_t)done
             <= XAC_SEGMENT_HEADER + world_segment_bytes);
        must(lsn + (uint64_t)done <= STREAM_BYTES);
        /* What is on disk already is written again only with the same bytes; zeros are
           written only where nothing can have been. */
        must(lsn >= world_get(w->log.prepared)
             || lsn + (uint64_t)done <= world_get(w->log.tail));
        memcpy(w->cache + lsn, buf, (size_t)done);
        if (fds[fd].high == 0 || lsn < fds[fd].low)
            fds[fd].low = lsn;
        if (lsn + (uint64_t)done > fds[fd].high)
            fds[fd].high = lsn + (uint64_t)done;
    }
    acted(CALL_PWRITE, fds[fd].name);
    return done;
}

/* A failed sync loses what it was for: the next one on the same descriptor has nothing
   to write, as in the kernel. */
static int
fake_fdatasync(int fd)
{
    uint64_t low = fds[fd].low;
    uint64_t high = fds[fd].high;

    fds[fd].low = fds[fd].high = 0;
    if (plan.sync_us != 0)
        world_sleep_us(plan.sync_us);
    if (act(CALL_FDATASYNC, fds[fd].name))
        return -1;
    if (dying_in(CALL_FDATASYNC) && high > low)
        high = low + world_rnd(&plan.rng, high - low);
    if (high > low)
        memcpy(w->disk + low, w->cache + low, high - low);
    acted(CALL_FDATASYNC, fds[fd].name);
    return 0;
}

static int
fake_sync_file_range(int fd, off_t offset, off_t n, unsigned flags)
{
    must(offset >= (off_t)XAC_SEGMENT_HEADER && n > 0 && fds[fd].segment != 0);
    (void)world_inc(w->started);
    return real.sync_file_range(fd, offset, n, flags);
}

static int
fake_fsync(int fd)
{
    const char *name = fd == dir_fd ? "." : fds[fd].name;

    if (act(CALL_FSYNC, name))
        return -1;
    acted(CALL_FSYNC, name);
    return 0;
}

static int
fake_fallocate(int fd, int mode, off_t offset, off_t length)
{
    int rc;

    if (act(CALL_FALLOCATE, fds[fd].name))
        return -1;
    rc = real.fallocate(fd, mode, offset, length);
    acted(CALL_FALLOCATE, fds[fd].name);
    return rc;
}

static int
fake_renameat(int at, const char *from, int at2, const char *to)
{
    int rc;

    if (act(CALL_RENAME, from))
        return -1;
    rc = real.renameat(at, from, at2, to);
    acted(CALL_RENAME, from);
    return rc;
}

static int
fake_unlinkat(int at, const char *path, int flags)
{
    int rc;

    if (act(CALL_UNLINK, path))
        return -1;
    rc = real.unlinkat(at, path, flags);
    acted(CALL_UNLINK, path);
    return rc;
}

/* ---- fixture ---------------------------------------------------------------------- */

int
world_create(uint64_t ring_bytes, uint64_t start)
{
    struct xac_log_config config = {.generation = 3,
                                    .page_size = 4096,
                                    .segment_bytes = world_segment_bytes,
                                    .ring_bytes = ring_bytes,
                                    .start_lsn = start};

    must(ring_bytes <= sizeof w->ring);
    memcpy(config.identity, world_identity, sizeof world_identity);
    return xac_log_create(&the_log, &w->log, w->ring, dir_fd, &config);
}

void
world_setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/check_log.XXXXXX");
    must(mkdtemp(dir) != NULL);
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(dir_fd >= 0);
    w = (struct world *)mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(w != MAP_FAILED);
    must(xac_lock_init(&w->publish, XAC_RANK_PUBLISH) == 0);
    real = xac_sys;
    memset(&plan, 0, sizeof plan);
    plan.rng = world_seed;
    xac_sys.openat = fake_openat;
    xac_sys.dup_above = fake_dup_above;
    xac_sys.close = fake_close;
    xac_sys.pwrite = fake_pwrite;
    xac_sys.fdatasync = fake_fdatasync;
    xac_sys.fsync = fake_fsync;
    xac_sys.sync_file_range = fake_sync_file_range;
    xac_sys.fallocate = fake_fallocate;
    xac_sys.renameat = fake_renameat;
    xac_sys.unlinkat = fake_unlinkat;
}

int
world_count_files(const char *prefix)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    int n = 0;

    must(d != NULL);
    while ((e = readdir(d)) != NULL)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    (void)closedir(d);
    return n;
}

void
world_teardown(void)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    must(d != NULL);
    while ((e = readdir(d)) != NULL)
        (void)unlinkat(dir_fd, e->d_name, 0);
    (void)closedir(d);
    (void)rmdir(dir);
    (void)close(dir_fd);
    xac_sys = real;
    (void)munmap(w, sizeof *w);
}

/* ---- a small committer ------------------------------------------------------------ */

void
world_block(struct xac_block *blk, int worker, uint64_t serial, uint64_t *rng, size_t max)
{
    struct xac_log_id id = {.generation = w->log.generation};
    const struct xac_xfile head = {.file = 1 + (uint32_t)worker, .length = serial};
    struct xac_builder b;
    char text[RECORD_MAX + 1];
    size_t len = 1 + world_rnd(rng, world_rnd(rng, 4) == 0 ? max : 600);

    memset(text, 'a' + worker, len);
    text[len] = '\0';
    memcpy(&id.identity, world_identity, sizeof id.identity);
    xac_builder_init(&b, blk, RECORD_MAX + 1024);
    must(xac_put_file(&b, &head, 0, text));
    must(xac_block_close(&b, id, XAC_CHECKSUM_XXH3) == 0);
}

void
world_finish(struct xac_log *log)
{
    const struct xac_block *blk =
        (const struct xac_block *)(void *)w->desc[w->publishing - 1].block;

    xac_log_append(log, blk);
    if (w->commit < blk->commit)
        w->commit = blk->commit;
    w->publishing = 0;
}

uint64_t
world_publish(struct xac_log *log, int worker)
{
    struct xac_block *blk = (struct xac_block *)(void *)w->desc[worker].block;
    uint64_t end = 0;

    if (xac_lock_acquire(&w->publish) == XAC_LOCK_OWNER_DIED) {
        if (w->publishing != 0) {
            world_finish(log);
            w->redone++;
        }
        xac_lock_repaired(&w->publish);
    }
    if (xac_log_has_room(log, blk->length)) {
        xac_block_seal(blk, world_get(w->log.tail), world_get(w->log.durable),
                       w->commit + 1);
        end = blk->lsn + blk->length;
        atomic_signal_fence(memory_order_seq_cst);
        w->publishing = 1 + worker;
        atomic_signal_fence(memory_order_seq_cst);
        world_finish(log);
    }
    xac_lock_release(&w->publish);
    return end;
}

int
world_commit(struct xac_log *log, int worker, uint64_t serial, uint64_t *rng)
{
    struct xac_block *blk = (struct xac_block *)(void *)w->desc[worker].block;
    size_t max = w->log.ring_bytes / 4 - 200;
    sigset_t old;
    uint64_t end;
    int rc;

    world_block(blk, worker, serial, rng, max < RECORD_MAX ? max : RECORD_MAX);
    xac_signals_block(&old);
    do {
        rc = xac_log_make_room(log, blk->length);
        if (rc != 0)
            goto out;
        end = world_publish(log, worker);
    } while (end == 0);
    xac_log_assert(log);
    if (world_rnd(rng, 2) == 0 && xac_log_flush_start(log))
        rc = xac_log_flush_end(log, end);
    else
        rc = xac_log_wait_durable(log, end);
    must(xac_lock_none_held());
    if (rc == 0) {
        must(world_get(w->log.durable) >= end);
        must(memcmp(w->disk + blk->lsn, blk, blk->length) == 0);
        (void)world_inc(w->acked);
    } else {
        (void)world_inc(w->refused);
    }
out:
    xac_signals_restore(&old);
    return rc;
}

uint8_t *
world_read(uint64_t end)
{
    uint8_t *bytes = (uint8_t *)calloc(1, end + 2 * world_segment_bytes);
    uint64_t last = xac_log_segment_of(end, world_segment_bytes);

    must(bytes != NULL);
    for (uint64_t k = xac_log_segment_of(w->log.start_lsn, world_segment_bytes);
         k <= last; k++) {
        struct xac_segment_header head;
        char name[XAC_LOG_NAME_MAX];
        int fd;

        xac_log_segment_name(name, k);
        fd = openat(dir_fd, name, O_RDONLY);
        if (fd < 0 && k == last && end % world_segment_bytes == 0)
            break;
        must(fd >= 0);
        must(pread(fd, &head, sizeof head, 0) == sizeof head);
        must(xac_log_segment_check(&head, name, world_identity, k, world_segment_bytes,
                                   4096)
             == 0);
        must(pread(fd, bytes + (k - 1) * world_segment_bytes, world_segment_bytes,
                   XAC_SEGMENT_HEADER)
             == (ssize_t)world_segment_bytes);
        (void)close(fd);
    }
    return bytes;
}

uint64_t
world_expect(void)
{
    struct xac_log_id id = {.generation = 3};
    uint64_t end = world_get(w->log.durable);
    uint8_t *bytes = world_read(end);
    uint64_t serial[WORKERS_MAX] = {0};
    uint64_t lsn = w->log.start_lsn;
    uint64_t n = 0;

    memcpy(&id.identity, world_identity, sizeof id.identity);
    must(memcmp(bytes + lsn, w->disk + lsn, end - lsn) == 0);
    while (lsn < end) {
        const struct xac_block *blk = (const struct xac_block *)(void *)(bytes + lsn);
        const struct xac_xfile *rec;

        must(xac_block_head_ok(blk, id, lsn));
        must(blk->length <= end - lsn);
        must(xac_block_body_ok(blk));
        must(blk->durable <= lsn);
        must(blk->commit == ++n);
        rec = (const struct xac_xfile *)(const void *)xac_record_next(blk, NULL);
        must(rec->length > serial[rec->file - 1]);
        serial[rec->file - 1] = rec->length;
        lsn += blk->length;
    }
    must(lsn == end);
    free(bytes);
    return n;
}

int
world_main(Suite *s)
{
    const char *text = getenv("XAC_SEED");
    SRunner *sr;
    int failed;

    world_seed = text != NULL ? strtoull(text, NULL, 0) : 20240607;
    (void)printf("XAC_SEED=%llu\n", (unsigned long long)world_seed);
    (void)fflush(stdout);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
