#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_nonblocking.sh -- the object files that fix, unfix and mark_dirty consist of under
# Nb-GCLOCK call nothing that locks or allocates: they need each other, and of the system only what
# is listed here.  (Other policies lock: fix.c calls them through a table, struct pool_plug.)
objects="fix flush full ring spare"
allowed='memset|memcpy|sched_yield|xac_sleep_ns|clock_gettime|xac_die|xac_kill_hook'
# Of the compiler: sanitizers, coverage, position independence.
compiler='__(asan|ubsan|tsan|gcov)_.*|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__llvm_.*'

# F23: policies are lists and ghosts; batches, locks and free frames are none of their business.
policies="replacer_simple replacer_queues replacer_lirs"
allowed_policies='xac_frames_(list|ghost)_[a-z]*|memset|memcpy|xac_die'

# file_of NAME -- its object file.
file_of()
{
    file=$(find "${top_builddir:-.}/frames" -name "$1.o" | head -1)
    [ -n "$file" ] || { echo "$1.o is not there"; exit 1; }
}

# check NAME EXPRESSION -- the object needs nothing but what the expression names.
n=0
check()
{
    file_of "$1"
    n=$((n + 1))
    if nm --undefined-only --format=posix "$file" | cut -d' ' -f1 | grep -vxE "$2|$compiler"; then
        echo "$1.o needs the above: does it lock, allocate, or know what it should not?"
        exit 1
    fi
}

for object in $objects; do
    file_of "$object"
    for symbol in $(nm --defined-only --extern-only --format=posix "$file" \
                        | sed -n 's/^\(xac_frames_[a-z_]*\) .*/\1/p'); do
        allowed="$allowed|$symbol"
    done
done
for object in $objects; do
    check "$object" "$allowed"
done
for object in $policies; do
    check "$object" "$allowed_policies"
done
echo "check_nonblocking: $n objects, 0 problems"
