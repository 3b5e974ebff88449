/* SPDX-License-Identifier: MIT */
/*
 * member_detach.c -- see xac_member_detach() in member.h.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "group/member.h"
#include "shared/group.h"
#include "shared/registry.h"

/* How long to wait between two looks. */
#define LOOK_NS UINT64_C(5000000)

/* A participant that is left. */
struct left {
    uint32_t n;   /* how many there are                                                */
    uint32_t pid; /* one of them; 0: only its lock is known                            */
    int error;    /* why that one could not be killed; 0: nothing is known             */
};

/* is_left -- is another participant alive? */
static bool
is_left(const struct xac_env *env, uint32_t i)
{
    const struct xac_participant *p = xac_participant_at(env, i);

    /* Relaxed: nobody comes any more, and one that goes is seen to be gone the next time. */
    return i != env->self
           && atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED
           && xac_registry_alive(env, i);
}

/*
 * kill_one -- by a descriptor of the process, so that no other process with the same id is hit.
 *
 * The participant is found alive behind the opening: as long as it was, it had the id.
 * ret  0 or errno.
 */
static int
kill_one(const struct xac_env *env, uint32_t i)
{
    uint32_t pid = xac_participant_at(env, i)->pid;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    int rc = 0;

    xac_assert(pid != env->pid);
    if (fd < 0)
        return errno == ESRCH ? 0 : errno;
    if (is_left(env, i) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) != 0)
        rc = errno == ESRCH ? 0 : errno;
    (void)xac_sys.close(fd);
    return rc;
}

/* look -- who is left; all of them are killed, if it is time. */
static void
look(const struct xac_env *env, bool kills, struct left *out)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    *out = (struct left){.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        int error;

        if (!is_left(env, i))
            continue;
        error = kills ? kill_one(env, i) : 0;
        if (out->n++ == 0 || error != 0) {
            out->pid = xac_participant_at(env, i)->pid;
            out->error = error;
        }
    }
    if (out->n == 0 && xac_alive_any(env->lockfd))
        out->n = 1; /* it is not known who */
    xac_assert(out->n != 0 || out->pid == 0);
}

/* busy -- somebody is left. */
static int
busy(const struct xac_env *env, const struct left *left)
{
    xac_assert(left->n > 0);
    if (left->pid == 0)
        return xac_err(EBUSY, "%s: a process holds a lock on %s", env->dir,
                       XAC_LOCK_NAME);
    if (left->error != 0)
        return xac_err(EBUSY,
                       "%s: process %" PRIu32 " has it open, and may not be killed: %s",
                       env->dir, left->pid, xac_strerror(left->error));
    return xac_err(EBUSY, "%s: process %" PRIu32 " has it open, %" PRIu32 " in all",
                   env->dir, left->pid, left->n);
}

int
xac_member_detach(struct xac_env *env, unsigned leave_ms, unsigned wait_ms)
{
    uint64_t begin_ns = xac_clock_ns();
    struct left left;

    xac_assert(xac_group_is_deposed(env));
    for (;;) {
        uint64_t ms = (xac_clock_ns() - begin_ns) / 1000000;

        look(env, ms >= leave_ms, &left);
        if (left.n == 0)
            return 0;
        if (ms >= wait_ms)
            return busy(env, &left);
        xac_sleep_ns(LOOK_NS);
    }
}
