"""Verdicts on a running game: its times, and how it behaves. Pure: a measurement in, a verdict out.

What sc2pool expects of a game stands here once. DIFFERS is a game that answers otherwise and can
be played all the same; the advice says what that costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sc2pool.cli.doctor.judge_machine import megabytes
from sc2pool.cli.doctor.measurements import (
    AwaitedLoop,
    Comparison,
    Durations,
    EpisodeEnd,
    Growth,
    HardReset,
    Kill,
    Markers,
    Pace,
    Pause,
    ProcessTest,
    Variety,
    Version,
    YesNo,
)
from sc2pool.cli.doctor.verdict import Broke, Outcome, Verdict
from sc2pool.config import Limits, RecyclePolicy
from sc2pool.errors import FaultKind
from sc2pool.protocol.game_time import LOOPS_PER_S

PACE_TOLERANCE: Final = 0.05
LATE_LOOPS: Final = 2
"""An awaited loop may be answered so much later and still count as honoured."""
FREEZES_BELOW: Final = 0.25
CATCHES_UP_ABOVE: Final = 0.75
"""Shares of the loops missed in a stop; between the two it is neither the one nor the other."""
KILL_SLOW_S: Final = 2.0
GROWTH_BYTES: Final = 1_000_000
"""A game that grows by more than this with each reset is worth a word."""

FAULT_ADVICE: Final[dict[FaultKind, str]] = {
    FaultKind.LAUNCH_FAILED: (
        "the game ended by itself while it started: its last words are above. On Linux without a "
        "screen it needs no display, but its libraries: ldd on the executable names missing ones"
    ),
    FaultKind.GAME_EXITED: (
        "the game ended: its last words are above. Killed by SIGKILL without anybody having done "
        "it means that the system was out of memory"
    ),
    FaultKind.DEADLINE: (
        "the game runs but does not answer: it hangs, or the machine is far too busy. If it was "
        "the launch: a first one can take minutes, so run this again, with a longer --timeout"
    ),
    FaultKind.CONNECTION_LOST: (
        "the game closed its connection: its last words may tell why; repair the installation"
    ),
    FaultKind.BAD_REPLY: (
        "the game answers what the protocol does not allow: too old, or too new for the installed "
        "s2clientprotocol (pip install -U pys2clientprotocol)"
    ),
    FaultKind.PORT_TAKEN: (
        "another program listens on the ports that games are started on, or a firewall is in the "
        "way"
    ),
}
"""By what the game did."""
_SEEDS: Final = "give seed=…: with a seed every episode is created anew, which takes longer"


def judge_broken(broke: Broke, mend: str) -> Verdict:
    """A check in whose course something failed.

    Args:
        broke: what failed.
        mend: what to do about it unless it was the game.
    """
    advice = mend if broke.kind is None else FAULT_ADVICE.get(broke.kind, "")
    return Verdict(Outcome.FAILED, broke.detail, advice)


# ---- times --------------------------------------------------------------------------------------


def within(limit_s: float, limit: str) -> Callable[[Any], Verdict]:
    """A judge of durations that sc2pool limits to `limit_s` unless told otherwise.

    Args:
        limit_s: the default of the limit.
        limit: how the limit is set.
    """

    def judge(took: Durations) -> Verdict:
        figure = describe(took)
        if took.longest_s <= limit_s / 2:
            return Verdict(Outcome.OK, figure)
        advice = f"close to the limit of {limit_s:g} s or beyond it: set PoolConfig(limits={limit})"
        return Verdict(Outcome.DIFFERS, figure, advice)

    return judge


_DEFAULTS = Limits()
judge_launch = within(_DEFAULTS.launch_s, "Limits(launch_s=…)")
judge_create = within(_DEFAULTS.create_join_s, "Limits(create_join_s=…)")
judge_reset = within(_DEFAULTS.reset_s, "Limits(reset_s=…)")
judge_step = within(_DEFAULTS.step_s, "Limits(step_s=…)")


def describe(took: Durations) -> str:
    """Durations in words."""
    if took.n == 1:
        return seconds(took.first_s)
    return (
        f"p50 {seconds(took.p50_s)}, p95 {seconds(took.p95_s)}, first {seconds(took.first_s)}, "
        f"longest {seconds(took.longest_s)} (of {took.n})"
    )


def seconds(duration_s: float) -> str:
    """A duration in the unit that suits it."""
    if duration_s >= 0.5:
        return f"{duration_s:.2f} s"
    return f"{duration_s * 1000:.{0 if duration_s >= 0.02 else 2}f} ms"


def judge_growth(growth: Growth) -> Verdict:
    """Whether a game's memory grows from reset to reset."""
    per_reset = (growth.last_bytes - growth.first_bytes) / max(1, growth.resets)
    figure = (
        f"{megabytes(growth.first_bytes)} at first, {megabytes(growth.last_bytes)} after "
        f"{growth.resets} resets ({per_reset / 1_000_000:+.2f} MB a reset)"
    )
    policy = RecyclePolicy()
    if policy.hard_memory_bytes is not None and growth.last_bytes > policy.hard_memory_bytes:
        advice = "beyond the hard limit: set PoolConfig(recycle=RecyclePolicy(hard_memory_bytes=…))"
        return Verdict(Outcome.FAILED, figure, advice)
    if per_reset <= GROWTH_BYTES:
        return Verdict(Outcome.OK, figure)
    resets = "many"
    if policy.growth_bytes is not None:
        resets = f"{policy.growth_bytes / per_reset:,.0f}"
    return Verdict(
        Outcome.DIFFERS, figure, f"it grows: the pool will replace each game after {resets} resets"
    )


def judge_kill(kill: Kill) -> Verdict:
    """Whether a killed game is gone, and soon."""
    if not kill.gone:
        advice = "a killed process that stays is stuck in the kernel: look at the disk and drivers"
        return Verdict(Outcome.FAILED, f"still there after {seconds(kill.took_s)}", advice)
    if kill.took_s > KILL_SLOW_S:
        return Verdict(Outcome.DIFFERS, seconds(kill.took_s), "close() takes longer for it")
    return Verdict(Outcome.OK, f"{seconds(kill.took_s)}, nothing left")


# ---- behaviour ----------------------------------------------------------------------------------


def judge_version(version: Version) -> Verdict:
    """What is played."""
    figure = f"{version.game_version}, base build {version.told_build}"
    if version.told_build == version.folder_build:
        return Verdict(Outcome.OK, figure)
    advice = f"its folder says Base{version.folder_build}: the installation may be a mixture"
    return Verdict(Outcome.DIFFERS, figure, advice)


def judge_proof(proven: YesNo) -> Verdict:
    """Whether the listener was known to be the game that was started."""
    if proven.yes:
        return Verdict(Outcome.OK, "proven before the first byte was sent")
    return Verdict(Outcome.DIFFERS, "not proven", "as with Wine; stats() will say so")


def judge_markers(markers: Markers) -> Verdict:
    """Whether the game says that it is ready."""
    if not markers.missing:
        return Verdict(Outcome.OK, f"yes: {', '.join(markers.found)}")
    figure = f"not printed: {', '.join(markers.missing)}"
    return Verdict(Outcome.DIFFERS, figure, "sc2pool does not wait for them; other clients may")


def judge_ids(echoed: YesNo) -> Verdict:
    """Whether replies carry the ids of their requests."""
    if echoed.yes:
        return Verdict(Outcome.OK, "yes: a reply is known by its id")
    advice = "an old game: replies are told apart by their order and kind alone"
    return Verdict(Outcome.DIFFERS, "no", advice)


def judge_determinism(runs: Comparison) -> Verdict:
    """Whether the same seed and actions give the same episode."""
    if not runs.difference:
        return Verdict(Outcome.OK, f"yes: {runs.compared} observations are the same")
    return Verdict(
        Outcome.DIFFERS, f"no: {runs.difference}", "a run with a seed cannot be repeated exactly"
    )


def judge_bursts(runs: Comparison) -> Verdict:
    """Whether a burst gives what single requests give."""
    if not runs.difference:
        return Verdict(Outcome.OK, f"yes: {runs.compared} observations are the same")
    advice = "sc2pool steps in bursts, and this game answers them wrongly: please report it"
    return Verdict(Outcome.FAILED, f"no: {runs.difference}", advice)


def judge_seed(beginnings: Variety) -> Verdict:
    """Whether another seed gives another beginning."""
    if beginnings.distinct == beginnings.episodes:
        return Verdict(Outcome.OK, "yes: another beginning")
    advice = "the map always begins like this, or the game takes no seed"
    return Verdict(Outcome.DIFFERS, "no: the same beginning", advice)


def judge_restart_seed(runs: Comparison) -> Verdict:
    """Whether a restarted game plays its seed once more."""
    if runs.difference:
        return Verdict(Outcome.OK, f"no, it goes on to another episode: {runs.difference}")
    advice = (
        "nothing has to be done: sc2pool never restarts a game that was given a seed. If games "
        "without a seed repeat themselves too, the line on their beginnings says so"
    )
    figure = f"yes: {runs.compared} observations are the same as after create_game"
    return Verdict(Outcome.DIFFERS, figure, advice)


def judge_variety(beginnings: Variety) -> Verdict:
    """Whether restarted episodes differ from each other."""
    figure = f"{beginnings.distinct} different beginning(s) in {beginnings.episodes} episodes"
    if beginnings.distinct == 1 < beginnings.episodes:
        return Verdict(Outcome.DIFFERS, figure, f"every episode begins alike: {_SEEDS}")
    return Verdict(Outcome.OK, figure)


def judge_hard_reset(reset: HardReset) -> Verdict:
    """Whether the game asked for a new game in place of a restart."""
    if reset.asked_after is None:
        return Verdict(Outcome.OK, f"not in {reset.restarts} restarts")
    advice = "the pool obeys: such a game is replaced when its episode ends, which takes a launch"
    return Verdict(Outcome.DIFFERS, f"after {reset.asked_after} restarts", advice)


def judge_episode_end(end: EpisodeEnd) -> Verdict:
    """Whether the result comes with the end."""
    how = "by a debug command" if end.by_command else "by itself"
    figure = f"ended {how} at game loop {end.game_loop}, "
    if end.further_observations is None:
        advice = "sc2pool observes once more for it, in vain: wins and losses cannot be told apart"
        return Verdict(Outcome.DIFFERS, figure + "the result never came", advice)
    if end.further_observations == 0:
        return Verdict(Outcome.OK, figure + "with the result at once")
    figure += f"the result {end.further_observations} observation(s) later"
    if end.further_observations == 1:
        return Verdict(Outcome.OK, figure + ", as sc2pool expects")
    return Verdict(Outcome.DIFFERS, figure, "sc2pool observes once more only")


def judge_ended_restart(restarted: YesNo) -> Verdict:
    """Whether an ended game can be restarted."""
    if restarted.yes:
        return Verdict(Outcome.OK, "yes")
    return Verdict(Outcome.DIFFERS, "no: created anew", "every reset takes a create_game")


def judge_process_test(test: ProcessTest) -> Verdict:
    """Whether DebugTestProcess does what it says."""
    if test.ended:
        return Verdict(Outcome.OK, f"yes, {seconds(test.took_s)} later: {test.detail}")
    advice = "tests of faults cannot ask this game for one; sc2pool itself does not need it"
    return Verdict(Outcome.DIFFERS, f"no: {test.detail}", advice)


def judge_pace(pace: Pace) -> Verdict:
    """Whether real time is real."""
    figure = f"{pace.loops_per_s:.1f} loops/s over {pace.seconds:.1f} s (expected {LOOPS_PER_S})"
    expected_loops = LOOPS_PER_S * pace.seconds
    # Loops come whole: one more or less says nothing.
    if abs(pace.loops - expected_loops) <= 1 + PACE_TOLERANCE * expected_loops:
        return Verdict(Outcome.OK, figure)
    advice = "the machine is too busy or too slow for real time, or the game keeps another clock"
    return Verdict(Outcome.DIFFERS, figure, advice)


def judge_awaited_loop(awaited: AwaitedLoop) -> Verdict:
    """Whether an observation waits for the loop it names."""
    figure = (
        f"asked at loop {awaited.now} for loop {awaited.asked}, got loop {awaited.got} "
        f"after {seconds(awaited.took_s)}"
    )
    if awaited.asked <= awaited.got <= awaited.asked + LATE_LOOPS:
        return Verdict(Outcome.OK, figure)
    advice = "a client in real time has to look at its own clock instead"
    return Verdict(Outcome.DIFFERS, figure, advice)


def judge_pause(pause: Pause) -> Verdict:
    """Whether the game plays what it missed while it was stopped."""
    missed = pause.loops_per_s * pause.stopped_s
    share = pause.made_up_share
    at_once = pause.loop_at_once - pause.loop_before
    figure = (
        f"stopped for {pause.stopped_s:.1f} s, that is {missed:.0f} loops, of which {share:.0%} "
        f"were made up (+{at_once} loops when it went on, "
        f"+{pause.loop_after - pause.loop_before} in all, {pause.ran_s:.1f} s of running)"
    )
    if share <= FREEZES_BELOW:
        return Verdict(Outcome.OK, f"no, it goes on where it was: {figure}")
    advice = (
        "a pause does not stop this game's time: what it missed is played without an action. In "
        "real time let the actor go on while the learner learns, instead of pausing the game"
    )
    how = "yes" if share >= CATCHES_UP_ABOVE else "in part"
    return Verdict(Outcome.DIFFERS, f"{how}: {figure}", advice)
