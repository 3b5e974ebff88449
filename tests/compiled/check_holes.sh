#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_holes.sh -- each kind of access is noticed, or xac-cc warns of it (holes.c).
#
# METHOD  with gcc and clang, from -O0 to -O3 and with -march=native; the same binary under each
#         engine.  HOLES='gcc clang' and LEVELS choose; XAC_LONG=1: all levels.
set -eu

. "${srcdir:-.}/tests/compiled/installed.sh"
cases=0
failures=0
levels="-O0 -O2 -O3,-march=native"
[ "${XAC_LONG:-0}" != 1 ] ||
    levels="-O0 -O1 -O2 -O3 -Os -O0,-march=native -O1,-march=native -O2,-march=native -O3,-march=native"

# table SOURCE NAME -- of the kinds of a source.
table()
{
    # Each kind's name on the line of its macro.
    sed '/^[A-Z]*($/{N;s/\n *//;}' "$1" >"$tmp/kinds"
    [ "$(grep -c '^\(STORE\|LOAD\)(' "$1")" -eq "$(grep -c '^\(STORE\|LOAD\)([a-z0-9_]*,' "$tmp/kinds")" ] ||
        fail "$1: there are kinds that are not tested" >&2
    echo "#include \"holes.h\""
    sed -n 's/^STORE(\([a-z0-9_]*\),.*/void stores_\1(unsigned char *, const unsigned char *, int);/p
        s/^LOAD(\([a-z0-9_]*\),.*/long loads_\1(const unsigned char *, int);/p' "$tmp/kinds"
    echo "void stores_by_exempt_code(unsigned char *, const unsigned char *, int);"
    echo "const struct kind $2[] = {"
    sed -n 's/^STORE(\([a-z0-9_]*\),.*/{"stores_\1", stores_\1, 0},/p
        s/^LOAD(\([a-z0-9_]*\),.*/{"loads_\1", 0, loads_\1},/p' "$tmp/kinds"
    [ "$2" != holes_c ] || echo '{"stores_by_exempt_code", stores_by_exempt_code, 0},'
    echo "{0, 0, 0}};"
}

tests=$srcdir/tests/compiled
table "$tests/holes.c" holes_c >"$tmp/table_c.c"
table "$tests/holes_library.c" holes_library >"$tmp/table_library.c"
table "$tests/holes_cc.cc" holes_cc >"$tmp/table_cc.c"

for compiler in ${HOLES:-gcc clang}; do
    case $compiler in
    gcc) plus=g++ ;;
    *) plus=clang++ ;;
    esac
    command -v "$compiler" >/dev/null && command -v "$plus" >/dev/null || {
        echo "$compiler is not installed, not tested"
        continue
    }
    for level in ${LEVELS:-$levels}; do
        options=$(echo "$level" | tr , ' ')
        dir=$tmp/$compiler$level
        mkdir "$dir"
        # shellcheck disable=SC2086
        {
            "$cc" "--with=$compiler" $options -Wno-psabi -I"$tests" -c "$tests/holes.c" -o "$dir/holes.o" &&
                "$cc" "--with=$compiler" $options -I"$tests" -c "$tests/holes_library.c" \
                    -o "$dir/holes_library.o" &&
                "$cxx" "--with=$plus" $options -I"$tests" -c "$tests/holes_cc.cc" -o "$dir/holes_cc.o"
        } 2>"$dir/warnings" || { cat "$dir/warnings"; fail "$compiler $level: does not compile"; }
        "$cc" "--with=$compiler" -I"$tests" "$tmp"/table_*.c "$dir"/holes*.o \
            -o "$dir/holes" -latomic -lstdc++ -lm ||
            fail "$compiler $level: does not link"
        warned=$(sed -n 's/.*: warning: in \([a-z0-9_]*\)().*/\1/p' "$dir/warnings" | sort -u)
        for engine in uffd sigsegv; do
            cases=$((cases + 1))
            # shellcheck disable=SC2086
            (cd "$dir" && rm -rf db input.db && XAC_ENGINE=$engine XAC_FRAMES= \
                timeout 100 ./holes $warned) >"$dir/output" 2>&1 || {
                echo "$compiler $level, $engine: exit code $?"
                cat "$dir/output"
                failures=$((failures + 1))
            }
        done
        echo "$compiler $level: warned of:" $warned
    done
done
echo "$(((cases - failures) * 100 / cases))%: Checks: $cases, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
