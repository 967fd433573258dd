"""The checks that the doctor always makes: of the installation, the machine and a running game.

A check asks one question, judges what was measured, and gives advice. Each check is one function,
with a decorator that names its section. The functions are in the order of the report. A check's
parameters are the measured values, which become `measured` in the JSON report. To add a check,
write its function here, and write its measurement in `machine`, `worker_check`, `stepping` or
`diagnosis`. Checks that are made only with `--full` are in other modules, next to their
measurements.

Rules: the checks are pure and do not depend on a particular game. Only checks contain sc2pool's
expectations of a game. The judgement DIFFERS means that the game can be played, but does not behave
as expected; the advice then names the disadvantage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypedDict

from sc2pool.config import Limits, RecyclePolicy
from sc2pool.doctor.findings import (
    MB,
    Check,
    Grade,
    Judgement,
    Section,
    differs,
    expect,
    failed,
    megabytes,
    ok,
    seconds,
    yes_no,
)
from sc2pool.game.program.builds import Settled, known_faults
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.shell import called
from sc2pool.tasks.minigames.scores import PUBLISHED

OLDEST_PYTHON: Final = (3, 11)
TOO_NEW_PYTHON: Final = (3, 15)
GB: Final = 1_000_000_000
GAME_BYTES: Final = GB
"""The memory that a game is assumed to need if its memory was not measured."""
SHARED_MEMORY_BYTES: Final = 32 * MB
FILES_WANTED: Final = 1024
"""The limit of open files should be at least this: dozens of games open hundreds of files."""
THREADS_WANTED: Final = 2048
"""The limit of processes should be at least this: it counts threads, and a game has dozens."""

INSTALLATION = Section("installation")
MACHINE = Section("machine")


class Package(TypedDict):
    """A Python package that sc2pool needs."""

    name: str
    version: str | None
    """The installed version; None if the package is not installed."""
    least: str
    """The oldest version that works; empty if every version works."""


@INSTALLATION.check(
    "game",
    "the selected game, and the reason",
    remedy="set SC2PATH to the folder that holds Versions and Maps, or give it as --game. "
    "Blizzard's packages for Linux: github.com/Blizzard/s2client-proto, Downloads. "
    "Without StarCraft II: unset SC2PATH, and the stand-in is played",
)
def game(root: Path, executable: Path, base_build: int, found_by: str) -> Judgement:  # noqa: ARG001
    return ok(f"Base{base_build} at {root}: {found_by}")


@INSTALLATION.check("settled", "measured facts about this game that pools use")
def settled(facts: Settled) -> Judgement:
    if not facts.measured:
        return ok("nothing: sc2pool doctor --full measures it; until then pools take the safer way")
    told = [
        f"{what} {'unknown' if fact is None else fact if isinstance(fact, str) else _YES_NO[fact]}"
        for what, fact in (
            ("a restart restores all:", facts.restart_faithful),
            ("also with a computer or a random race:", facts.restart_with_computer),
            ("bursts in matches:", facts.bursts_in_matches),
            ("silent ends:", facts.silent_end),
            ("after a stop:", facts.after_stop),
        )
    ]
    return ok(f"{', '.join(told)} (measured {facts.measured})")


_YES_NO: Final = {True: "yes", False: "no"}


def judge_map(path: Path | None, belongs_to: Path, tasks: Sequence[str]) -> Judgement:
    """Judge whether a map's file is there; `tasks` are the built-in tasks played on the map."""
    if path is not None:
        return ok(str(path))
    if not tasks:
        figure = f"not in {belongs_to.parent}; no built-in task needs it"
        return Judgement(Grade.NOT_POSSIBLE, figure)
    source = ""
    if belongs_to.stem in PUBLISHED:
        source = ", from mini_games.zip of github.com/google-deepmind/pysc2, Releases"
    return failed(f"not there; needed by {', '.join(tasks)}", f"put it at {belongs_to}{source}")


def map_check(map_name: str) -> Check[[Path | None, Path, Sequence[str]]]:
    """Return a check that looks for this map."""
    name, purpose = f"map {map_name}", "a map that tasks are played on"
    return Check(name, INSTALLATION.part, purpose, judge_map)


# ---- the machine --------------------------------------------------------------------------------


@MACHINE.check("python", "the versions of Python and of the required packages")
def python(version: tuple[int, int, int], packages: Sequence[Package]) -> Judgement:
    listed = ", ".join(f"{p['name']} {p['version'] or 'missing'}" for p in packages)
    figure = f"Python {'.'.join(map(str, version))}; {listed}"
    unfit = [
        "'" + p["name"] + (f">={p['least']}" if p["least"] else "") + "'"
        for p in packages
        if p["version"] is None or _numbers(p["version"]) < _numbers(p["least"])
    ]
    if unfit:
        return failed(figure, f"{called('pip')} install {' '.join(unfit)}")
    if not OLDEST_PYTHON <= version[:2] < TOO_NEW_PYTHON:
        return differs(figure, "sc2pool is tested with Python 3.11 to 3.14")
    return ok(figure)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, such as (2, 9) for "2.9.0a1" and for "2.9"."""
    parts: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@MACHINE.check("step path", "how much CPU time a worker uses for a step")
def step_path(path: str) -> Judgement:
    if path == "compiled":
        return ok(path)
    advice = "nothing is missing, but steps cost more: it needs a C compiler and Python's headers"
    return differs(path, f"{advice} when sc2pool is installed, and SC2POOL_PURE unset")


@MACHINE.check("cores", "how many games can compute at a time")
def cores(usable: int, there: int) -> Judgement:
    return ok(f"{usable} of {there} cores may be used")


@MACHINE.check("worker", "can a worker be started, woken, measured, stopped and ended?")
def worker(  # noqa: PLR0917 - each is one question
    started_s: float,
    counts: bool,
    cpu_seen: bool,
    stop_seen: bool,
    stands_still: bool,
    ended_s: float | None,
) -> Judgement:
    advice = "please report it, with this report"
    if not counts:
        return failed("its memory is not shared", advice)
    if not stands_still:
        return failed("it runs while it is stopped", advice)
    if ended_s is None:
        return failed("it lives on after it was killed", advice)
    figure = f"up and awake after {seconds(started_s)}, gone {seconds(ended_s)} after its kill"
    unseen = [
        what for what, seen in (("CPU time", cpu_seen), ("stopped state", stop_seen)) if not seen
    ]
    if not unseen:
        return ok(figure)
    return differs(
        f"{figure}; the system does not tell its {' and its '.join(unseen)}",
        "as with Wine; a game that hangs or is stopped is noticed only at its deadline",
    )


@MACHINE.check("memory", "how many games fit into the memory")
def memory(available_bytes: int, total_bytes: int, game_bytes: int | None = None) -> Judgement:
    figure = f"{available_bytes / GB:.1f} of {total_bytes / GB:.1f} GB free"
    room = available_bytes // (game_bytes or GAME_BYTES)
    if game_bytes:
        figure += f", room for {room:,} games like the one measured ({megabytes(game_bytes)})"
    if room >= 1:
        return ok(figure)
    judge = failed if game_bytes else differs
    return judge(figure, "end other programs, or raise the container's memory limit")


@MACHINE.check(
    "disk",
    "logs and temporary files of games",
    remedy="set TMPDIR to a folder that can be written to",
)
def disk(place: Path, free_bytes: int, total_bytes: int) -> Judgement:  # noqa: ARG001
    figure = f"{free_bytes / GB:.1f} GB free in {place}"
    if free_bytes >= GB:
        return ok(figure)
    judge = failed if free_bytes < GB // 10 else differs
    return judge(
        figure, "games keep their logs and temporary files there: free space, or set TMPDIR"
    )


@MACHINE.check("shared memory", "the size of /dev/shm")
def shared_memory(place: Path, free_bytes: int, total_bytes: int) -> Judgement:  # noqa: ARG001
    figure = f"{megabytes(free_bytes)} of {megabytes(total_bytes)} free"
    advice = "sc2pool does not need it, other programs for learning do; in Docker: --shm-size=1g"
    return expect(free_bytes >= SHARED_MEMORY_BYTES, figure, advice)


def _limit(letter: str, wanted: int) -> Callable[[int | None, int | None], Judgement]:
    def judge(soft: int | None, hard: int | None) -> Judgement:
        shown = ["unlimited" if limit is None else f"{limit:,}" for limit in (soft, hard)]
        figure = f"{shown[0]} (hard limit {shown[1]})"
        enough = soft is None or soft >= wanted
        return expect(enough, figure, f"low for many games: ulimit -{letter} {wanted}")

    return judge


open_files = MACHINE.check("open files", "ulimit -n")(_limit("n", FILES_WANTED))
processes = MACHINE.check("processes", "ulimit -u")(_limit("u", THREADS_WANTED))


@MACHINE.check("ports", "each game needs one")
def ports(first: int, last: int, leased: int) -> Judgement:
    return ok(f"port {leased} of {first}–{last} leased and released")


listener = MACHINE.check("listener", "can it be proven that a port's listener is our game?")(
    yes_no(
        "the system reports which process listens on a port",
        "the system does not report which process listens on a port",
        "a port is proven free before the launch instead; stats() will say so",
    )
)


KILL_SLOW_S: Final = 2.0
GROWTH_BYTES: Final = MB
"""The report mentions memory growth if it exceeds this many bytes per reset."""
PACE_TOLERANCE: Final = 0.05
LATE_LOOPS: Final = 2
"""If a later loop's observation is requested, the reply may be this many loops too late."""
FREEZES_BELOW, CATCHES_UP_ABOVE = 0.25, 0.75
"""A stopped game counts as frozen if it makes up for at most the share `FREEZES_BELOW` of the loops
that it missed. If it makes up for at least `CATCHES_UP_ABOVE`, it counts as catching up."""

TIMES = Section("times and memory of the game")
BEHAVIOUR = Section("behaviour of the game")


def _within(field: str) -> Callable[[int, float, float, float, float], Judgement]:
    """Return a function that judges durations by the limit `field` of `Limits`."""
    limit_s: float = getattr(Limits(), field)
    setting = f"PoolConfig(limits=Limits({field}=…))"

    def judge(n: int, first_s: float, p50_s: float, p95_s: float, longest_s: float) -> Judgement:
        figure = seconds(first_s)
        if n > 1:
            figure = (
                f"p50 {seconds(p50_s)}, p95 {seconds(p95_s)}, first {figure}, "
                f"longest {seconds(longest_s)} (of {n})"
            )
        advice = f"close to the limit of {limit_s:g} s or beyond it: set {setting}"
        return expect(longest_s <= limit_s / 2, figure, advice)

    return judge


_LAUNCH, _STEP = _within("launch_s"), _within("step_s")

launch = TIMES.check(
    "launch",
    "from the start of the process to an answer",
    remedy="the executable cannot be run: its package is for another system, its file system "
    "does not permit execution, or there is no room for temporary files (TMPDIR)",
)(_LAUNCH)
launch_again = TIMES.check("launch again", "the same, with all files cached")(_LAUNCH)
create_join = TIMES.check("create+join", "a reset with a seed")(_within("create_join_s"))
restart = TIMES.check("restart", "a reset without a seed, observation included")(_within("reset_s"))
burst_step = TIMES.check("burst step", "one env step as sc2pool makes it")(_STEP)
single_step = TIMES.check("single step", "the same, one request after the other")(_STEP)


@TIMES.check("memory growth", "does the game grow with resets?")
def memory_growth(first_bytes: int, last_bytes: int, resets: int) -> Judgement:
    per_reset = (last_bytes - first_bytes) / max(1, resets)
    figure = (
        f"{megabytes(first_bytes)} at first, {megabytes(last_bytes)} after {resets} resets "
        f"({per_reset / MB:+.2f} MB a reset)"
    )
    policy = RecyclePolicy()
    if policy.hard_memory_bytes is not None and last_bytes > policy.hard_memory_bytes:
        advice = "beyond the hard limit: set PoolConfig(recycle=RecyclePolicy(hard_memory_bytes=…))"
        return failed(figure, advice)
    if per_reset <= GROWTH_BYTES:
        return ok(figure)
    many = "many" if policy.growth_bytes is None else f"{policy.growth_bytes / per_reset:,.0f}"
    return differs(figure, f"it grows: the pool will replace each game after {many} resets")


@TIMES.check("kill", "how fast close() can be")
def kill(took_s: float, gone: bool) -> Judgement:
    if not gone:
        advice = "a killed process that remains hangs in the kernel: look at the disk and drivers"
        return failed(f"still there after {seconds(took_s)}", advice)
    if took_s > KILL_SLOW_S:
        return differs(seconds(took_s), "close() takes longer because of it")
    return ok(f"{seconds(took_s)}, nothing left")


# ---- behaviour of the game ----------------------------------------------------------------------


@BEHAVIOUR.check("version", "the game's own version")
def version(game_version: str, told_build: int, folder_build: int) -> Judgement:
    known = known_faults(told_build)
    return expect(
        told_build == folder_build,
        f"{game_version}, base build {told_build}{f' ({known})' if known else ''}",
        f"its folder says Base{folder_build}: the installation may be a mixture",
    )


@BEHAVIOUR.check("ready markers", "does the game print that it is ready?")
def ready_markers(found: Sequence[str], missing: Sequence[str]) -> Judgement:
    if not missing:
        return ok(f"yes: {', '.join(found)}")
    advice = "sc2pool does not wait for them; other clients may"
    return differs(f"not printed: {', '.join(missing)}", advice)


proven_listener = BEHAVIOUR.check("proven listener", "was the listener our game?")(
    yes_no(
        "proven before the first byte was sent", "not proven", "as with Wine; stats() will say so"
    )
)
reply_ids = BEHAVIOUR.check("reply ids", "does Response.id come back?")(
    yes_no(
        "yes: a reply is known by its id",
        "no",
        "an old game: replies are matched by their order and kind only",
    )
)


@BEHAVIOUR.check("determinism", "do the same seed and actions give the same episode?")
def determinism(compared: int, difference: str) -> Judgement:
    if not difference:
        return ok(f"yes: {compared} observations are the same")
    return differs(f"no: {difference}", "a run with a seed cannot be repeated exactly")


@BEHAVIOUR.check("bursts", "do bursts give the same observations as single requests, alone?")
def bursts(compared: int, difference: str) -> Judgement:
    if not difference:
        return ok(f"yes: {compared} observations are the same")
    advice = "sc2pool steps in bursts, and this game answers them wrongly: please report it"
    return failed(f"no: {difference}", advice)


@BEHAVIOUR.check("seed", "does another seed give another episode?")
def seed(episodes: int, distinct: int) -> Judgement:
    if distinct == episodes:
        return ok("yes: another beginning")
    advice = "the map always begins like this, or the game takes no seed"
    return differs("no: the same beginning", advice)


@BEHAVIOUR.check("restart and seed", "does restart_game repeat the seed?")
def restart_and_seed(compared: int, difference: str) -> Judgement:
    if difference:
        return ok(f"no, it goes on to another episode: {difference}")
    advice = (
        "no action is needed: sc2pool never restarts a game that was given a seed. If games "
        "without a seed also repeat themselves, the check 'restart variety' says so"
    )
    return differs(f"yes: {compared} observations are the same as after create_game", advice)


@BEHAVIOUR.check("restart variety", "do restarted episodes without a seed differ?")
def restart_variety(episodes: int, distinct: int) -> Judgement:
    figure = f"{distinct} different beginning(s) in {episodes} episodes"
    advice = (
        "every episode begins alike: give seed=…, which creates a new game for every episode; "
        "that takes longer"
    )
    return expect(distinct > 1 or episodes == 1, figure, advice)


@BEHAVIOUR.check("hard reset", "does need_hard_reset come?")
def hard_reset(restarts: int, asked_after: int | None) -> Judgement:
    if asked_after is None:
        return ok(f"not in {restarts} restarts")
    advice = "the pool replaces such a game when its episode ends, which takes a launch"
    return differs(f"after {asked_after} restarts", advice)


@BEHAVIOUR.check("episode end", "does player_result come at once or one observation later?")
def episode_end(game_loop: int, further_observations: int | None, by_command: bool) -> Judgement:
    how = "by a debug command" if by_command else "by itself"
    figure = f"ended {how} at game loop {game_loop}, "
    if further_observations is None:
        advice = "sc2pool observes once more, without success: wins and losses are not known"
        return differs(figure + "the result never came", advice)
    if further_observations == 0:
        return ok(figure + "with the result at once")
    figure += f"the result {further_observations} observation(s) later"
    if further_observations == 1:
        return ok(figure + ", as sc2pool expects")
    return differs(figure, "sc2pool observes once more only")


restart_after_end = BEHAVIOUR.check("restart after end", "can an ended episode be restarted?")(
    yes_no("yes", "no: created anew", "every reset takes a create_game")
)


@BEHAVIOUR.check("exit on request", "does DebugTestProcess work (exit, tried last)?")
def exit_on_request(ended: bool, took_s: float, detail: str) -> Judgement:
    if ended:
        return ok(f"yes, {seconds(took_s)} later: {detail}")
    advice = "tests cannot make this game exit; sc2pool itself does not need that"
    return differs(f"no: {detail}", advice)


@BEHAVIOUR.check(
    "real time",
    "the game's own pace; for playing in real time and pausing the game while the learner learns",
)
def real_time(loops: int, seconds: float) -> Judgement:
    figure = f"{loops / seconds:.1f} loops/s over {seconds:.1f} s (expected {LOOPS_PER_S})"
    expected = LOOPS_PER_S * seconds
    # Allow a difference of one loop, because the figures are whole loops.
    advice = "the machine is too busy or too slow for real time, or the game has another clock"
    return expect(abs(loops - expected) <= 1 + PACE_TOLERANCE * expected, figure, advice)


@BEHAVIOUR.check(
    "awaited loop", "is RequestObservation.game_loop honoured in mid-game, in real time?"
)
def awaited_loop(now: int, asked: int, got: int, took_s: float) -> Judgement:
    figure = f"asked at loop {now} for loop {asked}, got loop {got} after {seconds(took_s)}"
    return expect(
        asked <= got <= asked + LATE_LOOPS,
        figure,
        "a client in real time must use its own clock instead",
    )


@BEHAVIOUR.check("stop and go on", "does a stopped game catch up in real time?")
def stop_and_go_on(  # noqa: PLR0917
    loop_before: int,
    loop_at_once: int,
    loop_after: int,
    stopped_s: float,
    ran_s: float,
    loops_per_s: float,
) -> Judgement:
    """Judge the result of `ends.stop_and_watch`; `loops_per_s` is the rate without a stop."""
    missed = loops_per_s * stopped_s
    made_up = loop_after - loop_before - loops_per_s * ran_s
    share = made_up / missed
    figure = (
        f"stopped for {stopped_s:.1f} s, that is {missed:.0f} loops, of which {share:z.0%} "
        f"were made up (+{loop_at_once - loop_before} loops when it went on, "
        f"+{loop_after - loop_before} in all, {ran_s:.1f} s of running)"
    )
    if share <= FREEZES_BELOW:
        return ok(f"no, it goes on where it was: {figure}")
    advice = (
        "a pause does not stop this game's time: the missed loops are played without actions. In "
        "real time let the actor continue while the learner learns, instead of pausing the game"
    )
    return differs(f"{'yes' if share >= CATCHES_UP_ABOVE else 'in part'}: {figure}", advice)
