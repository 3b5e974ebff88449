# SPDX-License-Identifier: MIT
"""What the tests have in common.  Each has an environment of its own, in memory if there is room."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

import xac

# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def where():
    """A directory that is removed afterwards."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="xac-test-python-", dir=base)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def db(where):
    """The path of an environment that does not exist yet."""
    return os.path.join(where, "db")


@pytest.fixture
def env(db):
    """A durable environment."""
    with xac.Env(db) as opened:
        yield opened


@pytest.fixture
def run(where):
    """Run a program in a Python of its own; returns what subprocess.run() does."""

    def run_program(text, *arguments, timeout=60):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(text), *arguments],
                              cwd=where, capture_output=True, text=True, timeout=timeout,
                              check=False)

    return run_program
