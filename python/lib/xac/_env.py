# SPDX-License-Identifier: MIT
"""Environments."""
from __future__ import annotations

import atexit
import functools
import os
import random
import time
import weakref
from typing import Any, Callable, Dict, Optional, TypeVar, Union, overload

from . import _array, _map, _xac

Result = TypeVar("Result")

POLICIES = {"oldest-wins": 0, "self-abort": 1, "selfish": 2, "youngest-wins": 3,
            "optimistic": 4, "serial": 5}
CHECKING = {"strict": 0, "fast": 1}
OPTIONS = {"checksum": 1, "checkpoint_bytes": 2, "log_segment_bytes": 3, "policy": 6,
           "sync_delay_ms": 7, "log_recycle": 8, "page_checksums": 9, "full_images": 10,
           "frames": 12, "read_ahead_bytes": 13, "mode": 14, "wait_ms": 15, "checking": 16,
           "engine": 17, "history": 18, "reader_limit": 21,
           "log_keep_bytes": 22, "group_wait_ms": 23}
WORDS = {"policy": POLICIES, "checking": CHECKING}
WINDOWS = {"s": 0, "commits": 1, "bytes": 2}  # units of the option history
SLEEP_MAX = 0.01  # seconds between two attempts, at most

# The environments of the process, for handles that are unpickled in it.
_open: weakref.WeakValueDictionary[str, Env] = weakref.WeakValueDictionary()


def at_commit(number: int) -> int:
    """The state after a commit, for Env.query(at=...) and Env.diff(); numbered as Env.stats()["commit_number"]."""
    return (1 << 62) + number


def at_time(seconds: float) -> int:
    """The state that was present at a time, in seconds since 1970 as time.time() says them."""
    return (2 << 62) + int(seconds * 1e9)


class Savepoint:
    """A place in the running transaction to go back to; see Env.savepoint()."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._mark: Optional[int] = None

    def __enter__(self) -> Savepoint:
        if self._mark is not None:
            raise _xac.Error("a savepoint is entered once: make a new one")
        self._mark = self._env._savepoint()
        return self

    def rollback(self) -> None:
        """Undo all stores since.  The savepoint stays, and may be gone back to again."""
        if self._mark is None:
            raise _xac.Error("the savepoint has not been entered")
        self._env._roll_back_to(self._mark)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        mark = self._mark
        assert mark is not None
        if type is not None:
            self._env._roll_back_to(mark)
        self._env._release_mark(mark)


class Env(_xac.Env):
    """An environment: a directory with a log, and arrays that share transactions.

    path      directory; it is made if it is missing (its parent must exist).  If the last
              run crashed, the environment is recovered first.
    durable   a commit is on disk when its block ends.  All processes must agree.
    readonly  queries only.
    outside   what an access outside of transactions and queries does: "stop" ends the process
              with a message; "query" keeps a query open meanwhile, see doc/python.md.
    log_directory  another directory for the log.
    options   those of the library, by name: policy="serial", wait_ms=1000, sync_delay_ms=10,
              checking="strict", checkpoint_bytes=..., and so on (doc/options.md).
              history=60 keeps the states of 60 seconds; also "1000 commits", "1000000 bytes".

    An environment can be pickled: what arrives in another process is the same one, opened there.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], durable: bool = True, *,
                 readonly: bool = False, outside: str = "stop",
                 log_directory: Optional[str] = None, **options: Union[int, str]) -> None:
        if outside not in ("stop", "query"):
            raise ValueError("outside is 'stop' or 'query'")
        flags = _xac.READONLY if readonly else _xac.DURABLE if durable else _xac.NONDURABLE
        if len(os.fspath(path)) == 0:
            raise ValueError("the path of the environment is empty")
        where = os.path.abspath(os.fspath(path))
        numbers = {OPTIONS[name]: _number(name, value) for name, value in options.items()
                   if _is_option(name)}
        super().__init__(where, flags, numbers, log_directory, outside == "query")
        self._arguments = (where, durable, readonly, outside, log_directory, options)
        self.readonly = readonly
        self._mappings: weakref.WeakValueDictionary[str, _xac.Mapping] = (
            weakref.WeakValueDictionary())
        _open[where] = self

    def __enter__(self) -> Env:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _open_again, self._arguments

    def __repr__(self) -> str:
        return f"<xac.Env {self.path!r}{', closed' if self.closed else ''}>"

    def array(self, name: Union[str, os.PathLike[str]], shape: Optional[_array.Shape] = None,
              dtype: Any = float, order: str = "C") -> _array.Array:
        """Open the array in a file, or make it, filled with zeros.

        name   of the file, relative to the directory of the environment, or absolute
        shape  None: the array is there, and is taken as it is
        Raises LayoutError if the file has another dtype, shape or order, or is no array.

        An array that this process has not used yet is opened outside of transactions.
        """
        wanted = None if shape is None else _array.Layout.wanted(shape, dtype, order)
        return _array.open_array(self, os.path.join(self.path, os.fspath(name)), wanted)

    def grow(self, array: _array.Array, n: int) -> _array.Array:
        """Give an array n elements along its first axis (order F: its last), new ones zero.

        Returns the longer array.  The old one stays as it is, and shows the same elements.
        Other processes see the new shape when they call Env.array(name) again.  It is a
        transaction of its own, and cannot be called inside of one.
        """
        if not isinstance(array, _array.Array) or array.env is not self:
            raise ValueError("not an array of this environment")
        if self.in_transaction:
            raise _xac.Error("grow() is called outside of transactions")
        return _array.grow_array(array, n)

    def map(self, name: Union[str, os.PathLike[str]], size: int = 1 << 30, key_max: int = 64,
            piece_size: int = 64) -> _map.Map:
        """Open the ordered map of bytes in a file, or make it.

        size        bytes of the file at most; it is sparse, so be generous.  size, key_max and
                    piece_size count when the map is made
        key_max     bytes of the longest key, at most 1018
        piece_size  bytes of a value that lie together: the length of a usual value

        Raises Error if the file holds something else, or if the package was built without
        libxactree.
        """
        return _map.open_map(self, os.path.join(self.path, os.fspath(name)), size, key_max,
                             piece_size)

    def mapping(self, name: Union[str, os.PathLike[str]], length: int) -> _xac.Mapping:
        """Map the first bytes of a file as they are: an object with a buffer.

        length is a multiple of the page size; the file is extended with zeros if shorter.
        """
        return _xac.Mapping(self, os.path.join(self.path, os.fspath(name)), length)

    def savepoint(self) -> Savepoint:
        """A place in the running transaction to go back to, for a `with` statement.

        If an exception leaves the block, the stores in it are undone, and the transaction goes on
        where the exception is caught.  rollback() undoes them at any moment of the block.
        What was prepared for system calls before a savepoint has to be prepared again.
        """
        return Savepoint(self)

    def transact(self, function: Callable[..., Result], *args: Any,
                 retries: Optional[int] = None, **kwargs: Any) -> Result:
        """Call a function in a transaction, again after each conflict; returns its result.

        function  may run several times.  Only mappings are rolled back in between: it must not
                  change anything else that counts.
        retries   attempts after the first one; None: as many as needed.  Then it raises Conflict.

        Inside of a transaction the function is a part of that one, and runs once, behind a savepoint:
        if an exception leaves it, only its own stores are undone.
        """
        if retries is not None and retries < 0:
            raise ValueError("retries is negative")
        if self.in_transaction:
            with self.savepoint():
                return function(*args, **kwargs)
        attempt = 0
        while True:
            try:
                with self.transaction():
                    return function(*args, **kwargs)
            except _xac.Conflict:
                if attempt == retries:
                    raise
            attempt += 1
            time.sleep(random.uniform(0, min(SLEEP_MAX, 1e-5 * 2 ** min(attempt, 10))))

    @overload
    def atomic(self, function: Callable[..., Result]) -> Callable[..., Result]: ...

    @overload
    def atomic(self, *, retries: Optional[int] = None,
               ) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...

    def atomic(self, function: Any = None, *, retries: Optional[int] = None) -> Any:
        """Decorator: each call of the function is a transaction, as by transact()."""
        if function is None:
            return functools.partial(self.atomic, retries=retries)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            # Not as keywords: the function may have some of these names.
            return self.transact(functools.partial(function, *args, **kwargs), retries=retries)

        return call


def _is_option(name: str) -> bool:
    if name not in OPTIONS:
        raise TypeError(f"there is no option {name!r}; there are {', '.join(OPTIONS)}")
    return True


def _number(name: str, value: Union[int, str]) -> int:
    """The value of an option, which may be a word."""
    words: Dict[str, int] = WORDS.get(name, {})
    if name == "history" and isinstance(value, str):
        n, _, unit = value.partition(" ")
        if not n.isdecimal() or unit not in WINDOWS:
            raise ValueError(f"history: {value!r}; possible are seconds, '1000 commits', "
                             "'1000000 bytes'")
        return (WINDOWS[unit] << 62) + int(n)
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name}: {value!r}; possible are {', '.join(words) or 'numbers'}")
        return words[value]
    if words and value not in words.values():
        raise ValueError(f"{name}: {value!r}; possible are {', '.join(words)}")
    if not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise ValueError(f"{name}: {value!r}; possible are whole numbers from 0 to 2**64-1")
    return value


def _open_again(path: str, durable: bool, readonly: bool, outside: str,
                log_directory: Optional[str], options: Dict[str, Union[int, str]]) -> Env:
    """Unpickle: the environment that the process has open there, or a new one."""
    env = _open.get(path)
    if env is not None and not env.closed:
        return env
    env = Env(path, durable, readonly=readonly, outside=outside, log_directory=log_directory,
              **options)
    _kept.append(env)
    return env


_kept: list[Env] = []  # by the handles of this process, until it ends


@atexit.register
def _close_all() -> None:
    """When the interpreter ends, so that the last process leaves nothing to recover."""
    for env in list(_open.values()):
        if not env.busy:  # a daemon thread may be: then the next run recovers
            try:
                env.close()
            except _xac.Error:
                pass  # as above
