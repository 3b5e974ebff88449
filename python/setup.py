# SPDX-License-Identifier: MIT
"""setup.py -- the extension module; all else stands in pyproject.toml.

It is linked with the libxac that pkg-config finds, and with libxactree, for maps, if that is
there, too.  If there is none, and this folder lies in
the source tree of libxac, the library is built there first and put into the extension.

XAC_LINK=system   only what pkg-config finds
XAC_LINK=source   only the source tree
"""
import os
import pathlib
import shlex
import subprocess

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
LEAST = "0.2.0"
SYSTEM_DIRS = ("/usr/lib", "/lib", "/usr/local/lib")

if int(setuptools.__version__.split(".")[0]) < 61:  # it would not read pyproject.toml
    raise SystemExit(f"setuptools 61 or later is needed, this is {setuptools.__version__}")


def pkg_config(*words):
    """What pkg-config prints, as a list of words; None if it fails."""
    command = [*shlex.split(os.environ.get("PKG_CONFIG", "pkg-config")), *words]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return shlex.split(found.stdout)


def use_installed(extension, package):
    """Link with an installed library.  Returns whether there is one."""
    flags = pkg_config("--cflags", "--libs", f"{package} >= {LEAST}")
    if flags is None:
        return False
    if package == "libxactree":
        extension.define_macros.append(("HAVE_XACTREE", "1"))
    for flag in flags:
        where = extension.extra_link_args if flag.startswith(("-L", "-l", "-Wl")) \
            else extension.extra_compile_args
        where.append(flag)
    libdir = "".join(pkg_config("--variable=libdir", package) or [])
    if libdir and not libdir.startswith(SYSTEM_DIRS):
        extension.runtime_library_dirs.append(libdir)
    return True


def use_source(extension, build_dir):
    """Build the library of the source tree and link it into the extension."""
    tree = HERE.parent
    if not (tree / "include" / "xac.h").exists():
        return False
    subprocess.run([str(tree / "scripts" / "build.sh"), str(build_dir), "--disable-shared",
                    "--with-pic", "--disable-bench", "--disable-examples"], check=True)
    needed = pkg_config("--libs", "libcrypto", "libxxhash") or ["-lcrypto", "-lxxhash"]
    makefile = (build_dir / "Makefile").read_text()
    needed += next((line.partition("=")[2].split() for line in makefile.splitlines()
                    if line.startswith("SIGSEGV_LIBS =")), [])
    extension.include_dirs.append(str(tree / "include"))
    if (tree / "include" / "xactree.h").exists():
        extension.define_macros.append(("HAVE_XACTREE", "1"))
        extension.extra_objects.append(str(build_dir / ".libs" / "libxactree.a"))
    extension.extra_objects.append(str(build_dir / ".libs" / "libxac.a"))
    extension.extra_link_args += [*needed, "-lpthread", "-Wl,--exclude-libs,ALL"]
    return True


class Build(build_ext):
    """Finds the library when the extension is really built."""

    def build_extension(self, ext):
        link = os.environ.get("XAC_LINK", "")
        if link not in ("", "system", "source"):
            raise SystemExit(f"XAC_LINK={link}: it is system, source, or not set")
        build_dir = pathlib.Path(self.build_temp).resolve() / "libxac"
        build_dir.mkdir(parents=True, exist_ok=True)
        if not (link != "source" and (use_installed(ext, "libxactree")
                                      or use_installed(ext, "libxac"))
                or link != "system" and use_source(ext, build_dir)):
            raise SystemExit(f"libxac {LEAST} or later was not found: install it, or let "
                             "PKG_CONFIG_PATH name the directory of libxac.pc")
        super().build_extension(ext)


setup(
    cmdclass={"build_ext": Build},
    ext_modules=[Extension(
        "xac._xac",
        sources=sorted(f"src/{path.name}" for path in (HERE / "src").glob("*.c")),
        depends=["src/pyxac.h"],
        extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", "-Wno-cast-function-type",
                            "-fvisibility=hidden"],
        extra_link_args=[],
    )],
)
