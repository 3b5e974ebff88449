# SPDX-License-Identifier: MIT
"""Ordered maps of bytes in mapped files, by libxactree."""
from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, Tuple, TypeVar

from . import _xac

if TYPE_CHECKING:
    from ._env import Env

BATCH = 256  # entries that an iteration reads at once
Result = TypeVar("Result")
Entry = Tuple[bytes, bytes]


class Map(MutableMapping):
    """An ordered map from bytes to bytes in a mapped file, made by Env.map().

    It is used like a dict.  In a transaction its calls are a part of that; outside, each is a
    transaction or a query of its own.  An iteration outside reads some hundred entries at a time,
    each time as they are then; in a transaction or query it sees one moment.
    """

    def __init__(self, mapping: _xac.Mapping, tree: _xac.Tree) -> None:
        self._mapping = mapping
        self._tree = tree

    @property
    def env(self) -> Env:
        """The environment."""
        return self._mapping.env

    @property
    def name(self) -> str:
        """The path of the file."""
        return self._mapping.name

    def _read(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call it in the block that is open, or in a query."""
        if self.env.busy_here:
            return function(*args)
        with self.env.query():
            return function(*args)

    def _change(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call it in the transaction that is open, or in one of its own."""
        if self.env.busy_here:
            return function(*args)
        return self.env.transact(function, *args)

    def __getitem__(self, key: bytes) -> bytes:
        value = self._read(self._tree.get, key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self._read(self._tree.get, key) is not None

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._change(self._tree.put, key, value)

    def __delitem__(self, key: bytes) -> None:
        if not self._change(self._tree.delete, key):
            raise KeyError(key)

    def __len__(self) -> int:
        """Counts all entries: there is no counter, in which all changes would meet."""
        return self._read(self._tree.count, None, None)

    def __bool__(self) -> bool:
        return bool(self._read(self._tree.scan, None, None, 1, False))

    def __iter__(self) -> Iterator[bytes]:
        return (key for key, _ in self.range())

    def __reversed__(self) -> Iterator[bytes]:
        return (key for key, _ in self.range(reverse=True))

    def range(self, start: Optional[bytes] = None, stop: Optional[bytes] = None,
              reverse: bool = False) -> Iterator[Entry]:
        """The entries with start <= key < stop, in ascending order, or descending."""
        while True:
            batch = self._read(self._tree.scan, start, stop, BATCH, reverse)
            yield from batch
            if len(batch) < BATCH:
                return
            if reverse:
                stop = batch[-1][0]
            else:
                start = batch[-1][0] + b"\0"  # the next key that can be

    def count(self, start: Optional[bytes] = None, stop: Optional[bytes] = None) -> int:
        """The number of entries with start <= key < stop.  It reads them all."""
        return self._read(self._tree.count, start, stop)

    def delete_range(self, start: Optional[bytes] = None, stop: Optional[bytes] = None) -> int:
        """Delete the entries with start <= key < stop, in one transaction; returns their number."""
        return self._change(self._tree.delete_range, start, stop)

    def load(self, entries: Iterable[Entry], percent: int = 90) -> int:
        """Put many entries behind the last one, in ascending order, in one transaction.

        percent  how full to leave the blocks of the tree, 50 to 100
        """
        return self._change(self._tree.load, list(entries), percent)

    def check(self) -> int:
        """Verify the whole map; returns the number of entries, or raises Error."""
        return self._read(self._tree.check)

    # Those of MutableMapping that make several steps are one transaction.

    def clear(self) -> None:
        """Delete all entries."""
        self.delete_range()

    def pop(self, *args: Any) -> Any:
        """As dict.pop()."""
        return self._change(super().pop, *args)

    def popitem(self) -> Entry:
        """Delete the last entry and return it."""
        return self._change(self._popitem)

    def _popitem(self) -> Entry:
        last = self._tree.scan(None, None, 1, True)
        if not last:
            raise KeyError("popitem(): the map is empty")
        self._tree.delete(last[0][0])
        return last[0]

    def setdefault(self, key: bytes, default: bytes = b"") -> bytes:  # type: ignore[override]
        """As dict.setdefault()."""
        return self._change(super().setdefault, key, default)

    def update(self, other: Any = (), **unused: Any) -> None:  # type: ignore[override]
        """As dict.update(), in one transaction."""
        entries = list(other.items() if isinstance(other, Mapping) else other)
        self._change(super().update, entries)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<xac.Map {self.name!r}>"

    def __reduce__(self) -> Any:
        return _open_again, (self.env, self.name)


def _open_again(env: Env, name: str) -> Map:
    return env.map(name)


def open_map(env: Env, path: str, size: int, key_max: int, piece_size: int) -> Map:
    """Env.map(): open the map, or make it."""
    if not hasattr(_xac, "Tree"):
        raise _xac.Error("the package was built without libxactree, so there are no maps")
    mapping = env._mappings.get(path)
    if mapping is None:
        length = os.path.getsize(path) if os.path.exists(path) else 0
        length = -(-(length or size) // mmap.PAGESIZE) * mmap.PAGESIZE
        mapping = _xac.Mapping(env, path, length)
    if env.busy_here or env.readonly:
        tree = _xac.Tree(mapping, env.in_transaction, key_max, piece_size)
    else:
        tree = env.transact(_xac.Tree, mapping, True, key_max, piece_size)
    env._mappings[path] = mapping
    return Map(mapping, tree)
