"""Signals: the first one asks, the second one interrupts."""

import signal

import pytest

from sc2pool.cli.stop import Stop, Stopped, say
from sc2pool.platform import WINDOWS

HANGUP = None if WINDOWS else signal.SIGHUP
needs_hangup = pytest.mark.skipif(HANGUP is None, reason="Windows has no SIGHUP")


@pytest.mark.parametrize("first", [signal.SIGTERM, pytest.param(HANGUP, marks=needs_hangup)])
def test_the_first_signal_only_asks_and_the_second_interrupts(first: signal.Signals) -> None:
    stop = Stop()
    before = signal.signal(first, signal.SIG_DFL)  # under nohup a hang-up is ignored
    try:
        with stop.handling(), stop.polite():
            signal.raise_signal(first)
            assert stop.signal == first
            with pytest.raises(Stopped) as caught:
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(first, before)
    assert caught.value.exit_code == 130


def test_outside_of_the_training_a_signal_interrupts_at_once() -> None:
    stop = Stop()
    with stop.handling(), pytest.raises(Stopped) as caught:
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.exit_code == 143


def test_an_interrupt_that_ray_made_of_a_signal_tells_which_it_was() -> None:
    stop = Stop()
    with pytest.raises(Stopped) as caught, stop.handling():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # as `ray.get` does
    assert caught.value.exit_code == 143


def test_the_former_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Stop().handling():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@needs_hangup
def test_a_program_under_nohup_ignores_a_hangup() -> None:
    before = signal.signal(HANGUP, signal.SIG_IGN)
    stop = Stop()
    with stop.handling(), stop.polite():
        signal.raise_signal(HANGUP)
    assert stop.signal is None
    assert signal.signal(HANGUP, before) is signal.SIG_IGN


def test_what_is_said_is_no_command_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("first\n\x1b]0;title\x07second")
    assert capsys.readouterr().out == "first\n\\x1b]0;title\\x07second\n"
