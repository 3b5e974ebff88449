# SPDX-License-Identifier: MIT
"""Arrays: their files, layouts, growth, input and output, pickling."""
import copy
import gc
import io
import os
import pickle
import socket

import numpy as np
import pytest

import xac


def elements(a):
    with a.env.query():
        return np.array(a)


@pytest.mark.parametrize("dtype", [
    "i1", ">u4", "f8", "c16", "?", "S5", "U3", "M8[ms]",
    np.dtype([("when", "M8[s]"), ("x", "f4", (3,)), ("n", "<i8")]),
    np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [0, 8], "itemsize": 24})])
@pytest.mark.parametrize("shape", [7, (3, 5), (2, 0, 3), ()])
def test_dtypes_and_shapes_come_back(db, dtype, shape):
    with xac.Env(db, durable=False) as env:
        a = env.array("a", shape, dtype)
        with env.transaction():
            a[...] = np.zeros(shape, dtype)
            if a.size:
                a.reshape(-1).view("u1").reshape(-1)[:1] = 65
            expected = a.tobytes()
    with xac.Env(db, durable=False) as env:
        a = env.array("a")
        assert (a.shape, a.dtype) == (np.zeros(shape).shape, np.dtype(dtype))
        with env.query():
            assert a.tobytes() == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_order_is_kept(env, order):
    a = env.array("a", (3, 4), "i4", order)
    assert a.flags.c_contiguous == (order == "C")
    assert a.flags.f_contiguous == (order == "F")
    with env.transaction():
        a[:] = np.arange(12).reshape(3, 4)
    assert np.array_equal(elements(env.array("a")), np.arange(12).reshape(3, 4))
    assert env.array("a", (3, 4), "i4", order).flags.c_contiguous == (order == "C")


@pytest.mark.parametrize("other", [
    {"dtype": "f4"}, {"shape": 11}, {"shape": (5, 2)}, {"shape": (10, 1)}, {"dtype": ">i8"}])
def test_another_layout_is_refused(env, other):
    a = env.array("a", 10, "i8")
    with env.transaction():
        a[:] = 3
    with pytest.raises(xac.LayoutError, match="asked for was") as caught:
        env.array("a", **{"shape": 10, "dtype": "i8", **other})
    assert isinstance(caught.value, TypeError)
    assert a.name in str(caught.value)
    assert elements(env.array("a", 10, "i8")).tolist() == [3] * 10


def test_another_order_is_refused(env):
    env.array("a", (2, 3), "i8", "F")
    with pytest.raises(xac.LayoutError):
        env.array("a", (2, 3), "i8", "C")


@pytest.mark.parametrize("content", [b"hello, world\n" * 9, b"\x93NUMPY\x01\x00\x76\x00{}" * 9,
                                     b"\x93NUMPY\x02\x00" * 9])
def test_a_foreign_file_is_refused_and_kept(env, content):
    path = os.path.join(env.path, "foreign")
    with open(path, "wb") as file:
        file.write(content)
    for arguments in ({}, {"shape": 5}):
        with pytest.raises(xac.LayoutError, match="not an array"):
            env.array("foreign", **arguments)
    env.close()
    with open(path, "rb") as file:
        assert file.read().rstrip(b"\0") == content.rstrip(b"\0")


def test_a_damaged_header_is_refused(env):
    mapping = env.mapping("a", 8192)
    for text in (b"{'descr': 'i8', 'fortran_order': False, 'shape': (-3,)}",
                 b"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
                 b"{'descr': 'i8', 'fortran_order': False, 'shape': (1" + b"0" * 30 + b",)}",
                 b"{'descr': 'i8'}", b"__import__('os').abort()", b"\xff\xff"):
        with env.transaction():
            memoryview(mapping)[:4096] = (b"\x93NUMPY\x01\x00\xf6\x0f" + text).ljust(4096)
        with pytest.raises(xac.LayoutError):
            env.array("a")


def test_a_missing_array_needs_a_shape(env):
    with pytest.raises(FileNotFoundError):
        env.array("a")
    assert not os.path.exists(os.path.join(env.path, "a"))


@pytest.mark.parametrize("arguments, error", [
    ({"shape": -1}, ValueError), ({"shape": (3, -1)}, ValueError), ({"shape": "x"}, TypeError),
    ({"shape": 3, "dtype": object}, TypeError), ({"shape": 3, "dtype": "nonsense"}, TypeError),
    ({"shape": 3, "order": "A"}, ValueError), ({"shape": 1 << 70}, (xac.Error, OverflowError)),
    ({"shape": 1 << 58}, (xac.Error, OverflowError, MemoryError))])
def test_wrong_arguments_make_no_file(env, arguments, error):
    with pytest.raises(error):
        env.array("a", **arguments)
    path = os.path.join(env.path, "a")
    if os.path.exists(path):
        with open(path, "rb") as file:
            assert not file.read(10).strip(b"\0")
    assert env.array("a", 3).shape == (3,)


@pytest.mark.parametrize("name", ["xac.master", "xac-log.00000001", ""])
def test_the_files_of_the_environment_are_refused(env, name):
    with pytest.raises(xac.Error):
        env.array(name, 3)


def test_numpy_reads_the_file(db):
    with xac.Env(db) as env:
        a = env.array("a", (3, 4), "f4")
        with env.transaction():
            a[:] = np.arange(12).reshape(3, 4)
    path = os.path.join(db, "a")
    assert np.array_equal(np.load(path), np.arange(12).reshape(3, 4))
    assert np.array_equal(np.load(path, mmap_mode="r"), np.arange(12).reshape(3, 4))


def test_growth_keeps_what_is_there(env):
    a = env.array("a", (10, 3), "i4")
    with env.transaction():
        a[:] = 7
    b = env.grow(a, 5000)
    assert b.shape == (5000, 3) and a.shape == (10, 3)
    with env.transaction():
        b[4999] = 8
        assert a[0, 0] == 7
        a[0, 0] = 9
        assert b[0, 0] == 9
    c = env.array("a")
    assert c.shape == (5000, 3)
    assert elements(c).sum() == 7 * 29 + 9 + 8 * 3


def test_growth_of_the_last_axis(env):
    a = env.array("a", (3, 2), "i4", "F")
    with env.transaction():
        a[:] = [[1, 2], [3, 4], [5, 6]]
    a = env.grow(a, 4000)
    assert elements(a)[:, :3].tolist() == [[1, 2, 0], [3, 4, 0], [5, 6, 0]]
    assert a.flags.f_contiguous


def test_growth_beside_neighbours(env):
    """Where there is no room behind it, the array moves, and the old one stays good."""
    arrays = [env.array(f"a{i}", 10, "i8") for i in range(8)]
    longer = []
    for i, a in enumerate(arrays):
        with env.transaction():
            a[:] = i
        longer.append(env.grow(a, 200_000))
    for i, (a, b) in enumerate(zip(arrays, longer)):
        with env.transaction():
            b[-1] = i
            a[3] += 1
        assert elements(b).sum() == 10 * i + 1 + i


def test_growth_is_refused(env):
    a = env.array("a", 10, "i8")
    with pytest.raises(ValueError, match="shorter"):
        env.grow(a, 9)
    with pytest.raises(ValueError):
        env.grow(a[1:], 20)
    with pytest.raises(ValueError):
        env.grow(np.zeros(3), 20)
    with pytest.raises(ValueError):
        env.grow(env.array("scalar", (), "i8"), 20)
    with env.transaction():
        with pytest.raises(xac.Error):
            env.grow(a, 20)
    assert env.array("a").shape == (10,)


@pytest.mark.parametrize("length, words", [
    (0, "empty"), (100, "cut short"), (8192, "cut short"), (28095, "cut short")])
def test_a_file_that_was_cut_is_refused(db, length, words):
    with xac.Env(db) as env:
        env.array("a", 3000, "i8")
    path = os.path.join(db, "a")
    os.truncate(path, length)
    with xac.Env(db) as env:
        with pytest.raises(xac.LayoutError, match=words):
            env.array("a")
        assert os.path.getsize(path) <= 8192 + 4096 * 5  # nor was it made longer again


@pytest.mark.parametrize("shape", [3.5, "3", None, (2, 1.0), [b"2"]])
def test_a_size_is_a_whole_number(env, shape):
    with pytest.raises((TypeError, FileNotFoundError)):
        env.array("a", shape, "i8")


def test_growth_of_another_process_is_seen(env, run):
    a = env.array("a", 10, "i8")
    done = run("""
        import sys, xac
        with xac.Env(sys.argv[1]) as env:
            a = env.grow(env.array("a"), 100_000)
            with env.transaction():
                a[-1] = 5
        """, env.path)
    assert done.returncode == 0, done.stderr
    assert a.shape == (10,)
    assert elements(env.array("a"))[-1] == 5


def test_opening_inside_of_a_transaction(env):
    a = env.array("a", 10, "i8")
    with env.transaction():
        env.array("a")[0] = 5  # it is mapped
        with pytest.raises(xac.Error):
            env.array("b", 10, "i8")
    assert elements(a)[0] == 5


def test_making_one_is_atomic(env, run):
    """Several processes at once: one of them makes it."""
    program = """
        import sys, xac
        with xac.Env(sys.argv[1]) as env:
            a = env.array("a", 10, "i8")
            with env.transaction():
                a += 1
        """
    import threading
    results = []
    threads = [threading.Thread(target=lambda: results.append(run(program, env.path)))
               for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.returncode for r in results] == [0] * 4, [r.stderr for r in results]
    assert elements(env.array("a")).tolist() == [4] * 10


def test_results_are_ordinary_arrays(env):
    a = env.array("a", 10, "i8")
    with env.transaction():
        a[:] = 2
        total, doubled, item, part = a.sum(), a * 2, a[0], a[:2]
    assert type(doubled) is np.ndarray and doubled.tolist() == [4] * 10
    assert type(item) is np.int64
    assert total == 20 and not isinstance(total, xac.Array)
    assert isinstance(part, xac.Array) and part.name == a.name and part.env is env
    with env.query():
        assert a.copy().env is None
        kept = np.sort(a)
    kept[0] = 1  # its own memory
    assert a.copy is not None and kept[0] == 1


def test_repr_is_harmless_outside(env):
    a = env.array("a", 10, "i8")
    for text in (repr(a), str(a), f"{a}", repr(a[2:4]), "%s" % a):
        assert text.startswith("<xac.Array") and "transaction" in text
    with env.query():
        assert repr(a) == "Array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0])"
        assert str(a[:2]) == "[0 0]"


LARGE = 300_000  # elements: more than a buffer of stdio


def test_save_and_tofile(env, where):
    a = env.array("a", LARGE, "i8")
    with env.transaction():
        a[:] = np.arange(LARGE)
    env.close()
    with xac.Env(env.path) as again:  # no page has been touched
        a = again.array("a")
        with again.query():
            np.save(os.path.join(where, "saved.npy"), a)
            a[5:].tofile(os.path.join(where, "raw"))
    assert np.array_equal(np.load(os.path.join(where, "saved.npy")), np.arange(LARGE))
    assert np.array_equal(np.fromfile(os.path.join(where, "raw"), "i8"), np.arange(5, LARGE))


def test_readinto_fills_an_announced_range(env, where):
    path = os.path.join(where, "input")
    np.arange(LARGE).tofile(path)
    a = env.array("a", LARGE, "i8")
    with open(path, "rb", buffering=0) as file:
        with pytest.raises(OSError, match="Bad address"):
            with env.transaction():
                file.readinto(a)
        assert not elements(a).any()
        file.seek(0)
        with env.transaction():
            assert file.readinto(a.announce(write=True)) == a.nbytes
    assert np.array_equal(elements(a), np.arange(LARGE))


def test_sockets_send_and_receive_announced_ranges(env):
    a = env.array("a", LARGE, "i8")
    b = env.array("b", 1000, "i8")
    with env.transaction():
        a[:] = np.arange(LARGE)
    left, right = socket.socketpair()
    with left, right, env.transaction():
        left.sendall(a[1000:2000].announce())
        received = 0
        view = memoryview(b.announce(write=True)).cast("B")
        while received < b.nbytes:
            received += right.recv_into(view[received:])
    assert np.array_equal(elements(b), np.arange(1000, 2000))


def test_announce_outside_is_refused(env):
    a = env.array("a", 10, "i8")
    with pytest.raises(xac.Error) as caught:
        a.announce()
    assert caught.value.name == "XAC_ENOTXN"
    with env.query():
        a.announce()
        with pytest.raises(xac.Error) as caught:
            a.announce(write=True)
    assert caught.value.name == "XAC_EINQUERY"
    with env.transaction():
        a[::-2].announce(write=True)[0] = 4
        a[3:3].announce()
        with pytest.raises(ValueError):
            a._mapping.announce(a._mapping.address, a._mapping.length + 1, True)
    assert elements(a)[9] == 4


def test_a_whole_array_is_pickled_as_a_handle(env):
    a = env.array("a", LARGE, "i8")
    data = pickle.dumps(a)  # also outside
    assert len(data) < 1000
    again = pickle.loads(data)
    with env.transaction():
        again[5] = 6
    assert elements(a)[5] == 6


def test_a_part_is_pickled_as_its_elements(env):
    a = env.array("a", 10, "i8")
    with env.transaction():
        a[:] = np.arange(10)
        data = pickle.dumps(a[2:4])
    part = pickle.loads(data)
    assert type(part) is np.ndarray and part.tolist() == [2, 3]
    with pytest.raises(xac.Error):
        pickle.dumps(a[2:4])


def test_copies_are_ordinary_arrays(env):
    a = env.array("a", 10, "i8")
    with env.query():
        for made in (copy.copy(a), copy.deepcopy(a)):
            assert made.tolist() == [0] * 10
            if made.base is None:
                made[0] = 1  # memory of its own
        assert a[0] == 0


def test_memory_is_unmapped_with_the_last_array(env):
    def mapped():
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return sum(line.rstrip().endswith("/a") for line in maps)

    a = env.array("a", 10, "i8")
    with env.query():
        part = a[2:]
        assert part[0] == 0
    name = a.name
    del a
    gc.collect()
    with pytest.raises(xac.Error):
        env.forget(name)
    with env.transaction():
        del part  # it cannot be unmapped now
        gc.collect()
    env.forget(name)
    assert mapped() == 0


def test_slices_do_not_pile_up(env):
    a = env.array("a", 1000, "i8")
    with env.transaction():
        for i in range(100_000):
            a[i % 900:i % 900 + 5] += 1
    assert elements(a).sum() == 500_000


def test_bytes_of_a_mapping(env):
    mapping = env.mapping("raw", 8192)
    with env.transaction():
        mapping_view = np.frombuffer(mapping, "u1")
        mapping_view[3] = 7
    with env.query():
        assert bytes(memoryview(mapping)[:5]) == b"\0\0\0\7\0"
        assert io.BytesIO(mapping).read(4)[3] == 7
    assert mapping.length == 8192 and mapping.env is env
    with pytest.raises(ValueError):
        mapping.grow(4096)
    assert mapping.grow(16384) and mapping.length == 16384
    with pytest.raises(xac.Error):
        env.mapping("raw", 5)
    with pytest.raises(ValueError):
        env.mapping("raw", -4096)
