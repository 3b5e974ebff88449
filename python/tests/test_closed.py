# SPDX-License-Identifier: MIT
"""Arrays that outlive env.close(): the process ends with words, and nothing else is touched."""
import signal

import numpy
import pytest

import xac

OPEN = """
    import os, sys, numpy, xac
    env = xac.Env(sys.argv[1])
    a = env.array("prices", 3000, "i8")
    with env.transaction():
        a[:] = 7
        plain = numpy.asarray(a)  # stays writable
    view = memoryview(env.mapping("bytes", 4096))
"""

TOUCH = {
    "load": "a[1000]",
    "sum": "a.sum()",
    "plain load": "plain[1000]",
    "plain store": "plain[1000] = 1",
    "slice": "a[1000:2000].copy()",
    "bytes": "view[3]",
}


def mapped_at(address):
    """The line of /proc/self/maps of an address, or None."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            if first <= address < last:
                return line
    return None


@pytest.mark.parametrize("touch", TOUCH)
def test_access_is_explained(db, run, touch):
    done = run(f"{OPEN}\n    env.close()\n    {TOUCH[touch]}\n    print('survived')", db)
    assert done.returncode == -signal.SIGABRT, done.stderr
    name, offset = ("bytes", 3) if touch == "bytes" else ("prices", 4096 + 8000)
    if touch == "sum":
        offset = 4096
    assert f"/{name} at offset {offset} after its environment was closed\n" in done.stderr
    assert "hint: an array" in done.stderr
    assert "survived" not in done.stdout


@pytest.mark.parametrize("before", ["", "import faulthandler; faulthandler.enable()"])
def test_other_faults_are_as_before(db, run, before):
    done = run(f"{OPEN}\n    {before}\n    env.close()\n    import ctypes; ctypes.string_at(8)", db)
    assert done.returncode == -signal.SIGSEGV
    assert ("Segmentation fault" in done.stderr) == (before != "")
    assert "xac: " not in done.stderr


def test_words_come_with_a_traceback(db, run):
    done = run(f"import faulthandler; faulthandler.enable()\n{OPEN}".replace("\n    ", "\n")
               + "env.close()\na[1000]", db)
    assert done.returncode == -signal.SIGABRT
    assert "after its environment was closed" in done.stderr
    assert "Aborted" in done.stderr and "<module>" in done.stderr


def test_another_environment_is_open(db, run):
    done = run(f"""{OPEN}
    other = xac.Env(sys.argv[1] + "2")
    b = other.array("b", 10, "i8")
    env.close()
    with other.transaction():
        b[0] = 1
    with other.query():
        print(b[0], flush=True)
        a[1000]
    """, db)
    assert done.stdout == "1\n"
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert "after its environment was closed" in done.stderr


def test_addresses_stay_reserved_while_something_refers_to_them(db):
    env = xac.Env(db)
    a = env.array("a", 1000, "i8")
    address = a.ctypes.data
    part = numpy.asarray(a)[5:10]
    env.close()
    assert " ---p " in mapped_at(address)
    del a
    assert " ---p " in mapped_at(address)
    del part
    assert mapped_at(address) is None


def test_the_environment_can_be_opened_again(db):
    with xac.Env(db) as env:
        a = env.array("a", 1000, "i8")
        with env.transaction():
            a[:] = 5
    address = a.ctypes.data
    with xac.Env(db + "2") as other:  # does not disturb what is reserved
        other.array("b", 1000, "i8")
        assert " ---p " in mapped_at(address)
    with xac.Env(db) as env:
        b = env.array("a")
        assert b.ctypes.data == address  # pointers in a file stay valid
        b = env.grow(b, 1_000_000)
        with env.transaction():
            assert b[999] == 5
            b[999_999] = 6
        del a
        with env.transaction():
            b[0] += 1
            assert b[0] == 6
    with xac.Env(db) as env, env.query():
        pass
