# SPDX-License-Identifier: MIT
#
# bench_run.sh -- for tests of benchmarks that run in network namespaces: read by "." behind `name=`, the word before the number in the
# names of what a run makes.  $source_dir, $build; the working directory is empty, and goes at the end.

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# fail WORDS... -- with what the run has said, in the file out.
fail()
{
    echo "$(basename "$0"): $*"
    cat out 2>/dev/null
    exit 1
}

# must_be_clean PID -- nothing is left of that run.
must_be_clean()
{
    if ip netns list 2>/dev/null | grep "x$name-$1-"; then fail "a namespace is left"; fi
    [ -z "$(ls -d "$name".* 2>/dev/null)" ] || fail "files are left"
    if grep -lqs "$work/$name.$1" /dev/shm/xac-*.control; then fail "shared memory is left"; fi
    if grep -lqs "$work/$name.$1" /proc/[0-9]*/cmdline; then fail "a process is left"; fi
}
