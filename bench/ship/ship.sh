#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ship.sh BUILD [OPTION...] -- a source and its standby on two networks, and what shipping costs.
#
# Runs durable inserts with a standby that follows and without, in turn, in network namespaces that it makes and removes.
# Prints how far the standby is behind, ten times a second while there are inserts, and by how much they are slower.
# In the end all records of source and standby are compared, byte by byte.  Source, server and standby run in sessions of their
# own: the kernel shares processors among sessions, and on a busy machine a standby of the same one would make its
# source faster (why.sh).
#
#   --seconds N    of inserts in each run (60)
#   --pairs N      of runs, one with and one without a standby (5)
#   --delay MS     of the network, in each direction, by tc netem; without that by a relay, ship_delay (1)
#   --loss PERCENT of packets (0)
#   --awake        in both kinds of runs idle processors wait for work without halting (/dev/cpu_dma_latency): to wake them
#                  may take long on a virtual machine
#   --cut SECONDS  pull the cable for so long, two seconds after the beginning
#   --dir DIR      for the files, which are removed (the current one)
#   --standby-dir DIR  for those of the standby, on another disk, as on a machine of its own (that of --dir)
#   --json         one JSON object per pair, and one for all
#
# Needs root, ip and tc; else it prints "skipped: " and why, exit code 77.
set -u

build=$(cd "$1" && pwd) || exit 2
shift
seconds=60 pairs=5 delay=1 loss=0 cut=0 dir=. standby_dir='' json='' awake=''
while [ $# -gt 0 ]; do
    case $1 in
    --json) json=1 ;;
    --awake) awake=1 ;;
    --seconds | --pairs | --delay | --loss | --cut | --dir)
        eval "${1#--}=\$2"
        shift
        ;;
    --standby-dir)
        standby_dir=$2
        shift
        ;;
    *)
        sed -n '4,23s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

. "$(dirname "$0")/../kit/shell.sh"

one=xship-$$-1
two=xship-$$-2
serve_pid='' follow_pid='' delay_pid='' awake_pid='' work='' away=''

load=$build/bench/ship/ship_load

# remove_work DIR -- files of a run.  An environment whose processes were killed has shared memory: one that
# opens it and leaves removes that.
remove_work()
{
    [ ! -d "$1/db" ] || "$load" insert "$1/db" 0 1 >/dev/null 2>&1
    rm -rf "$1"
}

# remove_stale -- namespaces of runs that have been killed, the programs in them, and their files.
remove_stale()
{
    remove_stale_namespaces xship
    for left in "$dir"/ship.[0-9]*.?????? "${standby_dir:-$dir}"/ship.[0-9]*.??????; do
        pid=${left#"$dir"/ship.}
        [ ! -d "$left" ] || kill -0 "${pid%.*}" 2>/dev/null || remove_work "$left"
    done
}

clean()
{
    trap '' INT TERM HUP
    for pid in $follow_pid $serve_pid $delay_pid $awake_pid; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    remove_namespace "$one"
    remove_namespace "$two"
    [ -z "$work" ] || remove_work "$work"
    [ -z "$away" ] || remove_work "$away"
}

fail()
{
    echo "ship.sh: $*" >&2
    for log in serve.err follow.err load.err; do
        [ ! -s "$work/$log" ] || sed "s/^/  $log: /" "$work/$log" >&2
    done
    exit 1
}

[ "$(id -u)" = 0 ] || skip "only root can make network namespaces"
command -v ip >/dev/null && command -v tc >/dev/null || skip "there is no ip or no tc"
remove_stale
trap clean EXIT
trap 'exit 1' INT TERM HUP
ip netns add "$one" 2>/dev/null || skip "network namespaces cannot be made here"
ip netns add "$two" || exit 1
ip -n "$one" link add name ship0 type veth peer name ship0 netns "$two" 2>/dev/null ||
    skip "there is no veth here"
ip -n "$one" address add 192.0.2.1/30 dev ship0
ip -n "$two" address add 192.0.2.2/30 dev ship0
for name in $one $two; do
    ip -n "$name" link set lo up
    ip -n "$name" link set ship0 up
done
network="netem, delay $delay ms, loss $loss %"
for name in $one $two; do
    ip netns exec "$name" tc qdisc add dev ship0 root netem delay "${delay}ms" loss "$loss%" 2>/dev/null ||
        network="relay, delay $delay ms, no loss: this kernel has no netem"
done
at=192.0.2.1:7000
case $network:$delay in
*:0) ;;
relay*)
    # One that carries for the standby, on its side.
    ip netns exec "$two" "$build/bench/ship/ship_delay" 7001 192.0.2.1 7000 \
        "$(awk -v ms="$delay" 'BEGIN { print int(1000 * ms) }')" &
    delay_pid=$!
    at=127.0.0.1:7001
    ;;
esac

if [ -n "$awake" ]; then
    [ -w /dev/cpu_dma_latency ] || skip "there is no /dev/cpu_dma_latency"
    network="$network, processors awake"
    sh -c 'exec 3>/dev/cpu_dma_latency && printf "\0\0\0\0" >&3 && exec sleep 100000' &
    awake_pid=$!
fi

work=$(mktemp -d "$dir/ship.$$.XXXXXX") || exit 1
work=$(cd "$work" && pwd)
if [ -n "$standby_dir" ]; then
    away=$(mktemp -d "$standby_dir/ship.$$.XXXXXX") || exit 1
    away=$(cd "$away" && pwd)
fi
standby=${away:-$work}/standby
(umask 077 && head -c 32 /dev/urandom | od -An -tx1 >"$work/secret")

is_behind_by_nothing()
{
    tail -n 1 "$work/lag" 2>/dev/null | grep -q '"bytes": 0,'
}

# insert SEED -- prints inserts a second, and flushes and bytes of the disk for each.
insert()
{
    before=$(disk_counts "$work")
    said=$(setsid ip netns exec "$one" "$load" insert "$work/db" "$seconds" "$1" 2>"$work/load.err")
    after=$(disk_counts "$work")
    [ -z "$said" ] || echo "$said $before $after" |
        awk '{ printf "%s %.2f %.0f\n", $2, ($5 - $3) / $1, ($6 - $4) / $1 }'
}

# pull_cable -- in the background.
pull_cable()
{
    [ "$cut" != 0 ] || return 0
    (sleep 2 && ip -n "$one" link set ship0 down && sleep "$cut" && ip -n "$one" link set ship0 up) &
}

# prepare -- the environment and its tree, in both kinds of runs.
prepare()
{
    "$load" insert "$work/db" 0 1 >/dev/null || fail "the first insert"
}

# alone SEED -- without a standby.
alone()
{
    prepare
    alone=$(insert "$1")
    [ -n "$alone" ] || fail "inserts fail"
    alone_disk=${alone#* }
    alone=${alone%% *}
}

# with_standby SEED -- the same, with one; $work/lag.now has how far it was behind meanwhile.
with_standby()
{
    prepare
    : >"$work/lag"
    setsid ip netns exec "$one" "$build/xship" serve --json --insecure-listen --listen 192.0.2.1:7000 \
        --secret-file "$work/secret" "$work/db" >"$work/lag" 2>"$work/serve.err" &
    serve_pid=$!
    setsid ip netns exec "$two" "$build/xship" follow --secret-file "$work/secret" "$at" \
        "$standby" 2>"$work/follow.err" &
    follow_pid=$!
    await 30 is_behind_by_nothing || fail "the standby does not come"
    before=$(wc -l <"$work/lag")
    pull_cable
    rate=$(insert "$1")
    [ -n "$rate" ] || fail "inserts fail"
    rate_disk=${rate#* }
    rate=${rate%% *}
    tail -n "+$((before + 1))" "$work/lag" >"$work/lag.now"
    # What was said last before the end may have been said before it.
    sleep 0.3
    await 120 is_behind_by_nothing || fail "the standby stays behind"
    kill "$follow_pid" && wait "$follow_pid" || fail "the standby ends with an error"
    kill "$serve_pid" && wait "$serve_pid" || fail "the server ends with an error"
    serve_pid='' follow_pid=''
    "$build/xship" promote "$standby" >/dev/null || fail "the standby is not promoted"
    "$load" dump "$work/db" >"$work/records.1" && "$load" dump "$standby" >"$work/records.2" &&
        cmp "$work/records.1" "$work/records.2" || fail "source and standby differ"
}

# remove_files -- of a run.
remove_files()
{
    rm -rf "$work/db" "$standby" "$work"/records.*
}

# one_pair SEED -- the one that is first changes.
one_pair()
{
    if [ $(($1 % 2)) = 0 ]; then
        with_standby "$1"
        remove_files
        alone "$1"
    else
        alone "$1"
        remove_files
        with_standby "$1"
    fi
    remove_files
    sed -n 's/.*"bytes": \([0-9]*\),.*/\1/p' "$work/lag.now" >"$work/bytes"
    sed -n 's/.*"ms": \([0-9.]*\)}.*/\1/p' "$work/lag.now" >"$work/ms"
    cat "$work/bytes" >>"$work/bytes.all"
    cat "$work/ms" >>"$work/ms.all"
    ratio=$(awk -v a="$alone" -v b="$rate" 'BEGIN { printf "%.3f", a / b }')
    echo "$ratio" >>"$work/ratios"
    echo "$alone" >>"$work/alone.all"
    echo "$rate" >>"$work/rate.all"
    say_result pair "$1" "\"inserts_per_s_alone\": $alone, \"inserts_per_s_shipping\": $rate, $(say_disk)" \
        "$ratio" bytes ms
}

# say_disk -- flushes and bytes for each insert.
say_disk()
{
    echo "\"flushes_per_insert_alone\": ${alone_disk% *}, \"bytes_per_insert_alone\": ${alone_disk#* }," \
        "\"flushes_per_insert_shipping\": ${rate_disk% *}, \"bytes_per_insert_shipping\": ${rate_disk#* }"
}

# say_result WHAT NUMBER FIGURES RATIO BYTES MS
say_result()
{
    if [ -n "$json" ]; then
        echo "{\"$1\": $2, \"seconds\": $seconds, \"network\": \"$network\", $3, \"slowdown\": $4," \
            "\"lag_bytes_median\": $(quantile "$work/$5" 0.5)," \
            "\"lag_bytes_p99\": $(quantile "$work/$5" 0.99)," \
            "\"lag_ms_median\": $(quantile "$work/$6" 0.5), \"lag_ms_p99\": $(quantile "$work/$6" 0.99)," \
            "\"equal\": true}"
    else
        echo "$1 $2: $(echo "$3" | tr -d '"'), slower by a factor of $4;" \
            "behind by $(quantile "$work/$5" 0.5) bytes (99 %: $(quantile "$work/$5" 0.99))," \
            "$(quantile "$work/$6" 0.5) ms (99 %: $(quantile "$work/$6" 0.99)); all records equal"
    fi
}

[ -n "$json" ] || echo "network: $network"
i=1
while [ "$i" -le "$pairs" ]; do
    one_pair "$i"
    i=$((i + 1))
done
say_result pairs "$pairs" "\"samples\": $(wc -l <"$work/bytes.all" | tr -d ' '), \"slowdown_least\": $(quantile "$work/ratios" 0), \"slowdown_most\": $(quantile "$work/ratios" 1)" \
    "$(quantile "$work/ratios" 0.5)" bytes.all ms.all
