# SPDX-License-Identifier: MIT
"""Environments: opening, closing, options, what errors say."""
import errno
import gc
import os
import pickle
import sys

import numpy as np
import pytest

import xac


def test_opens_and_makes_the_directory(db):
    with xac.Env(db) as env:
        assert os.path.isdir(db)
        assert env.path == db
        assert not env.closed
        assert repr(env) == f"<xac.Env {db!r}>"
    assert env.closed
    env.close()  # a second time does nothing


def test_takes_a_path_object(where):
    import pathlib
    with xac.Env(pathlib.Path(where) / "db") as env:
        assert env.path == os.path.join(where, "db")


def test_names_the_directory_it_cannot_make(where):
    with pytest.raises(xac.Error) as caught:
        xac.Env(os.path.join(where, "missing", "db"))
    assert caught.value.code == errno.ENOENT
    assert caught.value.name == "ENOENT"
    assert os.path.join(where, "missing") in str(caught.value)


def test_is_open_once_in_a_process(env):
    with pytest.raises(xac.Error) as caught:
        xac.Env(env.path)
    assert caught.value.name == "XAC_EALREADY"
    assert not env.closed


def test_two_environments_commit_apart(where):
    with xac.Env(os.path.join(where, "one")) as one, xac.Env(os.path.join(where, "two")) as two:
        a, b = one.array("x", 3, int), two.array("x", 3, int)
        with pytest.raises(KeyError):
            with one.transaction():
                a[0] = 1
                with two.transaction():
                    b[0] = 2
                raise KeyError
        with one.query(), two.query():
            assert a[0] == 0
            assert b[0] == 2


@pytest.mark.parametrize("wrong", [
    {"outside": "ignore"}, {"policy": "mine"}, {"checking": "trusted"}, {"checking": 2},
    {"policy": 77}])
def test_refuses_wrong_arguments(db, wrong):
    with pytest.raises(ValueError):
        xac.Env(db, **wrong)
    assert not os.path.exists(db)


def test_refuses_unknown_options_and_names_the_known(db):
    with pytest.raises(TypeError, match="wait_ms"):
        xac.Env(db, speed=7)


def test_refuses_values_out_of_range(db):
    with pytest.raises(xac.Error) as caught:
        xac.Env(db, log_segment_bytes=5)
    assert caught.value.code == errno.EINVAL


@pytest.mark.parametrize("value", [-1, 1.5, 2 ** 64, None])
def test_names_the_option_with_a_wrong_value(db, value):
    with pytest.raises(ValueError, match="wait_ms: .*whole numbers"):
        xac.Env(db, wait_ms=value)


def test_an_empty_path_is_not_the_current_directory(where, monkeypatch):
    monkeypatch.chdir(where)
    for path in "", b"":
        with pytest.raises(ValueError, match="empty"):
            xac.Env(path)
    assert os.listdir(where) == []


def test_refuses_negative_numbers(env):
    with pytest.raises(ValueError, match="seconds"):
        env.keep_snapshot(env.snapshot(), "name", -5)
    with pytest.raises(ValueError, match="retries"):
        env.transact(lambda: 0, retries=-1)


def test_option_policy_is_used(db):
    with xac.Env(db, policy="oldest-wins", checking="strict", sync_delay_ms=5) as env:
        a = env.array("x", 3)
        with env.transaction():
            a[0] = 2
        env.sync()


def test_all_must_agree_on_durability(env, run):
    done = run("""
        import sys, xac
        try:
            xac.Env(sys.argv[1], durable=False)
        except xac.Error as error:
            print(error.name)
        """, env.path)
    assert done.stdout == "XAC_EMODE\n", done.stderr


def test_readonly_reads_and_refuses_to_write(db, run):
    with xac.Env(db) as env:
        a = env.array("x", 4, int)
        with env.transaction():
            a[1] = 5
    with xac.Env(db, readonly=True) as env:
        a = env.array("x")
        with env.query():
            assert a[1] == 5
        with pytest.raises(xac.Error) as caught:
            with env.transaction():
                pass
        assert caught.value.name == "XAC_EREADONLY"
        with pytest.raises(xac.Error):
            env.array("y", 4, int)
    assert not os.path.exists(os.path.join(db, "y"))


def test_use_after_close_raises(db):
    env = xac.Env(db)
    a = env.array("x", 3)
    env.close()
    for call in (lambda: env.transaction().__enter__(), lambda: env.query().__enter__(),
                 env.sync, env.checkpoint, env.stats, lambda: env.array("x"),
                 lambda: env.array("y", 3)):
        with pytest.raises(xac.Error) as caught:
            call()
        assert caught.value.name == "XAC_ENOINIT"
    assert "shape (3,)" in repr(a)
    with pytest.raises(ValueError):
        a[0] = 1


def test_an_array_keeps_its_environment_open(db):
    env = xac.Env(db)
    a = env.array("x", 3)
    del env
    gc.collect()
    with a.env.transaction():
        a[0] = 4
    with a.env.query():
        assert a[0] == 4
    del a
    gc.collect()
    xac.Env(db).close()  # it is closed: otherwise XAC_EALREADY


def test_is_opened_once_only(env):
    with pytest.raises(TypeError):
        env.__init__(env.path)
    assert not env.closed


def test_close_inside_of_a_transaction_is_refused(env):
    a = env.array("x", 3)
    with env.transaction():
        with pytest.raises(xac.Error) as caught:
            env.close()
        assert caught.value.name == "XAC_EINTXN"
        a[0] = 3
    with env.query():
        assert a[0] == 3


def test_what_was_committed_is_there_again(db):
    with xac.Env(db) as env:
        a = env.array("x", (3, 4), "f4")
        with env.transaction():
            a[:] = 2.5
    with xac.Env(db) as env:
        a = env.array("x", (3, 4), "f4")
        with env.query():
            assert (np.asarray(a) == 2.5).all()


def test_an_open_environment_arrives_as_itself(env):
    assert pickle.loads(pickle.dumps(env)) is env


def test_stats_count(env):
    a = env.array("x", 3)
    before = env.stats()
    for i in range(5):
        with env.transaction():
            a[0] = i + 1
    after = env.stats()
    assert after["commits"] - before["commits"] == 5
    assert after["participants"] == 1


def test_backup_and_recover(env, where):
    a = env.array("x", 3, int)
    with env.transaction():
        a[2] = 9
    copy = os.path.join(where, "copy")
    env.backup(copy)
    with env.transaction():
        a[2] = 10
    xac.recover(copy)
    assert np.load(os.path.join(copy, "x"))[2] == 9
    with pytest.raises(xac.Error) as caught:
        env.backup(copy)
    assert caught.value.code == errno.EEXIST


def test_increment(env, where):
    a = env.array("x", 3, int)
    base, more = os.path.join(where, "base"), os.path.join(where, "more")
    env.backup(base)
    with env.transaction():
        a[1] = 7
    env.backup(more, since=base)
    assert os.path.exists(os.path.join(more, "xac.changed"))
    assert not os.path.exists(os.path.join(more, "xac.master"))
    with pytest.raises(xac.Error) as caught:
        env.backup(os.path.join(where, "none"), since=where)
    assert caught.value.name == "XAC_ENOTENV"
    with pytest.raises(TypeError):
        env.backup(os.path.join(where, "none"), since=3)


def test_recover_refuses_what_is_no_environment(where):
    with pytest.raises(xac.Error) as caught:
        xac.recover(where)
    assert caught.value.name == "XAC_ENOTENV"


def test_forget_a_file(env):
    a = env.array("x", 3)
    with pytest.raises(xac.Error) as caught:
        env.forget(a.name)
    assert caught.value.code == errno.EBUSY
    name = a.name
    del a
    env.forget(name)
    os.remove(name)
    env.checkpoint()


def test_rename_and_remove_a_file(env):
    a = env.array("x", 3)
    name, other = a.name, a.name + ".2"
    with env.transaction():
        a[:] = 5
    with pytest.raises(xac.Error) as caught:
        env.rename(name, other)
    assert caught.value.code == errno.EBUSY
    with pytest.raises(xac.Error) as caught:
        env.remove(name)
    assert caught.value.code == errno.EBUSY
    del a
    with env.transaction():
        with pytest.raises(xac.Error) as caught:
            env.remove(name)
        assert caught.value.name == "XAC_EINTXN"
    env.rename(name, other)
    assert not os.path.exists(name)
    a = env.array(other)
    with env.query():
        assert list(a) == [5, 5, 5]
    del a
    env.remove(other)
    assert not os.path.exists(other)
    with pytest.raises(xac.Error) as caught:
        env.remove(other)
    assert caught.value.code == errno.ENOENT
    with pytest.raises(TypeError):
        env.rename(other)


def test_exit_of_the_interpreter_closes(db, run):
    done = run("""
        import sys, xac
        env = xac.Env(sys.argv[1])
        a = env.array("x", 3, int)
        with env.transaction():
            a[0] = 7
        """, db)
    assert done.returncode == 0, done.stderr
    assert np.load(os.path.join(db, "x"))[0] == 7  # the checkpoint of the last one


def test_versions(env):
    assert xac.library_version.count(".") == 2
    assert xac.__version__


def test_lists_the_participants(env):
    a = env.array("a", (10,), np.int64)
    with env.query():
        assert a[0] == 0
        (row,) = env.participants()
        assert row["kind"] == "query"
    with env.transaction():
        a[0] = 1
        (row,) = env.participants()
        assert row["kind"] == "update"
        assert row["pages_written"] == 1
    (row,) = env.participants()
    assert row["pid"] == os.getpid()
    assert row["kind"] == "idle"
    assert row["process"] == "running"
    assert row["waits_for"] == "nothing"
    with open("/proc/self/comm") as f:
        assert row["command"] == f.read().rstrip("\n")
    env.close()
    with pytest.raises(xac.Error):
        env.participants()


def test_a_query_is_cut_off(where):
    pages = 1024
    with xac.Env(os.path.join(where, "db"), reader_limit=1 << 20) as env:
        a = env.array("a", (pages, 4096), np.uint8)
        pid = -1
        with pytest.raises(xac.Error) as caught:
            with env.query():
                assert a[0, 0] == 0
                pid = start_writer(env.path, pages)
                assert os.waitpid(pid, 0)[1] == 0
        assert caught.value.name == "XAC_ECUTOFF"
        assert "XAC_OPT_READER_LIMIT" in str(caught.value)
        with env.query():
            assert a[pages - 1, 0] == 3


def start_writer(path, pages):
    """A process that writes each page of the array three times."""
    code = f"""
import numpy as np, xac
with xac.Env({path!r}) as env:
    a = env.array("a", ({pages}, 4096), np.uint8)
    for value in range(1, 4):
        for page in range({pages}):
            with env.transaction():
                a[page, 0] = value
"""
    return os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
