# SPDX-License-Identifier: MIT
"""errata_list.py -- every row of doc/thesis-errata.md says what shows it.

    errata_list.py ERRATA.md ROW...     (the rows that check_errata.sh has shown)

The last cell of a row, "shown by", has one or more of these, with "; " between them:

    here                        check_errata.sh computes it, or runs the listing
    `folder/file.c:test`        that test, below tests/, fails if the library did what the Thesis prints
    nothing: REASON             and why nothing can
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from check_lib import TEST_NAME, test_problem  # noqa: E402

ROW = re.compile(r"\| ([ELS])(\d+) \|")
CELLS = 5
LEAST = {"E": 27, "L": 14, "S": 10}  # rows: the list gets longer only


def why_wrong(row, cells, is_shown):
    """What is wrong with a row, or ''."""
    if len(cells) != CELLS or not all(cells):
        return f"{len(cells)} cells, or an empty one: where, it says, right is, shown by are wanted"
    marks = cells[-1].split("; ")
    if cells[-1].startswith("nothing: "):
        return "" if len(cells[-1].split()) > 3 and not is_shown else "no reason, or it is shown"
    for mark in marks:
        found = TEST_NAME.fullmatch(mark)
        if mark != "here" and not found:
            return f"neither \"here\", nor a test, nor \"nothing: REASON\": {mark}"
        if found and test_problem(*found.groups()):
            return test_problem(*found.groups())
    if is_shown != ("here" in marks):
        return f"check_errata.sh shows {row}, but it does not say \"here\"" if is_shown else \
            f"it says \"here\", but check_errata.sh does not show {row}"
    return ""


def main():
    """Look at all rows."""
    shown, seen, problems = set(sys.argv[2:]), {"E": 0, "L": 0, "S": 0}, []
    with open(sys.argv[1], encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = ROW.match(line)
            if not found:
                continue
            letter, n = found[1], int(found[2])
            row = letter + found[2]
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            why = why_wrong(row, cells, row in shown)
            seen[letter] += 1
            if n != seen[letter]:
                why = f"row {row} where {letter}{seen[letter]} is wanted"
            if why:
                problems.append(f"{sys.argv[1]}:{number}: {row}: {why}")
            shown.discard(row)
    problems += [f"{row} is shown, and not in the list" for row in sorted(shown)]
    problems += [f"{n} rows {letter}, at least {LEAST[letter]} are wanted"
                 for letter, n in seen.items() if n < LEAST[letter]]
    print(*problems, f"{sum(seen.values())} rows", sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
