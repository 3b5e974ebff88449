#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_nonblocking.sh -- the object files that fix, unfix and mark_dirty consist of under
# Nb-GCLOCK call nothing that locks or allocates: of the system they need only what is listed
# here.  (The other policies, locked.c, do lock.)
objects="fix flush ring spare"
allowed='memset|memcpy|sched_yield|xac_die|xac_kill_hook|xac_frames_[a-z_]*'
# Of the compiler: sanitizers, coverage, position independence.
allowed="$allowed|__(asan|ubsan|tsan|gcov)_.*|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
allowed="$allowed|__llvm_.*"

n=0
for object in $objects; do
    file=$(find "${top_builddir:-.}/libxac/frames" -name "$object.o" | head -1)
    [ -n "$file" ] || { echo "$object.o is not there"; exit 1; }
    n=$((n + 1))
    if nm --undefined-only --format=posix "$file" | cut -d' ' -f1 | grep -vxE "$allowed"; then
        echo "$object.o needs the above: does it lock or allocate?"
        exit 1
    fi
done
echo "check_nonblocking: $n objects, 0 problems"
