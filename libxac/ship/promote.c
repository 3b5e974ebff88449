/* SPDX-License-Identifier: MIT */
/*
 * promote.c -- see promote.h.
 */
#include <config.h>

#include "ship/promote.h"

#include <errno.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/names.h"
#include "base/sys.h"
#include "log/master.h"
#include "log/standby_note.h"
#include "recovery/recover.h"
#include "recovery/standby.h"

/* must_be_standby -- ret 0; EINVAL; errno; words noted. */
static int
must_be_standby(int dirfd, const char *dir)
{
    int rc = xac_standby_note_refuse(dirfd);

    xac_assert(dirfd >= 0);
    if (rc == 0)
        return xac_err(EINVAL, "%s: no standby", dir);
    if (rc != XAC_ENOTLEADER)
        return rc;
    xac_err_clear();
    return 0;
}

/* promote -- with the gate. */
static int
promote(int dirfd, const char *dir, uint32_t *generationp, uint64_t *lsnp)
{
    struct xac_recover_options options = {.promotes = true};
    struct xac_recover_report rep;
    struct xac_master_slot made;
    int rc = must_be_standby(dirfd, dir); /* it may have been promoted meanwhile */

    if (rc != 0)
        return rc;
    rc = xac_recover_dir(dirfd, &options, &rep, &made);
    if (rc != 0)
        return rc;
    *generationp = made.generation;
    *lsnp = rep.end_lsn;
    return 0;
}

int
xac_promote(const char *dir, uint32_t *generationp, uint64_t *lsnp)
{
    int dirfd = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int lockfd = -1, rc;

    xac_assert(dir[0] != '\0');
    if (dirfd < 0)
        return xac_err(errno, "%s", dir);
    rc = must_be_standby(dirfd, dir); /* before a lock file is made */
    if (rc == 0)
        rc = xac_standby_lock(dirfd, dir, &lockfd);
    if (rc == 0)
        rc = promote(dirfd, dir, generationp, lsnp);
    xac_close_fd(&lockfd);
    xac_close_fd(&dirfd);
    return rc;
}
