"""The `sc2pool` command: runs a subcommand, and turns its result or error into an exit code.

Rules: slow modules are imported only when a command needs them, so `--help` and bad arguments are
answered without a delay. An `SC2PoolError` is printed as one clear message on stderr, without a
traceback. Nothing is printed after Ctrl-C, even during the imports. If the output is a closed pipe,
as with `| head`, the command ends without a message.

Exit codes:

    Code 0: success.
    Code 1: the doctor found something to fix, or a disk is full.
    Code 2: an sc2pool error, a bad argument, or a file that may not be read.
    Code 130 means that Ctrl-C ended the command.
    Code 141: the output is a closed pipe.
    Code 143 means that SIGTERM ended the command.
    Code 149 means that Ctrl-Break ended the command.
"""

from __future__ import annotations

try:
    import io
    import os
    import sys
    from collections.abc import Sequence

    from sc2pool.cli.parser import make_parser
    from sc2pool.cli.stop import FULL_DISK, Stopped, check_said, discard, drop_closed
    from sc2pool.errors import SC2PoolError
    from sc2pool.utilities import REFUSED_PATH, needed_for, printable
except KeyboardInterrupt:  # the user pressed Ctrl-C during the imports
    raise SystemExit(130) from None

_LAYOUT = "\n\t"
"""Control characters that error messages keep, because a message may contain a traceback."""
PIPE_CLOSED = 141
"""The exit code that shells report for a program that SIGPIPE ended: 128 + SIGPIPE."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; `argv` defaults to the process's arguments."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # daemons may start programs with closed streams
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - open until the end
    try:
        try:
            exit_code = run_command(argv)
            check_said()
            return exit_code
        finally:
            sys.stdout.flush()  # flush now: if Python's flush at exit fails, Python prints an error
    except BrokenPipeError:
        closed = list(map(drop_closed, (sys.stdout, sys.stderr)))
        if not any(closed):
            raise  # stdout and stderr are open, so the error comes from another pipe
        return PIPE_CLOSED
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        discard(sys.stdout)
        print(f"sc2pool: {error.filename or 'cannot write'}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run_command(argv: Sequence[str] | None) -> int:
    """Parse the arguments and run the command; print an sc2pool error as one message."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the stream's encoding may lack characters
            stream.reconfigure(errors="replace")
    args = make_parser().parse_args(argv)
    try:
        with needed_for("this command"):
            return int(args.run(args))
    except SC2PoolError as error:
        # The text may come from a file or a game, so it may have control characters.
        print(f"sc2pool: {printable(str(error), None, keep=_LAYOUT)}", file=sys.stderr)
        return 2
    except OSError as error:  # a path is forbidden, or a name is too long
        if error.filename is None or error.errno not in REFUSED_PATH:
            raise
        print(f"sc2pool: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except Stopped as stopped:
        return stopped.exit_code
