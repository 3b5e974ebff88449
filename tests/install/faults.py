#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""faults.py LIBRARY -- Python's faulthandler, enabled after xInit().

Transactions go on, which the program is told of in one line, and a fault of the program's own
is reported by faulthandler, once, and ends it.  Runs in an empty directory.
"""
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys

PAGES = 64
PAGE_BYTES = 4096
COMMITTED = 0
MAP_FAILED = ctypes.c_void_p(-1).value
NOTICE = "has replaced the handler"
REPORT = "Fatal Python error: Segmentation fault"


def work():
    xac = ctypes.CDLL(sys.argv[1])
    xac.xMmap.restype = ctypes.c_void_p
    xac.xMmap.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def touch(page):
        number = ctypes.c_uint64.from_address(segment + page * PAGE_BYTES)
        assert xac.xbegin() == 0
        number.value += 1
        assert xac.xend() == COMMITTED

    assert xac.xInit(b"faults", 0) == 0
    segment = xac.xMmap(b"numbers", PAGES * PAGE_BYTES)
    assert segment != MAP_FAILED
    touch(0)
    faulthandler.enable()
    for page in range(1, PAGES):
        touch(page)
    print("work done", flush=True)
    ctypes.string_at(8)


if len(sys.argv) > 2:
    work()
else:
    # It dies, and what it leaves goes with the directory.
    child = subprocess.run([sys.executable, "-B", __file__, sys.argv[1], "work"],
                           env=os.environ | {"XAC_SHM_DIR": os.getcwd()},
                           capture_output=True, text=True, timeout=60, check=False)
    ok = (child.returncode == -signal.SIGSEGV and child.stdout == "work done\n"
          and child.stderr.count(NOTICE) == 1 and child.stderr.count(REPORT) == 1)
    if not ok:
        sys.exit(f"faults.py: exit {child.returncode}\n{child.stdout}{child.stderr}")
    print("faults.py: faulthandler and transactions")
