# SPDX-License-Identifier: MIT
"""The programs in the documents run.  XAC_SOURCE is the source tree, if the tests lie elsewhere."""
import os
import pathlib
import re

import pytest

import xac

SOURCE = pathlib.Path(os.environ.get("XAC_SOURCE", pathlib.Path(__file__).parents[2]))


def programs(name, heading=None):
    """The Python blocks of a document, or of one of its sections, joined."""
    path = SOURCE / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    text = path.read_text(encoding="utf-8")
    if heading is not None:
        text = re.search(rf"^#+ {heading}\n(.*?)(?=^##|\Z)", text, re.M | re.S)[1]
    found = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))
    assert found
    return found


def test_readme(run, where):
    done = run(programs("python/README.md"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0 0 0 0 0] 2\n"


def test_tutorial(run, where):
    if not hasattr(xac._xac, "Tree"):
        pytest.skip("built without libxactree")
    done = run(programs("doc/python.md", "Tutorial"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[100 100 100 100 100] 100000\n"


def test_numpy_in_the_tutorial(run):
    for total in "1000.0", "1000.0":  # the second run finds what the first has left
        done = run(programs("doc/tutorial.md", "NumPy"))
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"2.0 {total}\n2.0\n"


def test_pandas(run):
    pytest.importorskip("pandas")
    done = run(programs("doc/python.md", "pandas"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20.0\n"


def test_pytorch(run):
    pytest.importorskip("torch")
    done = run(programs("doc/python.md", "PyTorch"))
    assert done.returncode == 0, done.stderr
    first, last = map(float, done.stdout.split())
    assert last < first / 100
