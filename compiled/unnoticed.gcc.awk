# SPDX-License-Identifier: MIT
#
# unnoticed.gcc.awk -- stores that gcc has made no hook for, from -fdump-tree-optimized-lineno.
#
# A statement is there after its place in the source: "[file.c:7:5] *p_2(D) = f (3);".

function warn(what)
{
    if (place == "")
        place = source
    print place ": warning: in " name "(): " what
}

/^;; Function / {
    name = $3
    place = ""
    is_hooked = has_warned = 0
    is_exempt = 0
    next
}

/^__attribute__.*no_sanitize/ { is_exempt = 1; next }

{
    line = $0
    found = ""
    while (match(line, /^ *\[[^]]*:[0-9]+:[0-9]+( discrim [0-9]+)?\] */)) {
        if (found == "") {
            found = substr(line, RSTART, RLENGTH)
            gsub(/^ *\[|\] *$/, "", found)
            sub(/ discrim.*/, "", found)
        }
        line = substr(line, RLENGTH + 1)
    }
    gsub(/\[[^]]*:[0-9]+:[0-9]+( discrim [0-9]+)?\] */, "", line)
    sub(/^ +/, "", line)
    place = found
}

# Where a store goes, unless that is a variable of the function or of the program.
{ target = line; sub(/ = .*/, "", target); at_pointer = target ~ /^(\*|MEM|TARGET_MEM_REF|[^ ]*->|\(\*)/ && target !~ /&/ }

line ~ / = [^"]* \(.*\);/ && line !~ / = \(/ && at_pointer && line !~ / = __(builtin___tsan|complex__)/ &&
line ~ / = ([A-Za-z_.][A-Za-z0-9_.:]*(\([A-Z]*\))?|OBJ_TYPE_REF\(.*\)|\*?_[0-9]+) \(/ {
    warn("a structure that a function returns is stored where a pointer leads; assign it to a variable first")
}

line ~ /^__asm__/ && line !~ /^__asm__( __volatile__)?( goto)?\(""/ &&
line ~ /"memory"|"[=+&]*m"|"=[^"]*m[^"]*"/ {
    warn("a store by the assembler")
}

line ~ /__builtin_ia32_[a-z0-9_]*(store|mov_?nt|maskmov|scatter|xsave|fxsave|stmxcsr)/ ||
line ~ /\.(MASK_STORE|MASK_SCATTER_STORE|SCATTER_STORE|STORE_LANES|MASK_STORE_LANES|LEN_STORE)/ {
    warn("a store by an instruction of its own")
}

line ~ /__builtin_(mem(cpy|move|set)|mempcpy|bzero|st[pr]n?cpy|strn?cat|v?sn?printf)(_chk)? \(/ ||
line ~ /__builtin___[a-z]+_chk \(/ {
    warn("a function of the C library that the compiler knows")
}

is_exempt && at_pointer && !has_warned {
    warn("the function is exempt from being noticed: no_sanitize")
    has_warned = 1
}
