# SPDX-License-Identifier: MIT
"""Arrays in mapped files.

A file is in NumPy's format .npy: a header of 4096 bytes, padded with spaces, says dtype, shape and
order; then the elements follow.  When nobody has it mapped, numpy.load() reads it, too.
"""
from __future__ import annotations

import io
import math
import mmap
import operator
import os
from typing import TYPE_CHECKING, Any, Iterable, Optional, Tuple, Union

import numpy as np

from . import _xac

if TYPE_CHECKING:
    from ._env import Env

HEADER = 4096  # bytes before the elements
LENGTH_MAX = 1 << 62  # bytes
MAGIC = b"\x93NUMPY\x01\x00"

Shape = Union[int, Tuple[int, ...]]


class LayoutError(_xac.Error, TypeError):
    """The file holds no array, or one of another dtype, shape or order."""


class Layout:
    """How the elements of an array lie in its file."""

    def __init__(self, shape: Tuple[int, ...], dtype: np.dtype, order: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self.order = order

    @classmethod
    def wanted(cls, shape: Shape, dtype: Any, order: str) -> Layout:
        """From the arguments of Env.array()."""
        if order not in ("C", "F"):
            raise ValueError("order is 'C' or 'F'")
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise TypeError("an array of Python objects cannot lie in a file")
        axes = shape if isinstance(shape, Iterable) and not isinstance(shape, str) else (shape,)
        sizes = tuple(operator.index(n) for n in axes)  # 3.5 is no shape
        if any(n < 0 for n in sizes):
            raise ValueError("a negative size in shape")
        if len(sizes) < 2:
            order = "C"  # both are the same
        return cls(sizes, kind, order)

    @classmethod
    def decode(cls, name: str, header: bytes) -> Optional[Layout]:
        """From the first bytes of a file; None if they are zero."""
        if not header.strip(b"\0"):
            return None
        try:
            if b"\0" in header[10:]:
                raise ValueError("its header is cut short")
            if header[:8] != MAGIC or int.from_bytes(header[8:10], "little") != HEADER - 10:
                raise ValueError("another format")
            shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(
                io.BytesIO(header[8:]))
            layout = cls(shape, dtype, "F" if is_fortran and len(shape) > 1 else "C")
            if any(n < 0 for n in shape) or dtype.hasobject or layout.length > LENGTH_MAX:
                raise ValueError(str(layout))
            return layout
        except (ValueError, TypeError, SyntaxError) as error:
            raise LayoutError(f"{name}: not an array of this package: {error}") from None

    def encode(self) -> bytes:
        """As the first bytes of a file."""
        text = repr({"descr": np.lib.format.dtype_to_descr(self.dtype),
                     "fortran_order": self.order == "F",
                     "shape": self.shape}).encode("latin1", "strict")
        room = HEADER - 11
        if len(text) > room:
            raise ValueError(f"the description of the dtype is longer than {room} bytes")
        return MAGIC + (HEADER - 10).to_bytes(2, "little") + text.ljust(room) + b"\n"

    @property
    def length(self) -> int:
        """Bytes of the mapping, whole pages."""
        size = HEADER + math.prod(self.shape) * self.dtype.itemsize
        return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE

    def grown(self, n: int) -> Layout:
        """With n elements along the slowest axis."""
        if not self.shape:
            raise ValueError("an array without axes cannot grow")
        axis = 0 if self.order == "C" else len(self.shape) - 1
        if n < self.shape[axis]:
            raise ValueError(f"it has {self.shape[axis]} elements there: an array does not "
                             "become shorter")
        return Layout(self.shape[:axis] + (n,) + self.shape[axis + 1:], self.dtype, self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.shape, self.dtype, self.order) == (
            other.shape, other.dtype, other.order)

    def __str__(self) -> str:
        return f"shape {self.shape}, dtype {self.dtype}, order {self.order}"


class Array(np.ndarray):
    """A NumPy array in a mapped file, made by Env.array().

    It may be used inside of transactions and queries only, and can be written in transactions
    only.  The same holds for its slices and other views.  What functions and operators return is an
    ordinary array, unless it is a view.
    """

    _mapping: Optional[_xac.Mapping] = None

    def __array_finalize__(self, origin: Any) -> None:
        mapping = getattr(origin, "_mapping", None)
        if mapping is not None and not self.flags.owndata:
            self._mapping = mapping
            mapping._adopt(self, origin)

    def __array_wrap__(self, result: Any, context: Any = None,
                       return_scalar: bool = False) -> Any:
        # As numpy.memmap: only what lies in the file is an Array.
        if result is self or type(self) is not Array:
            return result
        if result.shape == ():
            return result[()]
        return result.view(np.ndarray)

    @property
    def env(self) -> Optional[Env]:
        """The environment; None if the array does not lie in a file."""
        return None if self._mapping is None else self._mapping.env  # type: ignore[return-value]

    @property
    def name(self) -> Optional[str]:
        """The path of the file; None if the array does not lie in one."""
        return None if self._mapping is None else self._mapping.name

    def announce(self, write: bool = False) -> Array:
        """Announce that a system call will read the array, or write it; returns the array.

        The kernel does not fault pages in for the library: file.readinto(a) and socket.send(a)
        fail with EFAULT ("Bad address") on pages that the transaction has not touched.  So write
        file.readinto(a.announce(write=True)).  It holds until the block ends.
        """
        if self._mapping is not None:
            low, high = _bounds(self)
            self._mapping.announce(low, high - low, write)
        return self

    def tofile(self, *args: Any, **kwargs: Any) -> None:  # numpy.save() calls it
        """As numpy.ndarray.tofile()."""
        if self._mapping is not None:
            self.announce()
        super().tofile(*args, **kwargs)

    def _is_hidden(self) -> bool:
        """Would touching the elements now end the process?"""
        return self._mapping is not None and not self._mapping.env.readable

    def _brief(self) -> str:
        return (f"<xac.Array {self.name!r}: shape {self.shape}, dtype {self.dtype}; its elements "
                "are there in a transaction or query>")

    def __repr__(self) -> str:
        return self._brief() if self._is_hidden() else super().__repr__()

    def __str__(self) -> str:
        return self._brief() if self._is_hidden() else super().__str__()

    def __format__(self, spec: str) -> str:
        return self._brief() if self._is_hidden() else super().__format__(spec)

    def __reduce__(self) -> Any:
        mapping = self._mapping
        if mapping is None:
            return super().__reduce__()
        if self._is_root():
            return _open_again, (mapping.env, mapping.name)
        if self._is_hidden():
            raise _xac.Error("a part of an array is pickled as its elements: do that in a "
                             "transaction or query")
        return np.array(self, subok=False).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return super().__reduce_ex__(protocol) if self._mapping is None else self.__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return np.array(self, subok=False)

    def _is_root(self) -> bool:
        """Is it all of the array, as Env.array() gave it?"""
        return isinstance(self.base, _xac.Mapping)


def _bounds(array: np.ndarray) -> Tuple[int, int]:
    """Addresses of the first byte of an array, and behind its last one."""
    try:
        from numpy.lib.array_utils import byte_bounds
    except ImportError:  # before NumPy 2
        byte_bounds = np.byte_bounds
    low, high = byte_bounds(array)
    return (low, high) if array.size else (low, low)


def _open_again(env: Env, name: str) -> Array:
    return env.array(name)


def _make(mapping: _xac.Mapping, layout: Layout) -> Array:
    """The array over a mapping."""
    array = Array.__new__(Array, layout.shape, layout.dtype, buffer=mapping, offset=HEADER,
                          order=layout.order)
    array._mapping = mapping
    mapping._adopt(array, None)
    return array


def _look(mapping: _xac.Mapping) -> Optional[Layout]:
    """The layout that the file has; None if its header is zero bytes."""
    env = mapping.env
    with env.query() if not env.in_transaction else env.transaction():
        header = bytes(memoryview(mapping)[:HEADER])
    return Layout.decode(mapping.name, header)


def _write(mapping: _xac.Mapping, layout: Layout) -> Layout:
    """Write the header, unless another process has done so.  Returns what is there."""
    header = layout.encode()

    def write() -> Layout:
        found = _look(mapping)
        if found is None:
            memoryview(mapping)[:HEADER] = header
        return found or layout

    return mapping.env.transact(write)


def open_array(env: Env, path: str, wanted: Optional[Layout]) -> Array:
    """Env.array(): open the array, or make it."""
    mapping = env._mappings.get(path)
    if mapping is None:
        if wanted is None and not os.path.exists(path):
            raise FileNotFoundError(2, "there is no such array", path)
        mapping = _xac.Mapping(env, path, mmap.PAGESIZE)
    found = _look(mapping)
    if found is None:
        if wanted is None:
            raise LayoutError(f"{path}: the file is empty: give shape and dtype to make an array")
        wanted.encode()  # raises if the dtype is too complicated
        mapping = _extend(env, path, mapping, wanted.length)
        found = _write(mapping, wanted)
    if wanted is not None and found != wanted:
        raise LayoutError(f"{path}: the array in this file has {found}; asked for was {wanted}")
    if mapping.length < found.length:
        _must_be_whole(path, found)
        mapping = _extend(env, path, mapping, found.length)
    env._mappings[path] = mapping
    return _make(mapping, found)


def _must_be_whole(path: str, layout: Layout) -> None:
    """A file becomes longer before its header says so.  If it is shorter, somebody has cut it."""
    there = os.stat(path).st_size
    if there < layout.length:
        raise LayoutError(f"{path}: the file is cut short: it has {there} bytes, and its array "
                          f"({layout}) needs {layout.length}")


def _extend(env: Env, path: str, mapping: _xac.Mapping, length: int) -> _xac.Mapping:
    """A mapping that is long enough: this one, or another."""
    if mapping.length < length and not mapping.grow(length):
        mapping = _xac.Mapping(env, path, length)
    env._mappings[path] = mapping
    return mapping


def grow_array(array: Array, n: int) -> Array:
    """Env.grow()."""
    mapping = array._mapping
    if mapping is None or not array._is_root():
        raise ValueError("grow() is for an array as Env.array() returns it")
    env, path = mapping.env, mapping.name
    layout = _look(mapping)
    assert layout is not None
    wanted = layout.grown(n)
    mapping = _extend(env, path, mapping, wanted.length)

    def write() -> Layout:
        now = _look(mapping)
        assert now is not None
        axis = 0 if now.order == "C" else -1
        now = now.grown(max(n, now.shape[axis]))
        memoryview(mapping)[:HEADER] = now.encode()
        return now

    layout = env.transact(write)
    return _make(_extend(env, path, mapping, layout.length), layout)
