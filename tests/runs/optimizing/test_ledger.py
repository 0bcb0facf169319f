"""The ledger: nothing twice, nothing lost, and which candidate is best."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from programs import DirectReasoning
from runs.optimizing.ledger import Ledger
from signatures.errors import DataError, ProgramError

USAGE = {"calls": 2, "from_cache": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": None}


def program(text: str = "Think.") -> DirectReasoning:
    made = DirectReasoning()
    made.reason.signature = made.reason.signature.with_instructions(text)
    return made


def answer(
    ledger: Ledger, digest: str, question: str, score: float, part: str = "val", finish: str = "answered", **more
) -> None:
    ledger.add(digest, question, usage=USAGE, finish=finish, **more)
    ledger.add(digest, question, part, score, **more)


def ledger_path(ledger: Ledger) -> Path:
    return ledger.folder / "ledger.jsonl"


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path, ["v1", "v2"])


def test_a_candidate_is_stored_once_under_its_digest_with_its_origin(ledger) -> None:
    digest = ledger.candidate(program(), "start")
    assert ledger.candidate(program(), "again") == digest
    (file,) = (ledger.folder / "candidates").iterdir()
    content = json.loads(file.read_text())
    assert (file.stem, content["digest"], content["origin"], content["number"]) == (digest[:16], digest, "start", 0)
    assert ledger.state(digest)["reason"]["signature"]["instructions"] == "Think."
    assert ledger.candidate(program("Think hard."), "seed 1") != digest


def test_what_an_optimizer_leaves_behind_on_a_predictor_changes_no_digest(ledger) -> None:
    plain, used = program(), program()
    used.reason.traces = [{"x": 1}]
    used.reason.train = [{"y": 2}]
    assert ledger.candidate(plain) == ledger.candidate(used)


def test_a_second_start_reads_everything_and_counts_nothing_twice(tmp_path, ledger) -> None:
    digest = ledger.candidate(program(), "start")
    answer(ledger, digest, "v1", 1.0)
    answer(ledger, digest, "t1", 0.5, "train")
    size = ledger_path(ledger).stat().st_size
    again = Ledger(tmp_path, ["v1", "v2"])
    assert (again.spent, again.scores(digest), again.scores(digest, "train")) == (ledger.spent, {"v1": 1}, {"t1": 0.5})
    assert (again.spent.questions, again.spent.calls, again.spent.from_cache, again.spent.tokens) == (2, 4, 2, 220)
    again.candidate(program(), "start")
    answer(again, digest, "v1", 1.0)
    assert again.spent == ledger.spent
    assert ledger_path(again).stat().st_size == size


def test_an_answer_that_failed_gives_way_to_one_that_did_not(ledger) -> None:
    digest = ledger.candidate(program())
    ledger.add(digest, "v1", "val", 0.0, {**USAGE, "cost": 0.5}, "error")
    ledger.add(digest, "v1", "val", 1.0, {**USAGE, "calls": 5, "cost": 0.25}, "answered")
    ledger.add(digest, "v1", usage={**USAGE, "calls": 9}, finish="error")
    assert (ledger.spent.calls, ledger.spent.cost, ledger.spent.questions) == (5, 0.25, 1)
    assert ledger.scores(digest) == {"v1": 1.0}


def test_a_cost_that_no_call_told_is_not_zero(ledger) -> None:
    answer(ledger, ledger.candidate(program()), "v1", 1.0)
    assert ledger.spent.cost is None


def test_the_best_has_met_every_validation_question_and_of_equals_is_the_earlier(ledger) -> None:
    assert ledger.best() is None
    first, second, third, fourth = (ledger.candidate(program(f"Think {i} times.")) for i in range(4))
    answer(ledger, second, "v1", 1.0)
    assert ledger.best() == (second, 1.0, 1)
    for digest in (third, first):
        answer(ledger, digest, "v1", 1.0)
        answer(ledger, digest, "v2", 0.0)
    assert ledger.best() == (first, 0.5, 2)
    answer(ledger, fourth, "v1", 1.0)
    answer(ledger, fourth, "v2", 1.0)
    assert ledger.best() == (fourth, 1.0, 2)
    ledger.reject(fourth, "no marker")
    assert ledger.best() == (first, 0.5, 2)
    assert ledger.promising(1) == [second]


def test_of_equally_right_candidates_the_one_that_ends_its_chains_is_the_best(ledger) -> None:
    rambling, ending = (ledger.candidate(program(text)) for text in ("Think.", "Think, and end."))
    for question, finish in (("v1", "length"), ("v2", "answered")):
        answer(ledger, rambling, question, 0.0, finish=finish)
        answer(ledger, ending, question, 0.0)
    assert ledger.best() == (ending, 0.0, 2)
    answer(ledger, rambling, "v2", 1.0)
    assert ledger.best() == (rambling, 0.5, 2)


def test_training_answers_and_other_rounds_of_sampling_make_no_validation_score(ledger) -> None:
    digest = ledger.candidate(program())
    answer(ledger, digest, "t1", 1.0, "train")
    answer(ledger, digest, "v1", 1.0, rollout="3")
    assert (ledger.best(), ledger.trials(), ledger.spent.questions) == (None, [], 2)
    assert ledger.promising(3) == [digest]


def test_trials_are_numbered_as_first_seen_with_their_tokens_and_rejections(tmp_path, ledger) -> None:
    first, _, third = (ledger.candidate(program(f"Think {i} times."), f"seed {i}") for i in range(3))
    answer(ledger, third, "v2", 0.5)
    answer(ledger, third, "t9", 0.0, "train")
    ledger.reject(first, "the query markers are gone")
    for found in (ledger, Ledger(tmp_path, ["v1", "v2"])):
        rejected, trial = found.trials()
        assert (rejected.number, rejected.rejected, rejected.n) == (0, "the query markers are gone", 0)
        assert (trial.number, trial.digest, trial.score, trial.n, trial.tokens) == (2, third, 0.5, 1, 220)
        assert trial.origin == "seed 2"


def test_a_line_cut_by_a_kill_is_dropped_and_written_over(tmp_path, ledger) -> None:
    digest = ledger.candidate(program())
    answer(ledger, digest, "v1", 1.0)
    whole = ledger_path(ledger).read_bytes()
    ledger_path(ledger).write_bytes(whole[:-7])
    again = Ledger(tmp_path, ["v1", "v2"])
    assert again.scores(digest) == {}
    answer(again, digest, "v1", 1.0)
    assert Ledger(tmp_path, ["v1", "v2"]).scores(digest) == {"v1": 1.0}


@pytest.mark.parametrize("damage", [b"{broken", b"[1]", b'{"kind": "answer", "candidate": "unknown"}', b"3"])
def test_a_damaged_line_is_named_with_the_way_out(tmp_path, ledger, damage) -> None:
    ledger.candidate(program())
    ledger_path(ledger).write_bytes(ledger_path(ledger).read_bytes() + damage + b"\n")
    with pytest.raises(DataError, match=r"ledger\.jsonl, line 2: damaged; remove that line, or the folder"):
        Ledger(tmp_path, ["v1"])


def test_a_candidate_whose_file_was_changed_is_refused(ledger) -> None:
    digest = ledger.candidate(program())
    (file,) = (ledger.folder / "candidates").iterdir()
    file.write_text(file.read_text().replace("Think.", "Guess."))
    with pytest.raises(ProgramError, match="gone or damaged"):
        ledger.state(digest)


def test_a_folder_that_cannot_be_written_is_named(tmp_path) -> None:
    (tmp_path / "candidates").write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"candidates.* cannot be written"):
        Ledger(tmp_path, []).candidate(program())


def test_half_a_character_in_a_prompt_is_kept_as_it_is(tmp_path, ledger) -> None:
    made = program()
    made.reason.demos = [{"question": "q\ud800", "reasoning": "r", "answer": "a\u2028b"}]
    digest = ledger.candidate(made, "\ud800")
    assert Ledger(tmp_path, []).state(digest)["reason"]["demos"][0]["question"] == "q\ud800"


def test_a_candidate_that_two_starts_at_once_wrote_keeps_its_number_and_its_answers(tmp_path, ledger) -> None:
    other = Ledger(tmp_path, ["v1", "v2"])
    digest = ledger.candidate(program(), "start")
    answer(ledger, digest, "v1", 1.0)
    other.candidate(program("Think hard."), "elsewhere")
    answer(other, other.candidate(program(), "start"), "v2", 1.0)
    assert Ledger(tmp_path, ["v1", "v2"]).best() == (digest, 1.0, 2)


def test_time_is_that_of_all_starts_without_the_pauses_between(tmp_path) -> None:
    rows = [("start", 100.0), ("rejected", 130.0), ("start", 500.0), ("rejected", 512.5)]
    first = {"kind": "candidate", "candidate": "c", "origin": "", "time": 100.0}
    lines = [first, *({"kind": kind, "candidate": "c", "reason": "r", "time": at} for kind, at in rows)]
    (tmp_path / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert Ledger(tmp_path, []).seconds == 42.5


def test_many_threads_leave_whole_lines_and_whole_counts(tmp_path, ledger) -> None:
    def work(i: int) -> None:
        digest = ledger.candidate(program(f"Think {i % 3} times."))
        for j in range(20):
            answer(ledger, digest, f"q{j}", 1.0, "train")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent.questions == 60
    assert Ledger(tmp_path, []).spent == ledger.spent
