"""Makes numpy 2.1 and newer importable under Wine 8, which lacks C's complex functions.

The script `set_up.sh` calls `python numpy_for_wine.py TARGET`. A second call does nothing.

The modules of numpy import `crealf`, `cexp` and others from api-ms-win-crt-math-l1-1-0.dll, but in
Wine's built-in DLL of this name these functions are stubs that end the program. This script makes
another DLL, with a name of the same length, and writes this name into numpy's modules. The new DLL
has the complex functions of mingw-w64, and forwards all other functions to Wine's DLL.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

OURS, THEIRS = b"npy-ms-win-crt-math-l1-1-0.dll", b"api-ms-win-crt-math-l1-1-0.dll"
COMPLEX = re.compile(r"c(real|imag|abs|arg|exp|log|pow|sqrt|sinh?|cosh?|tanh?)([fl]?)")
HEADER = """\
#include <complex.h>
typedef struct { float re, im; } fc;
typedef struct { double re, im; } dc;  /* also of long double, which is the same on Windows */
static double _Complex D(dc z) {
    double _Complex w; __real__ w = z.re; __imag__ w = z.im; return w;
}
static dc B(double _Complex w) { dc z = { __real__ w, __imag__ w }; return z; }
"""


def imported(module: Path) -> list[str]:
    """The names that a module imports from Wine's DLL or from the new DLL."""
    objdump = ["x86_64-w64-mingw32-objdump", "-p", str(module)]
    text = subprocess.run(objdump, capture_output=True, text=True, check=True).stdout
    names: list[str] = []
    for part in text.split("DLL Name: ")[1:]:
        if part.startswith((OURS.decode(), THEIRS.decode())):
            names += re.findall(r"^\s+[0-9a-f]+\s+\d+\s+(\w+)$", part, re.MULTILINE)
    return names


def source(names: list[str]) -> tuple[str, str]:
    code, exports = [HEADER], [f'LIBRARY "{OURS.decode()}"', "EXPORTS"]
    for name in names:
        match = COMPLEX.fullmatch(name)
        if match is None:
            exports.append(f"{name}=ucrtbase.{name}")
            continue
        operation, kind = match.groups()
        of, real = ("fc", "float") if kind == "f" else ("dc", "double")
        exports.append(f"{name}=our_{name}")
        head = "{ dc w = { z.re, z.im }; "
        give = f"{of} o = {{ r.re, r.im }}; return o; }}"
        if operation in ("real", "imag", "abs", "arg"):
            code.append(f"{real} our_{name}({of} z) {head}return c{operation}(D(w)); }}")
        elif operation == "pow":
            code.append(
                f"{of} our_{name}({of} z, {of} y) {head}dc v = {{ y.re, y.im }}; "
                f"dc r = B(cpow(D(w), D(v))); {give}"
            )
        else:
            code.append(f"{of} our_{name}({of} z) {head}dc r = B(c{operation}(D(w))); {give}")
    return "\n".join(code), "\n".join(exports)


def main(target: Path) -> None:
    folder = target / "Lib" / "site-packages" / "numpy"
    modules = [m for m in folder.rglob("*.pyd") if THEIRS in m.read_bytes()]
    if not modules:
        return
    every = [m for m in folder.rglob("*.pyd") if THEIRS in (c := m.read_bytes()) or OURS in c]
    names = sorted({name for module in every for name in imported(module)})
    build = target / "build"
    code, exports = source(names)
    (build / "npy.c").write_text(code + "\n")
    (build / "npy.def").write_text(exports + "\n")
    gcc = "x86_64-w64-mingw32-gcc -O2 -s -shared -static-libgcc npy.c npy.def -o".split()
    subprocess.run([*gcc, str(target / OURS.decode())], cwd=build, check=True)
    for module in modules:
        module.write_bytes(module.read_bytes().replace(THEIRS, OURS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
