#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_html.sh -- the manual as HTML pages.
#
# GOAL    `make html` makes a page of each document and of each manual page; each page can be reached from
#         the first one; no link leads nowhere; and names of documents and of functions are links.
# METHOD  Make it, and follow all links from index.html.
set -eu

srcdir=$(cd "${srcdir:-.}" && pwd)
command -v pandoc >/dev/null || { echo "no pandoc"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"${PYTHON:-python3}" -B "$srcdir/scripts/make_html" "$tmp/html"
"${PYTHON:-python3}" -B - "$tmp/html" "$srcdir" <<'END'
import pathlib, sys
from html.parser import HTMLParser

top, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
problems = []

class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()
    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src"):
                self.links.append(value)
            elif key in ("id", "name"):
                self.ids.add(value)

pages = {}
for path in top.rglob("*.html"):
    pages[path] = Page()
    pages[path].feed(path.read_text())
reached, waiting, n_links = set(), [top / "index.html"], 0
while waiting:
    path = waiting.pop()
    if path in reached:
        continue
    reached.add(path)
    for link in pages[path].links:
        name, _, anchor = link.partition("#")
        if "://" in link or link.startswith("data:"):
            continue
        n_links += 1
        to = (path.parent / name).resolve() if name else path
        if not to.exists():
            problems.append(f"{path.name}: {link} leads nowhere")
        elif anchor and to in pages and anchor not in pages[to].ids:
            problems.append(f"{path.name}: {link}: no such place")
        elif to in pages:
            waiting.append(to)
wanted = {top / f"{p.stem}.html" for p in (source / "doc").glob("*.md")}
for folder in ("doc/man", "doc/man/functions"):
    wanted |= {top / "man" / f"{p.name}.html" for p in (source / folder).glob("*.[13]")}
problems += [f"{p.relative_to(top)}: missing" for p in sorted(wanted - set(pages))]
problems += [f"{p.relative_to(top)}: not reached from index.html" for p in sorted(set(pages) - reached)]
for page, link in (("index.html", "memory-model.html"), ("index.html", "man/xbegin.3.html"),
                   ("man/xac.h.3.html", "../man/xac_frames_fix.3.html"),
                   ("index.html", "figures/what-happens.svg")):
    if link not in pages[top / page].links:
        problems.append(f"{page}: has no link to {link}")
for problem in problems:
    print(problem)
print(f"check_html: {len(pages)} pages, {n_links} links, {len(problems)} problems")
sys.exit(1 if problems else 0)
END
