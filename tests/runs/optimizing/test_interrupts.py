"""Ctrl-C while long work runs, and what an optimizer prints meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from runs.optimizing.interrupts import WORKER, Interrupts
from runs.optimizing.quiet import Quiet


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_work_that_comes_to_its_end_says_so_and_ctrl_c_is_as_it_was() -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with Interrupts(lambda: done.append("stopped")) as interrupts:
        assert interrupts.run(lambda: done.append(threading.current_thread().name))
    assert done == [WORKER]
    assert signal.getsignal(signal.SIGINT) is before


def test_what_the_work_raises_is_raised() -> None:
    def work() -> None:
        raise ValueError("by hand")

    with Interrupts(lambda: None) as interrupts, pytest.raises(ValueError, match="by hand"):
        interrupts.run(work)


def test_the_first_ctrl_c_asks_the_work_to_end_and_the_second_changes_nothing() -> None:
    wanted, kept = threading.Event(), []

    def work() -> None:
        press()
        assert wanted.wait(10)
        raise KeyboardInterrupt

    with Interrupts(wanted.set) as interrupts:
        assert not interrupts.run(work)
        press()
        time.sleep(0.05)
        kept.append("the best so far")
    assert (kept, interrupts.pressed) == (["the best so far"], 2)


def test_the_third_ctrl_c_gives_up_the_tidying_too() -> None:
    def tidy() -> None:
        for _ in range(3):
            press()
            time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt), Interrupts(lambda: None):
        tidy()


def test_work_that_does_not_end_is_left_behind() -> None:
    release = threading.Event()
    began = time.monotonic()

    def work() -> None:
        press()
        release.wait(30)

    with Interrupts(lambda: None, patience=0.2) as interrupts:
        assert not interrupts.run(work)
    assert time.monotonic() - began < 5
    release.set()


def test_away_from_the_main_thread_the_work_just_runs() -> None:
    found: list[bool] = []

    def elsewhere() -> None:
        with Interrupts(lambda: None) as interrupts:
            found.append(interrupts.run(lambda: None))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [True]


def test_only_the_worker_prints_to_the_log(tmp_path, capsys) -> None:
    path = tmp_path / "folder" / "optimizer.log"

    def chatter() -> None:
        print("from the optimizer")
        print("its errors", file=sys.stderr, flush=True)

    with Quiet(WORKER, path), Interrupts(lambda: None) as interrupts:
        print("progress")
        interrupts.run(chatter)
        assert not sys.stdout.isatty()
        assert sys.stdout.encoding
    print("afterwards")
    assert capsys.readouterr().out == "progress\nafterwards\n"
    assert path.read_text() == "from the optimizer\nits errors\n"


def test_a_worker_left_behind_prints_for_nobody(tmp_path, capsys) -> None:
    with Quiet("left behind", tmp_path / "log"):
        stream = sys.stdout
    thread = threading.Thread(target=lambda: print("too late", file=stream), name="left behind")
    thread.start()
    thread.join()
    assert capsys.readouterr().out == ""
