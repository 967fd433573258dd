#!/bin/bash
# Sets up a Windows CPython 3.11 under Wine in .venv/windows, with all that the tests need.
#
# Needs Debian 12 or another Linux with apt and Wine 8 or newer, the .venv that `./scripts/test` makes,
# and root if a package of Debian's is missing. The sources of its parts:
#
#   python311.dll, *.pyd, OpenSSL   panda3d's wheel for Windows, which carries the CPython 3.11.9 that the
#                                   Python Software Foundation has signed
#   Lib                             the standard library of the Python 3.11 that runs the tests here
#   python.exe, python3.dll         made here: a call of Py_Main; a DLL that forwards all names
#
# Afterwards `.venv/windows/cpython/python` runs this Python. The script skips existing parts.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
target=$root/.venv/windows/cpython # in .venv/windows, Python would find the pyvenv.cfg above
WHEEL=panda3d==1.10.16
DLL_SHA256=0817a2a657a24c0d5fbb60df56960f42fc66b3039d522ec952dab83e2d869364
PYTHON=$root/.venv/bin/python
mkdir -p "$target/build"
say() { printf 'sc2pool: %s\n' "$*" >&2; }

# 1. Debian's packages: 160 MB to fetch, 1.05 GB on disk.
missing=()
command -v wine >/dev/null && [ -e /usr/lib/wine/wineserver64 ] || missing+=(wine wine64)
command -v x86_64-w64-mingw32-gcc >/dev/null || missing+=(gcc-mingw-w64-x86-64-win32)
command -v unzip >/dev/null || missing+=(unzip)
if [ ${#missing[@]} -gt 0 ]; then
    say "apt-get install ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi

# 2. The interpreter's DLLs: 65 MB to fetch.
if [ ! -e "$target/DLLs/_socket.pyd" ]; then
    say "downloading the DLLs of Python for Windows"
    "$PYTHON" -m pip download -q --disable-pip-version-check -d "$target/build" --no-deps \
        --only-binary=:all: --platform win_amd64 --python-version 311 --implementation cp --abi cp311 "$WHEEL"
    unzip -qoj "$target"/build/panda3d-*.whl 'deploy_libs/*' -d "$target/build/dlls"
    echo "$DLL_SHA256  $target/build/dlls/python311.dll" | sha256sum -c --quiet
    mkdir -p "$target/DLLs"
    cp "$target/build/dlls/python311.dll" "$target/"
    cp "$target/build/dlls/VCRUNTIME140.dll" "$target/vcruntime140.dll"
    cp "$target"/build/dlls/lib*.dll "$target/build/dlls/sqlite3.dll" "$target/DLLs/"
    # Wine has its own api-ms-win-crt-*.dll; tkinter is not needed.
    cp "$target"/build/dlls/*.pyd "$target/DLLs/"
    rm -f "$target/DLLs/_tkinter.pyd" "$target"/build/panda3d-*.whl
fi

# 3. The standard library.
if [ ! -e "$target/Lib/os.py" ]; then
    stdlib=$("$PYTHON" -c 'import sys, sysconfig; print(sysconfig.get_path("stdlib") if sys.version_info[:2] == (3, 11) else "")')
    [ -n "$stdlib" ] || { say "the Python of .venv must be a 3.11, whose standard library is taken"; exit 1; }
    mkdir -p "$target/Lib.new/site-packages"
    tar -C "$stdlib" -c --exclude=__pycache__ --exclude=./test --exclude='*/test' --exclude='*/tests' \
        --exclude=./site-packages --exclude=./dist-packages --exclude=./lib-dynload --exclude='./config-*' \
        --exclude=./idlelib --exclude=./turtledemo --exclude=./lib2to3 --exclude=./tkinter \
        --exclude='_sysconfigdata*' --exclude=./sitecustomize.py . | tar -C "$target/Lib.new" -x
    mv "$target/Lib.new" "$target/Lib"
fi

# 4. python.exe and python3.dll.
if [ ! -e "$target/python.exe" ]; then
    say "making python.exe and python3.dll"
    cd "$target/build"
    cat >python.c <<'C'
#include <wchar.h>
__declspec(dllimport) int Py_Main(int argc, wchar_t **argv);
int wmain(int argc, wchar_t **argv) { return Py_Main(argc, argv); }
C
    cat >python.manifest <<'XML'
<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0">
  <compatibility xmlns="urn:schemas-microsoft-com:compatibility.v1"><application>
    <supportedOS Id="{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}"/></application></compatibility>
  <application xmlns="urn:schemas-microsoft-com:asm.v3"><windowsSettings>
    <longPathAware xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">true</longPathAware>
  </windowsSettings></application>
</assembly>
XML
    echo '1 24 "python.manifest"' >python.rc
    x86_64-w64-mingw32-windres python.rc manifest.o
    printf 'LIBRARY python311.dll\nEXPORTS\nPy_Main\n' >python311.def
    x86_64-w64-mingw32-dlltool -d python311.def -l libpython311.a
    x86_64-w64-mingw32-gcc -municode -O2 -s python.c manifest.o -L. -lpython311 -o python.exe
    # The wheels of the stable ABI (psutil, protobuf) import python3.dll.
    {
        printf 'LIBRARY python3.dll\nEXPORTS\n'
        x86_64-w64-mingw32-objdump -p "$target/python311.dll" |
            awk '/Ordinal.Name Pointer. Table/ { on = 1; next } NF == 0 { on = 0 } on { print $NF }' |
            grep -E '^_?Py' | sed 's/.*/&=python311.&/'
    } >python3.def
    echo 'int DllMain(void *h, unsigned r, void *p) { return 1; }' >python3.c
    x86_64-w64-mingw32-gcc -shared -nostdlib -s -e DllMain python3.c python3.def -o "$target/python3.dll"
    cp python.exe "$target/"
    cd - >/dev/null
fi

# 5. The scripts that run it.
cat >"$target/python" <<'SH'
#!/bin/bash
# Windows Python under Wine. Wine's wineserver stays for a minute, so the next start takes 0.1 s.
here=$(dirname "$(realpath "$0")")
export WINEPREFIX=$here/prefix WINEARCH=win64 WINEDEBUG=${WINEDEBUG:--all}
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe,winedbg.exe="
export KMP_AFFINITY=${KMP_AFFINITY:-disabled}  # Wine 8 lacks the topology calls of torch's OpenMP
export PYTHONUTF8=${PYTHONUTF8:-1}
export DISPLAY=${SC2POOL_WINE_DISPLAY:-}  # without a display no window can be opened
unset PYTHONHOME
exec 3>&1 4>&2
# Wine's services would keep inherited pipes open for their whole life, so start them without pipes.
if wineserver -p60 </dev/null >/dev/null 2>&1 3>&- 4>&-; then  # status 2 if a server already runs
    setsid wine cmd /c exit </dev/null >/dev/null 2>&1 3>&- 4>&-
fi
# CPython cannot use a regular file of Linux as a standard stream here (fstat fails, because the file
# has no name in Wine), nor a closed stream. So files go through a pipe, and closed stdin is /dev/null.
pumps=()
if [ ! -e /dev/fd/0 ]; then exec </dev/null; elif [ -f /dev/stdin ]; then exec < <(exec 3>&- 4>&-; cat); fi
if [ -f /dev/fd/3 ]; then exec > >(cat >&3 3>&- 4>&-); pumps+=($!); fi
if [ -f /dev/fd/4 ]; then exec 2> >(cat >&4 3>&- 4>&-); pumps+=($!); fi
if [ ${#pumps[@]} -eq 0 ]; then exec wine "$here/python.exe" "$@" 3>&- 4>&-; fi
wine "$here/python.exe" "$@" 3>&- 4>&-
status=$?
exec >&- 2>&-
for pump in "${pumps[@]}"; do wait "$pump"; done
exit $status
SH
chmod +x "$target/python"

# 6. Wine's own folder: 0.7 GB.
if [ ! -e "$target/prefix/system.reg" ]; then
    say "preparing Wine"
    WINEPREFIX=$target/prefix WINEARCH=win64 WINEDEBUG=-all DISPLAY= \
        WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe=" wine wineboot -i </dev/null >"$target/build/wineboot.log" 2>&1
    WINEPREFIX=$target/prefix WINEDEBUG=-all wine reg add 'HKCU\Software\Wine' /v Version /d win10 /f \
        </dev/null >/dev/null 2>&1  # otherwise Wine imitates Windows 7
    WINEPREFIX=$target/prefix wineserver -w
fi

# 7. Packages: wheels for Windows, by this machine's pip; and sc2pool from this checkout.
wanted=$(cat "$here/requirements.txt" "$root/constraints.txt" | cksum)
if [ "$(cat "$target/.ready" 2>/dev/null)" != "$wanted" ]; then
    say "packages for Windows"
    packages=$target/Lib/site-packages
    pip=("$PYTHON" -m pip -q --disable-pip-version-check)
    # mpyq and portpicker have no wheels on the index; wheels built here fit every system.
    "${pip[@]}" wheel --no-deps -c "$root/constraints.txt" -w "$target/build/wheels" mpyq portpicker
    rm -rf "$packages"
    "${pip[@]}" install --no-deps --no-compile -c "$root/constraints.txt" --target "$packages" \
        --platform win_amd64 --python-version 3.11 --implementation cp --only-binary=:all: \
        -r "$here/requirements.txt" "$target"/build/wheels/*.whl
    "$PYTHON" "$here/numpy_for_wine.py" "$target"
    printf 'Z:%s\nZ:%s\nimport wine_gaps\n' "${root//\//\\}" "${here//\//\\}" >"$packages/sc2pool.pth"
    echo "$wanted" >"$target/.ready"
fi

# 8. The compiled modules, from the C code that Cython has made for `.venv`. Without it, pure Python runs.
compile() { # MODULE as a path, then options
    local c=$root/build/$1.c pyd=$root/$1.pyd
    [ -e "$c" ] && [ "$c" -nt "$pyd" ] || return 0
    say "compiling $1"
    x86_64-w64-mingw32-gcc -shared -O2 -s -static-libgcc "${@:2}" \
        -DPy_LIMITED_API=0x030B0000 -DCYTHON_LIMITED_API=1 -I "$target/build/include" "$c" \
        -L "$target/build" -lpython3 -lws2_32 -o "$pyd"
}
if [ ! -e "$target/build/libpython3.a" ]; then
    cp -r "$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')" "$target/build/include"
    cat >"$target/build/include/pyconfig.h" <<'C'
/* Of Windows on x64, as far as the stable ABI asks for it. */
#define MS_WIN64
#define MS_WINDOWS
#define Py_ENABLE_SHARED
#define HAVE_DECLSPEC_DLL
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
#define ALIGNOF_SIZE_T 8
C
    sed 's/=.*//' "$target/build/python3.def" >"$target/build/names.def"
    x86_64-w64-mingw32-dlltool -d "$target/build/names.def" -l "$target/build/libpython3.a"
fi
compile sc2pool/_fast
compile sc2standin/simulation/fights/_pairs -ffp-contract=off
