# SPDX-License-Identifier: MIT
"""report_plot -- a Figure (report_spec.py) of measurements, drawn by gnuplot as SVG."""
import re
import shutil
import subprocess

BARS_LINEAR = 30  # bars whose heights differ by less than this factor are drawn from 0 on
OTHERS = "other systems"  # bars of those that do not know what the series is about

COLOURS = ["#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#7b2d8b", "#00798c", "#8d6a4f",
           "#444444"]


def chosen(figure, measurements):
    """The measurements that belong to the figure."""

    def fits(m):
        for key, want in figure.where.items():
            have = m.get(key)
            if not (have in want if isinstance(want, list) else have == want):
                return False
        return m.get(figure.y) is not None and (figure.x == "" or m.get(figure.x) is not None)

    return [m for m in measurements if fits(m)]


def label(figure, m):
    """Name of the line that a measurement belongs to."""
    words = []
    for key in figure.series:
        value = m.get(key)
        if value is True:
            words.append(key)
        elif value is False:
            words.append("no " + key)
        elif value is not None:
            words.append(f"{key} {value}" if isinstance(value, (int, float)) else str(value))
    return ", ".join(words)


def lines(figure, measurements):
    """[(label, [(x, y), ...]), ...] in the order in which they were measured."""
    result = {}
    for m in chosen(figure, measurements):
        x, y = m.get(figure.x, ""), m[figure.y]
        points = result.setdefault(label(figure, m), [])
        if isinstance(y, list):
            points += [p for p in zip(x, y) if None not in p]
        else:
            points.append((x, y))
    if figure.kind == "lines":
        for points in result.values():
            points.sort()
    return list(result.items())


def quoted(text):
    """A string of gnuplot."""
    return "'" + str(text).replace("'", "''") + "'"


def is_logarithmic(figure, data):
    """Whether bars get a logarithmic axis: if it is asked for, and their heights need it."""
    heights = [y for _, points in data for _, y in points if y > 0]
    return figure.logy and heights and max(heights) > BARS_LINEAR * min(heights)


def script_bars(figure, data):
    """Commands for bars: a group for each x, in its middle a bar for each line that has it."""
    xs = []
    for _, points in data:
        xs += [x for x, _ in points if x not in xs]
    have = [dict(points) for _, points in data]
    most = max(sum(x in h for h in have) for x in xs)
    width = 0.8 / most
    heights = [y for h in have for y in h.values() if y > 0]
    low = min(heights) / 2 if is_logarithmic(figure, data) else 0
    tics = ", ".join(f"{quoted(x)} {i}" for i, x in enumerate(xs))
    blocks, plots = [], []
    for i, (name, _) in enumerate(data):
        blocks.append(f"$d{i} << EOD")
        for n, x in enumerate(xs):
            if x in have[i]:
                here = [k for k, h in enumerate(have) if x in h]
                at = n + (here.index(i) - (len(here) - 1) / 2) * width
                blocks.append(f"{at:.4f} {have[i][x]} {width * 0.92:.4f}")
        blocks.append("EOD")
        title = "notitle" if len(data) == 1 and not name else "title " + quoted(name or OTHERS)
        plots.append(f"$d{i} using 1:2:3 with boxes {title} linecolor rgb '{COLOURS[i % 8]}'")
    return blocks + ["set style fill solid 0.9 noborder",
                     f"set xtics rotate by -30 noenhanced ({tics})",
                     f"set xrange [-0.6:{len(xs) - 0.4}]", f"set yrange [{low}:*]",
                     "plot " + ", ".join(plots)]


def script_lines(figure, data):
    """Commands for lines or points."""
    blocks, plots = [], []
    with_what = "points pointtype 7 pointsize 0.4" if figure.kind == "points" else "linespoints"
    for i, (name, points) in enumerate(data):
        blocks.append(f"$d{i} << EOD")
        blocks += [f"{x} {y}" for x, y in points]
        blocks.append("EOD")
        style = with_what
        if figure.kind == "lines" and len(points) > 60:
            style = "lines"
        title = "title " + quoted(name) if name else "notitle"
        plots.append(f"$d{i} using 1:2 with {style} linewidth 2 "
                     f"linecolor rgb '{COLOURS[i % 8]}' {title}")
    return blocks + ["plot " + ", ".join(plots)]


def script(figure, data, size):
    """The whole program for gnuplot."""
    out = [f"set terminal svg size {size[0]},{size[1]} font 'sans-serif,12' background 'white'",
           "set encoding utf8", "set border 3 linecolor rgb '#888888'",
           "set tics nomirror textcolor rgb '#333333'",
           "set grid ytics linecolor rgb '#dddddd'", "set key outside right top reverse Left noenhanced samplen 2",
           "set title " + quoted(figure.title) + " noenhanced",
           "set xlabel " + quoted(figure.xlabel) + " noenhanced",
           "set ylabel " + quoted(figure.ylabel) + " noenhanced"]
    if figure.logx:
        out.append("set logscale x")
    if is_logarithmic(figure, data) if figure.kind == "bars" else figure.logy:
        out.append("set logscale y")
    out += (script_bars if figure.kind == "bars" else script_lines)(figure, data)
    return "\n".join(out) + "\n"


def svg(figure, measurements, size=(680, 360)):
    """SVG text; "" if there is nothing to draw; None if gnuplot is not there or fails."""
    data = [(name, points) for name, points in lines(figure, measurements) if points]
    if not data:
        return ""
    if not shutil.which("gnuplot"):
        return None
    run = subprocess.run(["gnuplot"], input=script(figure, data, size), text=True,
                         capture_output=True, check=False)
    if run.returncode != 0:
        return None
    text = run.stdout[run.stdout.index("<svg"):]
    return re.sub(r"\n+", "\n", text)
