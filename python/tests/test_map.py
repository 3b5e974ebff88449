# SPDX-License-Identifier: MIT
"""Maps: as a dict, beside a model, ranges, transactions, errors."""
import os
import pickle
import random

import pytest

import xac
from xac import _xac

pytestmark = pytest.mark.skipif(not hasattr(_xac, "Tree"), reason="built without libxactree")

SIZE = 16 << 20  # bytes


@pytest.fixture
def m(env):
    return env.map("m", SIZE)


def key_of(i):
    return b"%06d" % i


def test_is_a_dict_of_bytes(m):
    assert len(m) == 0 and not m and b"x" not in m and list(m) == []
    m[b"one"] = b"1"
    m[b""] = b"empty key"
    m[bytearray(b"two")] = memoryview(b"\0" * 5000)
    assert m[b"one"] == b"1" and m[b""] == b"empty key" and m[b"two"] == bytes(5000)
    assert b"one" in m and m and len(m) == 3
    assert list(m) == [b"", b"one", b"two"]
    assert list(reversed(m)) == [b"two", b"one", b""]
    assert m.get(b"three") is None and m.get(b"three", b"3") == b"3"
    m[b"one"] = b""
    assert m[b"one"] == b""
    del m[b"one"]
    with pytest.raises(KeyError):
        m[b"one"]
    with pytest.raises(KeyError):
        del m[b"one"]
    assert m.pop(b"two") == bytes(5000)
    assert m.pop(b"two", None) is None
    with pytest.raises(KeyError):
        m.pop(b"two")
    assert m.setdefault(b"a", b"1") == b"1" and m.setdefault(b"a", b"2") == b"1"
    m.update({b"b": b"2", b"c": b"3"})
    m.update([(b"d", b"4")])
    assert m.popitem() == (b"d", b"4")
    assert dict(m.items()) == {b"": b"empty key", b"a": b"1", b"b": b"2", b"c": b"3"}
    m.clear()
    assert not m
    with pytest.raises(KeyError):
        m.popitem()


def test_does_what_a_model_does(m, env):
    seed = int(os.environ.get("XAC_SEED", "1"))
    rng, model = random.Random(seed), {}
    print("seed", seed)
    for step in range(300):
        before = dict(model)
        try:
            with env.transaction():
                for _ in range(rng.randrange(20)):
                    key = key_of(rng.randrange(500))
                    if rng.random() < 0.3:
                        assert m.pop(key, None) == model.pop(key, None)
                    else:
                        model[key] = m[key] = rng.randbytes(rng.choice([0, 3, 64, 65, 700]))
                if rng.random() < 0.1:
                    low, high = sorted(key_of(rng.randrange(500)) for _ in range(2))
                    gone = [key for key in model if low <= key < high]
                    assert m.delete_range(low, high) == len(gone)
                    for key in gone:
                        del model[key]
                if rng.random() < 0.2:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            model = before
        if step % 20 == 0:
            assert list(m.items()) == sorted(model.items())
            assert m.check() == len(model) == len(m)
    assert list(m.items()) == sorted(model.items())


def test_ranges_in_both_directions(m, env):
    numbers = range(0, 3000, 2)
    assert m.load((key_of(i), b"%d" % i) for i in numbers) == len(numbers)
    for start, stop in [(None, None), (0, 10), (1, 9), (500, None), (None, 501), (7, 7), (8, 3),
                        (2998, 5000), (6000, None), (-1, 3)]:
        low, high = (None if n is None else key_of(n) for n in (start, stop))
        expected = [(key_of(i), b"%d" % i) for i in numbers
                    if (start is None or key_of(i) >= low) and (stop is None or key_of(i) < high)]
        assert list(m.range(low, high)) == expected
        assert list(m.range(low, high, reverse=True)) == expected[::-1]
        assert m.count(low, high) == len(expected)
    with env.query():
        assert list(m.values())[:3] == [b"0", b"2", b"4"]


def test_an_iteration_may_change_the_map(m):
    m.load((key_of(i), b"") for i in range(2000))
    for key in m:
        del m[key]
    assert not m


def test_load_asks_for_order(m, env):
    m[b"m"] = b""
    for entries in ([(b"a", b"")], [(b"n", b""), (b"n", b"")]):
        with pytest.raises(xac.Error) as caught:
            m.load(entries)
        assert caught.value.name == "EINVAL"
    for entries in ([(b"n", "text")], [b"n"], [(b"n",)]):
        with pytest.raises(TypeError):
            m.load(entries)
    assert m.check() == len(m)


def test_maps_and_arrays_commit_together(m, env):
    a = env.array("a", 10, "i8")
    with pytest.raises(KeyError):
        with env.transaction():
            a[0] = 1
            m[b"k"] = b"v"
            raise KeyError
    with env.query():
        assert a[0] == 0 and b"k" not in m
        with pytest.raises(xac.Error) as caught:
            m[b"k"] = b"v"
        assert caught.value.name == "XAC_EINQUERY"
    with env.transaction():
        a[0] = 1
        m[b"k"] = b"v"
    assert m[b"k"] == b"v"


def test_wrong_keys_and_values(m):
    m[b"k" * 64] = b"v"
    for key, value in [(b"k" * 65, b"v"), ("text", b"v"), (b"k", "text"), (3, b"v"), (b"k", None)]:
        with pytest.raises((TypeError, xac.Error)):
            m[key] = value
    assert list(m) == [b"k" * 64]
    with pytest.raises(TypeError):
        "text" in m


def test_a_full_map_stays_whole(env):
    m = env.map("small", 256 << 10)
    with pytest.raises(xac.Error) as caught:
        for i in range(100_000):
            m[key_of(i)] = b"x" * 100
    assert caught.value.name == "ENOSPC"
    assert m.check() == i
    del m[key_of(0)]


def test_is_there_in_the_next_run(db):
    with xac.Env(db) as env:
        m = env.map("m", SIZE, key_max=100, piece_size=10)
        m[b"k" * 100] = b"v" * 1000
        assert pickle.loads(pickle.dumps(m))[b"k" * 100] == b"v" * 1000
    with xac.Env(db) as env:
        assert env.map("m")[b"k" * 100] == b"v" * 1000
    with xac.Env(db, readonly=True) as env:
        m = env.map("m")
        assert len(m) == 1
        with pytest.raises(xac.Error):
            m[b"k"] = b""
    with pytest.raises(xac.Error) as caught:
        m[b"k"]
    assert caught.value.name == "XAC_ENOINIT"


def test_something_else_is_refused(env):
    a = env.array("a", 100_000, "i8")
    with pytest.raises(xac.Error) as caught:
        env.map("a")
    assert caught.value.name == "XAC_EFOREIGN"
    env.map("m", SIZE)
    with pytest.raises(xac.LayoutError):
        env.array("m", 10)
    with env.transaction():
        a[5] = 5


def test_processes_share_a_map(m, run):
    m[b"parent"] = b"1"
    done = run("""
        import sys, xac
        with xac.Env(sys.argv[1]) as env:
            m = env.map("m")
            with env.transaction():
                m[b"child"] = m[b"parent"] + b"2"
        """, m.env.path)
    assert done.returncode == 0, done.stderr
    assert dict(m) == {b"parent": b"1", b"child": b"12"}
