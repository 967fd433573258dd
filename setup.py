"""Builds the compiled step path, `sc2pool._fast`, and the stand-in's pairs, where that is possible.

Rule: both are optional. Without Cython, a compiler or Python's headers the package is installed
without them, and says "pure Python" where it says which step path is used.
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


EXTENSIONS = {
    "sc2pool._fast": [],
    # The stand-in has the same numbers as in Python, to the last bit.
    "sc2standin.simulation.fights._pairs": ["-ffp-contract=off"],
}
"""Each module's options for the compiler; MSVC, which rounds so by itself, ignores this one."""


def extension(name: str, options: list[str]) -> Extension:
    return Extension(
        name,
        [f"{name.replace('.', '/')}.pyx"],
        define_macros=list(STABLE_ABI.items()),
        extra_compile_args=options,
        libraries=["ws2_32"] if sys.platform == "win32" else [],
        py_limited_api=True,
    )


extensions = []
if cythonize is not None:
    extensions = cythonize([extension(*one) for one in EXTENSIONS.items()], build_dir="build")
    for one in extensions:
        one.optional = True  # cythonize makes a new object and loses this

setup(
    ext_modules=extensions,
    cmdclass={"build_ext": BuildIfPossible},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if extensions else {},
)
