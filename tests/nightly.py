#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nightly.py SOURCE-DIR BUILD-DIR HOURS [--only PART,...] [--page FILE] [--runs FILE] -- spend the time given
on what finds defects by trying for long, and print one page.

Each part gets a share of the time, in turn.  Its command runs again and again, each time with
another seed, until its share is over, or three runs have failed; a run that has begun is finished.  Each run
leaves its output in BUILD-DIR/nightly/logs, and a line in BUILD-DIR/nightly/runs.jsonl, or the file given; the page counts this
night and all nights of that file.  A run that fails is a finding: the page says how to repeat it.

Exit code 0 if nothing was found, 1 if something was, 2 after a wrong argument.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

# Of a part: its share of the time, its command for so many seconds (a list of words; NAME=VALUE first), and
# what its output counts: words, and a pattern with the number.
Part = collections.namedtuple("Part", "share command counts")

# Of tests/long.sh: whose short form in scripts/test.sh asks for much less, and whose long one takes minutes.
LONG = ["check_cxx", "check_containers", "check_holes", "check_no_memory", "check_rename_steps", "check_allocs",
        "check_archive", "check_query_steps", "check_rewind", "check_follow_races", "check_ship_network"]

# Under the sanitizers, in a debug build: whose short form there goes to one in many of the steps.
STEPS = ["tests/crash/check_in_place_steps", "tests/crash/check_rename_steps", "tests/crash/check_steps",
         "tests/crash/check_stop", "tests/unit/tools/check_archive", "tests/unit/tools/check_query_steps"]

# After so many findings a part is left: most of the next ones would be the same.
FAILED_MAX = 3


class Night:
    """The directories, and the parts for them."""

    def __init__(self, source, build, runs):
        self.source = source
        self.build = build
        self.dir = build / "nightly"
        self.logs = self.dir / "logs"
        self.runs = runs or self.dir / "runs.jsonl"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.commit = subprocess.run(["git", "-C", str(source), "describe", "--always", "--dirty"], capture_output=True,
                                     text=True, check=False).stdout.strip() or "unknown"

    def mutants(self, seconds):
        names = sorted(p.stem for p in (self.source / "tests/mutants").glob("*.patch"))
        chosen = random.sample(names, min(len(names), max(2, int(seconds / 60))))
        return [f"XAC_MUTANT_DIR={self.dir}/mutants", f"{self.source}/tests/mutants/run.sh", *chosen]

    def engines(self, _seconds):
        program = f"{self.source}/tests/engines.sh"
        lines = subprocess.run([program, "--list"], cwd=self.build, capture_output=True, text=True, check=True).stdout
        return [program, *random.choice(lines.splitlines()).split()]

    def fuzz(self, seconds):
        # The rest is for the build.
        return [f"XAC_BUILD={self.dir}", f"{self.source}/scripts/fuzz.sh", "--json", "--total", str(int(seconds * 0.9))]

    def long(self, _seconds):
        return [f"{self.source}/tests/long.sh", random.choice(LONG)]

    def steps(self, _seconds):
        return [f"XAC_BUILD={self.dir}", "XAC_STEPS_LONG=1", "XAC_STOPS=200", "XAC_TEST_TIMEOUT=7200",
                f"{self.source}/scripts/sanitize.sh", "address", random.choice(STEPS)]

    def parts(self):
        source = self.source
        return {
            "powercut": Part(20, lambda s: [f"XAC_SECONDS={int(min(s, 900))}", "tests/crash/powercut"],
                             {"states after power cuts": r"; (\d+) states after one cut, (\d+) after two, (\d+) after"}),
            "ext4cut": Part(5, lambda s: ["XAC_ROUNDS=20", "tests/crash/ext4cut"],
                            {"power cuts of ext4": r"(\d+) power cuts of ext4"}),
            "check_kill": Part(5, lambda s: ["XAC_ROUNDS=200", "CK_TIMEOUT_MULTIPLIER=30", "tests/crash/check_kill"],
                               {"kills": r"rounds, (\d+) kills"}),
            "stress_iso": Part(15, lambda s: [f"XAC_SECONDS={int(max(1, min(s / 20, 30)))}", "CK_TIMEOUT_MULTIPLIER=30",
                                              "tests/stress/stress_iso"],
                               {"transactions judged": r"processes: (\d+) transactions"}),
            "modes": Part(5, lambda s: [f"srcdir={source}", "XAC_LIVES=6", "python3", "-B",
                                        f"{source}/tests/modes/pairs.py", "--run", "tests/modes/one_mode"],
                          {"rows of options": r"(\d+) rows"}),
            "engines": Part(8, self.engines, {"test programs": r"(\d+) passed"}),
            "standby": Part(5, lambda s: ["XAC_STATES=3000", "CK_TIMEOUT_MULTIPLIER=30", "tests/crash/check_standby_cut"],
                            {"power cuts of standbys": r"(\d+) power cuts of standbys"}),
            "ship": Part(5, lambda s: ["XAC_BREAKS=30", "XAC_KILLS=30", f"top_builddir={self.build}",
                                       "CK_TIMEOUT_MULTIPLIER=30", "tests/unit/tools/check_serve"],
                         {"breaks and kills": r"(?m)^(\d+) (?:breaks|kills)"}),
            "group": Part(8, lambda s: [f"XAC_ROUNDS={int(max(5, min(s / 4, 200)))}", f"top_builddir={self.build}",
                                        "CK_TIMEOUT_MULTIPLIER=30", "tests/group/check_group"],
                          {"rounds": r"(?m)^round \d+:"}),
            "linear": Part(8, lambda s: [f"XAC_ROUNDS={int(max(5, min(s / 5, 1000)))}", f"srcdir={source}",
                                         f"top_builddir={self.build}",
                                         "CK_TIMEOUT_MULTIPLIER=30", "tests/group/check_linear"],
                           {"rounds judged": r"(?m)^(\d+) rounds;", "commits acknowledged": r"rounds; (\d+) acknowledged"}),
            "frames": Part(4, lambda s: ["XAC_FIXES=3000000", "CK_TIMEOUT_MULTIPLIER=30",
                                         "tests/frames/stress_frames"],
                           {"fixes of pages": r"(\d+) fixes"}),
            "fuzz": Part(20, self.fuzz, {"inputs": r'"executions": (\d+)'}),
            "tsan": Part(6, lambda s: [f"XAC_BUILD={self.dir}", f"XAC_SECONDS={int(max(1, min(s / 20, 30)))}",
                                       f"{source}/scripts/sanitize.sh", "thread"],
                         {"test programs": r"PASS:  (\d+)"}),
            "asan": Part(6, lambda s: [f"XAC_BUILD={self.dir}", f"{source}/scripts/sanitize.sh", "address"],
                         {"test programs": r"PASS:  (\d+)"}),
            "long": Part(8, self.long, {"programs in their long form": r"(?m)^== (?!totals)"}),
            "steps": Part(8, self.steps, {"programs with every step": r"PASS:  (\d+)"}),
            "mutants": Part(12, self.mutants, {"mutants tried": r"(?m)^(\d+) mutants, \d+ not caught",
                                               "mutants caught": r"(?m)^\S+ +check_|^\S+ +stress_|^\S+ +(?:powercut|"
                                               r"explore|slow_reader)"}),
        }


def count(pattern, text):
    """The sum of the numbers that the pattern finds; of a pattern without numbers, how often it does."""
    if re.compile(pattern).groups == 0:
        return len(re.findall(pattern, text))
    return sum(sum(int(n) for n in m.groups()) for m in re.finditer(pattern, text))


def run(night, name, part, seconds, seed):
    """One run; its line for the file."""
    words = part.command(seconds)
    log = night.logs / f"{name}-{seed}.log"
    since = time.monotonic()
    command = ["env", f"XAC_SEED={seed}", *words]
    with open(log, "wb") as out:
        child = subprocess.Popen(command, cwd=night.build, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = child.wait(timeout=seconds + 3600)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    text = log.read_text(errors="replace")
    return {"part": name, "seed": seed, "commit": night.commit, "code": code, "seconds": round(time.monotonic() - since, 1),
            "counts": {what: count(pattern, text) for what, pattern in part.counts.items()},
            "command": " ".join(words).replace(str(night.source), "$srcdir").replace(str(night.build), "$PWD"),
            "log": log.name, "at": datetime.datetime.now().isoformat("T", "seconds")}


def spend(night, names, hours, lines, say):
    """All parts in turn; their lines are appended."""
    parts = night.parts()
    shares = sum(parts[n].share for n in names)
    for name in names:
        end = time.monotonic() + hours * 3600 * parts[name].share / shares
        seed = int(time.time())
        failed = 0
        while failed < FAILED_MAX:
            line = run(night, name, parts[name], max(1.0, end - time.monotonic()), seed)
            lines.append(line)
            with open(night.runs, "a") as out:
                out.write(json.dumps(line) + "\n")
            counted = ", ".join(f"{n:,} {what}" for what, n in line["counts"].items())
            result = "skipped" if line["code"] == 77 else "right" if line["code"] == 0 else f"FAILED, see {night.logs}/{line['log']}"
            say(f"{line['at'][11:]} {name}: {counted}, {line['seconds']} s: {result}")
            seed += 1
            failed += line["code"] not in (0, 77)
            # A run is of no use that would take longer than all of the rest.
            if line["code"] == 77 or time.monotonic() + line["seconds"] / 2 >= end:
                break


def table(lines):
    """Rows of the page: part, hours, runs, what was counted, findings."""
    rows = {}
    for line in lines:
        row = rows.setdefault(line["part"], {"seconds": 0.0, "runs": 0, "failed": 0, "skipped": 0,
                                             "counts": collections.Counter()})
        row["seconds"] += line["seconds"]
        row["runs"] += 1
        row["failed"] += line["code"] not in (0, 77)
        row["skipped"] += line["code"] == 77
        row["counts"].update(line["counts"])
    text = ["| part | hours | runs | counted | findings |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        counted = ", ".join(f"{n:,} {what}" for what, n in row["counts"].items())
        runs = f"{row['runs']}" + (f" ({row['skipped']} skipped)" if row["skipped"] else "")
        text.append(f"| {name} | {row['seconds'] / 3600:.2f} | {runs} | {counted} | {row['failed']} |")
    total = sum(r["seconds"] for r in rows.values())
    text.append(f"| all | {total / 3600:.2f} | {sum(r['runs'] for r in rows.values())} | | "
                f"{sum(r['failed'] for r in rows.values())} |")
    return text


def page(night, lines):
    """The page, as text."""
    everything = [json.loads(s) for s in night.runs.read_text().splitlines()] if night.runs.exists() else []
    text = [f"# Long tests of {night.commit}, {datetime.date.today()}", "", "## This night", "", *table(lines)]
    failed = [line for line in lines if line["code"] not in (0, 77)]
    if failed:
        text += ["", "## Findings", ""]
        text += [f"* {line['part']}, exit code {line['code']}: `XAC_SEED={line['seed']} {line['command']}`, "
                 f"output in {night.logs}/{line['log']}" for line in failed]
    if len(everything) > len(lines):
        text += ["", f"## All nights since {everything[0]['at'][:10]}", "", *table(everything)]
    return "\n".join(text) + "\n"


def interrupted(*_):
    """A signal."""
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(prog="nightly.sh",
                                     usage="nightly.sh HOURS [--only PART,...] [--page FILE] [--runs FILE]",
                                     description="Spend HOURS on the long tests, and print one page.")
    parser.add_argument("source", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("hours", type=float, help="hours to spend, for example 0.5")
    parser.add_argument("--only", help="these parts, with commas between them")
    parser.add_argument("--page", type=pathlib.Path, help="write the page there, too")
    parser.add_argument("--runs", type=pathlib.Path, help="append the runs to this file, and count all that are in it")
    args = parser.parse_args()
    night = Night(args.source.resolve(), args.build.resolve(), args.runs)
    names = args.only.split(",") if args.only else list(night.parts())
    unknown = [n for n in names if n not in night.parts()]
    if unknown or not 0 < args.hours < 1000:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(night.parts())}" if unknown
                     else "HOURS is a number above 0")
    for number in (signal.SIGINT, signal.SIGTERM):  # also in the background, where a shell has SIGINT ignored
        signal.signal(number, interrupted)
    lines = []
    try:
        spend(night, names, args.hours, lines, lambda words: print(words, flush=True))
    except KeyboardInterrupt:
        print("interrupted: the page counts the runs that have ended", file=sys.stderr)
    text = page(night, lines)
    if args.page:
        args.page.write_text(text)
    print(text, end="")
    return 1 if any(line["code"] not in (0, 77) for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
