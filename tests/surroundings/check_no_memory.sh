#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_no_memory.sh -- the same promises without /dev/shm.
#
# GOAL    processes, threads, crashes and recoveries work where /dev/shm has 1 MiB, and where
#         there is none.
# METHOD  the tests of processes, threads and durability run in a mount namespace with such a
#         /dev/shm: those of processes without, those of threads with the small one, durability with both;
#         XAC_LONG=1: all with both.  Exit code 77 if that cannot be had.
set -eu

build=$(cd "${top_builddir:-.}" && pwd)
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "check_no_memory.sh: only root can mount"
    exit 77
fi
work=$(mktemp -d)
trap 'rmdir "$work"' EXIT

# inside -- KIND PROGRAM: run a program with that kind of /dev/shm.
inside() {
    unshare -m sh -euc '
        if [ "$1" = small ]; then
            mkdir -p /dev/shm
            mount -t tmpfs -o size=1m shm /dev/shm
        else
            mount --rbind /dev "$2"
            mount -t tmpfs -o mode=755 dev /dev
            for name in null urandom userfaultfd; do
                [ -e "$2/$name" ] || continue
                : > "/dev/$name"
                mount --bind "$2/$name" "/dev/$name"
            done
            umount -l "$2"
        fi
        unset XAC_SHM_DIR
        exec "$3"' sh "$1" "$work" "$2"
}

rc=0
for kind in small none; do
    for program in api/isolation/check_procs api/isolation/check_threads api/durable/check_durable; do
        case ${XAC_LONG:-0}-$kind-$program in
        0-small-*/check_procs | 0-none-*/check_threads) continue ;;
        esac
        echo "== $kind: $program"
        inside "$kind" "$build/tests/$program" || rc=1
    done
done
exit "$rc"
