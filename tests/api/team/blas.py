# SPDX-License-Identifier: MIT
"""blas.py LIBRARY TEAM -- products of NumPy, by the threads of OpenBLAS, inside of transactions (XAC_OPT_TEAM, the
number TEAM).

The product is stored in a segment, and its factors lie in it.  Exit code 0: it is committed, or rolled back;
77: NumPy has no OpenBLAS with threads.
"""
import ctypes
import os
import sys

import numpy as np

NONDURABLE, DURABLE, COMMITTED, ABORTED = 0, 1, 0, 10001
N = 704


def threads():
    return len(os.listdir("/proc/self/task"))


def main():
    xac = ctypes.CDLL(sys.argv[1])
    xac.xMmap.restype = ctypes.c_void_p
    xac.xMmap.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    xac.xSetOption.argtypes = [ctypes.c_int, ctypes.c_uint64]
    xac.xLastError.restype = ctypes.c_char_p

    def must(rc, want=0):
        if rc != want:
            sys.exit(f"{rc}, not {want}: {xac.xLastError()}")

    np.ones((N, N)) @ np.ones((N, N))  # starts the threads
    if threads() < 2:
        print("no threads of BLAS")
        return 77
    must(xac.xSetOption(int(sys.argv[2]), 1))
    must(xac.xInit(b"db", DURABLE if "DURABLY" in os.environ else NONDURABLE))
    base = xac.xMmap(b"x.db", 3 * N * N * 8)
    a, b, c = np.frombuffer((ctypes.c_double * (3 * N * N)).from_address(base)).reshape(3, N, N)
    rng = np.random.default_rng(1)
    values = rng.random((2, N, N))
    must(xac.xbegin())
    a[:], b[:] = values
    must(xac.xend(), COMMITTED)
    committed = np.zeros((N, N))
    for turn in range(6):
        must(xac.xbegin())
        np.matmul(a if turn % 3 else b, b, out=c)
        product = c.copy()
        if turn % 2:
            must(xac.xAbort())
            must(xac.xend(), ABORTED)
        else:
            must(xac.xend(), COMMITTED)
            committed = product
        if not np.allclose(product, values[0 if turn % 3 else 1] @ values[1]):
            sys.exit("the product is wrong")
        must(xac.xbeginQuery())
        if not np.array_equal(c, committed):
            sys.exit("not what is committed")
        must(xac.xendQuery())
    must(xac.xShutdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
