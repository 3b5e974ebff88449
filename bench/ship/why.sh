#!/bin/sh
# SPDX-License-Identifier: MIT
#
# why.sh BUILD [--seconds N] [--rounds N] [--dir DIR] [--only WHAT] -- what of a standby makes its source slower, or faster.
#
# Durable inserts (ship_load) for N seconds (6) in each of these surroundings, in turn, N rounds (5), each with an order of
# its own; or in those of WHAT, and alone.  Prints for each the median of inserts a second divided by those of the same round alone, and all values.
#
#   alone      nothing else
#   again      nothing else: how much of the differences is chance
#   kept       log segments are not used again (xac.log-kept)
#   slot       a slot holds the log back, and nobody follows
#   awake      idle processors wait for work without halting (/dev/cpu_dma_latency)
#   busy       another process keeps a processor busy, at the lowest priority
#   apart      the same in a session of its own: the scheduler groups processes by sessions (sched_autogroup_enabled)
#   syncs      another process writes 4 KiB and syncs them, again and again, on the same disk
#   memory     a standby in memory: it takes, redoes and wakes, but syncs nothing on the disk
#   standby    a standby on the same disk
set -u

build=$(cd "$1" && pwd) || exit 2
shift
seconds=6 rounds=5 dir=. only='again kept slot awake busy apart syncs memory standby'
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --rounds | --dir | --only) eval "${1#--}=\$2" ;;
    *)
        sed -n '4,20s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

load=$build/bench/ship/ship_load
work=$(mktemp -d "$dir/why.XXXXXX") || exit 1
work=$(cd "$work" && pwd)
memory=$(mktemp -d "/dev/shm/why.XXXXXX") || exit 1
other=''

clean()
{
    stop_other
    rm -rf "$work" "$memory"
}

stop_other()
{
    for pid in $other; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    other=''
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

# follow TO -- a standby there, and wait until it has come.
follow()
{
    "$build/xship" serve -q --json --listen "unix:$work/at" "$work/db" >"$work/lag" 2>"$work/err" &
    other=$!
    "$build/xship" follow -q "unix:$work/at" "$1" 2>>"$work/err" &
    other="$! $other"
    tries=300
    until tail -n 1 "$work/lag" 2>/dev/null | grep -q '"bytes": 0,'; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { cat "$work/err" >&2 && exit 1; }
        sleep 0.1
    done
}

# surround WHAT -- what else is there while it inserts.
surround()
{
    case $1 in
    kept) : >"$work/db/xac.log-kept" ;;
    slot) "$build/xship" hold "$work/db" why >/dev/null ;;
    awake)
        sh -c 'exec 3>/dev/cpu_dma_latency && printf "\0\0\0\0" >&3 && exec sleep 1000' &
        other=$!
        ;;
    busy)
        nice -n 19 sh -c 'while :; do :; done' &
        other=$!
        ;;
    apart)
        nice -n 19 setsid sh -c 'while :; do :; done' &
        other=$!
        ;;
    syncs)
        sh -c "while :; do dd if=/dev/zero of='$work/other' bs=4k count=1000 oflag=dsync conv=notrunc 2>/dev/null; done" &
        other=$!
        ;;
    memory) follow "$memory/standby" ;;
    standby) follow "$work/standby" ;;
    esac
}

# one WHAT ROUND
one()
{
    "$load" insert "$work/db" 0 1 >/dev/null || exit 1
    surround "$1"
    "$load" insert "$work/db" "$seconds" "$2" | cut -d' ' -f2 >>"$work/rate.$1"
    stop_other
    rm -rf "$work/db" "$work/standby" "$work/other" "$memory/standby"
}

all="alone $only"
round=1
while [ "$round" -le "$rounds" ]; do
    for what in $(echo "$all" | tr ' ' '\n' | awk -v r="$round" '{ v[NR - 1] = $1 }
        END { for (i = 0; i < NR; i++) print v[(i * (r % 2 ? 1 : NR - 1) + 3 * r) % NR] }'); do
        one "$what" "$round"
    done
    round=$((round + 1))
done
for what in $all; do
    paste "$work/rate.alone" "$work/rate.$what" | awk '{ printf "%.3f\n", $2 / $1 }' | sort -n >"$work/ratios"
    echo "$what: $(awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }' "$work/ratios") of alone" \
        "($(tr '\n' ' ' <"$work/ratios")); inserts/s: $(tr '\n' ' ' <"$work/rate.$what")"
done
