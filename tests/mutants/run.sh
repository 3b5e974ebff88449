#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh [-a] [MUTANT...] -- deliberate bugs, one at a time, and which test catches each.
#
# A mutant is a patch of the library in this directory; its first line says what it breaks.
# Those named crash-* break durability and are for the crash tests, pool-* page frames, outofcore-*
# files larger than memory, files-* files that come and go, error-* what is told of a want of room,
# envs-* several environments in one process, increment-* increments of backups, follow-* followers of the
# log, ship-* what a standby is sent, rewind-* an old source that becomes a standby, group-* members of a group,
# net-* how it connects, query-* queries there, archive-* archives, reads-* tokens and what is newest, map-* libxactree,
# linear-* the order that queries at all nodes see, team-* helper threads,
# turn-* the turn, refresh-* pages that stay, in-place-* pages updated in place, reader-* queries that are
# cut off, node-* nodes of one (with libraft), ahead-* what a majority has before the leader's disk does,
# raftd-* entries of Raft's log, line-* connections of nodes, behind-* nodes far behind, bound-* what bounds their memory, room-* full disks, member-* nodes that come and go, snapshot-* states that are
# held, history-* states of the past, save-* savepoints, the others isolation.
# A second line "# script: NAME" tells tests/crash/powercut what to play, to be quicker.
# The tree is copied, configured and built once; for each mutant what has changed is built
# again and its tests are run until one fails or hangs, with -a all of them.  The last
# column is what the first test that failed said.  A test that fails twice without any mutant is
# not used.  Exit code 1 if a mutant survives, a patch does not apply, or a test was not used.
#
#   XAC_MUTANT_DIR=dir  use and keep this build directory
#   XAC_TESTS=text      run these tests, instead of those that are to catch it
#   XAC_SECONDS=n       of tests/stress/stress_iso per policy and mode (1 otherwise)
#   XAC_CRASH_SECONDS=n of tests/crash/powercut (150 otherwise)
#   XAC_FIXES=n         of tests/frames/stress_frames (200,000 otherwise)
iso_tests="tests/unit/txn/check_ctree tests/iso/explore tests/api/isolation/check_iso tests/stress/stress_iso
    tests/stress/check_retries tests/crash/check_stop tests/api/isolation/check_threads
    tests/api/engine/check_engine"
crash_tests="tests/unit/view/check_view_open tests/unit/check_synced
    tests/unit/recovery/check_recover_crash tests/unit/recovery/check_until
    tests/crash/powercut tests/unit/log/check_master
    tests/unit/checkpoint/check_checkpoint tests/unit/checkpoint/check_checkpoint_sums
    tests/unit/log/check_log tests/crash/check_faults"
pool_tests="tests/frames/check_frames tests/frames/check_races
    tests/frames/stress_frames"
outofcore_tests="tests/api/engine/check_outofcore"
in_place_tests="tests/crash/check_in_place_steps tests/api/isolation/check_in_place
    tests/api/isolation/check_in_place_comers"
save_tests="tests/api/isolation/check_savepoint tests/api/isolation/check_savepoint_model
    tests/api/engine/check_touch tests/api/basics/check_more"
error_tests="tests/surroundings/check_errors"
envs_tests="tests/api/basics/check_envs"
increment_tests="tests/api/durable/check_increment tests/unit/backup/check_restore"
files_tests="tests/api/durable/check_forward tests/surroundings/check_rename"
follow_tests="tests/unit/ship/check_follow tests/unit/ship/check_follow_races
    tests/unit/ship/check_slots tests/unit/ship/check_lineage"
group_tests="tests/unit/group/check_group tests/unit/group/check_member tests/crash/check_member_cut"
ship_tests="tests/unit/log/check_received tests/unit/ship/check_wire tests/unit/ship/check_connection
    tests/unit/ship/check_standby tests/unit/ship/check_promote tests/crash/check_standby_cut tests/unit/tools/check_ship"
rewind_tests="tests/unit/ship/check_rewind tests/crash/check_rewind_cut tests/unit/ship/check_connection
    tests/unit/tools/check_ship"
net_tests="tests/unit/tools/check_ship_proof tests/unit/tools/check_serve"
archive_tests="tests/unit/tools/check_archive"
node_tests="tests/group/check_xraftd tests/group/check_group"
ahead_tests="tests/unit/log/check_log tests/unit/tools/check_raftd_kept tests/unit/tools/check_raftd_entry
    tests/unit/group/check_group tests/unit/group/check_member tests/group/check_group_ahead"
raftd_tests="tests/unit/tools/check_raftd_entry"
line_tests="tests/unit/tools/check_raftd_message tests/unit/tools/check_raftd_net tests/group/check_group_net"
query_tests="tests/unit/tools/check_query tests/unit/tools/check_query_steps"
reads_tests="tests/api/durable/check_token tests/unit/group/check_reads tests/unit/tools/check_query_token
    tests/group/check_reads"
linear_tests="tests/group/check_linear"
map_tests="tests/api/heap/check_xactree"
team_tests="tests/api/team/check_team tests/api/team/check_polite tests/api/team/check_team_savepoints
    tests/unit/view/check_view_scan"
timeout_s=180

run_all=
if [ "$1" = -a ]; then
    run_all=1
    shift
fi
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/tests/mutants
XAC_SECONDS=${XAC_SECONDS:-1}
export XAC_SECONDS
XAC_FIXES=${XAC_FIXES:-200000}
export XAC_FIXES
XAC_PROCESSES=${XAC_PROCESSES:-4}
export XAC_PROCESSES

work=$XAC_MUTANT_DIR
if [ -z "$work" ]; then
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' INT TERM
fi
mkdir -p "$work/build" || exit 1

# copy -- the sources as they are, without what has been built among them; newer than what was
# built of a mutant in a directory that is kept.
copy()
{
    rm -rf "$work/src"
    mkdir -p "$work/src"
    if git -C "$top" rev-parse >/dev/null 2>&1; then
        (cd "$top" && git ls-files -z | tar cf - --null -T -) | tar xmf - -C "$work/src"
    else
        (cd "$top" && tar cf - .) | tar xmf - -C "$work/src"
    fi
    [ -x "$work/src/configure" ] || (cd "$work/src" && ./autogen.sh >/dev/null 2>&1)
}

# Tests that fail without any mutant, so that their failure says nothing.
useless=

# tests_of MUTANT -- the tests that are to catch it.
tests_of()
{
    if [ -n "${XAC_TESTS:-}" ]; then
        echo "$XAC_TESTS"
        return
    fi
    case $1 in
    crash-*) echo "$crash_tests" ;;
    pool-*) echo "$pool_tests" ;;
    outofcore-*) echo "$outofcore_tests" ;;
    error-*) echo "$error_tests" ;;
    save-*) echo "$save_tests" ;;
    in-place-*) echo "$in_place_tests" ;;
    envs-*) echo "$envs_tests" ;;
    increment-*) echo "$increment_tests" ;;
    follow-*) echo "$follow_tests" ;;
    archive-*) echo "$archive_tests" ;;
    ship-*) echo "$ship_tests" ;;
    rewind-*) echo "$rewind_tests" ;;
    group-*) echo "$group_tests" ;;
    net-*) echo "$net_tests" ;;
    query-*) echo "$query_tests" ;;
    reads-*) echo "$reads_tests" ;;
    linear-*) echo "$linear_tests" ;;
    node-*) echo "$node_tests" ;;
    ahead-*) echo "$ahead_tests" ;;
    raftd-*) echo "$raftd_tests" ;;
    line-*) echo "$line_tests" ;;
    member-*) echo "tests/unit/tools/check_raftd_members tests/group/check_members" ;;
    behind-*) echo "tests/group/check_group_behind" ;;
    room-*) echo "tests/unit/tools/check_raftd_disk tests/group/check_group_full" ;;
    bound-*) echo "tests/unit/tools/check_raftd_bounds tests/group/check_group_slow" ;;
    files-*) echo "$files_tests" ;;
    map-*) echo "$map_tests" ;;
    team-*) echo "$team_tests" ;;
    refresh-*) echo "tests/api/isolation/check_refresh tests/unit/view/check_twin
        tests/stress/stress_iso" ;;
    history-*) echo "tests/api/isolation/check_past" ;;
    snapshot-*) echo "tests/unit/txn/check_snapshots tests/api/isolation/check_snapshots" ;;
    turn-never-twin*) echo "tests/api/basics/check_calls" ;;
    reader-*) echo "tests/stress/slow_reader tests/api/isolation/check_cutoff" ;;
    turn-*) echo "tests/unit/txn/check_turn tests/api/isolation/check_model
        tests/api/isolation/check_serial $iso_tests" ;;
    *) echo "$iso_tests" ;;
    esac
}

# build TEST... -- ret 0 if the tests could be built, and the tools that some of them run.
build()
{
    case " $* " in
    *" tests/group/"*) set -- xraftd "$@" ;;
    esac
    make -C "$work/build" -j2 xarchive xbackup xrecover xrestore xship "$@" >"$work/make.log" 2>&1
}

# seconds SINCE -- since then.
seconds()
{
    echo $(($(date +%s) - $1))
}

# judge TEST -- run one test; ret 0 if it passes.
judge()
{
    limit_s=$XAC_SECONDS
    [ "$1" != tests/crash/powercut ] || limit_s=${XAC_CRASH_SECONDS:-150}
    (cd "$work/build" && top_builddir=$work/build srcdir=$work/src XAC_FAILURES=1 XAC_SECONDS=$limit_s timeout -k 5 "$timeout_s" "./$1") \
        >"$work/test.log" 2>&1
}

# why -- what the test that has failed says, in one line.
why()
{
    grep -E -m1 '^/.*violated|[a-z_]+\.c:[0-9]+: |:[EF]:|signal|[1-9][0-9]* errors$|^[a-z]+: script' \
        "$work/test.log" | sed "s|[^ ]*/src/||g" | cut -c1-100
}

# try MUTANT -- print its line; ret 0 if it is caught.
try()
{
    patch=$here/$1.patch
    caught=
    said=
    since=$(date +%s)
    tests=$(tests_of "$1")
    unset XAC_SCRIPT
    script=$(sed -n 's/^# script: //p' "$patch")
    [ -z "$script" ] || export XAC_SCRIPT="$script"
    if ! (cd "$work/src" && patch -p1 -F0 -s --dry-run <"$patch" &&
            patch -p1 -F0 -s <"$patch") >"$work/patch.log" 2>&1; then
        printf '%-26s does not apply: %s\n' "$1" "$(head -1 "$work/patch.log")"
        return 1
    fi
    # shellcheck disable=SC2086
    if build $tests; then
        for test in $tests; do
            case " $useless " in *" $test "*) continue ;; esac
            rc=0
            judge "$test" || rc=$?
            [ "$rc" != 0 ] || continue
            caught="$caught ${test##*/}"
            [ "$rc" != 124 ] || said="no failed check: not over after $timeout_s s"
            [ -n "$said" ] || said=$(why)
            [ -n "$run_all" ] || break
        done
    else
        said="does not compile: $(grep -m1 error "$work/make.log")"
    fi
    (cd "$work/src" && patch -p1 -R -s <"$patch")
    printf '%-26s %-32s %4ss  %s\n' "$1" "${caught:- SURVIVED}" "$(seconds "$since")" \
        "$said"
    [ -n "$caught" ]
}

[ $# -gt 0 ] || set -- $(cd "$here" && ls *.patch | sed 's/\.patch$//')
needed=$(for mutant; do tests_of "$mutant" | tr ' ' '\n'; done | sort -u)
echo "copying and building in $work"
copy
# shellcheck disable=SC2086
if ! (cd "$work/build" && ../src/configure -q --enable-debug CFLAGS='-O1 -g') \
        >"$work/configure.log" 2>&1 || ! build $needed; then
    echo "the tree does not build; see $work/make.log" >&2
    trap - EXIT
    exit 1
fi
for test in $needed; do
    judge "$test" || judge "$test" || {
        echo "$test fails twice without any mutant, and is not used:" >&2
        tail -20 "$work/test.log" >&2
        useless="$useless $test"
    }
done
printf '%-26s %-32s %5s  %s\n' mutant 'caught by' time 'what the test said'
n=0
missed=0
for mutant; do
    n=$((n + 1))
    try "$mutant" || missed=$((missed + 1))
done
echo "$n mutants, $missed not caught"
[ -z "$useless" ] || echo "fail without any mutant:$useless"
[ "$missed" = 0 ] && [ -z "$useless" ]
