/* SPDX-License-Identifier: MIT */
/*
 * log_segment.c -- see log_segment.h.
 */
#include <config.h>

#include "log/log_segment.h"

#include <errno.h>
#include <string.h>

#include <xac.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "base/names.h"
#include "log/log_keep.h"
#include "log/log_name.h"

/* What the first segment has on disk at first; see log_segment.h. */
#define FIRST_BYTES UINT64_C(65536)

/* Written over and over; not const, so that it takes no room in the program's file. */
static uint8_t zeros[128 * 1024];

static uint64_t
head_checksum(const struct xac_segment_header *head)
{
    return xac_xxh64(head, offsetof(struct xac_segment_header, checksum));
}

int
xac_log_segment_check(const struct xac_segment_header *head, const char *name,
                      const uint8_t identity[16], uint64_t number, uint64_t segment_bytes,
                      uint32_t page_size)
{
    if (head->magic != XAC_SEGMENT_MAGIC)
        return xac_err(XAC_EDAMAGED, "%s: segment header: magic", name);
    if (head->version < XAC_FORMAT_VERSION_LEAST || head->version > XAC_FORMAT_VERSION)
        return xac_err(XAC_EVERSION, "%s: format version %u instead of %u", name,
                       head->version, XAC_FORMAT_VERSION);
    if (head->checksum != head_checksum(head))
        return xac_err(XAC_EDAMAGED, "%s: segment header: checksum", name);
    if (memcmp(head->identity, identity, sizeof head->identity) != 0)
        return xac_err(XAC_EFOREIGN, "%s", name);
    if (head->page_size != page_size)
        return xac_err(XAC_EPAGESIZE, "%s: page size %u instead of %u", name,
                       head->page_size, page_size);
    if (head->number != number)
        return xac_err(XAC_EDAMAGED, "%s: holds segment %llu", name,
                       (unsigned long long)head->number);
    if (head->segment_bytes != segment_bytes)
        return xac_err(XAC_EDAMAGED, "%s: segment size %llu instead of %llu", name,
                       (unsigned long long)head->segment_bytes,
                       (unsigned long long)segment_bytes);
    for (size_t i = 0; i < sizeof head->reserved; i++) {
        if (head->reserved[i] != 0)
            return xac_err(XAC_EDAMAGED, "%s: segment header: reserved bytes", name);
    }
    return 0;
}

/* is_whole -- has the file all its blocks on disk?  A file system that compresses says no. */
static bool
is_whole(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size;
}

/* first_part -- of a segment that may not be whole, what has its blocks. */
static uint64_t
first_part(const struct xac_log_shared *sh)
{
    xac_assert(sh->segment_bytes != 0);
    return sh->segment_bytes < FIRST_BYTES ? sh->segment_bytes : FIRST_BYTES;
}

/* is_first -- the one in which the log of this run begins? */
static bool
is_first(const struct xac_log_shared *sh, uint64_t number)
{
    xac_assert(number != 0);
    return number == xac_log_segment_of(sh->start_lsn, sh->segment_bytes);
}

int
xac_log_segment_verify(int fd, const char *name, const uint8_t identity[16],
                       uint64_t number, uint64_t segment_bytes, uint32_t page_size,
                       struct stat *st)
{
    struct xac_segment_header head;
    size_t got;
    int rc;

    xac_assert(fd >= 0);
    if (xac_sys.fstat(fd, st) != 0)
        return xac_err(errno, "%s: stat", name);
    if ((uint64_t)st->st_size < XAC_SEGMENT_HEADER + segment_bytes)
        return xac_err(XAC_EDAMAGED, "%s: only %lld bytes long", name,
                       (long long)st->st_size);
    rc = xac_read_full(fd, &head, sizeof head, 0, &got);
    if (rc != 0)
        return xac_err(rc, "%s: read", name);
    return xac_log_segment_check(&head, name, identity, number, segment_bytes, page_size);
}

int
xac_log_segment_mark(int fd, const uint8_t identity[16], uint64_t number,
                     uint64_t segment_bytes, uint32_t page_size)
{
    struct xac_segment_header head = {
        .magic = XAC_SEGMENT_MAGIC,
        .version = XAC_FORMAT_VERSION,
        .page_size = page_size,
        .number = number,
        .segment_bytes = segment_bytes,
    };
    int rc;

    xac_assert(fd >= 0);
    xac_assert(number != 0);
    xac_assert(segment_bytes >= XAC_SEGMENT_HEADER);
    memcpy(head.identity, identity, sizeof head.identity);
    head.checksum = head_checksum(&head);
    rc = xac_write_full(fd, &head, sizeof head, 0);
    if (rc == 0 && xac_sys.fsync(fd) != 0)
        rc = errno;
    return rc;
}

int
xac_log_segment_publish(int dirfd, const char *name, uint64_t bytes, int rc)
{
    const char *made = XAC_LOG_NEW_NAME;

    xac_assert(bytes > 0);
    if (rc == 0 && xac_sys.renameat(dirfd, made, dirfd, name) != 0)
        rc = errno;
    if (rc == 0) {
        made = name;
        rc = xac_sync_dir(dirfd);
    }
    if (rc == 0)
        return 0;
    (void)xac_sys.unlinkat(dirfd, made, 0);
    return xac_err(rc, "%s: make a log segment of %llu bytes", name,
                   (unsigned long long)bytes);
}

/*
 * segment_keep -- verify a segment that exists already; fd is open for reading.
 *
 * out  partp  bytes of it that have their blocks
 */
static int
segment_keep(const struct xac_log_shared *sh, int fd, const char *name, uint64_t number,
             uint64_t *partp)
{
    struct stat st;
    int rc = xac_log_segment_verify(fd, name, sh->identity, number, sh->segment_bytes,
                                    sh->page_size, &st);

    *partp = rc == 0 && is_whole(&st) ? sh->segment_bytes : first_part(sh);
    xac_assert(*partp <= sh->segment_bytes);
    return rc;
}

/* write_header -- of segment `number`, and a sync of the whole file. */
static int
write_header(const struct xac_log_shared *sh, int fd, uint64_t number)
{
    return xac_log_segment_mark(fd, sh->identity, number, sh->segment_bytes,
                                sh->page_size);
}

/* fill -- room for the bytes [at, end) of a file, so that a full disk is found at once; then
   zeros. */
static int
fill(int fd, uint64_t at, uint64_t end)
{
    int rc;

    xac_assert(fd >= 0);
    xac_assert(at < end);
    rc = xac_allocate(fd, at, end - at);
    if (rc == EOPNOTSUPP || rc == ENOSYS)
        rc = 0;
    for (; rc == 0 && at < end; at += sizeof zeros)
        rc = xac_write_full(fd, zeros, end - at < sizeof zeros ? end - at : sizeof zeros,
                            at);
    return rc;
}

/* segment_fill -- the first bytes, the length of the whole, the header, and a sync. */
static int
segment_fill(const struct xac_log_shared *sh, int fd, uint64_t number, uint64_t part)
{
    int rc = fill(fd, 0, XAC_SEGMENT_HEADER + part);

    xac_assert(part <= sh->segment_bytes);
    xac_assert(part > 0);
    if (rc == 0 && part < sh->segment_bytes
        && xac_sys.ftruncate(fd, (off_t)(XAC_SEGMENT_HEADER + sh->segment_bytes)) != 0)
        rc = errno;
    return rc == 0 ? write_header(sh, fd, number) : rc;
}

/*
 * segment_grow -- blocks for the bytes of a segment from an LSN on, which nobody has written yet:
 * of the first one as many as it has, of a later one all.
 *
 * A sync of bytes that other processes have written may fail here: they are told so,
 * too, by their own descriptors.
 * out  endp  LSN behind them
 */
static int
segment_grow(struct xac_log *log, uint64_t lsn, uint64_t *endp)
{
    const struct xac_log_shared *sh = log->sh;
    uint64_t number = xac_log_segment_of(lsn, sh->segment_bytes);
    uint64_t at = lsn & (sh->segment_bytes - 1), end = sh->segment_bytes;
    int fd, rc, dirfd = xac_log_dir(log);
    char name[XAC_LOG_NAME_MAX];

    xac_assert(xac_lock_is_mine(&sh->prepare));
    if (dirfd < 0)
        return xac_err(XAC_EDESCRIPTOR, "log directory");
    if (is_first(sh, number)) {
        for (end = first_part(sh); end <= at;)
            end *= 2;
    }
    xac_log_segment_name(name, number);
    xac_assert(at < end);
    xac_assert(end <= sh->segment_bytes);
    fd = xac_sys.openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return xac_err(errno, "%s: open", name);
    rc = fill(fd, XAC_SEGMENT_HEADER + at, XAC_SEGMENT_HEADER + end);
    if (rc == 0 && xac_sys.fdatasync(fd) != 0)
        rc = errno;
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: make room", name);
    *endp = lsn - at + end;
    xac_assert(*endp > lsn);
    return 0;
}

/* oldest -- number of the oldest segment without a gap before `number`. */
static uint64_t
oldest(int dirfd, uint64_t number)
{
    xac_assert(number != 0);
    for (; number > 1; number--) {
        char name[XAC_LOG_NAME_MAX];
        int fd;

        xac_log_segment_name(name, number - 1);
        /* Not blocking: a stray pipe has nobody who writes. */
        fd = xac_sys.openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                            0);
        if (fd < 0)
            break;
        (void)xac_sys.close(fd);
    }
    return number;
}

/*
 * old_take -- give an old segment the temporary name; other files with such a name stay.
 *
 * Its old blocks cannot be taken for new ones: every block says where in the log it stands.
 * out  fdp  it, if it can be written over: it is as a new one would be; else -1
 * ret  0; errno, or an error, if it is none or has not been renamed; EBUSY if the log is kept
 *      since a moment ago: it has its name again.
 */
static int
old_take(const struct xac_log_shared *sh, int dirfd, uint64_t number,
         const struct xac_owner *owner, int *fdp)
{
    struct xac_segment_header head;
    char name[XAC_LOG_NAME_MAX];
    struct stat st;
    size_t got;
    int fd, rc;

    xac_assert(number != 0);
    xac_log_segment_name(name, number);
    fd = xac_sys.openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    *fdp = -1;
    if (fd < 0)
        return errno;
    rc = xac_sys.fstat(fd, &st) != 0 ? errno
                                     : xac_read_full(fd, &head, sizeof head, 0, &got);
    if (rc == 0)
        rc = xac_log_segment_check(&head, name, sh->identity, number, head.segment_bytes,
                                   sh->page_size);
    if (rc == 0 && xac_sys.renameat(dirfd, name, dirfd, XAC_LOG_NEW_NAME) != 0)
        rc = errno;
    if (rc == 0 && xac_log_is_kept(dirfd))
        rc = xac_sys.renameat(dirfd, XAC_LOG_NEW_NAME, dirfd, name) == 0 ? EBUSY : errno;
    if (rc == 0 && st.st_nlink == 1 && (st.st_mode & 0777u) == owner->mode
        && st.st_gid == owner->gid
        && (uint64_t)st.st_size == XAC_SEGMENT_HEADER + sh->segment_bytes
        && is_whole(&st))
        *fdp = fd;
    else
        (void)xac_sys.close(fd);
    return rc;
}

/*
 * take_old -- the oldest segment that is not needed, under the temporary name.
 *
 * out  fdp  it, if it can be written over, else -1
 */
XAC_REQUIRES(prepare)
static void
take_old(struct xac_log_shared *sh, int dirfd, const struct xac_owner *owner, int *fdp)
{
    /* relaxed: see log.h. */
    uint64_t below = atomic_load_explicit(&sh->free_below, memory_order_relaxed);
    uint64_t end = below == 0 ? 0 : xac_log_segment_of(below, sh->segment_bytes);

    xac_assert(xac_lock_is_mine(&sh->prepare));
    *fdp = -1;
    if (below == 0 || xac_log_is_kept(dirfd))
        return;
    if (sh->reuse_next == 0)
        sh->reuse_next = oldest(dirfd, end);
    while (sh->reuse_next < end) {
        int rc = old_take(sh, dirfd, sh->reuse_next, owner, fdp);

        sh->reuse_next = rc == EBUSY ? 0 : sh->reuse_next + 1;
        if (rc == 0 || rc == EBUSY)
            return;
        xac_err_clear(); /* no failure: a new one is made */
    }
}

/* make_new -- the segment under the temporary name: an old one, or zeros. */
XAC_REQUIRES(prepare)
static int
make_new(struct xac_log_shared *sh, int dirfd, uint64_t number, uint64_t *partp)
{
    struct xac_owner owner;
    int fd = -1;
    int rc = xac_owner_get(dirfd, &owner);

    xac_assert(number != 0);
    xac_assert(xac_lock_is_mine(&sh->prepare));
    if (rc != 0)
        return rc;
    take_old(sh, dirfd, &owner, &fd);
    *partp = fd < 0 && is_first(sh, number) ? first_part(sh) : sh->segment_bytes;
    if (fd >= 0) {
        rc = write_header(sh, fd, number);
    } else {
        rc = xac_newfile_remake(dirfd, XAC_LOG_NEW_NAME, &owner, &fd);
        if (rc == 0)
            rc = segment_fill(sh, fd, number, *partp);
    }
    if (fd >= 0 && xac_sys.close(fd) != 0 && rc == 0)
        rc = errno;
    xac_assert(*partp <= sh->segment_bytes);
    return rc;
}

/*
 * segment_create -- make a segment that does not exist.
 *
 * What a dead maker left under the temporary name is unlinked and not written over.
 */
XAC_REQUIRES(prepare)
static int
segment_create(struct xac_log_shared *sh, int dirfd, const char *name, uint64_t number,
               uint64_t *partp)
{
    int rc;

    xac_assert(number != 0);
    if (xac_sys.unlinkat(dirfd, XAC_LOG_NEW_NAME, 0) != 0 && errno != ENOENT)
        return xac_err(errno, "%s: remove", XAC_LOG_NEW_NAME);
    *partp = sh->segment_bytes;
    rc = make_new(sh, dirfd, number, partp);
    xac_assert(*partp <= sh->segment_bytes);
    return xac_log_segment_publish(dirfd, name, XAC_SEGMENT_HEADER + *partp, rc);
}

/*
 * segment_ensure -- see to it that a segment exists, is sound, and stays after a crash.
 *
 * out  partp  bytes of it that have their blocks
 */
XAC_REQUIRES(prepare)
static int
segment_ensure(struct xac_log *log, uint64_t number, uint64_t *partp)
{
    char name[XAC_LOG_NAME_MAX];
    int fd, dirfd = xac_log_dir(log);
    int rc;

    xac_assert(number != 0);
    xac_assert(xac_lock_is_mine(&log->sh->prepare));
    if (dirfd < 0)
        return xac_err(XAC_EDESCRIPTOR, "log directory");
    xac_log_segment_name(name, number);
    fd = xac_sys.openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0 && errno == ENOENT)
        return segment_create(log->sh, dirfd, name, number, partp);
    if (fd < 0)
        return xac_err(errno, "%s: open", name);
    rc = segment_keep(log->sh, fd, name, number, partp);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return rc;
    /* Its maker may have died between the rename and the sync of the directory. */
    rc = xac_sync_dir(dirfd);
    return rc == 0 ? 0 : xac_err(rc, "%s: sync the directory", name);
}

/*
 * prepare_some -- a segment, or more of one; the prepare lock is held.
 *
 * inout  preparedp  where the last one ends.  Not before the start of the log: what is before
 *                   that has been written, and is not filled again.
 */
XAC_REQUIRES(prepare)
static int
prepare_some(struct xac_log *log, uint64_t *preparedp)
{
    const struct xac_log_shared *sh = log->sh;
    uint64_t part = 0;
    int rc;

    xac_assert(xac_lock_is_mine(&log->sh->prepare));
    xac_assert(*preparedp <= XAC_LSN_LIMIT);
    if ((*preparedp & (sh->segment_bytes - 1)) != 0)
        return segment_grow(log, *preparedp, preparedp);
    rc = segment_ensure(log, xac_log_segment_of(*preparedp, sh->segment_bytes), &part);
    if (rc == 0)
        *preparedp =
            *preparedp + part < sh->start_lsn ? sh->start_lsn : *preparedp + part;
    return rc;
}

/* prepare_held -- make segments; the prepare lock is held.  Never more than the ring's bytes need,
   whatever the positions are that were read somewhere. */
XAC_REQUIRES(prepare)
static int
prepare_held(struct xac_log *log, uint64_t upto)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: only the holder of the prepare lock stores it. */
    uint64_t prepared = atomic_load_explicit(&sh->prepared, memory_order_relaxed);

    xac_require(upto <= prepared || upto - prepared <= sh->ring_bytes);
    xac_assert(xac_lock_is_mine(&sh->prepare));
    if (upto > XAC_LSN_LIMIT)
        return xac_err(EFBIG, "the log has no positions left");
    while (prepared < upto) {
        int rc = prepare_some(log, &prepared);

        if (rc != 0) {
            atomic_store_explicit(&log->ahead_failed, prepared, memory_order_relaxed);
            return rc;
        }
        xac_assert(prepared > atomic_load_explicit(&sh->prepared, memory_order_relaxed));
        /* release: pairs with the acquire of xac_log_has_room. */
        atomic_store_explicit(&sh->prepared, prepared, memory_order_release);
    }
    return 0;
}

/*
 * prepare_locked -- make segments, then give the prepare lock back.  A dead holder leaves nothing
 * to repair: what it made without counting it is found, or unlinked, by the next one.
 */
XAC_RELEASE(prepare)
XAC_UNGUARDED static int
prepare_locked(struct xac_log *log, enum xac_lock_result got, uint64_t upto)
{
    int rc;

    xac_assert(got != XAC_LOCK_BUSY);
    if (got == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&log->sh->prepare);
    rc = prepare_held(log, upto);
    xac_lock_release(&log->sh->prepare);
    return rc;
}

XAC_UNGUARDED int
xac_log_segment_prepare(struct xac_log *log, uint64_t upto)
{
    enum xac_lock_result got = xac_lock_acquire_limited(&log->sh->prepare);

    xac_assert(!xac_lock_is_mine(&log->sh->flush));
    return got == XAC_LOCK_TIMED_OUT ? ETIMEDOUT : prepare_locked(log, got, upto);
}

XAC_UNGUARDED void
xac_log_segment_prepare_ahead(struct xac_log *log)
{
    struct xac_log_shared *sh = log->sh;
    /* relaxed: a hint; looked at again under the lock by prepare_held. */
    uint64_t prepared = atomic_load_explicit(&sh->prepared, memory_order_relaxed);
    enum xac_lock_result got;

    xac_assert(!xac_lock_is_mine(&sh->flush));
    /* relaxed: read by the thread that stored it, or a little later by another. */
    if (atomic_load_explicit(&log->ahead_failed, memory_order_relaxed) == prepared)
        return;
    got = xac_lock_try(&sh->prepare);
    if (got != XAC_LOCK_BUSY)
        (void)prepare_locked(log, got, prepared + 1);
}
