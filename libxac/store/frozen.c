/* SPDX-License-Identifier: MIT */
/*
 * frozen.c -- see frozen.h.
 */
#include <config.h>

#include "store/frozen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/copy.h"
#include "base/err.h"
#include "base/stored.h"
#include "base/sys.h"

#define TEMPORARY "/tmp"

int
xac_frozen_init(struct xac_frozen *f, int dirfd, const struct xac_master_slot *master)
{
    xac_assert(dirfd >= 0);
    xac_assert(master->start_lsn != 0);
    *f = (struct xac_frozen){.dirfd = dirfd, .master = *master};
    f->chunk = (uint8_t *)malloc(XAC_COPY_CHUNK);
    return f->chunk != NULL ? 0 : xac_err(ENOMEM, "copies of the files");
}

void
xac_frozen_free(struct xac_frozen *f)
{
    for (size_t i = 0; i < f->n_files; i++) {
        (void)xac_sys.close(f->file[i].fd);
        free(f->file[i].place);
    }
    free(f->file);
    free(f->chunk);
    *f = (struct xac_frozen){.dirfd = -1};
    xac_assert(f->n_files == 0);
}

/* position -- index of the first file with a place that is not smaller. */
static size_t
position(const struct xac_frozen *f, const char *place)
{
    size_t lo = 0;
    size_t hi = f->n_files;

    xac_assert(place != NULL);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(f->file[mid].place, place) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    xac_assert(lo <= f->n_files);
    return lo;
}

struct xac_frozen_file *
xac_frozen_find(const struct xac_frozen *f, const char *place)
{
    size_t at = position(f, place);

    return at < f->n_files && strcmp(f->file[at].place, place) == 0 ? &f->file[at] : NULL;
}

int
xac_frozen_nameless(void)
{
    const char *dir = secure_getenv("TMPDIR");
    int fd = xac_sys.openat(AT_FDCWD, dir != NULL && *dir == '/' ? dir : TEMPORARY,
                            O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : xac_sys.memfd_create("xac-frozen", MFD_CLOEXEC);
}

/* open_original -- ret 0, or why it cannot be copied. */
static int
open_original(const struct xac_frozen *f, struct xac_frozen_file *file, int *fdp)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct stat st;
    int rc = xac_stored_open(f->dirfd, file->place, flags, fdp);

    if (rc != 0)
        return rc;
    rc = xac_identity_of(*fdp, &file->who);
    if (rc == 0 && (xac_sys.fstat(*fdp, &st) != 0 || !S_ISREG(st.st_mode)))
        rc = EINVAL;
    if (rc != 0)
        (void)xac_sys.close(*fdp);
    xac_assert(rc != 0 || *fdp >= 0);
    return rc;
}

/* is_lack -- does this process lack what it needs, whatever file it is? */
static bool
is_lack(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

/* copy -- an original onto its copy; ret 0 also if the original cannot be opened. */
static int
copy(struct xac_frozen *f, struct xac_frozen_file *file)
{
    struct xac_copier copier = {.chunk = f->chunk};
    int in = -1;
    int rc = open_original(f, file, &in);

    xac_assert(file->fd >= 0);
    xac_assert(f->chunk != NULL);
    if (rc != 0) {
        file->error = rc;
        return is_lack(rc) ? xac_err(rc, "%s: open", file->place) : 0;
    }
    rc = xac_copy_file(in, file->fd, &copier);
    (void)xac_sys.close(in);
    return rc == 0 ? 0 : xac_err(rc, "%s: private copy", file->place);
}

int
xac_frozen_take(struct xac_frozen *f, const char *place, struct xac_frozen_file **filep)
{
    size_t at = position(f, place);
    struct xac_frozen_file made = {.fd = -1}, *grown;
    int rc;

    xac_assert(place[0] != '\0');
    *filep = xac_frozen_find(f, place);
    if (*filep != NULL)
        return 0;
    grown = (struct xac_frozen_file *)realloc(f->file, (f->n_files + 1) * sizeof *grown);
    if (grown == NULL)
        return xac_err(ENOMEM, "copies of the files");
    f->file = grown;
    made.place = strdup(place);
    if (made.place == NULL)
        return xac_err(ENOMEM, "copies of the files");
    made.fd = xac_frozen_nameless();
    rc = made.fd >= 0 ? copy(f, &made) : xac_err(errno, "%s: private copy", place);
    if (rc != 0) {
        if (made.fd >= 0)
            (void)xac_sys.close(made.fd);
        free(made.place);
        return rc;
    }
    xac_assert(at <= f->n_files);
    xac_assert(made.fd >= 0);
    memmove(grown + at + 1, grown + at, (f->n_files - at) * sizeof *grown);
    grown[at] = made;
    f->n_files++;
    f->has_grown = true;
    *filep = &grown[at];
    xac_assert(strcmp((*filep)->place, place) == 0);
    return 0;
}
