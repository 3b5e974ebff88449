#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_install.sh BUILD-DIR -- what a user gets from `make install`.
#
# GOAL    the program in README.md compiles with nothing but pkg-config --cflags --libs
#         libxac, and with find_package(libxac) of CMake, in C and in C++, with the shared and the static library, and
#         runs; each document that headers and manual pages name is there, and a unit of systemd for
#         each tool that has one; and
#         `make uninstall` takes away all that `make install` brought.  Another prefix than that of
#         configure is refused in words.
# METHOD  install under a temporary DESTDIR, seen through PKG_CONFIG_SYSROOT_DIR.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cc=${CC:-gcc}
cxx=${CXX:-g++}

fail()
{
    echo "check_install: $*"
    exit 1
}

# expect PROGRAM LINE -- run it in the same directory as the programs before.
expect()
{
    printed=$(cd "$tmp/run" && "$1") || fail "$1: exit code $?"
    [ "$printed" = "$2" ] || fail "$1: printed '$printed', not '$2'"
    echo "$(basename "$1"): $printed"
}

installed_files()
{
    (cd "$tmp/dest" && find . ! -type d | LC_ALL=C sort)
}

# Another directory than that which configure was told is refused, before anything is installed.
for where in prefix libdir; do
    if make -C "$build" -s --no-print-directory install "$where=$tmp/other" >"$tmp/log" 2>&1; then
        fail "make install $where=$tmp/other is not refused"
    fi
    grep -q "this was configured for .*, not for $tmp/other" "$tmp/log" && grep -q DESTDIR "$tmp/log" ||
        { cat "$tmp/log"; fail "make install $where=$tmp/other does not say why it fails"; }
    [ ! -e "$tmp/other" ] || fail "make install $where=$tmp/other has installed something"
done
make -C "$build" -s --no-print-directory install DESTDIR="$tmp/dest" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; fail "make install"; }
pc=$(cd "$tmp/dest" && find "$PWD" -name libxac.pc)
[ -n "$pc" ] || fail "libxac.pc was not installed"
headers=$(installed_files | sed -n 's|.*/include/||; /\.hp*$/p' | grep -v /)
# Those of include/, and that of the check by clang, which no program includes.
public=$(cd "$source_dir/include" && ls ./*.h ./*.hpp ../compiled/xac_pairs.h | sed 's|.*/||' | LC_ALL=C sort)
[ "$headers" = "$public" ] ||
    fail "not exactly the public headers were installed: $headers"

PKG_CONFIG_SYSROOT_DIR=$tmp/dest
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
libdir=$(dirname "$(dirname "$pc")")
[ "$(pkg-config --modversion libxac)" = \
    "$(sed -n 's/^AC_INIT(\[libxac\], \[\(.*\)\], .*, .*/\1/p' "$source_dir/configure.ac")" ] ||
    fail "version of libxac.pc"

# Documents that what is installed names.
docs=$(dirname "$(cd "$tmp/dest" && find "$PWD" -name compatibility.md)")
find "$tmp/dest" -name '*.h' -o -name '*.hpp' -o -name '*.[1-9]' |
    xargs grep -ho 'doc/[a-z-]*\.md' | sort -u >"$tmp/named"
grep -q doc/compiled.md "$tmp/named" || fail "no document is named"
while read -r document; do
    [ -e "$docs/${document#doc/}" ] || fail "$document is named, and not installed"
done <"$tmp/named"

# Units of systemd for the tools that are there, and the programs that they start.
for unit in "$source_dir"/examples/*.service; do
    tool=$(basename "$unit" .service)
    tool=${tool%%[@-]*}
    installed=$docs/examples/$(basename "$unit")
    if [ ! -e "$(dirname "$libdir")/bin/$tool" ]; then
        [ ! -e "$installed" ] || fail "$(basename "$unit") is installed, and $tool is not"
        continue
    fi
    [ -e "$installed" ] || fail "$(basename "$unit") is not installed"
    started=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$installed")
    [ -n "$started" ] && [ -x "$tmp/dest$started" ] || fail "$(basename "$unit") starts '$started'"
done

# The program is the first C block of the README.
sed -n '/^```c$/,/^```$/p' "$source_dir/README.md" | sed '1d;/^```$/,$d' >"$tmp/count.c"
grep -q xbegin "$tmp/count.c" || fail "no program found in README.md"
cp "$tmp/count.c" "$tmp/count.cc"
mkdir "$tmp/run"

$cc -Wall -Wextra -Werror "$tmp/count.c" $(pkg-config --cflags --libs libxac) \
    -o "$tmp/c-program" || fail "C program does not compile"
$cxx -Wall -Wextra -Werror "$tmp/count.cc" $(pkg-config --cflags --libs libxac) \
    -o "$tmp/c++-program" || fail "C++ program does not compile"
LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH
expect "$tmp/c-program" "x[0] is 1"
expect "$tmp/c++-program" "x[0] is 2"

# The programs in the document about C++: the blocks with a main().
awk -v out="$tmp/cpp" '/^```cpp$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print >(out n ".cc") }' \
    "$source_dir/doc/cpp.md"
for n in 1 2; do
    grep -q "int main" "$tmp/cpp$n.cc" || fail "no program $n found in doc/cpp.md"
    $cxx -std=c++17 -Wall -Wextra -Werror "$tmp/cpp$n.cc" $(pkg-config --cflags --libs libxac) \
        -o "$tmp/cpp$n" || fail "program $n of doc/cpp.md does not compile"
done
mkdir "$tmp/run/cpp"
(cd "$tmp/run/cpp" && "$tmp/cpp1") || fail "program 1 of doc/cpp.md: exit code $?"
printed=$(cd "$tmp/run/cpp" && "$tmp/cpp2" word && "$tmp/cpp2" word) || fail "program 2 of doc/cpp.md: exit code $?"
[ "$printed" = "1
2" ] || fail "program 2 of doc/cpp.md: printed '$printed'"
rm -r "$tmp/run/cpp"
echo "doc/cpp.md: 2 programs"

# The tutorial: the program about words, also killed; that in C++; threads.
for lang in c cpp; do
    awk -v lang=$lang -v out="$tmp/tutorial-" '$0 == "```" lang { n++; on = 1; next } /^```$/ { on = 0 }
        on { print >(out n "." lang) }' "$source_dir/doc/tutorial.md"
done
$cc -Wall -Wextra -Werror "$tmp/tutorial-1.c" $(pkg-config --cflags --libs libxac) -o "$tmp/words" &&
    $cc -Wall -Wextra -Werror "$tmp/tutorial-2.c" $(pkg-config --cflags --libs libxac) -pthread -o "$tmp/threads" &&
    $cxx -std=c++17 -Wall -Wextra -Werror "$tmp/tutorial-1.cpp" $(pkg-config --cflags --libs libxac) -o "$tmp/words++" ||
    fail "a program of doc/tutorial.md does not compile"
mkdir "$tmp/run/tutorial"
(
    cd "$tmp/run/tutorial"
    for program in words words++; do
        "$tmp/$program" ant bee ant >/dev/null
        "$tmp/$program" bee cow | LC_ALL=C sort >"$tmp/log"
        printf 'ant 2\nbee 2\ncow 1\n' | cmp - "$tmp/log"
        rm -r words.*
    done
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        "$tmp/words" ant bee >/dev/null 2>&1 &
        sleep 0.0$i
        kill -9 $! || true
        wait $! || true
    done
    "$tmp/words" | LC_ALL=C sort >"$tmp/log"
    ant=$(sed -n 's/^ant //p' "$tmp/log")
    bee=$(sed -n 's/^bee //p' "$tmp/log")
    [ "${ant:-0}" = "${bee:-0}" ]
    [ "$("$tmp/threads")" = 4000 ]
) 2>"$tmp/err" || { cat "$tmp/err" "$tmp/log"; fail "a program of doc/tutorial.md does not do what the text says"; }
rm -r "$tmp/run/tutorial"
echo "doc/tutorial.md: 3 programs"
# Each function that the library exports has a manual page, or a file that says which page it is on.
man3=$tmp/dest$(sed -n 's/^prefix=//p' "$pc")/share/man/man3
pages=0
for name in $(nm -D --defined-only "$libdir/libxac.so" | sed -n 's/^.* T \([a-zA-Z_]*\)@.*/\1/p'); do
    page=$man3/$name.3
    [ -e "$page" ] || fail "no manual page $name(3)"
    other=$(sed -n '1s|^\.so man3/||p' "$page")
    sed -n '/^\.SH NAME$/{n;p;}' "$man3/${other:-$name.3}" | grep -qw -e "$name" ||
        fail "the line NAME of the page of $name(3) does not have it"
    pages=$((pages + 1))
done
[ "$pages" -gt 100 ] || fail "only $pages functions were found"
[ -e "$man3/xac.h.3" ] || fail "no manual page xac.h(3)"
if command -v man >/dev/null; then
    MANPAGER=cat man -M "$(dirname "$man3")" 3 xac_begin_in >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "man"; }
    grep -q 'int xbegin(void);' "$tmp/log" || { cat "$tmp/log"; fail "man shows another page"; }
fi
echo "man: $pages functions"

# The program in the document about language transactions.
if [ -e "$libdir/pkgconfig/libxac-itm.pc" ] && echo 'int x; void f(void) { __transaction_atomic { x++; } }' |
    $cc -fgnu-tm -x c -fsyntax-only - 2>"$tmp/log"; then
    sed -n '/^```c$/,/^```$/p' "$source_dir/doc/language-transactions.md" | sed '1d;/^```$/,$d' >"$tmp/itm.c"
    grep -q __transaction_atomic "$tmp/itm.c" || fail "no program found in doc/language-transactions.md"
    cp "$tmp/itm.c" "$tmp/itm.cc"
    $cc -Wall -Wextra -Werror "$tmp/itm.c" $(pkg-config --cflags --libs libxac-itm) \
        -o "$tmp/itm-program" || fail "program with language transactions does not compile"
    $cxx -Wall -Wextra -Werror "$tmp/itm.cc" $(pkg-config --cflags --libs libxac-itm) \
        -o "$tmp/itm-c++-program" || fail "C++ program with language transactions does not compile"
    mkdir "$tmp/itm"
    printed=$(cd "$tmp/itm" && "$tmp/itm-program" && "$tmp/itm-c++-program") || fail "language transactions: exit code $?"
    [ "$printed" = "x[0] is 1
x[0] is 2" ] || fail "language transactions: printed '$printed'"
    echo "libxac-itm: 2 programs"
else
    echo "libxac-itm: no gcc -fgnu-tm, not tested"
fi

# The program in the document about the map.
sed -n '/^```c$/,/^```$/p' "$source_dir/doc/xactree.md" | sed '1d;/^```$/,$d' >"$tmp/map.c"
grep -q xactree_put "$tmp/map.c" || fail "no program found in doc/xactree.md"
cp "$tmp/map.c" "$tmp/map.cc"
mkdir "$tmp/map"
$cc -Wall -Wextra -Werror "$tmp/map.c" $(pkg-config --cflags --libs libxactree) \
    -o "$tmp/map-program" || fail "program with libxactree does not compile"
$cxx -Wall -Wextra -Werror "$tmp/map.cc" $(pkg-config --cflags --libs libxactree) \
    -o "$tmp/map-c++-program" || fail "C++ program with libxactree does not compile"
for program in map-program map-c++-program; do
    printed=$(cd "$tmp/map" && "$tmp/$program") || fail "libxactree: exit code $?"
    [ "$printed" = "apples: 12
pears: 3" ] || fail "libxactree: $program printed '$printed'"
done
unset LD_LIBRARY_PATH

# gdb finds the script of the library by the path of its file, below a directory of such.
if command -v gdb >/dev/null; then
    scripts=$tmp/dest$(sed -n 's/^prefix=//p' "$pc")/share/gdb/auto-load
    mkdir -p "$scripts$tmp"
    ln -s "$scripts" "$scripts$tmp/dest"
    (cd "$tmp/run" && LD_LIBRARY_PATH=$libdir gdb -nx -q -batch \
        -iex "set debuginfod enabled off" \
        -iex "set auto-load safe-path /" -iex "add-auto-load-scripts-directory $scripts" \
        -ex run "$tmp/c-program") >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "gdb"; }
    grep -q "x\[0\] is 3" "$tmp/log" || { cat "$tmp/log"; fail "gdb stops at a fault"; }
    rm -r "$scripts${tmp:?}" "$tmp/run"
    mkdir "$tmp/run"
    echo "gdb: auto-loads"
else
    echo "gdb: not installed, not tested"
fi

# A project of CMake: the same program, and one whose accesses the compiler announces.
if command -v cmake >/dev/null; then
    mkdir "$tmp/cmake"
    cp "$tmp/count.c" "$tmp/count.cc" "$tmp/cmake"
    sed 's/xbegin();/xbegin(); x[1] += 2;/' "$tmp/count.c" >"$tmp/cmake/noticed.c"
    cat >"$tmp/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(count C CXX)
find_package(libxac 0.2 REQUIRED)
add_executable(cmake-c-program count.c)
add_executable(cmake-c++-program count.cc)
target_link_libraries(cmake-c-program PRIVATE xac::xac)
target_link_libraries(cmake-c++-program PRIVATE xac::xac)
if(TARGET xac::compiled)
    add_executable(cmake-compiled noticed.c)
    xac_compile(cmake-compiled)
endif()
END
    rm -r "$tmp/run"
    mkdir "$tmp/run"
    { cmake -S "$tmp/cmake" -B "$tmp/cmake/build" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_CXX_COMPILER="$cxx" -Dlibxac_DIR="$libdir/cmake/libxac" &&
        cmake --build "$tmp/cmake/build"; } >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "cmake"; }
    LD_LIBRARY_PATH=$libdir
    export LD_LIBRARY_PATH
    expect "$tmp/cmake/build/cmake-c-program" "x[0] is 1"
    expect "$tmp/cmake/build/cmake-c++-program" "x[0] is 2"
    expect "$tmp/cmake/build/cmake-compiled" "x[0] is 3"
    nm "$tmp/cmake/build/cmake-compiled" | grep -q __tsan_write4 || fail "xac_compile() did not use xac-cc"
    unset LD_LIBRARY_PATH
    sed -i 's/libxac 0.2 /libxac 0.99 /' "$tmp/cmake/CMakeLists.txt"
    if cmake -S "$tmp/cmake" -B "$tmp/cmake/other" -Dlibxac_DIR="$libdir/cmake/libxac" >"$tmp/log" 2>&1; then
        fail "cmake finds a version that is not there"
    fi
    rm -r "$tmp/run"
    mkdir "$tmp/run"
else
    echo "cmake: not installed, not tested"
fi

# With no shared library beside it, -lxac is the static one.
mkdir "$tmp/shared"
mv "$libdir"/libxac.so* "$libdir"/libxactree.so* "$tmp/shared"
$cc -Wall -Wextra -Werror "$tmp/count.c" $(pkg-config --cflags --libs --static libxac) \
    -o "$tmp/static-program" || fail "C program does not compile with the static library"
expect "$tmp/static-program" "x[0] is 1"
$cc -Wall -Wextra -Werror "$tmp/map.c" $(pkg-config --cflags --libs --static libxactree) \
    -o "$tmp/static-map" || fail "libxactree: program does not compile with the static library"
(cd "$tmp/map" && "$tmp/static-map" >"$tmp/log") || fail "libxactree: the static program fails"
if command -v cmake >/dev/null; then
    sed -i 's/libxac 0.99 /libxac 0.2 /' "$tmp/cmake/CMakeLists.txt"
    { cmake -S "$tmp/cmake" -B "$tmp/cmake/static" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_CXX_COMPILER="$cxx" -Dlibxac_DIR="$libdir/cmake/libxac" &&
        cmake --build "$tmp/cmake/static" --target cmake-c-program; } >"$tmp/log" 2>&1 ||
        { cat "$tmp/log"; fail "cmake with the static library"; }
    expect "$tmp/cmake/static/cmake-c-program" "x[0] is 2"
fi
mv "$tmp/shared"/* "$libdir"

make -C "$build" -s --no-print-directory uninstall DESTDIR="$tmp/dest" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; fail "make uninstall"; }
[ -z "$(installed_files)" ] || fail "make uninstall left: $(installed_files)"
echo "check_install: 6 programs, 0 problems"
