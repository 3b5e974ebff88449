# SPDX-License-Identifier: MIT
#
# shell.sh -- what the scripts with several machines in one (bench/ship, bench/group) need; it is sourced.

# skip WORDS... -- it cannot be measured here.
skip()
{
    echo "skipped: $*"
    exit 77
}

# await N COMMAND... -- until it succeeds, for N seconds.
await()
{
    tries=$(($1 * 10))
    shift
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# quantile FILE Q -- of numbers, one a line.
quantile()
{
    sort -n "$1" | awk -v q="$2" '{ v[NR] = $1 }
        END { i = int(q * NR + 0.999999); print NR == 0 ? 0 : v[i < 1 ? 1 : i] }'
}

# disk_counts DIR -- of the disk under it: flushes, and bytes written.  Whatever else uses it counts, too.
disk_counts()
{
    awk -v device="$(stat -c '%Hd %Ld' "$1")" '{ if ($1 " " $2 == device) { print $19 + 0, $10 * 512; n = 1 } }
        END { if (!n) print 0, 0 }' /proc/diskstats
}

# remove_namespace NAME -- with the programs in it.
remove_namespace()
{
    for left in $(ip netns pids "$1" 2>/dev/null); do
        kill -9 "$left" 2>/dev/null
    done
    ip netns del "$1" 2>/dev/null
}

# remove_stale_namespaces PREFIX -- those named PREFIX-PID-NUMBER, where no process PID runs: its run has been killed.
remove_stale_namespaces()
{
    ip netns list 2>/dev/null | sed -n "s/^\($1-\([0-9]*\)-[0-9]\)\( .*\)\{0,1\}\$/\1 \2/p" |
        while read -r name pid; do
            kill -0 "$pid" 2>/dev/null || remove_namespace "$name"
        done
}
