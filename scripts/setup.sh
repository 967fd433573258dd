# shellcheck shell=sh
# Sets up `.venv` in the checkout; sourced by `scripts/train` and `scripts/test`.
#
#   set_up EXTRA…    makes sure that .venv holds sc2pool with these extras of pyproject.toml
#
# Needs python3 (3.11 to 3.14) with its venv module, and nothing else. The interpreter is $PYTHON
# if that is set, otherwise the newest suitable one on the PATH. Rules:
# - A finished set-up leaves one stamp per extra in .venv: a checksum of all that the installation
#   depends on. It is removed before pip starts and written last, so an interrupted set-up is
#   taken up again by the next call, and an unchanged one costs no pip at all.
# - A .venv that works is kept and added to; it is made anew only if its interpreter is broken, or
#   if $PYTHON is of another version.
# - Two set-ups at once take turns, where the system has flock.
# - All messages go to stderr: stdout belongs to the program that is run afterwards.

export PIP_DISABLE_PIP_VERSION_CHECK=1

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
constraints=$root/constraints.txt
below= # the environment that $venv sees too; empty for none

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

# The checkout's own path is part of it because a virtual environment cannot be moved.
fingerprint() {
    {
        printf '%s\n' "$root"
        "$venv/bin/python" -V
        cat "$root/pyproject.toml" "$constraints"
    } | cksum
}

is_current() {
    [ -x "$venv/bin/python" ] || return 1
    if [ -n "${PYTHON:-}" ]; then
        [ "$(version_of "$PYTHON")" = "$(version_of "$venv/bin/python")" ] || return 1
    fi
    now=$(fingerprint 2>/dev/null)
    for extra in "$@"; do
        [ "$(cat "$venv/.ready-$extra" 2>/dev/null)" = "$now" ] || return 1
    done
}

make_venv() {
    wanted=$(version_of "${PYTHON:-$venv/bin/python}")
    if is_suitable "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1 &&
        [ "$(version_of "$venv/bin/python")" = "$wanted" ]; then
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
    mkdir -p "$own" && packages_of "$below" >"$own/below.pth"
}

# Of all that pip says, what takes long; the rest is kept in .venv/setup.log.
show_progress() {
    while read -r line; do
        case $line in
        Downloading*MB*) say "  downloading ${line#Downloading }" ;;
        "Installing collected"*) say "  unpacking" ;;
        esac
    done
}

install_extras() {
    extras=$(IFS=,; echo "$*")
    say "installing sc2pool[$extras] into ${venv#"$root/"} (the first time some minutes)"
    rm -f "$venv"/.ready-*
    # The verdict goes through a file, because the status of a pipeline is that of its last part.
    rm -f "$venv/.installed"
    {
        "$venv/bin/python" -m pip install --no-input --progress-bar off --log "$venv/setup.log" \
            -c "$constraints" -e "${root}[$extras]" && : >"$venv/.installed"
    } | show_progress
    [ -e "$venv/.installed" ] || fail "set-up failed; see above and $venv/setup.log, then run this again"
    for extra in "$@"; do
        fingerprint >"$venv/.ready-$extra"
    done
    say "set-up done"
}

set_up() {
    is_current "$@" && return
    (
        if command -v flock >/dev/null; then
            flock -n 9 || { say "another set-up is running; waiting for it" && flock 9; }
        fi
        is_current "$@" && exit
        # pip inherits the lock, so it holds even if this shell is killed before pip ends.
        make_venv && see_below && install_extras "$@"
    ) 9<"$root/constraints.txt" || exit
}

set_up_on_top() {
    (
        below=$venv
        PYTHON=$venv/bin/python
        venv=$venv/$1
        constraints=$root/constraints-$1.txt
        set_up "$1"
    ) || exit
}
