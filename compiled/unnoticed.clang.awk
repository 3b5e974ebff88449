# SPDX-License-Identifier: MIT
#
# unnoticed.clang.awk -- stores that clang has made no hook for, from -S -emit-llvm -g1.

function warn(what, place)
{
    place = source
    if (match($0, /!dbg ![0-9]+/))
        place = "!" substr($0, RSTART + 6, RLENGTH - 6)
    n_warned++
    warned[n_warned] = ": warning: in " name "(): " what
    at[n_warned] = place
}

# Bits of a type that has hooks; 0 of others.
function bits_of(type, n)
{
    if (type ~ /\*$/ || type == "ptr" || type == "double")
        return 64
    if (type == "float")
        return 32
    if (type == "half" || type == "bfloat")
        return 16
    if (type == "fp128")
        return 128
    if (type ~ /^i[0-9]+$/) {
        n = substr(type, 2) + 0
        return n < 8 ? 8 : n
    }
    if (type ~ /^<[0-9]+ x .*>$/) {
        n = substr(type, 2) + 0
        sub(/^<[0-9]+ x /, "", type)
        return n * bits_of(substr(type, 1, length(type) - 1))
    }
    return 0
}

function has_hook(type, n)
{
    n = bits_of(type)
    return n == 8 || n == 16 || n == 32 || n == 64 || n == 128
}

# The type that a text begins with.
function type_at(text, n)
{
    if (text ~ /^[<{\[]/) {
        match(text, /[>}\]]+\**/)
        return substr(text, 1, RSTART + RLENGTH - 1)
    }
    match(text, /^[^ ,]+/)
    return substr(text, 1, RLENGTH)
}

/^define / {
    match($0, /@("[^"]*"|[^(]*)\(/)
    name = substr($0, RSTART + 1, RLENGTH - 2)
    group = ""
    if (match($0, /\) .*#[0-9]+/)) {
        group = substr($0, RSTART, RLENGTH)
        sub(/.*#/, "", group)
    }
    split("", is_local)
    next
}

/^}/ { name = ""; next }

/^attributes #[0-9]+ = / {
    group = substr($2, 2)
    hooked[group] = $0 ~ /[ "]sanitize_thread[ "]/
    next
}

# Lines of the source: !12 = !DILocation(line: 7, ...
/^![0-9]+ = .*DILocation\(line: / {
    match($0, /line: [0-9]+/)
    line_of[$1] = substr($0, RSTART + 6, RLENGTH - 6)
    next
}

name == "" || name ~ /^tsan\./ { next }

/ = alloca / { is_local[$1] = 1; next }

/ = (bitcast|getelementptr) / {
    for (i = 3; i <= NF; i++) {
        word = $i
        sub(/,$/, "", word)
        if (word in is_local)
            is_local[$1] = 1
    }
    next
}

/^ *store / {
    text = $0
    sub(/^ *store (volatile |atomic )*/, "", text)
    gsub(/%"[^"]*"/, "%name", text) # of C++: with spaces, and brackets of any kind
    type = type_at(text)
    pointer = $0
    sub(/, align .*/, "", pointer)
    sub(/.* /, "", pointer)
    if (pointer in is_local || pointer ~ /^@/)
        next
    if (!has_hook(type))
        warn("a store of the type " type ", for which there is no hook")
    else if (!(name in exempt_of)) {
        exempt_of[name] = group
        n_stores++
    }
    next
}

/ asm / && $0 !~ / asm (sideeffect )?(alignstack )?""/ && /~\{memory\}|"=\*|=\*m|,=\*/ {
    warn("a store by the assembler")
}

/@llvm\.masked\.(store|scatter|compressstore)|@llvm\.x86\.[a-z0-9.]*(store|movnt|maskmov|scatter|xsave|fxsave|stmxcsr)/ {
    warn("a store by an instruction of its own")
}

/ call .*@llvm\.mem(cpy|move|set)/ {
    warn("a copy that the compiler makes itself")
}

END {
    for (i = 1; i <= n_warned; i++) {
        place = at[i]
        if (place in line_of)
            place = source ":" line_of[place]
        else
            place = source
        print place warned[i]
    }
    for (function_name in exempt_of)
        if (!hooked[exempt_of[function_name]])
            print source ": warning: in " function_name "(): the function is exempt from being noticed: no_sanitize"
}
