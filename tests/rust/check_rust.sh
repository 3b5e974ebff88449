#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_rust.sh BUILD-DIR -- the crates of rust/ with the library that was built.
#
# GOAL    cargo test passes: what the crates promise, a program that does not compile for each rule,
#         and kills; the constants of the bindings are those of C; the example prints its sums.
# METHOD  a libxac.pc that names the build directory; a C program that prints what
#         xac-sys/tests/abi.rs prints.  The exit code is 0 passed, 77 skipped: without cargo, or
#         if it is too old, or if the few crates can be had neither from the network nor from its store.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-${top_builddir:-.}}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

skip()
{
    echo "check_rust: skipped, $*"
    exit 77
}

fail()
{
    echo "check_rust: $*"
    exit 1
}

command -v cargo >/dev/null || skip "no cargo"
[ -e "$build/.libs/libxac.so" ] || skip "there is no shared library"
least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$source_dir/rust/Cargo.toml")
version=$(cargo --version | sed 's/^cargo \([0-9.]*\).*/\1/')
[ "$(printf '%s\n%s\n' "$least" "$version" | sort -V | head -n 1)" = "$least" ] ||
    skip "cargo $version is older than $least"

mkdir "$tmp/pc"
cat >"$tmp/pc/libxac.pc" <<EOP
Name: libxac
Description: the library in its build directory
Version: $(sed -n 's/^AC_INIT(\[libxac\], \[\(.*\)\], .*, .*/\1/p' "$source_dir/configure.ac")
Libs: -L$build/.libs -lxac
EOP
PKG_CONFIG_PATH=$tmp/pc
LD_LIBRARY_PATH=$build/.libs
CARGO_TARGET_DIR=$build/rust
export PKG_CONFIG_PATH LD_LIBRARY_PATH CARGO_TARGET_DIR
unset XAC_CHECKING
cd "$source_dir/rust"
cargo fetch --locked >"$tmp/log" 2>&1 || { cat "$tmp/log"; skip "the crates cannot be had"; }

# What C says of the names in the bindings.
{
    printf '#include <stddef.h>\n#include <stdio.h>\n#include <xac_env.h>\nint main(void)\n{\n'
    sed -n 's/^    \(XAC_[A-Z_]*\): c_int = .*/printf("\1 %d\\n", (int)\1);/p' xac-sys/src/lib.rs
    printf 'printf("xac_options %%zu\\n", sizeof(struct xac_options));\n'
    printf 'printf("log_directory %%zu\\n", offsetof(struct xac_options, log_directory));\n'
    printf 'printf("value %%zu\\n", offsetof(struct xac_options, value));\n'
    printf 'printf("xac_change %%zu\\n", sizeof(struct xac_change));\n'
    printf 'printf("xac_token %%zu %%d\\n", sizeof(struct xac_token), XAC_TOKEN_TEXT);\n'
    for state in 'XAC_AT_COMMIT(5)' 'XAC_AT_TIME(5)' 'XAC_HISTORY_COMMITS(5)' 'XAC_HISTORY_BYTES(5)'; do
        printf 'printf("state %%llu\\n", (unsigned long long)%s);\n' "$state"
    done
    printf 'printf("xac_party %%zu\\n", sizeof(struct xac_party));\n'
    printf 'printf("failed_ns %%zu\\n", offsetof(struct xac_party, failed_ns));\n}\n'
} >"$tmp/facts.c"
${CC:-gcc} -w -I"$source_dir/include" "$tmp/facts.c" -o "$tmp/facts" || fail "the facts of C"
"$tmp/facts" >"$tmp/facts.txt"
XAC_C_FACTS=$tmp/facts.txt
export XAC_C_FACTS

rc=0
cargo test --offline --locked --workspace --no-fail-fast >"$tmp/log" 2>&1 || rc=$?
cat "$tmp/log"
passed=$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$tmp/log" | awk '{ n += $1 } END { print n + 0 }')
failed=$(sed -n 's/^test result: .* \([0-9]*\) failed; .*/\1/p' "$tmp/log" | awk '{ n += $1 } END { print n + 0 }')
refused=$(grep -c '^test .* - compile fail \.\.\. ok$' "$tmp/log") || true
[ "$rc" = 0 ] || [ "${failed:-0}" != 0 ] || fail "cargo test does not run"

# The example, three times in a directory.
expect()
{
    want=$1
    shift
    printed=$(cargo run --offline --locked -q --example bank -- "$tmp/bank" "$@" 2>&1) || true
    [ "$printed" = "$want" ] || fail "bank $*: printed '$printed', not '$want'"
    passed=$((passed + 1))
}
mkdir "$tmp/bank"
expect "sum 100000, 0 transfers"
expect "sum 100000, 1 transfers" 1 2 300
expect "there is only 700" 1 3 701
expect "sum 100000, 1 transfers"

if cargo fmt --version >/dev/null 2>&1; then
    cargo fmt --check >"$tmp/log" || { cat "$tmp/log"; fail "cargo fmt would change something"; }
fi
echo "check_rust: $refused programs do not compile, as they should not"
# The summary line of a Check program, for scripts/count_tests.
all=$((passed + failed))
echo "$((passed * 100 / all))%: Checks: $all, Failures: $failed, Errors: 0"
exit $rc
