#!/bin/sh
# SPDX-License-Identifier: MIT
#
# screenshots.sh BUILD-DIR -- make doc/manual.png, doc/results.png and doc/xstat-top.png anew.
#
# manual.png     the first page of the manual (make html), in a browser (chromium).
# results.png    the top of doc/results.html, likewise.
# xstat-top.png  xstat --top in a terminal of 118 columns, while three writers, of which one is slow, and a reader are at work; what
#                the terminal shows is put on a page and photographed by the same browser.
#
# It needs the packages chromium, pandoc and python3; setup.sh does not install the browser.
set -eu

source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
tmp=$(mktemp -d)
python=${PYTHON:-/usr/bin/python3}

for program in chromium pandoc; do
    command -v $program >/dev/null || { echo "screenshots.sh: install the package $program" >&2; exit 1; }
done

# shoot PAGE FILE WIDTH HEIGHT
shoot()
{
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$tmp/profile" \
        --window-size="$3,$4" --screenshot="$2" "file://$1" >"$tmp/browser.log" 2>&1 || {
        tail "$tmp/browser.log"
        exit 1
    }
    [ -s "$2" ] || { tail "$tmp/browser.log"; exit 1; }
}

cat >"$tmp/load.c" <<'END'
/* Writers until they are killed: most commits change the first page of a file.  A slow one thinks in its
   transactions, and the reader's queries are long. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xac.h>

int
main(int argc, char **argv)
{
    int is_reader = argc > 2 && argv[2][0] == 'r', is_slow = argc > 2 && !is_reader;
    long *accounts, *index, sum = 0;

    if (xInit(argv[1], DURABLE) != 0 || chdir(argv[1]) != 0)
        return 1;
    accounts = xMmap("accounts", 64 * 4096);
    index = xMmap("index", 16 * 4096);
    srand((unsigned)getpid());
    for (;;) {
        if (is_reader) {
            if (xbeginQuery() != 0)
                return 1;
            for (int i = 0; i < 64; i++)
                sum += accounts[i * 512];
            usleep(700000);
            if (xendQuery() != 0)
                return 1;
            continue;
        }
        if (xbegin() != 0)
            return 1;
        accounts[(rand() % 3 != 0 ? 0 : rand() % 64) * 512]++;
        if (rand() % 3 == 0)
            index[rand() % 16 * 512]++;
        if (is_slow)
            usleep(700000);
        (void)xend();
        if (is_slow)
            usleep(400000);
    }
}
END
${CC:-gcc} -O2 -I"$source_dir/include" "$tmp/load.c" -L"$build/.libs" -lxac -o "$tmp/load"
mkdir "$tmp/orders"
pids=
trap 'kill $pids 2>/dev/null || true; wait; "$build/xrecover" -q "$tmp/orders" || true; rm -rf "$tmp"' EXIT
for kind in "" "" slow reader; do
    LD_LIBRARY_PATH=$build/.libs "$tmp/load" "$tmp/orders" $kind &
    pids="$pids $!"
done
cd "$tmp"
"$python" -B - "$build/xstat" orders "$tmp/top.html" <<'END'
import fcntl, html, os, pty, re, select, struct, sys, termios, time

tool, directory, page = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    time.sleep(0.3)
    os.execl(tool, "xstat", "--top", "--watch=1", directory)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 118, 0, 0))
out, end = b"", time.time() + 14
while time.time() < end:
    if select.select([fd], [], [], 0.2)[0]:
        out += os.read(fd, 65536)
os.write(fd, b"q")
os.waitpid(pid, 0)
screens = re.findall(r"\x1b\[H(.*?)\x1b\[J", out.decode(), re.S)
if len(screens) < 2:
    sys.exit("screenshots.sh: xstat showed no screen")
shown = ([s for s in screens if "turn of" in s] or screens)[-1]
text = html.escape(shown.replace("\r", "").replace("\x1b[K", ""))
text = re.sub(r"\x1b\[7m(.*?)\x1b\[m", lambda m: f"<b>{m.group(1):<118}</b>", text)
open(page, "w").write(
    "<meta charset=utf-8><style>body{margin:0;background:#14171c}pre{margin:14px;color:#d6dbe4;"
    "font:14px/1.35 'DejaVu Sans Mono',monospace}b{background:#d6dbe4;color:#14171c;font-weight:normal}"
    f"</style><pre>{text}</pre>")
END
shoot "$tmp/top.html" "$source_dir/doc/xstat-top.png" 1030 700
"$python" -B "$source_dir/scripts/make_html" "$tmp/html"
shoot "$tmp/html/index.html" "$source_dir/doc/manual.png" 1280 900
shoot "$source_dir/doc/results.html" "$source_dir/doc/results.png" 1280 1800
