# SPDX-License-Identifier: MIT
"""report_words -- numbers, times and comparisons as people read them."""
import math

SAME = 0.10  # two numbers that differ by less are called about the same
TIMES = ("us", "ms", "s", "cycles", "kcycles")


def number(v):
    """A number as people read it: three significant digits, thousands apart."""
    if v is None:
        return "–"
    if isinstance(v, bool):
        return "yes" if v else "no"
    if isinstance(v, str):
        return v
    if isinstance(v, int) or (float(v).is_integer() and abs(v) >= 100):
        return f"{int(v):,}".replace(",", " ")
    if v == 0 or not math.isfinite(v):
        return str(v)
    decimals = max(0, 2 - math.floor(math.log10(abs(v))))
    return f"{v:,.{min(decimals, 4)}f}".replace(",", " ")


def times(f):
    """A factor above 1 in words."""
    return f"{f:.0f} times" if f >= 9.5 else f"{f:.1f} times"


def verdict(gain, unit):
    """What a comparison says; gain above 1 is in our favour."""
    if abs(math.log(gain)) < math.log(1 + SAME):
        return "about the same"
    if unit in ("ratio", "percent"):
        return "better" if gain > 1 else "worse"
    words = ("less", "more") if unit not in TIMES else ("faster", "slower")
    return f"{times(gain)} {words[0]}" if gain > 1 else f"{times(1 / gain)} {words[1]}"


def time_text(us):
    """A time in the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if us >= size:
            return f"{number(us / size)} {unit}"
    return f"{number(us * 1e3)} ns"
