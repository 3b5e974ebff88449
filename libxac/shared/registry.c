/* SPDX-License-Identifier: MIT */
/*
 * registry.c -- participants: see registry.h.  Files are in files.c.
 */
#include <config.h>

#include "shared/registry.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "log/slots.h"
#include "shared/env_state.h"

XAC_SIGSAFE struct xac_participant *
xac_participant_at(const struct xac_env *env, uint32_t index)
{
    return (struct xac_participant *)xac_array_at(&env->shm, &env->ctl->participants,
                                                  index);
}

/* What /proc/PID/stat says of a process. */
struct proc_stat {
    bool is_known;
    bool is_zombie;
    bool is_stopped;
    uint64_t start_time;
};

/* proc_path -- "/proc/PID" and the file's name, without stdio. */
XAC_SIGSAFE static void
proc_path(char buf[32], uint32_t pid, const char *file)
{
    char digits[12];
    char *p = digits + sizeof digits - 1;

    xac_assert(pid != 0);
    *p = '\0';
    do
        *--p = (char)('0' + pid % 10);
    while ((pid /= 10) != 0);
    memcpy(buf, "/proc/", 6);
    memcpy(buf + 6, p, strlen(p));
    memcpy(buf + 6 + strlen(p), file, strlen(file) + 1);
}

/* proc_stat_read -- state and start time (fields 3 and 22) of a process. */
XAC_SIGSAFE static struct proc_stat
proc_stat_read(uint32_t pid)
{
    struct proc_stat st = {.is_known = false};
    char path[32], text[640];
    const char *p;
    size_t got;
    int fd;

    proc_path(path, pid, "/stat");
    fd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return st;
    if (xac_read_full(fd, text, sizeof text - 1, 0, &got) != 0)
        got = 0;
    (void)xac_sys.close(fd);
    text[got] = '\0';
    p = strrchr(text, ')'); /* the name may hold anything, parentheses included */
    if (p == NULL || p[1] != ' ')
        return st;
    p += 2;
    st.is_zombie = *p == 'Z' || *p == 'X';
    st.is_stopped = *p == 'T' || *p == 't';
    for (int field = 3; field < 22 && p != NULL; field++)
        p = strchr(p + 1, ' ');
    if (p == NULL)
        return st;
    for (p++; *p >= '0' && *p <= '9'; p++)
        st.start_time = st.start_time * 10 + (uint64_t)(*p - '0');
    st.is_known = true;
    return st;
}

/* Does a process map the control region? */
enum maps_region {
    MAPS_NOT,
    MAPS_IT,
    MAPS_UNKNOWN /* one may not look */
};

/*
 * maps_region -- looks for the region's name, which is its own in the whole world, in the list
 * of what a process maps.  In parts, as little of the stack as the fault handler has.
 */
XAC_SIGSAFE static enum maps_region
maps_region(const struct xac_env *env, uint32_t pid)
{
    const char *slash = strrchr(env->region, '/');
    const char *name = slash != NULL ? slash : env->region;
    size_t n_name = strlen(name);
    char path[32], text[512];
    size_t kept = 0, room, got;
    uint64_t offset = 0;
    enum maps_region found = MAPS_NOT;
    int fd;

    if (n_name == 0 || n_name > sizeof text / 2)
        return MAPS_UNKNOWN;
    proc_path(path, pid, "/maps");
    fd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return MAPS_UNKNOWN;
    for (;;) {
        room = sizeof text - kept;
        if (xac_read_full(fd, text + kept, room, offset, &got) != 0) {
            found = MAPS_UNKNOWN;
            break;
        }
        offset += got;
        kept += got;
        if (memmem(text, kept, name, n_name) != NULL) {
            found = MAPS_IT;
            break;
        }
        if (got < room)
            break;
        memmove(text, text + kept - (n_name - 1), n_name - 1); /* it may go on */
        kept = n_name - 1;
    }
    (void)xac_sys.close(fd);
    return found;
}

/* namespace_of -- inode of one of our namespaces, 0 unknown. */
static uint64_t
namespace_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void
xac_registry_identify(struct xac_env *env)
{
    env->pid = (uint32_t)getpid();
    env->pid_namespace = namespace_of("/proc/self/ns/pid");
    env->time_namespace = namespace_of("/proc/self/ns/time");
    xac_assert(env->pid != 0);
}

int
xac_registry_check(const struct xac_env *env)
{
    xac_assert(env->ctl != NULL);
    if (env->pid_namespace == env->ctl->pid_namespace)
        return 0;
    return xac_err(
        XAC_ENAMESPACE,
        "%s: the processes that are attached are in PID namespace %llu, this one"
        " is in %llu; the locks that they share need thread ids that all of them"
        " understand",
        env->dir, (unsigned long long)env->ctl->pid_namespace,
        (unsigned long long)env->pid_namespace);
}

/*
 * end_former -- entries of this process from before an exec(): id and start time are still its
 * own, and once it has mapped the region again only this tells that they are over.
 */
static void
end_former(const struct xac_env *env, uint32_t self)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    xac_assert(env->pid != 0);
    for (uint32_t i = 0; i < n; i++) {
        struct xac_participant *p = xac_participant_at(env, i);

        if (i != self && p->pid == env->pid && !xac_alive_test(env->lockfd, i))
            atomic_store_explicit(&p->is_over, 1, memory_order_relaxed);
    }
}

int
xac_registry_join(struct xac_env *env, uint64_t frames_max)
{
    struct xac_array *all = &env->ctl->participants;
    struct xac_participant *p;
    uint32_t i = 0;
    int rc;

    xac_assert(env->ctl != NULL);
    xac_assert(frames_max > 0);
    for (;; i++) {
        rc = xac_array_reserve(&env->shm, all, i);
        if (rc != 0)
            return rc;
        p = xac_participant_at(env, i);
        if (atomic_load_explicit(&p->state, memory_order_relaxed) != XAC_PART_FREE)
            continue;
        rc = xac_alive_take(env->lockfd, i);
        if (rc == 0)
            break;
        if (rc != EAGAIN && rc != EACCES)
            return rc;
    }
    env->self = i;
    /* What holds the same bytes here keeps others out as well, but is nobody: a lock for reading
       in xac.master, or a child of a dead participant that still maps the region. */
    if (env->masterfd >= 0)
        rc = xac_alive_take(env->masterfd, i);
    if (rc == 0 || rc == EAGAIN)
        rc = xac_alive_take(env->shm.fd, i);
    if (rc != 0 && rc != EAGAIN) {
        xac_alive_drop(env->lockfd, i);
        return rc;
    }
    xac_assert(p->holds == 0);
    xac_assert(env->pid != 0);
    p->pid = env->pid;
    p->pid_namespace = env->pid_namespace;
    p->time_namespace = env->time_namespace;
    p->start_time = proc_stat_read(env->pid).start_time;
    p->region_bytes = env->shm.reserve;
    p->frames_max = frames_max;
    end_former(env, i);
    atomic_store_explicit(&p->is_over, 0, memory_order_relaxed);
    p->is_reader = env->reader != XAC_READER_NONE;
    atomic_store_explicit(&p->n_contexts, 1, memory_order_relaxed);
    atomic_store_explicit(&p->log_pin, 0, memory_order_relaxed);
    if (atomic_load_explicit(&all->count, memory_order_relaxed) <= i)
        atomic_store_explicit(&all->count, i + 1, memory_order_relaxed);
    /* Release: pairs with the acquire in xac_registry_alive; our identity is stored. */
    atomic_store_explicit(&p->state, XAC_PART_ATTACHED, memory_order_release);
    xac_assert(i < atomic_load_explicit(&all->count, memory_order_relaxed));
    return 0;
}

bool
xac_registry_limits(struct xac_env *env, uint64_t *vslotsp)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
    uint64_t bytes = UINT64_MAX, vslots = UINT64_MAX;
    int rc;

    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        if (atomic_load_explicit(&p->state, memory_order_relaxed) != XAC_PART_ATTACHED)
            continue;
        bytes = p->region_bytes < bytes ? p->region_bytes : bytes;
        vslots = p->frames_max < vslots ? p->frames_max : vslots;
    }
    if (bytes == UINT64_MAX)
        return false;
    xac_assert(vslots > 0);
    xac_assert(bytes <= XAC_SHM_RESERVE_MAX);
    /* Each has made sure, when it came, that it can reach what there was. */
    rc = xac_shm_limit(&env->shm, bytes);
    xac_require(rc == 0);
    *vslotsp = vslots;
    return true;
}

void
xac_registry_leave(struct xac_env *env)
{
    xac_assert(atomic_load_explicit(&xac_participant_at(env, env->self)->state,
                                    memory_order_relaxed)
               == XAC_PART_ATTACHED);
    xac_registry_drop_all(env, env->self);
    xac_assert(xac_participant_at(env, env->self)->holds == 0);
    /* Release: pairs with the acquire in xac_registry_alive. */
    atomic_store_explicit(&xac_participant_at(env, env->self)->state, XAC_PART_FREE,
                          memory_order_release);
    xac_alive_drop(env->lockfd, env->self);
}

/*
 * still_maps -- does a participant map the region?  Where one may not look, the byte of the
 * region tells, which a mapping keeps; but a child that has not come yet has the same mapping.
 */
XAC_SIGSAFE static bool
still_maps(const struct xac_env *env, uint32_t index, uint32_t pid)
{
    enum maps_region maps = maps_region(env, pid);

    if (maps != MAPS_UNKNOWN)
        return maps == MAPS_IT;
    return !xac_handle_is_ours(env->shm.fd, &env->shm.handle)
           || xac_alive_test(env->shm.fd, index);
}

XAC_SIGSAFE enum xac_process_state
xac_registry_state(const struct xac_env *env, uint32_t index)
{
    const struct xac_participant *p = xac_participant_at(env, index);
    struct proc_stat st = {.is_known = false};
    bool is_told = false; /* whether its start time says who it is */

    if (index == env->self)
        return XAC_PROCESS_RUNNING;
    /* Acquire: pairs with the release in xac_registry_join. */
    if (atomic_load_explicit(&p->state, memory_order_acquire) == XAC_PART_FREE
        || atomic_load_explicit(&p->is_over, memory_order_relaxed) != 0)
        return XAC_PROCESS_DEAD;
    if (p->pid_namespace == env->pid_namespace && p->start_time != 0) {
        if (kill((pid_t)p->pid, 0) != 0 && errno == ESRCH)
            return XAC_PROCESS_DEAD;
        st = proc_stat_read(p->pid);
        /* A leader that ended before its threads says nothing of them. */
        is_told =
            st.is_known && !st.is_zombie && p->time_namespace == env->time_namespace;
        if (is_told && st.start_time != p->start_time)
            return XAC_PROCESS_DEAD;
    }
    if (xac_handle_is_ours(env->lockfd, &env->lock_handle) /* else nobody is dead */
        && !xac_alive_test(env->lockfd, index)
        && (!is_told || !still_maps(env, index, p->pid)))
        return XAC_PROCESS_DEAD;
    return st.is_stopped ? XAC_PROCESS_STOPPED : XAC_PROCESS_RUNNING;
}

XAC_SIGSAFE bool
xac_registry_alive(const struct xac_env *env, uint32_t index)
{
    return xac_registry_state(env, index) != XAC_PROCESS_DEAD;
}

bool
xac_registry_maps(const struct xac_env *env, uint32_t pid)
{
    return maps_region(env, pid) == MAPS_IT;
}

uint64_t
xac_registry_log_needed(const struct xac_env *env, uint64_t redo_lsn)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    xac_assert(env->ctl != NULL);
    redo_lsn =
        xac_slots_needed(&env->ctl->log.followers, redo_lsn, env->ctl->log.start_lsn);
    for (uint32_t i = 0; i < n; i++) {
        struct xac_participant *p = xac_participant_at(env, i);
        /* Acquire: pairs with the release in xac_backup_run. */
        uint64_t pin = atomic_load_explicit(&p->log_pin, memory_order_acquire);

        if (pin != 0 && pin < redo_lsn
            && atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED)
            redo_lsn = pin;
    }
    return redo_lsn;
}

uint32_t
xac_registry_backs_up(const struct xac_env *env)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    xac_assert(env->ctl != NULL);
    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        /* Acquire: pairs with the release in xac_backup_run. */
        if (atomic_load_explicit(&p->log_pin, memory_order_acquire) != 0
            && atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED)
            return p->pid;
    }
    return 0;
}

/* count -- participants attached, readers among them or not. */
static uint32_t
count(const struct xac_env *env, bool with_readers)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
    uint32_t attached = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        attached +=
            atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED
            && (with_readers || p->is_reader == 0);
    }
    return attached;
}

uint32_t
xac_registry_attached(const struct xac_env *env)
{
    return count(env, true);
}

uint32_t
xac_registry_writers(const struct xac_env *env)
{
    return count(env, false);
}

uint64_t
xac_registry_contexts(const struct xac_env *env)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
    uint64_t contexts = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        /* Relaxed, both: a number that was right a moment ago will do. */
        if (atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED)
            contexts += atomic_load_explicit(&p->n_contexts, memory_order_relaxed);
    }
    return contexts == 0 ? 1 : contexts;
}
