/* SPDX-License-Identifier: MIT */
/*
 * results.c -- functions that store what the kernel answers, and other results of fixed size.
 *
 * WHAT      As noticed.c.  What the kernel only loads is not announced here: if its page has no access
 *           yet, the call fails with EFAULT.
 */
#include <config.h>

#include <assert.h>
#include <grp.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include "announce.h"

/* ---- Files -------------------------------------------------------------------------------------- */

STORES_ONE(int, stat, (const char *path, struct stat *to), (path, to))
STORES_ONE(int, lstat, (const char *path, struct stat *to), (path, to))
STORES_ONE(int, fstat, (int fd, struct stat *to), (fd, to))
STORES_ONE(int, fstatat, (int fd, const char *path, struct stat *to, int flags),
           (fd, path, to, flags))
STORES_ONE(int, statfs, (const char *path, struct statfs *to), (path, to))
STORES_ONE(int, fstatfs, (int fd, struct statfs *to), (fd, to))
STORES_ONE(int, statvfs, (const char *path, struct statvfs *to), (path, to))
STORES_ONE(int, fstatvfs, (int fd, struct statvfs *to), (fd, to))
STORES(ssize_t, readlinkat, (int fd, const char *path, char *to, size_t n),
       (fd, path, to, n), xac_store(to, n))
STORES(ssize_t, getxattr, (const char *path, const char *name, void *to, size_t n),
       (path, name, to, n), xac_store(to, n))
STORES(ssize_t, lgetxattr, (const char *path, const char *name, void *to, size_t n),
       (path, name, to, n), xac_store(to, n))
STORES(ssize_t, fgetxattr, (int fd, const char *name, void *to, size_t n),
       (fd, name, to, n), xac_store(to, n))
STORES(ssize_t, listxattr, (const char *path, char *to, size_t n), (path, to, n),
       xac_store(to, n))
STORES(ssize_t, llistxattr, (const char *path, char *to, size_t n), (path, to, n),
       xac_store(to, n))
STORES(ssize_t, flistxattr, (int fd, char *to, size_t n), (fd, to, n), xac_store(to, n))
STORES(ssize_t, sendfile, (int out, int in, off_t *atp, size_t n), (out, in, atp, n),
       OUT(atp))
STORES(ssize_t, splice,
       (int in, off_t *in_atp, int out, off_t *atp, size_t n, unsigned flags),
       (in, in_atp, out, atp, n, flags), (OUT(in_atp), OUT(atp)))
STORES(ssize_t, copy_file_range,
       (int in, off_t *in_atp, int out, off_t *atp, size_t n, unsigned flags),
       (in, in_atp, out, atp, n, flags), (OUT(in_atp), OUT(atp)))
STORES_ONE(int, fgetpos, (FILE * file, fpos_t *to), (file, to))
STORES(int, pipe, (int to[2]), (to), OUTS(to, 2))
STORES(int, pipe2, (int to[2], int flags), (to, flags), OUTS(to, 2))
STORES_ONE(int, eventfd_read, (int fd, eventfd_t *to), (fd, to))
STORES_ONE(int, timerfd_gettime, (int fd, struct itimerspec *to), (fd, to))
STORES_ONE(int, timerfd_settime,
           (int fd, int flags, const struct itimerspec *t, struct itimerspec *to),
           (fd, flags, t, to))
STORES(int, mincore, (void *at, size_t n, unsigned char *to), (at, n, to),
       xac_store(to, n / 4096 + 1)) /* pages are as large, or larger */

#ifdef __GLIBC__
STORES(ssize_t, getdents64, (int fd, void *to, size_t n), (fd, to, n), xac_store(to, n))
STORES_ONE(int, statx,
           (int fd, const char *path, int flags, unsigned mask, struct statx *to),
           (fd, path, flags, mask, to))
/* Where these differ, xac_noticed_f64() does. */
static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat64() is stat()");
static_assert(sizeof(struct statfs) == sizeof(struct statfs64), "statfs64() is statfs()");
ALSO(xac_noticed_stat64, stat);
ALSO(xac_noticed_lstat64, lstat);
ALSO(xac_noticed_fstat64, fstat);
ALSO(xac_noticed_fstatat64, fstatat);
ALSO(xac_noticed_statfs64, statfs);
ALSO(xac_noticed_fstatfs64, fstatfs);
ALSO(xac_noticed_statvfs64, statvfs);
ALSO(xac_noticed_fstatvfs64, fstatvfs);
ALSO(xac_noticed_sendfile64, sendfile);
ALSO(xac_noticed_fgetpos64, fgetpos);
#endif

/* ---- Waiting ------------------------------------------------------------------------------------ */

STORES(int, poll, (struct pollfd * to, nfds_t n, int ms), (to, n, ms), OUTS(to, n))
STORES(int, ppoll,
       (struct pollfd * to, nfds_t n, const struct timespec *t, const sigset_t *mask),
       (to, n, t, mask), OUTS(to, n))
STORES(int, select,
       (int n, fd_set *readable, fd_set *writable, fd_set *other, struct timeval *t),
       (n, readable, writable, other, t),
       (OUT(readable), OUT(writable), OUT(other), OUT(t)))
STORES(int, pselect,
       (int n, fd_set *readable, fd_set *writable, fd_set *other,
        const struct timespec *t, const sigset_t *mask),
       (n, readable, writable, other, t, mask),
       (OUT(readable), OUT(writable), OUT(other)))
STORES(int, epoll_wait, (int fd, struct epoll_event *to, int n, int ms), (fd, to, n, ms),
       OUTS(to, n > 0 ? (size_t)n : 0))
STORES(int, epoll_pwait,
       (int fd, struct epoll_event *to, int n, int ms, const sigset_t *mask),
       (fd, to, n, ms, mask), OUTS(to, n > 0 ? (size_t)n : 0))
STORES_ONE(pid_t, wait, (int *to), (to))
STORES_ONE(pid_t, waitpid, (pid_t pid, int *to, int flags), (pid, to, flags))
STORES(pid_t, wait3, (int *to, int flags, struct rusage *usage), (to, flags, usage),
       (OUT(to), OUT(usage)))
STORES(pid_t, wait4, (pid_t pid, int *to, int flags, struct rusage *usage),
       (pid, to, flags, usage), (OUT(to), OUT(usage)))
STORES_ONE(int, waitid, (idtype_t which, id_t id, siginfo_t *to, int flags),
           (which, id, to, flags))

/* ---- Sockets and messages --------------------------------------------------------------------- */

/* An address, and its length, which says before how much room there is. */
#define ADDRESS(to, lengthp) \
 (OUT(lengthp), (lengthp) != NULL ? xac_store(to, *(lengthp)) : (void)0)

STORES(int, accept, (int fd, struct sockaddr *to, socklen_t *lengthp), (fd, to, lengthp),
       ADDRESS(to, lengthp))
STORES(int, accept4, (int fd, struct sockaddr *to, socklen_t *lengthp, int flags),
       (fd, to, lengthp, flags), ADDRESS(to, lengthp))
STORES(int, getsockname, (int fd, struct sockaddr *to, socklen_t *lengthp),
       (fd, to, lengthp), ADDRESS(to, lengthp))
STORES(int, getpeername, (int fd, struct sockaddr *to, socklen_t *lengthp),
       (fd, to, lengthp), ADDRESS(to, lengthp))
STORES(int, getsockopt, (int fd, int level, int which, void *to, socklen_t *lengthp),
       (fd, level, which, to, lengthp), ADDRESS(to, lengthp))
STORES(int, socketpair, (int family, int type, int protocol, int to[2]),
       (family, type, protocol, to), OUTS(to, 2))
STORES(ssize_t, msgrcv, (int id, void *to, size_t n, long type, int flags),
       (id, to, n, type, flags), xac_store(to, n + sizeof(long)))
STORES(ssize_t, mq_receive, (mqd_t queue, char *to, size_t n, unsigned *priority),
       (queue, to, n, priority), (xac_store(to, n), OUT(priority)))
STORES(ssize_t, mq_timedreceive,
       (mqd_t queue, char *to, size_t n, unsigned *priority, const struct timespec *t),
       (queue, to, n, priority, t), (xac_store(to, n), OUT(priority)))

/* ---- Processes, threads, signals --------------------------------------------------------------- */

STORES_ONE(int, getrusage, (__rusage_who_t who, struct rusage *to), (who, to))
STORES_ONE(int, getrlimit, (__rlimit_resource_t which, struct rlimit *to), (which, to))
STORES_ONE(int, prlimit,
           (pid_t pid, __rlimit_resource_t which, const struct rlimit *limit,
            struct rlimit *to),
           (pid, which, limit, to))
STORES_ONE(int, getopt_long,
           (int argc, char *const argv[], const char *letters,
            const struct option *options, int *to),
           (argc, argv, letters, options, to))
STORES_ONE(int, getopt_long_only,
           (int argc, char *const argv[], const char *letters,
            const struct option *options, int *to),
           (argc, argv, letters, options, to))
STORES_ONE(int, uname, (struct utsname * to), (to))
STORES_ONE(int, sysinfo, (struct sysinfo * to), (to))
STORES(int, getloadavg, (double *to, int n), (to, n), OUTS(to, n > 0 ? (size_t)n : 0))
STORES(int, getgroups, (int n, gid_t *to), (n, to), OUTS(to, n > 0 ? (size_t)n : 0))
STORES(int, getgrouplist, (const char *user, gid_t group, gid_t *to, int *np),
       (user, group, to, np), (OUTS(to, *np > 0 ? (size_t)*np : 0), OUT(np)))
STORES(int, getresuid, (uid_t * real, uid_t *effective, uid_t *saved),
       (real, effective, saved), (OUT(real), OUT(effective), OUT(saved)))
STORES(int, getresgid, (gid_t * real, gid_t *effective, gid_t *saved),
       (real, effective, saved), (OUT(real), OUT(effective), OUT(saved)))
STORES_ONE(int, sched_getparam, (pid_t pid, struct sched_param *to), (pid, to))
STORES(int, sched_getaffinity, (pid_t pid, size_t n, cpu_set_t *to), (pid, n, to),
       xac_store(to, n))
STORES_ONE(int, sched_rr_get_interval, (pid_t pid, struct timespec *to), (pid, to))
STORES_ONE(int, posix_spawn,
           (pid_t * to, const char *path, const posix_spawn_file_actions_t *actions,
            const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),
           (to, path, actions, attributes, argv, envp))
STORES_ONE(int, posix_spawnp,
           (pid_t * to, const char *path, const posix_spawn_file_actions_t *actions,
            const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),
           (to, path, actions, attributes, argv, envp))
STORES_ONE(int, pthread_create,
           (pthread_t * to, const pthread_attr_t *attributes, void *(*run)(void *),
            void *arg),
           (to, attributes, run, arg))
STORES_ONE(int, pthread_join, (pthread_t thread, void **to), (thread, to))
STORES(int, pthread_getschedparam,
       (pthread_t thread, int *to, struct sched_param *parameters),
       (thread, to, parameters), (OUT(to), OUT(parameters)))
STORES_ONE(int, pthread_setcancelstate, (int state, int *to), (state, to))
STORES_ONE(int, pthread_setcanceltype, (int type, int *to), (type, to))
STORES_ONE(int, pthread_getcpuclockid, (pthread_t thread, clockid_t *to), (thread, to))
STORES_ONE(int, clock_getcpuclockid, (pid_t pid, clockid_t *to), (pid, to))
STORES_ONE(int, sem_getvalue, (sem_t * semaphore, int *to), (semaphore, to))
STORES_ONE(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *to),
           (how, set, to))
STORES_ONE(int, sigprocmask, (int how, const sigset_t *set, sigset_t *to), (how, set, to))
STORES_ONE(int, sigpending, (sigset_t * to), (to))
STORES_ONE(int, sigaction,
           (int sig, const struct sigaction *action, struct sigaction *to),
           (sig, action, to))
STORES_ONE(int, sigaltstack, (const stack_t *stack, stack_t *to), (stack, to))
STORES_ONE(int, sigwait, (const sigset_t *set, int *to), (set, to))
STORES_ONE(int, sigwaitinfo, (const sigset_t *set, siginfo_t *to), (set, to))
STORES_ONE(int, sigtimedwait,
           (const sigset_t *set, siginfo_t *to, const struct timespec *t), (set, to, t))
STORES_ONE(int, sigemptyset, (sigset_t * to), (to))
STORES_ONE(int, sigfillset, (sigset_t * to), (to))
STORES_ONE(int, sigaddset, (sigset_t * to, int sig), (to, sig))
STORES_ONE(int, sigdelset, (sigset_t * to, int sig), (to, sig))
STORES_ONE(int, tcgetattr, (int fd, struct termios *to), (fd, to))
STORES_ONE(int, cfsetispeed, (struct termios * to, speed_t speed), (to, speed))
STORES_ONE(int, cfsetospeed, (struct termios * to, speed_t speed), (to, speed))
NOTICED(void, cfmakeraw, struct termios *to)
{
    OUT(to);
    cfmakeraw(to);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

STORES_ONE(int, posix_memalign, (void **to, size_t alignment, size_t n),
           (to, alignment, n))
/* It may put the element behind the others. */
STORES(void *, lsearch,
       (const void *element, void *to, size_t *np, size_t size,
        int (*order)(const void *, const void *)),
       (element, to, np, size, order),
       (xac_store((char *)to + announce_product(*np, size), size), OUT(np)))
/* As insque() sees its elements; NULL is at an end. */
struct linked {
    struct linked *next, *previous;
};

NOTICED(void, insque, void *to, void *before)
{
    const struct linked *l = (const struct linked *)before;

    OUT((struct linked *)to);
    if (l != NULL) {
        OUT(l);
        OUT(l->next);
    }
    insque(to, before);
}

NOTICED(void, remque, void *gone)
{
    const struct linked *l = (const struct linked *)gone;

    OUT(l->next);
    OUT(l->previous);
    remque(gone);
}

#ifdef __GLIBC__
ALSO(xac_noticed_getrlimit64, getrlimit);
ALSO(xac_noticed_prlimit64, prlimit);
STORES(int, sigandset, (sigset_t * to, const sigset_t *a, const sigset_t *b), (to, a, b),
       OUT(to))
STORES(int, sigorset, (sigset_t * to, const sigset_t *a, const sigset_t *b), (to, a, b),
       OUT(to))
STORES(int, getcpu, (unsigned *cpu, unsigned *node), (cpu, node), (OUT(cpu), OUT(node)))
STORES(int, pthread_getname_np, (pthread_t thread, char *to, size_t n), (thread, to, n),
       xac_store(to, n))
STORES(int, pthread_getaffinity_np, (pthread_t thread, size_t n, cpu_set_t *to),
       (thread, n, to), xac_store(to, n))
#endif
