# SPDX-License-Identifier: MIT
"""xac -- transactions on memory-mapped NumPy arrays.

    import xac

    with xac.Env("db") as env:
        a = env.array("numbers", shape=1000, dtype="i8")
        with env.transaction():
            a[3] += 1

What a transaction stores takes effect as a whole, for all processes, when its block ends; it is on
disk then; and it is rolled back if an exception leaves the block.  The package is a binding of the
C library libxac.  doc/python.md is its manual.
"""
from ._array import Array, LayoutError
from ._env import Env, Savepoint, at_commit, at_time
from ._map import Map
from ._xac import Conflict, Error, RolledBack, recover
from ._xac import version as library_version

__version__ = "0.2.0"
__all__ = ["Array", "Conflict", "Env", "Error", "LayoutError", "Map", "RolledBack",
           "Savepoint", "at_commit", "at_time", "library_version", "recover"]
