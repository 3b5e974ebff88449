# SPDX-License-Identifier: MIT
"""report_thesis -- what the Thesis printed, beside ours: quantities, their spread, the machines.

The Thesis' part is what bench_thesis_print() prints (bench/kit/thesis.h).
"""
import html
import json
import math
import re

from report_words import TIMES, number, time_text, verdict

COLUMNS = ("mean", "stdev", "min", "median", "p99", "max")  # of enum bench_thesis_column
COLUMN_HEAD = ("mean", "deviation", "least", "median", "99 %", "most")


class Thesis:
    """Machines and values, each a dict as printed."""

    def __init__(self, lines):
        records = [json.loads(line) for line in lines]
        self.machines = [r for r in records if r["record"] == "machine"]
        self.values = [r for r in records if r["record"] == "value"]

    def quantities(self, experiment):
        """Lists of the values of one quantity, one for each machine."""
        groups = {}
        for v in self.values:
            if v["experiment"] == experiment:
                groups.setdefault((v["table"], v["what"]), []).append(v)
        return list(groups.values())


# ---- Ours ------------------------------------------------------------------------------------


def matches(m, where):
    """Whether a measurement has the values of "key=value key=value"."""

    def text(have):
        return json.dumps(have) if have is None or isinstance(have, bool) else str(have)

    return all(text(m.get(key)) == want
               for key, _, want in (pair.partition("=") for pair in where.split()))


def find(result, where, keys):
    """The number `keys`, or its mean or median, of the first measurement that fits and has it; or None.

    "key=a:b" in `where` asks for the number of the one with a over that of the one with b.
    """
    pair = re.search(r"(\w+=)([^\s:]+):(\S+)", where)
    if pair:
        over, under = (find(result, where.replace(pair[0], pair[1] + pair[i]), keys) for i in (2, 3))
        return over / under if over and under else None
    return next((m[key] for m in result.measurements if matches(m, where)
                 for key in (keys, keys + "_mean", keys + "_median")
                 if isinstance(m.get(key), (int, float))), None)


# ---- Quantities --------------------------------------------------------------------------------

HEAD = ["what", "table", "Thesis, by machine", "ours", "ours / best of theirs", "verdict"]


def rows(result, thesis):
    """A row for each quantity of the Thesis that this result can be compared with."""
    out = []
    for values in thesis.quantities(result.name):
        first = values[0]
        unit = first["unit"]
        ours = find(result, first["where"], first["keys"])
        theirs = {v["machine"]: v["us"] if unit in TIMES else v["value"] for v in values}
        theirs = {machine: v for machine, v in theirs.items() if v is not None}
        if ours is None or not theirs:
            continue

        def show(v, unit=unit):
            if unit in TIMES:
                return time_text(v)
            return number(v) if unit in ("ratio", "aborts") else f"{number(v)} {unit}"

        lower = unit not in ("ratio", "percent")
        machine = (min if lower else max)(theirs, key=theirs.get)
        best = theirs[machine]
        ratio, words = "–", "–"
        if "no_verdict" in first:
            words = first["no_verdict"]
        elif best > 0:
            ratio = number(ours / best)
            if ours > 0:
                words = verdict(best / ours if lower else ours / best, unit)
                if len(theirs) > 1:
                    words += (" as" if "same" in words else " than") + f" machine {machine}"
        out.append([first["what"], f"{first['table']}, p. {first['page']}",
                    ", ".join(f"{m}: {show(v)}" for m, v in theirs.items()), show(ours), ratio, words])
    return out


# ---- Spread --------------------------------------------------------------------------------------

WIDTH, HEIGHT = 260, 14  # of a strip


def spreads(result, thesis):
    """[(what, tables, [(machine, {column: us}), ...]), ...]; the last machine is ours.

    Chapter 4 and appendix C have some quantities both: the columns are those of the latter.
    """
    out = {}
    for values in thesis.quantities(result.name):
        first, columns = values[0], COLUMNS[:len(values[0]["us_by_column"])]
        ours = {c: find(result, first["where"], f"{first['keys']}_{c}") for c in columns}
        if first["unit"] not in TIMES or len(columns) < 2 or None in ours.values():
            continue
        key = first["where"], first["keys"]
        tables = out[key][1] + [first["table"]] if key in out else [first["table"]]
        theirs = [(v["machine"], dict(zip(COLUMNS, v["us_by_column"]))) for v in values]
        out[key] = first["what"], tables, theirs + [("ours", ours)]
    return list(out.values())


def ends(v):
    """(from, to, farthest) of a strip's bar and line: least, 99 %, most; or the deviation around the mean."""
    if "max" in v:
        return v["min"], v["p99"], v["max"]
    return v["mean"] - v["stdev"], v["mean"] + v["stdev"], v["mean"] + v["stdev"]


def strip(v, low, high, colour):
    """A drawing of a machine's spread on a logarithmic scale from low to high."""
    def x(us):
        return 4 + (WIDTH - 8) * (math.log(max(us, low) / low) / math.log(high / low) if high > low else 0)

    start, end, most = (x(us) for us in ends(v))
    middle = HEIGHT / 2
    out = [f"<svg width={WIDTH} height={HEIGHT} aria-hidden=true>",
           f"<line x1='{start:.1f}' x2='{most:.1f}' y1='{middle}' y2='{middle}' stroke='{colour}'/>",
           f"<rect x='{start:.1f}' y='3' width='{max(end - start, 1):.1f}' height='{HEIGHT - 6}' fill='{colour}' "
           "fill-opacity='.35'/>",
           f"<line x1='{x(v['mean']):.1f}' x2='{x(v['mean']):.1f}' y1='0' y2='{HEIGHT}' stroke='{colour}' "
           "stroke-width='2'/>"]
    if "median" in v:
        out.append(f"<circle cx='{x(v['median']):.1f}' cy='{middle}' r='3.5' fill='{colour}'/>")
    return "".join(out) + "</svg>"


def comparison(machines):
    """The spread of ours beside theirs in words: the greatest over the median, or the deviation over the mean."""
    whole = "max" in machines[-1][1]
    over, under, factor = ("max", "median", 1) if whole else ("stdev", "mean", 100)
    if any(v[under] == 0 for _, v in machines):
        return ""
    *theirs, ours = (factor * v[over] / v[under] for _, v in machines)
    least, most = number(min(theirs)), number(max(theirs))
    words = f"{number(ours)}, theirs {least}" + ("" if least == most else f" to {most}")
    return f": greatest over median {words}" if whole else f": deviation in % of the mean {words}"


LEGENDS = {  # by whether all columns are there
    True: "A bar from the least to 99 of 100, a line on to the greatest, a dot for the median, a stroke for the mean.",
    False: "Where there is only a deviation: a bar of it to both sides of the mean.",
}


def html_spreads(result, thesis):
    """A block for each quantity: a strip and the numbers of each machine; "" if there is none."""
    found = spreads(result, thesis)
    if not found:
        return ""
    shown = [c for c in COLUMNS if any(c in v for _, _, machines in found for _, v in machines)]
    legends = [words for is_whole, words in LEGENDS.items()
               if any(("max" in v) == is_whole for _, _, machines in found for _, v in machines)]
    out = ["<h3>Spread, beside the Thesis</h3>",
           f"<p class=facts>{' '.join(legends)} Each quantity has a logarithmic scale of its own.</p>",
           "<div class=wide><table><thead><tr><th>machine</th><th></th>"]
    out += [f"<th>{COLUMN_HEAD[COLUMNS.index(c)]}</th>" for c in shown] + ["</tr></thead><tbody>"]
    for what, tables, machines in found:
        points = [us for _, v in machines for us in (*ends(v), v["mean"]) if us > 0]
        low, high = min(points), max(points)
        out.append(f"<tr><th colspan={len(shown) + 2}>{html.escape(what)} ({', '.join(tables)})"
                   f"{comparison(machines)}</th></tr>")
        for machine, v in machines:
            own = machine == "ours"
            out.append(f"<tr><td>{'<b>ours</b>' if own else machine}</td>"
                       f"<td>{strip(v, low, high, '#1b6ca8' if own else '#777777')}</td>")
            out += [f"<td class=n>{time_text(v[c]) if c in v else '–'}</td>" for c in shown]
            out.append("</tr>")
    return "".join(out) + "</tbody></table></div>"


# ---- Machines --------------------------------------------------------------------------------------


def own_machines(results):
    """Those of the results, each as what its records say of it: {key: [value, ...]}.

    Records of one machine may have different kernels, and older ones lack what newer ones have.
    """
    found = {}
    for head in (r.head for r in results):
        own = found.setdefault((head["cpu"], head["cpus"], head["memory_bytes"]), {})
        for key, value in head.items():
            if value not in (None, "") and value not in own.setdefault(key, []):
                own[key].append(value)
    for own in found.values():
        exact = [v for v in own.get("file_system", []) if v != "ext2/3/4"]
        own["file_system"] = exact or own.get("file_system", [])
    return list(found.values())


def clock(mhz):
    """As in table 4.1."""
    return f"{number(mhz / 1e3)} GHz, {number(1e3 / mhz)} ns a cycle" if mhz else "–"


def own_column(own):
    """What the records say, in the order of MACHINE_ROWS."""
    def words(key, show=str):
        return ", ".join(show(v) for v in own.get(key, [])) or "not in the records"

    cpus = own["cpus"][0]
    return [f"{cpus} × {words('cpu')}", words("cpu_mhz", clock), words("cpu_caches"),
            f"{own['memory_bytes'][0] / 2**30:.1f} GiB", words("disk"), words("file_system"),
            words("kernel", lambda v: f"Linux {v}"), words("c_library"), words("compiler")]


MACHINE_ROWS = ["processors", "clock", "caches", "memory", "disk", "file system", "operating system",
                "C library", "compiler"]


def machine_table(results, thesis):
    """(head, rows): a column for each machine of the Thesis, and for ours."""
    columns = [[m["processor"], clock(m["mhz"]), "–", m["memory"], m["disk"], m["file_system"] or "–", m["system"],
                "–", "–"] for m in thesis.machines]
    head = [f"machine {m['machine']}" for m in thesis.machines]
    own = own_machines(results)
    head += ["ours"] if len(own) == 1 else [f"ours, {i}" for i in range(1, len(own) + 1)]
    columns += [own_column(o) for o in own]
    return ["", *head], [[name, *(c[i] for c in columns)] for i, name in enumerate(MACHINE_ROWS)]
