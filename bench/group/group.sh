#!/bin/sh
# SPDX-License-Identifier: MIT
#
# group.sh BUILD [OPTION...] -- commits to a group of three nodes: libxac, dqlite and etcd, on the same work and disk.
#
# Starts three nodes of each system on this machine and has them run until the end.  Then each system in turn, another one first
# each time, is given durable puts of new records, random 8-byte keys and 512-byte values, a commit each, acknowledged when a
# majority has it on disk.  Prints commits a second, latencies, and processor time of the whole group, and
# bytes and flushes of the disk, for each commit.  In the end each group must have as many records as it has acknowledged.
#
#   --seconds N    of puts in each turn (5)
#   --pairs N      turns of each system (7)
#   --delay MS     between the nodes, in each direction, by a relay, ship_delay: each node is in a network namespace then (0)
#   --writers LIST how many at once, each a process (1,8)
#   --systems LIST of xac, dqlite and etcd, which is the default; one that is not there is left out
#   --dir DIR      for the files, which are removed (the current one)
#   --json         an object for each turn, and one for all turns of a system with so many writers
#
# Exit code 77 if xraftd is not there, or a system is left out, or if --delay is given and root cannot make network namespaces;
# "skipped: " and why is printed then.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
shift
seconds=5 pairs=7 delay=0 writers=1,8 systems=xac,dqlite,etcd dir=. json=''

usage()
{
    sed -n '4,21s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --json) json=1 ;;
    --seconds | --pairs | --delay | --writers | --systems | --dir)
        [ $# -gt 1 ] || usage
        eval "${1#--}=\$2"
        shift
        ;;
    *) usage ;;
    esac
    shift
done

. "$here/../kit/shell.sh"

load=$build/bench/group/group_load
work='' relays='' left_out=''
pids_xac='' pids_dqlite='' pids_etcd=''

# pids SYSTEM -- of its nodes.
pids()
{
    eval "echo \$pids_$1"
}

# stop PID... -- in order.
stop()
{
    for pid in "$@"; do
        kill "$pid" 2>/dev/null
    done
    for pid in "$@"; do
        wait "$pid" 2>/dev/null || stop_rc=$?
    done
}

clean()
{
    trap '' INT TERM HUP
    stop $pids_xac $pids_dqlite $pids_etcd $relays
    for i in 1 2 3; do
        [ "$delay" = 0 ] || remove_namespace "xgroup-$$-$i"
    done
    [ -z "$work" ] || rm -rf "$work"
}

# is_left_alone NAME -- no process has it in its command line.
is_left_alone()
{
    ! grep -lqs -- "$1" /proc/[0-9]*/cmdline
}

# remove_stale -- what runs have left that have been killed.  Their nodes end by themselves (setpriv), in order.
remove_stale()
{
    for left in "$dir"/group.[0-9]*.??????; do
        pid=${left#"$dir"/group.}
        [ -d "$left" ] && ! kill -0 "${pid%.*}" 2>/dev/null || continue
        await 20 is_left_alone "${left##*/}" || fail "$left: programs still run there"
        rm -rf "$left"
    done
    [ "$(id -u)" != 0 ] || remove_stale_namespaces xgroup
}

fail()
{
    echo "group.sh: $*" >&2
    for log in "$work"/*.err; do
        [ ! -s "$log" ] || tail -n 5 "$log" | sed "s/^/  ${log##*/}: /" >&2
    done
    exit 1
}

# ---- The machine -----------------------------------------------------------------------------------------------------------

# inside NODE -- what is written before a command, to run it where that node is.
inside()
{
    [ "$delay" = 0 ] || echo "ip netns exec xgroup-$$-$1"
}

make_namespaces()
{
    [ "$(id -u)" = 0 ] || skip "only root can make network namespaces"
    command -v ip >/dev/null || skip "there is no ip"
    for i in 1 2 3; do
        ip netns add "xgroup-$$-$i" 2>/dev/null || skip "network namespaces cannot be made here"
        ip -n "xgroup-$$-$i" link set lo up
    done
}

# relay PORT1 PORT2 PORT3 -- node i listens at 127.0.0.1:PORTi where it is; there it also finds the others at theirs.
relay()
{
    [ "$delay" != 0 ] || return 0
    for i in 1 2 3; do
        for j in 1 2 3; do
            [ "$i" != "$j" ] || continue
            eval "port=\$$j"
            $(inside "$i") setpriv --pdeathsig KILL "$build/bench/ship/ship_delay" "$port" 127.0.0.1 "$port" \
                "$(awk -v ms="$delay" 'BEGIN { print int(1000 * ms) }')" "xgroup-$$-$j" 2>>"$work/relay.err" &
            relays="$relays $!"
        done
    done
}

# ---- The systems -----------------------------------------------------------------------------------------------------------

# why_not SYSTEM -- prints why it is not there.
why_not()
{
    case $1 in
    xac) [ -x "$build/xraftd" ] && [ -x "$load" ] || echo "xraftd has not been built" ;;
    dqlite) [ -x "$build/bench/group/dqlite_node" ] || echo "libdqlite-dev was not there when this was built" ;;
    etcd) command -v etcd >/dev/null || echo "etcd is not installed" ;;
    *) echo "there is no such system" ;;
    esac
}

# place SYSTEM NODE -- where writers find it.
place()
{
    case $1 in
    xac) echo "$work/xac/$2" ;;
    *) eval "echo 127.0.0.1:\$$1_$2" ;;
    esac
}

# leads SYSTEM NODE
leads()
{
    case $1 in
    xac) "$build/xraftd" status "$(place xac "$2")" 2>/dev/null | grep -q '^state *writable$' ;;
    *) $(inside "$2") "$load" leads "$1" "$(place "$1" "$2")" ;;
    esac
}

# find_leader SYSTEM -- $leader is it.
find_leader()
{
    for leader in 1 2 3; do
        ! leads "$1" "$leader" || return 0
    done
    return 1
}

# run_node SYSTEM NODE COMMAND... -- it ends with this script; in a session of its own, as the kernel shares processors among
# sessions.
run_node()
{
    node=$1.$2
    shift 2
    $(inside "${node#*.}") setsid setpriv --pdeathsig TERM "$@" >"$work/$node.err" 2>&1 &
    eval "pids_${node%.*}=\"\$pids_${node%.*} \$!\""
}

# start_xac PORT1 PORT2 PORT3
start_xac()
{
    mkdir "$work/xac"
    "$load" prepare xac "$work/xac/1" || fail "the environment"
    "$build/xraftd" create -m "127.0.0.1:$1" -m "127.0.0.1:$2" -m "127.0.0.1:$3" "$work/xac/1" >/dev/null ||
        fail "xraftd create"
    for i in 2 3; do
        cp -a "$work/xac/1" "$work/xac/$i"
        "$build/xraftd" join --node "$i" "$work/xac/$i" || fail "xraftd join"
    done
    relay "$@"
    for i in 1 2 3; do
        run_node xac "$i" "$build/xraftd" start "$work/xac/$i"
    done
}

# start_dqlite PORT1 PORT2 PORT3
start_dqlite()
{
    dqlite_1=$1 dqlite_2=$2 dqlite_3=$3
    relay "$@"
    for i in 1 2 3; do
        mkdir -p "$work/dqlite/$i"
        run_node dqlite "$i" "$build/bench/group/dqlite_node" "$i" "$(place dqlite "$i")" "$work/dqlite/$i" \
            $([ "$i" = 1 ] || place dqlite 1)
        await 60 grep -qs '^ready$' "$work/dqlite.$i.err" || fail "node $i of dqlite does not start"
    done
    $(inside 1) "$load" prepare dqlite "$(place dqlite 1)" || fail "the table of dqlite"
}

# start_etcd PORT1 PORT2 PORT3 CLIENTS1 CLIENTS2 CLIENTS3
start_etcd()
{
    etcd_1=$4 etcd_2=$5 etcd_3=$6
    relay "$1" "$2" "$3"
    for i in 1 2 3; do
        eval "port=\$$i"
        run_node etcd "$i" etcd --name "n$i" --data-dir "$work/etcd/$i" --logger zap --log-outputs stderr \
            --initial-cluster "n1=http://127.0.0.1:$1,n2=http://127.0.0.1:$2,n3=http://127.0.0.1:$3" \
            --initial-cluster-token "group-$$" \
            --listen-peer-urls "http://127.0.0.1:$port" --initial-advertise-peer-urls "http://127.0.0.1:$port" \
            --listen-client-urls "http://$(place etcd "$i")" --advertise-client-urls "http://$(place etcd "$i")"
    done
}

# ---- Turns -----------------------------------------------------------------------------------------------------------------

# counts SYSTEM -- ticks of processor time of its nodes; flushes of the disk, and bytes written.
counts()
{
    ticks=0
    for pid in $(pids "$1"); do
        [ -r "/proc/$pid/stat" ] || fail "a node of $1 has ended"
        ticks=$((ticks + $(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$pid/stat")))
    done
    echo "$ticks $(disk_counts "$work")"
}

# take_turn SYSTEM WRITERS -- in a pair all systems get the same records; a line of figures goes to $work/turns.SYSTEM.WRITERS.
take_turn()
{
    await 60 find_leader "$1" || fail "no node of $1 leads"
    before=$(counts "$1") || exit 1
    said=$(setsid $(inside "$leader") "$load" put "$1" "$(place "$1" "$leader")" "$2" "$seconds" \
        $((pair * 1000 + $2)) 2>"$work/load.err") ||
        fail "puts to $1"
    sleep 0.3
    sync -f "$work" # so that what is left to do counts here
    eval "total_$1=\$((total_$1 + ${said%% *}))"
    after=$(counts "$1") || exit 1
    echo "$said $before $after" | awk -v tick="$(getconf CLK_TCK)" '{
        print $1 / $2, $3, $4, $5, (($10 - $7) / tick + $6) / $1 * 1e6, ($12 - $9) / $1, ($11 - $8) / $1, $1 }' |
        tee "$work/turn" >>"$work/turns.$1.$2"
    [ -z "$json" ] || awk -v of="$1" -v writers="$2" -v turn="$pair" '{
        printf "{\"system\": \"%s\", \"writers\": %d, \"turn\": %d, \"commits\": %d, \"commits_per_s\": %.1f, ", of, writers, turn, $8, $1
        printf "\"latency_us_median\": %.1f, \"latency_us_p99\": %.1f, \"latency_us_max\": %.1f, ", $2, $3, $4
        printf "\"cpu_us_per_commit\": %.1f, \"bytes_per_commit\": %.0f, \"flushes_per_commit\": %.3f}\n", $5, $6, $7 }' "$work/turn"
}

# column SYSTEM WRITERS NUMBER -- the median of its turns.
column()
{
    awk -v n="$3" '{ print $n }' "$work/turns.$1.$2" >"$work/column"
    quantile "$work/column" 0.5
}

# ratios SYSTEM WRITERS -- commits a second of libxac over its own, turn by turn: the median, the least, the most.
ratios()
{
    [ -s "$work/turns.xac.$2" ] || return 0
    paste -d' ' "$work/turns.xac.$2" "$work/turns.$1.$2" | awk '{ print $1 / $9 }' >"$work/column"
    echo "$(quantile "$work/column" 0.5) $(quantile "$work/column" 0) $(quantile "$work/column" 1)"
}

# say SYSTEM WRITERS
say()
{
    max=$(sort -g -k4 "$work/turns.$1.$2" | awk 'END { print $4 }')
    echo "$1 $2 $(column "$1" "$2" 1) $(column "$1" "$2" 2) $(column "$1" "$2" 3) $max $(column "$1" "$2" 5)" \
        "$(column "$1" "$2" 6) $(column "$1" "$2" 7) $(ratios "$1" "$2")" |
        awk -v json="$json" -v turns="$pairs" -v seconds="$seconds" -v delay="$delay" '
            !json {
                printf "%-7s %7d %9.0f %8.0f %8.0f %8.0f %6.0f %7.0f %8.2f", $1, $2, $3, $4, $5, $6, $7, $8, $9
                if (NF > 9 && $1 != "xac")
                    printf "  %.2f (%.2f to %.2f)", $10, $11, $12
                printf "\n"
            }
            json {
                printf "{\"system\": \"%s\", \"writers\": %d, \"turns\": %d, \"seconds\": %d, \"delay_ms\": %s, ", $1, $2, turns, seconds, delay
                printf "\"commits_per_s\": %.1f, \"latency_us_median\": %.1f, \"latency_us_p99\": %.1f, \"latency_us_max\": %.1f, ", $3, $4, $5, $6
                printf "\"cpu_us_per_commit\": %.1f, \"bytes_per_commit\": %.0f, \"flushes_per_commit\": %.3f", $7, $8, $9
                if (NF > 9)
                    printf ", \"xac_over_this\": %.3f, \"xac_over_this_least\": %.3f, \"xac_over_this_most\": %.3f", $10, $11, $12
                printf "}\n"
            }'
}

# must_have_all SYSTEM -- as many records as were acknowledged.
must_have_all()
{
    await 60 find_leader "$1" || fail "no node of $1 leads"
    n=$($(inside "$leader") "$load" count "$1" "$(place "$1" "$leader")") || fail "$1 does not count"
    eval "total=\$total_$1"
    [ "$n" = "$total" ] || fail "$1 has $n records, and has acknowledged $total"
}

# ---- All of it -------------------------------------------------------------------------------------------------------------

why=$(why_not xac)
[ -z "$why" ] || skip "$why"
for system in $(echo "$systems" | tr , ' '); do
    why=$(why_not "$system")
    if [ -z "$why" ]; then
        there="${there:-} $system"
    else
        echo "skipped: $system: $why"
        left_out=1
    fi
done
[ -n "${there:-}" ] || exit 77
remove_stale
trap clean EXIT
trap 'exit 1' INT TERM HUP
[ "$delay" = 0 ] || make_namespaces
work=$(mktemp -d "$dir/group.$$.XXXXXX") || exit 1
work=$(cd "$work" && pwd)
set -- $("$load" ports 12)
for system in $there; do
    case $system in
    xac) start_xac "$1" "$2" "$3" ;;
    dqlite) start_dqlite "$4" "$5" "$6" ;;
    etcd) start_etcd "$7" "$8" "$9" "${10}" "${11}" "${12}" ;;
    esac
    await 60 find_leader "$system" || fail "no node of $system leads"
    eval "total_$system=0"
done

pair=1
while [ "$pair" -le "$pairs" ]; do
    for n in $(echo "$writers" | tr , ' '); do
        for system in $there; do
            take_turn "$system" "$n"
        done
    done
    there=$(echo "$there" | awk '{ first = $1; $1 = ""; print $0, first }')
    pair=$((pair + 1))
done
for system in $there; do
    must_have_all "$system"
done
[ -n "$json" ] || echo "system  writers commits/s   median      99%   max us cpu us   bytes  flushes  xac over this; a commit"
for n in $(echo "$writers" | tr , ' '); do
    for system in xac dqlite etcd; do
        [ ! -s "$work/turns.$system.$n" ] || say "$system" "$n"
    done
done
stop_rc=0
stop $pids_xac
pids_xac=''
[ "$stop_rc" = 0 ] || fail "xraftd has ended with $stop_rc"
[ -z "$left_out" ] || exit 77
