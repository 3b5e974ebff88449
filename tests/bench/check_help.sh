#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_help.sh -- the help of every experiment of `xbench list` is its own.
#
# Method: what an experiment always has, and has without options, is read from the table in experiments.c.  Its
# help must begin with what it measures, name these arguments, and name no default that contradicts them; an
# experiment that is another one with fixed arguments must also run with the defaults that its help names.
set -u
. "$(dirname "$0")/xbench_run.sh"

"$xbench" list >list || fail "list"
names=$(sed -n '/^experiments:/,/^systems:/s/^  \([a-z0-9-][a-z0-9-]*\) .*/\1/p' list)
mkdir helps
for name in $names; do
    "$xbench" "$name" --help >"helps/$name" 2>err || fail "$name --help: exit code $?: $(cat err)"
    [ ! -s err ] || fail "$name --help says on standard error: $(cat err)"
done
# Whatever stands beside it.
"$xbench" kth --slices none --help >help && cmp -s help helps/kth || fail "kth --slices none --help"
python3 - "$top/bench/main/experiments.c" <<'PYTHON' || fail "a help is not as it should be"
import os
import re
import sys

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def table(path):
    """Experiments by name: the text of each field, NULL and missing ones not."""
    source = open(path).read()
    source = source[source.index("bench_experiments[] = {"):source.index("{.name = NULL}")]
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    found = {}
    for entry in source.split(".name =")[1:]:
        fields = re.findall(r"\.(\w+) =((?:\s*" + STRING.pattern + r")+)", ".name =" + entry)
        fields = {key: "".join(STRING.findall(text)) for key, text, *_ in fields}
        found[fields["name"]] = fields
    return found


def arguments(text):
    """Options and their values; a flag's is ""."""
    found = {}
    for word in text.split():
        if word.startswith("--"):
            name, found[word[2:]] = word[2:], ""
        else:
            found[name] = word
    return found


def number(text):
    """What a number or list of numbers means; other text as it is."""
    def one(word):
        m = re.fullmatch(r"(\d+)([KMG]?)", word)
        return int(m[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[m[2]] if m else word
    return [one(word) for word in text.split(",")]


def options(text):
    """Lines of options: name and words, of several lines."""
    for m in re.finditer(r"^  --([a-z-]+)\b(.*(?:\n {12,}\S.*)*)", text, re.M):
        yield m[1], re.sub(r"(,)?\n +", r"\1 ", m[2]).replace(", ", ",")


experiments = table(sys.argv[1])
listed = sorted(os.listdir("helps"))
assert listed == sorted(experiments) and len(listed) > 40, (listed, sorted(experiments))
checked = 0
for name, x in experiments.items():
    text = open(f"helps/{name}").read()
    flat = re.sub(r"\n +", "", text).replace(" ", "")
    fixed, own = x.get("fixed", ""), x.get("medium", x.get("full", ""))
    assert text.startswith(f"xbench {name}: {x['what']}\n"), (name, text[:200])
    assert not re.search(r"\b(the same|likewise)\b(?! files)", x["what"]), (name, x["what"])
    for key, words in (("Thesis", x["thesis"]), ("always", fixed), ("withoutoptions", own),
                       ("xbenchrun", x.get("full", "the defaults below")), ("xbenchrun--quick", x["quick"])):
        assert not words or key + words.replace(" ", "") in flat, (name, key, words)
    assert f"\nusage: xbench {name} " in text, name
    if not fixed:
        continue
    has = {**arguments(fixed), **arguments(own)}
    lines = dict(options(text[text.index("\nusage:"):]))
    for option, value in has.items():
        words = lines.pop(option)
        if value == "":
            assert "; always set" in words or "; the default" in words, (name, option, words)
        else:
            default = words[words.index("; default ") + len("; default "):].split()[0]
            assert number(default) == number(value), (name, option, words, value)
        checked += 1
    # No other flag is said to be set.
    for option, words in lines.items():
        assert "always set" not in words and "; the default" not in words, (name, option, words)
assert checked > 100, checked
PYTHON
# The defaults that it names are those that it has, but for --quick.
"$xbench" touch-durable --pages 1 --quiet --json >rows || fail "touch-durable: $(cat rows)"
grep -q -- '^  --rounds N .*; default 30$' helps/touch-durable || fail "touch-durable: $(cat helps/touch-durable)"
grep -q '"n": 30,' rows || fail "touch-durable --pages 1 has no 30 rounds: $(cat rows)"
"$xbench" touch-durable --pages 1 --quick --quiet --json >rows || fail "touch-durable --quick: $(cat rows)"
grep -q '"n": 3,' rows || fail "touch-durable --quick has no 3 rounds: $(cat rows)"
# One without arguments of --medium has those of the full run: its first rows will do.
: >first
"$xbench" frames >first 2>err &
pid=$!
while [ ! -s first ] && kill -0 "$pid" 2>kill; do
    sleep 0.1
done
kill "$pid" 2>kill
wait "$pid" 2>kill
grep -q Mfixes/s first || fail "frames without options: $(cat err)"

# The front end's own.
"$xbench" --help >help || fail "--help"
for word in --quick --medium --perf --out --dir 'Exit code' ' 3 '; do
    grep -qF -- "$word" help || fail "--help does not name $word"
    "$xbench" run --help | grep -qF -- "$word" || fail "run --help does not name $word"
done
echo "check_help: $(echo "$names" | wc -w) experiments, 0 problems"
