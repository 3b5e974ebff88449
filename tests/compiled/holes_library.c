/* SPDX-License-Identifier: MIT */
/*
 * holes_library.c -- stores and loads that functions of the C library make: see holes.c.
 *
 * Where a row calls several functions, each stores in a page of its own, so that none hides behind
 * another.  What the row itself stores in a page is announced by that: such pages show nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <iconv.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <uchar.h>
#include <unistd.h>
#include <wchar.h>

#include "holes.h"

#define PAGE       4096
#define AT(k)      (at + (k)*PAGE)
#define P(type, k) ((type *)(void *)AT(k))

/* ---- Bytes and texts ------------------------------------------------------------------------- */

STORE(explicit_bzero, explicit_bzero(at, 30))
STORE(bcopy, bcopy(from, at, 30))
STORE(swab, swab(from, at, 30))
STORE(strxfrm, strxfrm((char *)at, (const char *)from, 30))
STORE(asprintf, must_be(asprintf(P(char *, 0), "%d", n) > 0); free(*P(char *, 0)))
STORE(getdelim, rewind(holes_file); char *line = NULL; *P(size_t, 0) = 0;
      must_be(getdelim(&line, P(size_t, 0), 'i', holes_file) > 0); free(line))
STORE(getsubopt, char text[] = "a=1,b";
      char *value, *const tokens[] = {(char *)"a", NULL}; strcpy(P(char, 1), "a,");
      *P(char *, 0) = text; must_be(getsubopt(P(char *, 0), tokens, P(char *, 2)) == 0);
      value = (char *)AT(1); must_be(getsubopt(&value, tokens, P(char *, 3)) == 0))
STORE(fgets_unlocked, rewind(holes_file);
      must_be(fgets_unlocked((char *)at, 9, holes_file) != NULL))
STORE(fread_unlocked, rewind(holes_file);
      must_be(fread_unlocked(at, 1, 9, holes_file) == 9))
STORE(fgetpos, must_be(fgetpos(holes_file, P(fpos_t, 0)) == 0))

/* ---- Wide characters ------------------------------------------------------------------------- */

STORE(wide_copies, wmemcpy(P(wchar_t, 0), L"abc", 3); wmemmove(P(wchar_t, 1), L"abc", 3);
      wmempcpy(P(wchar_t, 2), L"abc", 3); wmemset(P(wchar_t, 3), L'a', 9);
      wcscpy(P(wchar_t, 4), L"abc"); wcpcpy(P(wchar_t, 5), L"abc");
      wcsncpy(P(wchar_t, 6), L"abc", 3); wcpncpy(P(wchar_t, 7), L"abc", 9);
      wcsxfrm(P(wchar_t, 8), L"abc", 9))
STORE(wide_appends, P(wchar_t, 0)[4] = 0; P(wchar_t, 1)[4] = 0;
      wcscat(P(wchar_t, 0) + 3, L"abc"); wcsncat(P(wchar_t, 1) + 3, L"abc", 2);
      swprintf(P(wchar_t, 2), 9, L"%d", n))
STORE(wide_tokens, wchar_t *save; wcscpy(P(wchar_t, 0), L"a b");
      wcstok(P(wchar_t, 0), L" ", &save); wchar_t line[] = L"a b";
      wcstok(line, L" ", P(wchar_t *, 1)))
STORE(wide_time, wcsftime(P(wchar_t, 0), 9, L"%Y", gmtime(&(time_t){1})))
STORE(wide_line, FILE *f = tmpfile(); must_be(f != NULL && fputws(L"text", f) > 0);
      rewind(f); must_be(fgetws(P(wchar_t, 0), 9, f) != NULL); fclose(f))
STORE(from_bytes, const char *s = "abc"; mbstate_t state = {0};
      mbstowcs(P(wchar_t, 0), "ab", 9); mbsrtowcs(P(wchar_t, 1), &s, 9, &state);
      *P(const char *, 2) = "abc";
      mbsrtowcs(P(wchar_t, 3), P(const char *, 2), 9, &state); s = "abc";
      mbsnrtowcs(P(wchar_t, 4), &s, 2, 9, &state); mbtowc(P(wchar_t, 5), "a", 1);
      mbrtowc(P(wchar_t, 6), "a", 1, &state); mbrtoc16(P(char16_t, 7), "a", 1, &state);
      mbrtoc32(P(char32_t, 8), "a", 1, &state))
STORE(to_bytes, const wchar_t *s = L"abc"; mbstate_t state = {0};
      wcstombs(P(char, 0), s, 9); wcsrtombs(P(char, 1), &s, 9, &state);
      *P(const wchar_t *, 2) = L"abc";
      wcsrtombs(P(char, 3), P(const wchar_t *, 2), 9, &state); s = L"abc";
      wcsnrtombs(P(char, 4), &s, 2, 9, &state); wctomb(P(char, 5), L'a');
      wcrtomb(P(char, 6), L'a', &state); c16rtomb(P(char, 7), L'a', &state);
      c32rtomb(P(char, 8), L'a', &state))
STORE(iconv, char a[] = "abc", *s = a, *to = P(char, 0); size_t left = 3, room = 9;
      iconv_t way = iconv_open("UTF-8", "ASCII"); must_be(way != (iconv_t)-1);
      must_be(iconv(way, &s, &left, &to, &room) == 0); *P(char *, 1) = a;
      *P(size_t, 2) = 3; *P(char *, 3) = (char *)AT(5); *P(size_t, 4) = 9;
      must_be(iconv(way, P(char *, 1), P(size_t, 2), P(char *, 3), P(size_t, 4)) == 0);
      iconv_close(way))

/* ---- Numbers --------------------------------------------------------------------------------- */

STORE(number_ends, strtol("1x", P(char *, 0), 10); strtoll("1x", P(char *, 1), 10);
      strtoul("1x", P(char *, 2), 10); strtoull("1x", P(char *, 3), 10);
      strtoimax("1x", P(char *, 4), 10); strtoumax("1x", P(char *, 5), 10);
      (void)strtof("1x", P(char *, 6)); (void)strtod("1x", P(char *, 7));
      (void)strtold("1x", P(char *, 8)); strtoq("1x", P(char *, 9), 10);
      strtouq("1x", P(char *, 10), 10))
STORE(wide_number_ends, wcstol(L"1x", P(wchar_t *, 0), 10);
      wcstoll(L"1x", P(wchar_t *, 1), 10); wcstoul(L"1x", P(wchar_t *, 2), 10);
      wcstoull(L"1x", P(wchar_t *, 3), 10); wcstoimax(L"1x", P(wchar_t *, 4), 10);
      wcstoumax(L"1x", P(wchar_t *, 5), 10); (void)wcstof(L"1x", P(wchar_t *, 6));
      (void)wcstod(L"1x", P(wchar_t *, 7)); (void)wcstold(L"1x", P(wchar_t *, 8)))
STORE(number_texts, strfromf(P(char, 0), 9, "%g", 1); strfromd(P(char, 1), 9, "%g", 1);
      strfroml(P(char, 2), 9, "%g", 1); gcvt(1.5, 3, P(char, 3)))
STORE(second_results, double x = n + 0.5; (void)frexpf((float)x, P(int, 0));
      (void)frexp(x, P(int, 1)); (void)frexpl(x, P(int, 2));
      (void)modff((float)x, P(float, 3)); (void)modf(x, P(double, 4));
      (void)modfl(x, P(long double, 5)); (void)remquof((float)x, 2, P(int, 6));
      (void)remquo(x, 2, P(int, 7)); (void)remquol(x, 2, P(int, 8));
      (void)lgammaf_r((float)x, P(int, 9)); (void)lgamma_r(x, P(int, 10));
      (void)lgammal_r(x, P(int, 11)))
STORE(sine_and_cosine, sincosf((float)n, P(float, 0), P(float, 1));
      sincos(n, P(double, 2), P(double, 3));
      sincosl(n, P(long double, 4), P(long double, 5)))
STORE(random_numbers, *P(unsigned, 0) = 1; rand_r(P(unsigned, 0));
      (void)erand48(P(unsigned short, 1)); nrand48(P(unsigned short, 2));
      jrand48(P(unsigned short, 3)))
STORE(random_bytes, arc4random_buf(at, 9))

/* ---- scanf() --------------------------------------------------------------------------------- */

STORE(sscanf, must_be(sscanf("1 2 3 4 5 6 7 8 9", "%d %ld %hhd %hd %lld %zu %jd %u %td",
                             P(int, 0), P(long, 1), P(signed char, 2), P(short, 3),
                             P(long long, 4), P(size_t, 5), P(intmax_t, 6),
                             P(unsigned, 7), P(ptrdiff_t, 8))
                      == 9))
STORE(sscanf_fractions, must_be(sscanf("1 2 3 4", "%f %lf %Lf %*d%%%n", P(float, 0),
                                       P(double, 1), P(long double, 2), P(int, 3))
                                == 3))
STORE(sscanf_texts,
      must_be(sscanf("ab cd ef gh ij a", "%s %2s %[a-f] %3c %ms %p", P(char, 0),
                     P(char, 1), P(char, 2), P(char, 3), P(char *, 4), P(void *, 5))
              == 6);
      free(*P(char *, 4)))
STORE(sscanf_sets, must_be(sscanf("]x-y 5%a", "%[]x]%[^]y] %*[^5]%d%%%lc", P(char, 0),
                                  P(char, 1), P(int, 2), P(wchar_t, 3))
                           >= 2))
STORE(sscanf_over_a_border, must_be(sscanf("0123456789", "%s", P(char, 1) - 4) == 1))
STORE(fscanf, rewind(holes_file);
      must_be(fscanf(holes_file, "%s %3s", P(char, 0), P(char, 1)) == 2))

static int
scan(const char *s, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsscanf(s, format, arguments);
    va_end(arguments);
    return n;
}
STORE(vsscanf, must_be(scan("1 2", "%d %d", P(int, 0), P(int, 1)) == 2))

/* ---- Names and addresses --------------------------------------------------------------------- */

STORE(names, must_be(getcwd(P(char, 0), 1000) != NULL);
      must_be(gethostname(P(char, 1), 100) == 0); getdomainname(P(char, 2), 100);
      confstr(_CS_PATH, P(char, 3), 100); must_be(realpath("/", P(char, 4)) != NULL);
      ctermid(P(char, 6)); strerror_r(1000, P(char, 7), 100))
STORE(addresses, inet_pton(AF_INET, "1.2.3.4", AT(0)); inet_pton(AF_INET6, "::1", AT(1));
      inet_aton("1.2.3.4", P(struct in_addr, 2));
      inet_ntop(AF_INET6, from, P(char, 3), 100))
STORE(hosts, struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
      struct sockaddr_in a = {.sin_family = AF_INET};
      must_be(getaddrinfo("1.2.3.4", NULL, &hints, P(struct addrinfo *, 0)) == 0);
      freeaddrinfo(*P(struct addrinfo *, 0));
      must_be(getnameinfo((struct sockaddr *)&a, sizeof a, P(char, 1), 99, P(char, 2), 99,
                          NI_NUMERICHOST | NI_NUMERICSERV)
              == 0))
STORE(expressions, regex_t r; must_be(regcomp(&r, "a(b)", REG_EXTENDED) == 0);
      must_be(regexec(&r, "xab", 2, P(regmatch_t, 0), 0) == 0);
      regerror(REG_NOMATCH, &r, P(char, 1), 99); regfree(&r))

/* ---- Time ------------------------------------------------------------------------------------ */

STORE(times, memset(AT(0), 0, sizeof(struct tm)); mktime(P(struct tm, 0));
      memset(AT(1), 0, sizeof(struct tm)); timegm(P(struct tm, 1));
      strptime("7", "%d", P(struct tm, 2)); asctime_r(P(struct tm, 0), P(char, 3));
      ctime_r(&(time_t){1}, P(char, 4));
      clock_getres(CLOCK_REALTIME, P(struct timespec, 5));
      timespec_get(P(struct timespec, 6), TIME_UTC); times(P(struct tms, 7));
      must_be(getitimer(ITIMER_PROF, P(struct itimerval, 8)) == 0);
      must_be(setitimer(ITIMER_PROF, &(struct itimerval){0}, P(struct itimerval, 9))
              == 0))
STORE(timers, timer_t t; struct sigevent none = {.sigev_notify = SIGEV_NONE};
      must_be(timer_create(CLOCK_REALTIME, &none, &t) == 0);
      must_be(timer_gettime(t, P(struct itimerspec, 0)) == 0);
      must_be(timer_settime(t, 0, &(struct itimerspec){0}, P(struct itimerspec, 1)) == 0);
      must_be(timer_delete(t) == 0); int fd = timerfd_create(CLOCK_REALTIME, 0);
      must_be(timerfd_gettime(fd, P(struct itimerspec, 2)) == 0);
      must_be(timerfd_settime(fd, 0, &(struct itimerspec){0}, P(struct itimerspec, 3))
              == 0);
      close(fd))

/* ---- What the kernel answers ----------------------------------------------------------------- */

STORE(states, must_be(fstatat(AT_FDCWD, "/", P(struct stat, 0), 0) == 0);
      must_be(statfs("/", P(struct statfs, 1)) == 0);
      must_be(fstatfs(fileno(holes_file), P(struct statfs, 2)) == 0);
      must_be(statvfs("/", P(struct statvfs, 3)) == 0);
      must_be(fstatvfs(fileno(holes_file), P(struct statvfs, 4)) == 0);
      must_be(statx(AT_FDCWD, "/", 0, STATX_ALL, P(struct statx, 5)) == 0);
      must_be(readlinkat(AT_FDCWD, "/proc/self/exe", P(char, 6), 9) == 9))
STORE(
    descriptors, must_be(pipe(P(int, 0)) == 0); must_be(pipe2(P(int, 1), O_CLOEXEC) == 0);
    must_be(socketpair(AF_UNIX, SOCK_STREAM, 0, P(int, 2)) == 0); int fd = eventfd(3, 0);
    must_be(eventfd_read(fd, P(eventfd_t, 3)) == 0); close(fd);
    for (int k = 0; k < 3; k++) {
        close(P(int, k)[0]);
        close(P(int, k)[1]);
    })
STORE(waits, P(struct pollfd, 0)->fd = holes_ends[0];
      P(struct pollfd, 0)->events = POLLIN; must_be(poll(P(struct pollfd, 0), 1, 0) == 1);
      fd_set *set = P(fd_set, 1); memset(set, 0, sizeof *set);
      set->fds_bits[0] = 1L << holes_ends[0];
      must_be(select(holes_ends[0] + 1, NULL, set, NULL, &(struct timeval){0}) >= 0);
      int fd = epoll_create1(0); struct epoll_event event = {.events = EPOLLIN};
      must_be(epoll_ctl(fd, EPOLL_CTL_ADD, holes_ends[0], &event) == 0);
      must_be(epoll_wait(fd, P(struct epoll_event, 2), 1, 0) == 1); close(fd))
STORE(ends_of_children, pid_t pid;
      must_be(posix_spawn(P(pid_t, 0), "/bin/true", NULL, NULL,
                          (char *[]){(char *)"true", NULL}, NULL)
              == 0);
      pid = *P(pid_t, 0); must_be(waitpid(pid, P(int, 1), 0) == pid))
STORE(socket_answers, *P(socklen_t, 0) = 100;
      must_be(getsockname(holes_ends[0], P(struct sockaddr, 1), P(socklen_t, 0)) == 0);
      *P(socklen_t, 2) = 100;
      must_be(getpeername(holes_ends[0], P(struct sockaddr, 3), P(socklen_t, 2)) == 0);
      *P(socklen_t, 4) = 4;
      must_be(getsockopt(holes_ends[0], SOL_SOCKET, SO_TYPE, AT(5), P(socklen_t, 4))
              == 0))
STORE(recvmmsg, struct iovec v[1] = {{AT(0), 9}};
      struct mmsghdr m = {.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}};
      must_be(recvmmsg(holes_ends[0], &m, 1, 0, NULL) == 1))
STORE(preadv2, struct iovec v[1] = {{AT(0), 9}};
      must_be(preadv2(fileno(holes_file), v, 1, 3, 0) == 9))
STORE(limits, must_be(getrusage(RUSAGE_SELF, P(struct rusage, 0)) == 0);
      must_be(getrlimit(RLIMIT_NOFILE, P(struct rlimit, 1)) == 0);
      must_be(prlimit(0, RLIMIT_NOFILE, NULL, P(struct rlimit, 2)) == 0);
      must_be(uname(P(struct utsname, 3)) == 0);
      must_be(sysinfo(P(struct sysinfo, 4)) == 0); getloadavg(P(double, 5), 3);
      getresuid(P(uid_t, 6), P(uid_t, 7), P(uid_t, 8));
      getcpu(P(unsigned, 9), P(unsigned, 10)))
STORE(groups, *P(int, 0) = 9;
      must_be(getgrouplist("root", 0, P(gid_t, 1), P(int, 0)) >= 1))
STORE(scheduling, must_be(sched_getparam(0, P(struct sched_param, 0)) == 0);
      must_be(sched_getaffinity(0, sizeof(cpu_set_t), P(cpu_set_t, 1)) == 0);
      must_be(pthread_getschedparam(pthread_self(), P(int, 2), P(struct sched_param, 3))
              == 0);
      must_be(pthread_getname_np(pthread_self(), P(char, 4), 99) == 0))
STORE(signals, must_be(sigprocmask(SIG_BLOCK, NULL, P(sigset_t, 0)) == 0);
      must_be(pthread_sigmask(SIG_BLOCK, NULL, P(sigset_t, 1)) == 0);
      must_be(sigpending(P(sigset_t, 2)) == 0); sigfillset(P(sigset_t, 3));
      sigemptyset(P(sigset_t, 4)); sigaddset(P(sigset_t, 5), SIGSYS);
      sigdelset(P(sigset_t, 6), SIGINT);
      must_be(sigaction(SIGUSR1, NULL, P(struct sigaction, 7)) == 0);
      must_be(sigaltstack(NULL, P(stack_t, 8)) == 0))

static void *
return_argument(void *arg)
{
    return arg;
}
STORE(thread_ends,
      must_be(pthread_create(P(pthread_t, 0), NULL, return_argument, &n) == 0);
      must_be(pthread_join(*P(pthread_t, 0), P(void *, 1)) == 0))

/* ---- Memory ---------------------------------------------------------------------------------- */

STORE(aligned, must_be(posix_memalign(P(void *, 0), 64, 64) == 0); free(*P(void *, 0)))
STORE(search, size_t k = 3; long number = 7;
      must_be(lsearch(&number, P(long, 0), &k, sizeof(long), order) == P(long, 0) + 3);
      *P(size_t, 1) = 0; long few[2];
      must_be(lsearch(&number, few, P(size_t, 1), sizeof(long), order) == few))
STORE(queue, insque(AT(0), NULL); insque(AT(1), AT(0)); insque(AT(2), AT(0));
      remque(AT(2)))
STORE(letters, int there; struct option o[] = {{"abc", 0, NULL, 1}, {NULL, 0, NULL, 0}};
      char *argv[] = {(char *)"x", (char *)"--abc", NULL}; optind = 0;
      there = getopt_long(2, argv, "", o, P(int, 0)); must_be(there == 1))

/* ---- Loads by the kernel ----------------------------------------------------------------------- */

LOAD(send, send(holes_ends[1], at, 1, 0))
LOAD(sendto, sendto(holes_ends[1], at, 1, 0, NULL, 0))
LOAD(sendmsg, ({
         struct iovec v[1] = {{(void *)(uintptr_t)at, 1}};
         struct msghdr m = {.msg_iov = v, .msg_iovlen = 1};
         sendmsg(holes_ends[1], &m, 0);
     }))
LOAD(writev, ({
         struct iovec v[1] = {{(void *)(uintptr_t)at, 1}};
         writev(holes_ends[1], v, 1);
     }))
LOAD(pwrite, pwrite(fileno(holes_file), at, 1, 100))
LOAD(pwritev, ({
         struct iovec v[1] = {{(void *)(uintptr_t)at, 1}};
         pwritev(fileno(holes_file), v, 1, 100);
     }))
LOAD(fwrite, ({
         FILE *f = fopen("/dev/null", "w");
         long n_written;
         must_be(f != NULL);
         n_written = (long)fwrite(at, 1, PAGE / 2, f);
         must_be(fclose(f) == 0);
         n_written;
     }))
