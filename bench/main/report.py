# SPDX-License-Identifier: MIT
"""report -- a page of the results that `xbench run` has kept.

    xbench report [--out DIR] [--html FILE] [--figures DIR] [--markdown FILE]

Reads DIR/*.jsonl (default results/) and writes DIR/report.html, one file that needs no other:
all tables and figures.  With --figures the figures are files in that DIR, and the page refers
to them.  With --markdown the figures in FILE are made anew, too: they stand, below the command,
between `<!-- results NAME -->` and `<!-- end -->`; what is around them is left alone.  A result
that has no such place gets one at the end of FILE.
"""
import argparse
import html
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_plot  # noqa: E402
import report_thesis  # noqa: E402
from report_spec import SPECS, Spec  # noqa: E402
from report_words import number  # noqa: E402

LONG_TABLE = 24  # rows; a longer one is folded, or cut


class Result:
    """What one experiment measured: head and end of its file, and the measurements."""

    def __init__(self, path):
        self.name = path.stem
        rows = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as e:
                raise SystemExit(f"xbench: {path}:{number}: not JSON: {e}") from e
        if not rows or rows[0].get("record") != "run" or rows[-1].get("record") != "end":
            raise SystemExit(f"xbench: {path}: not a whole result of xbench run")
        self.head, self.end = rows[0], rows[-1]
        self.measurements = rows[1:-1]


def load(folder):
    """Results by name, in the order of `xbench list` (that of thesis items otherwise)."""
    paths = sorted(pathlib.Path(folder).glob("*.jsonl"))
    if not paths:
        raise SystemExit(f"xbench: {folder}: no results; run `xbench run all --quick` first")
    order = list(SPECS)
    paths.sort(key=lambda p: (order.index(p.stem) if p.stem in order else len(order), p.stem))
    return [Result(p) for p in paths]


# ---- Tables --------------------------------------------------------------------------------


def goal_rows(result):
    """A row for each thing that was asked of us and that this result shows."""
    out = []
    for goal in SPECS.get(result.name, Spec()).goals:
        ours = report_thesis.find(result, goal.where, goal.key)
        if ours is not None:
            reached = ours >= goal.value if goal.at_least else ours <= goal.value
            bound = "at least" if goal.at_least else "at most"
            out.append([goal.what, f"{bound} {number(goal.value)}", number(ours),
                        "reached" if reached else "missed"])
    return out


GOAL_HEAD = ["what was asked", "bound", "ours", "verdict"]


def measured_table(result):
    """(head, rows) of the measurements, with the columns of the spec."""
    spec = SPECS.get(result.name, Spec())
    columns = spec.columns
    if not columns:
        keys = []
        for m in result.measurements:
            keys += [k for k, v in m.items()
                     if k not in keys and not isinstance(v, (list, dict)) and k != "experiment"
                     and k != "command"]
        columns = [(k, k.replace("_", " ")) for k in keys]
    columns = [c for c in columns if any(m.get(c[0]) is not None for m in result.measurements)]
    rows = [[number(m.get(key)) if not isinstance(m.get(key), list) else "…"
             for key, _ in columns] for m in result.measurements]
    return [heading for _, heading in columns], rows


def plot_tables(figure, measurements):
    """What a figure would have shown, as (head, rows)."""
    rows = [[name, number(x), number(y)]
            for name, points in report_plot.lines(figure, measurements)
            for x, y in points[:40]]
    return ["line", figure.xlabel or figure.x or "x", figure.ylabel or figure.y], rows


# ---- HTML ----------------------------------------------------------------------------------

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:68rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.9rem;margin-bottom:.2rem} h2{margin-top:3rem;border-bottom:2px solid #1b6ca8}
h3{margin-bottom:.3rem} code,pre{background:#f3f5f7;border-radius:4px;padding:.1em .3em}
pre{padding:.6em 1em;overflow-x:auto}
table{border-collapse:collapse;margin:.6rem 0 1.2rem;font-size:.88rem}
.wide{overflow-x:auto}
th{background:#eef3f8;text-align:left;vertical-align:bottom}
th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr:hover td{background:#f8fafc} .good{color:#1d7a2f} .bad{color:#b3261e}
nav ol{columns:2;column-gap:4rem} nav li{break-inside:avoid} figure{margin:1rem 0;display:inline-block} figure svg{max-width:100%;height:auto}
.facts{color:#555;font-size:.9rem} summary{cursor:pointer;color:#1b6ca8}
.quick{background:#fff6dd;border:1px solid #edae49;border-radius:6px;padding:.4rem .8rem}
"""

NUMERIC = re.compile(r"^[–…]$|^-?[0-9][0-9 .]*( \S+)?$")


def html_table(head, rows, fold=False, numeric=True):
    """A table; folded away if it is long and may be; numbers stand right if they are to be compared."""
    out = ["<div class=wide><table><thead><tr>"]
    out += [f"<th>{html.escape(h)}</th>" for h in head]
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append("<tr>")
        for cell in row:
            kind = " class=n" if numeric and NUMERIC.match(cell) else ""
            if re.search(r"^[0-9.]+ times (faster|less)|^better|^reached", cell):
                kind = " class=good"
            elif re.search(r"^[0-9.]+ times (slower|more)|^worse|^missed", cell):
                kind = " class=bad"
            out.append(f"<td{kind}>{html.escape(cell)}</td>")
        out.append("</tr>")
    out.append("</tbody></table></div>")
    text = "".join(out)
    if fold and len(rows) > LONG_TABLE:
        return f"<details><summary>all {len(rows)} measurements</summary>{text}</details>"
    return text


def write_figures(results, figures):
    """The figures of all experiments as files; ret {(experiment, index): path}."""
    figures.mkdir(parents=True, exist_ok=True)
    files = {}
    for result in results:
        for i, figure in enumerate(SPECS.get(result.name, Spec()).figures):
            drawing = report_plot.svg(figure, result.measurements)
            if drawing:
                path = files[result.name, i] = figures / f"{result.name}-{i + 1}.svg"
                path.write_text('<?xml version="1.0" encoding="utf-8"?>\n' + drawing,
                                encoding="utf-8")
    return files


def html_figures(result, files, base):
    """The figures, or tables where gnuplot is not there; files: those that are files."""
    out = []
    for i, figure in enumerate(SPECS.get(result.name, Spec()).figures):
        if (result.name, i) in files:
            path = os.path.relpath(files[result.name, i], base)
            out.append(f"<figure><img src='{html.escape(path)}' "
                       f"alt='{html.escape(figure.title)}'></figure>")
            continue
        drawing = report_plot.svg(figure, result.measurements)
        if drawing:
            # Names in a drawing must not meet those of another one on the page.
            mark = f"{result.name}{i}_"
            drawing = re.sub(r"(id=['\"]|url\(#|xlink:href=['\"]#)", r"\g<1>" + mark, drawing)
            out.append(f"<figure>{drawing}</figure>")
        elif drawing is None:
            out.append(f"<p>{html.escape(figure.title)}: gnuplot is not there to draw it.</p>")
            out.append(html_table(*plot_tables(figure, result.measurements)))
    return "\n".join(out)


def html_section(result, thesis, files, base):
    """Everything about one experiment."""
    head = result.head
    title = f" <small>Thesis: {html.escape(head['thesis'])}</small>" if head["thesis"] else ""
    out = [f"<h2 id={result.name}>{result.name}{title}</h2>",
           f"<p>{html.escape(head['what'])}.</p>"]
    if result.name in SPECS and SPECS[result.name].words:
        out.append(f"<p>{html.escape(SPECS[result.name].words)}</p>")
    rows = report_thesis.rows(result, thesis)
    if rows:
        out += ["<h3>Beside the Thesis</h3>", html_table(report_thesis.HEAD, rows)]
    out.append(report_thesis.html_spreads(result, thesis))
    rows = goal_rows(result)
    if rows:
        out += ["<h3>Beside what was asked</h3>", html_table(GOAL_HEAD, rows)]
    out += ["<h3>Measured</h3>", html_figures(result, files, base),
            html_table(*measured_table(result), fold=True),
            f"<p class=facts><code>{html.escape(head['command'])}</code>, {head['date']}, "
            f"{number(result.end['seconds'])} s{html_perf(result.end)}</p>"]
    return "\n".join(out)


HARDWARE = {"cycles", "instructions", "cache_misses", "branch_misses"}  # of perf.c


def html_perf(end):
    """What the processor counted over the whole experiment, if it was asked to."""
    perf = end.get("perf")
    if not perf:
        return ""
    return "; " + ", ".join(f"{k.replace('_', ' ')} {number(v)}" for k, v in perf.items())


def html_counters(results):
    """That the processor counted nothing, if it was asked to."""
    perfs = [r.end["perf"] for r in results if r.end.get("perf")]
    if not perfs or any(HARDWARE & perf.keys() for perf in perfs):
        return ""
    return ("<p class=facts>This machine gives no hardware counters to perf_event_open(2): of cycles, instructions "
            "and misses nothing was counted by the processor. Below an experiment stands what the kernel counted; "
            "misses are those that cachegrind simulates (multiversion).</p>")


def page(results, thesis, files, base):
    """The whole page, for the folder `base`."""
    facts = "libxac " + ", ".join(sorted({r.head["library_version"] for r in results}))
    facts += f"; runs of {sum(r.end['seconds'] for r in results) / 60:.0f} minutes in all"
    medium = [r.name for r in results if r.head.get("medium")]
    if medium:
        facts += f", of medium size (--medium): {', '.join(medium)}"
    quick = "" if not any(r.head["quick"] for r in results) else (
        "<p class=quick>Some of these runs were made with --quick: small, and good for "
        "seeing that everything works, not for conclusions.</p>")
    toc = "".join(f"<li><a href='#{r.name}'>{r.name}</a>: {html.escape(r.head['what'])}</li>"
                  for r in results)
    return ("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
            "<meta name=viewport content='width=device-width'>"
            f"<title>libxac: measurements</title><style>{STYLE}</style></head><body>"
            "<h1>libxac: measurements</h1>"
            f"<p class=facts>{html.escape(facts)}</p>"
            "<p>Beside the numbers of J. Sukha, <i>Memory-Mapped Transactions</i> (MIT, 2005). Its machines "
            "(section 4.1 and table 4.1) and ours are twenty years apart: a verdict on a time speaks of "
            "both, and ratios of two systems on one machine say more.</p>"
            + html_table(*report_thesis.machine_table(results, thesis), numeric=False) + html_counters(results)
            + f"{quick}<nav><ol>{toc}</ol></nav>"
            + "\n".join(html_section(r, thesis, files, base) for r in results) + "</body></html>\n")


# ---- Markdown ------------------------------------------------------------------------------


def md_section(result, files, base):
    """What stands between the marks of an experiment."""
    out = [f"`{result.head['command']}`, {result.head['date'][:10]}, "
           f"{number(result.end['seconds'])} s."]
    for i, figure in enumerate(SPECS.get(result.name, Spec()).figures):
        if (result.name, i) in files:
            out.append(f"![{figure.title}]({os.path.relpath(files[result.name, i], base)})")
    return "\n\n".join(out)


def write_markdown(results, path, files):
    """Replace what stands between the marks; a result without marks goes to the end."""
    text = path.read_text(encoding="utf-8")
    for result in results:
        mark = f"<!-- results {result.name} -->"
        if mark not in text:
            text = f"{text.rstrip()}\n\n### {result.name}\n\n{mark}\n<!-- end -->\n"
        begin = text.index(mark) + len(mark)
        end = text.index("<!-- end -->", begin)
        text = text[:begin] + "\n" + md_section(result, files, path.parent) + "\n" + text[end:]
    path.write_text(text, encoding="utf-8")


def main():
    """Command line."""
    p = argparse.ArgumentParser(prog="xbench report", description="Makes a page of results.")
    p.add_argument("--out", default="results", help="where xbench run put them (results)")
    p.add_argument("--html", help="the page (OUT/report.html)")
    p.add_argument("--figures", help="a folder for the figures, as files")
    p.add_argument("--markdown", help="a file whose marked figures are made anew")
    p.add_argument("--thesis", required=True, help="the Thesis' numbers; xbench gives them")
    args = p.parse_args()
    results = load(args.out)
    with open(args.thesis, encoding="utf-8") as f:
        thesis = report_thesis.Thesis(f)
    markdown = args.markdown and pathlib.Path(args.markdown)
    figures = args.figures and pathlib.Path(args.figures)
    if markdown:
        figures = figures or markdown.parent / "figures"
    files = write_figures(results, figures) if figures else {}
    if markdown:
        write_markdown(results, markdown, files)
        print(markdown)
    out = pathlib.Path(args.html or pathlib.Path(args.out) / "report.html")
    out.write_text(page(results, thesis, files, out.parent), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.SubprocessError) as e:
        raise SystemExit(f"xbench: {e}") from e
