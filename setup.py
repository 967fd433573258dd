"""Builds `sc2pool._fast`, the compiled step path, where that is possible.

Rule: it is optional. Without Cython, a compiler or Python's headers the package is installed
without it, and says "pure Python" where it says which step path is used.
"""

from __future__ import annotations

import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

try:
    from Cython.Build import cythonize
except ImportError:
    cythonize = None

STABLE_ABI = {"Py_LIMITED_API": "0x030B0000", "CYTHON_LIMITED_API": "1"}
"""One wheel for Python 3.11 and all later versions."""


class BuildIfPossible(build_ext):
    """Takes a missing compiler for a failed compilation, which `optional` allows."""

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except OSError as error:
            raise CompileError(str(error)) from error


extensions = []
if cythonize is not None and sys.platform != "win32":
    fast = Extension(
        "sc2pool._fast",
        ["sc2pool/_fast.pyx"],
        define_macros=list(STABLE_ABI.items()),
        py_limited_api=True,
    )
    extensions = cythonize([fast], build_dir="build")
    extensions[0].optional = True  # cythonize makes a new object and loses this

setup(
    ext_modules=extensions,
    cmdclass={"build_ext": BuildIfPossible},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if extensions else {},
)
