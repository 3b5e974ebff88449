#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_announced.sh -- no function of the C library is forgotten by xac-cc.
#
# GOAL    Each function of libc and libm that has a pointer through which it may store is either
#         announced (compiled/noticed.syms), or named as not announced (compiled/unannounced);
#         and libxac-compiled.a has what noticed.syms names, and nothing else.
# METHOD  gcc lists the functions that all headers of the C library declare (-aux-info).
set -eu

srcdir=$(cd "${srcdir:-.}" && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
syms=$srcdir/compiled/noticed.syms
list=$srcdir/compiled/unannounced
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

# What the library has.
LC_ALL=C sort -c "$syms" || { echo "noticed.syms: not sorted"; exit 1; }
awk '$2 != "xac_noticed_" $1 { print "noticed.syms: " $0; bad = 1 } END { exit bad }' "$syms"
nm "$build/libxac-compiled.a" 2>/dev/null |
    awk '$2 ~ /[TWV]/ && sub(/^xac_noticed_/, "", $3) { print $3 }' | LC_ALL=C sort -u >defined
awk '{ print $1 }' "$syms" | LC_ALL=C sort -u >announced
# One of our own names is behind another, which the C library has.
LC_ALL=C comm -3 announced defined | grep -v '^	*xpg_' >differ || true
[ ! -s differ ] || { echo "in one of noticed.syms and libxac-compiled.a only:"; cat differ; exit 1; }

# What the C library has.
version=$(printf '#include <features.h>\n__GLIBC__.__GLIBC_MINOR__\n' | gcc -E -P - 2>/dev/null | tail -n 1 | tr -d ' ')
[ "$version" = 2.36 ] || { echo "the lists are those of glibc 2.36, not of $version"; exit 77; }
for header in aio aliases argp argz arpa/inet complex ctype dirent dlfcn envz err errno execinfo fcntl fenv \
    fmtmsg fnmatch fts ftw getopt glob grp gshadow iconv ifaddrs inttypes langinfo libgen libintl link locale \
    malloc math mcheck mntent monetary mqueue net/if netdb netinet/ether netinet/in nl_types obstack poll \
    printf pthread pty pwd regex resolv sched search semaphore setjmp sgtty shadow signal spawn stdio \
    stdio_ext stdlib string strings sys/acct sys/auxv sys/epoll sys/eventfd sys/fanotify sys/file \
    sys/fsuid sys/inotify sys/ioctl sys/ipc sys/klog sys/mman sys/mount sys/msg sys/personality sys/pidfd \
    sys/poll sys/prctl sys/ptrace sys/quota sys/random sys/reboot sys/resource sys/select sys/sem \
    sys/sendfile sys/shm sys/signalfd sys/socket sys/stat sys/statfs sys/statvfs sys/swap sys/sysinfo \
    sys/syslog sys/time sys/timeb sys/timerfd sys/times sys/timex sys/uio sys/un sys/utsname sys/wait \
    sys/xattr termios thread_db threads time uchar ucontext ulimit unistd utime utmp utmpx wchar wctype \
    wordexp; do
    echo "#include <$header.h>"
done >all.c
gcc -D_GNU_SOURCE -fsyntax-only -w -aux-info prototypes all.c || true
for library in libc.so.6 libm.so.6; do
    nm -D --defined-only "$(gcc -print-file-name=$library)" | awk '{ sub(/@.*/, "", $3); print $3 }'
done | LC_ALL=C sort -u >exported
sed -n 's/^object //p' "$list" >objects
sed -n 's/^function //p' "$list" >functions

# Arguments through which something may be stored, but objects of the C library.
awk '
FILENAME == "objects" { is_object[$0] = 1; next }
FILENAME == "exported" { is_exported[$1] = 1; next }
{
    sub(/^\/\* [^*]* \*\/ extern /, "")
    sub(/\);.*/, ")")
    if (!match($0, /[A-Za-z0-9_]+ \(/) || /^static/)
        next
    name = substr($0, RSTART, RLENGTH - 2)
    arguments = substr($0, RSTART + RLENGTH)
    if (name ~ /^_/ || !(name in is_exported))
        next
    while (sub(/ ?\([^()]*\)/, "", arguments)) # of pointers to functions
        continue
    sub(/\)$/, "", arguments)
    n = split(arguments, argument, /, /)
    for (i = 1; i <= n; i++) {
        a = argument[i]
        gsub(/ ?restrict ?/, "", a)
        if (a !~ /\*$/)
            continue
        sub(/ ?\*$/, "", a)
        if (a ~ /const$/ || (a !~ /\*/ && a ~ /const/) || a in is_object)
            continue
        print name
        break
    }
}' objects exported prototypes | LC_ALL=C sort -u >storing
n=$(wc -l <storing)
[ "$n" -gt 400 ] || { echo "only $n functions found"; exit 1; }
LC_ALL=C comm -23 storing announced | grep -vxE -f functions >forgotten || true
if [ -s forgotten ]; then
    echo "neither in noticed.syms nor in unannounced:"
    cat forgotten
fi
n_forgotten=$(wc -l <forgotten)
echo "$(((n - n_forgotten) * 100 / n))%: Checks: $n, Failures: $n_forgotten, Errors: 0"
[ "$n_forgotten" -eq 0 ]
