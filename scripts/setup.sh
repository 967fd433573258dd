# shellcheck shell=sh
# Sets up `.venv` in the checkout; sourced by the scripts beside it.
#
#   set_up EXTRA…    makes sure that .venv holds sc2pool with these extras of pyproject.toml
#
# Needs python3 (3.11 to 3.14) with its venv module, and nothing else. With a C compiler and Python's
# headers, the compiled step path is built as well. The user may set
#
#   PYTHON           the interpreter; otherwise the newest suitable one on the PATH
#   SC2POOL_TORCH    cpu or cuda: the build of torch; otherwise the installed build, or cpu
#
# Rules:
# - A finished set-up leaves one stamp per extra in .venv: a checksum of all that the installation
#   depends on. The stamp is removed before pip starts and written last. So the next call continues
#   an interrupted set-up, and does not run pip if nothing has changed.
# - A .venv that works is kept and added to. It is made again only if its interpreter is broken, if
#   $PYTHON is of another version, or if $SC2POOL_TORCH is the other build.
# - On Linux the package index has torch for CUDA only, so the CPU build comes from torch's own
#   index: torch alone, before all else. If that fails, the build of the package index is taken.
# - Simultaneous set-ups take turns, if the system has flock.
# - All messages go to stderr, because stdout belongs to the program that is run afterwards.

export PIP_DISABLE_PIP_VERSION_CHECK=1

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
constraints=$root/constraints.txt
below= # another environment whose packages $venv sees; empty for none
cpu_index=https://download.pytorch.org/whl/cpu

say() { printf 'sc2pool: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

is_suitable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

# Debian and Ubuntu ship venv without ensurepip until python3-venv is installed.
has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

find_python() {
    without_venv=
    for candidate in ${PYTHON:+"$PYTHON"} ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3}; do
        is_suitable "$candidate" || continue
        if has_venv "$candidate"; then
            command -v "$candidate"
            return
        fi
        without_venv=${without_venv:-$candidate}
    done
    if [ -n "$without_venv" ]; then
        fail "$without_venv has no venv module; on Debian and Ubuntu: apt install python3-venv"
    elif [ -n "${PYTHON:-}" ]; then
        fail "PYTHON=$PYTHON is not a Python 3.11 to 3.14 (it says: $(version_of "$PYTHON" || echo 'cannot be run'))"
    else
        fail "needs Python 3.11 to 3.14, found $(version_of python3 || echo none); set PYTHON to the interpreter to use"
    fi
}

# The checkout's own path is part of the fingerprint because a virtual environment cannot be moved.
fingerprint() {
    {
        printf '%s\n' "$root"
        "$venv/bin/python" -V
        cat "$root/pyproject.toml" "$root/setup.py" "$constraints" "$root/sc2pool/__init__.py" \
            "$root/sc2pool/_fast.pyx" "$root/sc2standin/simulation/fights/_pairs.pyx"
    } | cksum
}

# The build of torch is recorded in .venv/.torch. An environment on top of another has no such file.
has_wanted_torch() {
    [ -n "$below" ] || [ -z "${SC2POOL_TORCH:-}" ] ||
        [ "$SC2POOL_TORCH" = "$(cat "$venv/.torch" 2>/dev/null)" ]
}

is_current() {
    [ -x "$venv/bin/python" ] || return 1
    if [ -n "${PYTHON:-}" ]; then
        [ "$(version_of "$PYTHON")" = "$(version_of "$venv/bin/python")" ] || return 1
    fi
    has_wanted_torch || return 1
    now=$(fingerprint 2>/dev/null)
    for extra in "$@"; do
        [ "$(cat "$venv/.ready-$extra" 2>/dev/null)" = "$now" ] || return 1
    done
}

make_venv() {
    wanted=$(version_of "${PYTHON:-$venv/bin/python}")
    if is_suitable "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1 &&
        [ "$(version_of "$venv/bin/python")" = "$wanted" ] && has_wanted_torch; then
        return
    fi
    python=$(find_python) || exit 1
    say "creating ${venv#"$root/"} with Python $(version_of "$python") ($python)"
    "$python" -m venv --clear "$venv" || fail "could not create $venv"
}

packages_of() { printf '%s\n' "$1/lib/python$(version_of "$1/bin/python")/site-packages"; }

see_below() {
    [ -n "$below" ] || return 0
    own=$(packages_of "$venv")
    # $root: Python does not follow the .pth file that leads from those packages to sc2pool.
    mkdir -p "$own" && printf '%s\n' "$(packages_of "$below")" "$root" >"$own/below.pth"
}

# Shows pip's slow steps: on a terminal as one changing line, elsewhere as some lines. All of pip's
# output is kept in .venv/setup.log.
show_progress() {
    packages=0
    while read -r line; do
        shown=
        case $line in
        Collecting*)
            packages=$((packages + 1))
            [ ! -t 2 ] || shown="looking at $packages packages"
            ;;
        Downloading*MB*)
            file=${line#Downloading }
            shown="downloading ${file%%-*} (${line##*(}"
            ;;
        "Installing collected"*) shown="unpacking" ;;
        esac
        if [ -n "$shown" ] && [ -t 2 ]; then
            printf '\r\033[Ksc2pool:   %s' "$shown" >&2
        elif [ -n "$shown" ]; then
            say "  $shown"
        fi
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

# pip's errors and warnings go to .venv/setup.err, which is shown after a failure. Python compiles
# imported modules by itself, where it may; compiling all of torch takes ten seconds.
pip_install() {
    compile=--no-compile
    [ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || compile=--compile
    # The verdict goes through a file, because the status of a pipeline is that of its last part.
    rm -f "$venv/.installed"
    {
        "$venv/bin/python" -m pip install --no-input $compile --progress-bar off -c "$constraints" "$@" \
            2>"$venv/setup.err" && : >"$venv/.installed"
    } | tee -a "$venv/setup.log" | show_progress
    [ -e "$venv/.installed" ]
}

install_torch() {
    build=${SC2POOL_TORCH:-$(cat "$venv/.torch" 2>/dev/null || echo cpu)}
    printf '%s\n' "$build" >"$venv/.torch"
    if [ "$build" = cpu ] && [ "$(uname -s)" = Linux ]; then
        say "torch: the CPU build (SC2POOL_TORCH=cuda takes the one for NVIDIA's GPUs, 2.7 GB)"
        # Try only briefly, because there is another source.
        pip_install --no-deps --timeout 10 --retries 1 --index-url "$cpu_index" torch ||
            say "torch: no CPU build at $cpu_index; taking the build of the package index instead"
    else
        say "torch: the build of the package index"
    fi
}

install_extras() {
    extras=$(IFS=,; echo "$*")
    say "installing sc2pool[$extras] into ${venv#"$root/"} (the first time some minutes)"
    rm -f "$venv"/.ready-*
    [ -n "$below" ] || install_torch
    if [ -n "$below" ]; then # sc2pool itself is there already; pip adds what the extras need
        pip_install "sc2pool[$extras]"
    else
        # compat: the package is found by its path. Otherwise a script in the folder that
        # contains the clone would import the clone's folder, if that folder is called `sc2pool`.
        pip_install --config-settings editable_mode=compat -e "${root}[$extras]"
    fi || {
        cat "$venv/setup.err" >&2
        fail "set-up failed; see above and $venv/setup.log, then run this again"
    }
    for extra in "$@"; do
        fingerprint >"$venv/.ready-$extra"
    done
    say "set-up done"
}

set_up() {
    case ${SC2POOL_TORCH:-cpu} in
    cpu | cuda) ;;
    *) fail "SC2POOL_TORCH=$SC2POOL_TORCH: cpu or cuda?" ;;
    esac
    is_current "$@" && return
    (
        if command -v flock >/dev/null; then
            flock -n 9 || { say "another set-up is running; waiting for it" && flock 9; }
        fi
        is_current "$@" && exit
        # pip inherits the lock, so it holds even if this shell is killed before pip ends.
        make_venv && see_below && install_extras "$@"
    ) 9<"$constraints" || exit
}

set_up_on_top() {
    (
        below=$venv
        PYTHON=$venv/bin/python
        venv=$venv/$1
        constraints=$root/constraints-$1.txt
        set_up "$@"
    ) || exit
}
