#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_filesystems.sh -- the same promises on every local file system.
#
# GOAL    processes are killed and nothing acknowledged is lost, copies are told from
#         originals, and files from others under their names, on tmpfs, ext4, xfs, btrfs and
#         overlayfs, which count devices, inodes and births in ways of their own.
# METHOD  each is mounted in a mount namespace of its own, on a loop device where it needs
#         one, and the tests of kills, copies, claims and inodes run there.  What cannot be
#         mounted here is named and left out.  Exit code 77 if nothing can be.
set -eu

build=$(cd "${top_builddir:-.}" && pwd)
if [ "$(id -u)" != 0 ]; then
    echo "check_filesystems.sh: only root can mount"
    exit 77
fi
if [ "${1:-}" != inside ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    unshare -m true 2>/dev/null || exit 77
    rc=0
    unshare -m "$0" inside "$work" || rc=$?
    exit "$rc"
fi

# From here on in a mount namespace, which unmounts everything at its end.
work=$2
mount --make-rprivate /
n=0

# mount_on KIND -- at $work/KIND; fails if this machine cannot.
mount_on()
{
    mkdir -p "$work/$1"
    case $1 in
    tmpfs) mount -t tmpfs tmpfs "$work/$1" ;;
    overlay)
        mkdir -p "$work/tmpfs/lower" "$work/tmpfs/upper" "$work/tmpfs/inner"
        mount -t overlay overlay "$work/$1" -o \
            "lowerdir=$work/tmpfs/lower,upperdir=$work/tmpfs/upper,workdir=$work/tmpfs/inner"
        ;;
    *)
        command -v "mkfs.$1" >/dev/null || return 1
        truncate -s 3G "$work/$1.img"
        "mkfs.$1" -q "$work/$1.img" >/dev/null && mount -o loop "$work/$1.img" "$work/$1"
        ;;
    esac
}

# run PROGRAM -- below $TMPDIR.
run()
{
    if ! "$build/$1" >"$work/log" 2>&1; then
        cat "$work/log"
        echo "check_filesystems.sh: $1 fails on $kind"
        exit 1
    fi
    tail -n 1 "$work/log"
}

for kind in tmpfs overlay ext4 xfs btrfs; do
    if ! mount_on $kind 2>"$work/why"; then
        echo "$kind: left out: $(tail -n 1 "$work/why")"
        continue
    fi
    echo "$kind:"
    TMPDIR=$work/$kind
    XAC_ROUNDS=3
    export TMPDIR XAC_ROUNDS
    run tests/crash/check_kill
    run tests/surroundings/check_copies
    run tests/surroundings/check_claims
    run tests/surroundings/check_inodes
    n=$((n + 1))
done
[ "$n" -gt 0 ] || exit 77
