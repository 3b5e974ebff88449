# SPDX-License-Identifier: MIT
"""check_lib -- what the style checks have in common: the source files and their lines."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_DIRS = ["include", "compiled", "frames", "itm", "libxac", "python", "recovery", "trees", "swizzle", "bench", "examples", "tests"]
# What is held to the stricter rules: not tests, which break things on purpose, and not
# examples, which keep the Thesis' programs as they are.
PRODUCT_DIRS = ["include", "frames", "itm", "libxac", "recovery", "trees", "swizzle", "bench"]


def c_files(dirs=None, suffixes=(".c", ".h")):
    """Sorted paths of the C files below the given folders."""
    paths = []
    for folder in dirs or C_DIRS:
        for where, _, names in os.walk(ROOT / folder):
            paths += [pathlib.Path(where) / n for n in names]
    return sorted(p for p in paths if p.suffix in suffixes)


def name_of(path):
    """Path as shown in messages."""
    return str(path.relative_to(ROOT))


def tree():
    """Paths of all files of the tree."""
    git = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True, check=False)
    if git.returncode == 0:
        return {p for p in git.stdout.splitlines() if (ROOT / p).exists()}
    return {name_of(p) for p in ROOT.rglob("*") if p.is_file()}


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(text):
    """The text with comments and the insides of literals blanked, line for line."""

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] * 2
        return "\n" * token.count("\n")

    return TOKEN.sub(blank, text)


def comments(text):
    """The text with all but comments blanked, line for line."""
    out, at = [], 0
    for found in TOKEN.finditer(text):
        if found.group(0)[0] != "/":
            continue
        out += ["\n" * text.count("\n", at, found.start()),
                re.sub(r"(?m)^( ?\* ?)", "", found.group(0))]
        at = found.end()
    return "".join(out)


def functions(lines):
    """(first, last) of each function, 0-based line numbers.

    The form that clang-format leaves is relied on: the return type, then the name in
    column 0, and the braces of the body alone in column 0.
    """
    for opening, line in enumerate(lines):
        if line != "{":
            continue
        first = opening
        while first > 0 and not re.match(r"^[A-Za-z_]\w*\(", lines[first]):
            if lines[first - 1].strip() == "":
                break
            first -= 1
        last = opening
        while last < len(lines) - 1 and lines[last] != "}":
            last += 1
        yield first, last


# A test that a document names, relative to tests/.
TEST_NAME = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:c|cpp|sh))(?::([\w-]+))?`")


def test_problem(path, test):
    """Why there is no such test, or ''; test None: the whole file."""
    source = ROOT / "tests" / path
    if not source.exists():
        return f"no file tests/{path}"
    if test and not re.search(rf"\b{re.escape(test)}\b", source.read_text()):
        return f"no test {test} in tests/{path}"
    return ""


def exported_symbols(library):
    """(name, version) of what a shared library defines; version "" where it has none."""
    out = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True,
                         capture_output=True, text=True).stdout
    found = set()
    for line in out.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK") or fields[6] in ("UND", "ABS"):
            continue
        name, _, version = fields[7].partition("@")
        found.add((name, version.lstrip("@")))
    return found


def finish(tool, problems, checked):
    """Print the problems and leave with the right exit code."""
    for problem in problems:
        print(problem)
    print(f"{tool}: {checked}, {len(problems)} problems")
    sys.exit(1 if problems else 0)
