#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""load.py LIBRARY -- transactions from Python, by ctypes alone, in two threads.

Runs in an empty directory.
"""
import ctypes
import sys
import threading

ROUNDS = 200
DURABLE = 1
COMMITTED = 0
ABORTED = 10001
MAP_FAILED = ctypes.c_void_p(-1).value

xac = ctypes.CDLL(sys.argv[1])
xac.xMmap.restype = xac.xView.restype = ctypes.c_void_p
xac.xMmap.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xac.xView.argtypes = xac.xUnview.argtypes = [ctypes.c_void_p]
xac.xLastError.restype = xac.xStrerror.restype = ctypes.c_char_p


def check(is_so, what):
    if not is_so:
        sys.exit(f"load.py: not so: {what}: {xac.xLastError().decode()}")


def add(address):
    number = ctypes.c_uint64.from_address(address)
    for _ in range(ROUNDS):
        rc = ABORTED
        while rc == ABORTED:
            check(xac.xbegin() == 0, "xbegin")
            number.value += 1
            rc = xac.xend()
        check(rc == COMMITTED, "xend")


def work():
    address = xac.xView(segment)
    check(address, "xView")
    add(address)
    # A thread may be joined before what it has of its own is taken away.
    check(xac.xUnview(address) == 0, "xUnview")
    finished.append(1)


check(xac.xInit(b"python", DURABLE) == 0, "xInit")
segment = xac.xMmap(b"numbers", 4096)
check(segment != MAP_FAILED, "xMmap")
finished = []
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check(len(finished) == 2, "both threads have finished")
check(xac.xbegin() == 0, "xbegin")
found = ctypes.c_uint64.from_address(segment).value
check(xac.xend() == COMMITTED, "xend")
check(found == 2 * ROUNDS, f"nothing is lost: {found}")
check(xac.xShutdown() == 0, "xShutdown")
print(f"load.py: {found} transactions")
