"""What optimizers compile: checked, accounted for, sampled anew a round, and never the end of a run."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from metrics.feedback import ScoreWithFeedback
from programs import SearchO1
from programs.base import Program
from retrieval.base import Hit
from retrieval.cache import Cache
from runs.benchmarks.question import Question
from runs.models.factory import Model, make_model
from runs.optimizing.candidate import Candidate
from runs.optimizing.ledger import Ledger
from runs.optimizing.session import AccountedMetric, Session, Stopped
from tests.programs.world import MemoryReader, MemorySearch
from tests.runs.world import facts
from tests.servers.lm import LMServer, searching_model

FILMS = facts(4)


class Gate:
    """Refuses instructions that lack the query marker."""

    def check(self, program: Program) -> str:
        return "" if "begin_search_query" in program.reason.signature.instructions else "the query marker is gone"


class Settler:
    """Keeps two demos at most."""

    def settle(self, program: Program) -> None:
        program.reason.demos = program.reason.demos[:2]


def questions(*numbers: int) -> list[Question]:
    return [Question(f"q{i}", f"Who directed {list(FILMS)[i]}?", (list(FILMS.values())[i],)) for i in numbers]


class World:
    """A searching program, its session, and the server that answers it."""

    def __init__(self, folder: Path, server: LMServer, **options: Any) -> None:
        self.server = server
        self.cache = Cache(folder / "cache.sqlite")
        self.model: Model = make_model(f"hosted_vllm/{server.model}", server.base_url, cache=self.cache)
        hits = [Hit(film, f"https://a.example/{i}", film) for i, film in enumerate(FILMS)]
        pages = {hit.url: f"{hit.title} was directed by {FILMS[hit.title]}." for hit in hits}
        search = MemorySearch({hit.title: [hit] for hit in hits})
        self.program = SearchO1(search, MemoryReader(pages), **options)
        self.ledger = Ledger(folder, [q.id for q in questions(2, 3)])

    def session(self, **options: Any) -> Session:
        return Session(self.ledger, questions(0, 1), questions(2, 3), gate=Gate(), demos=Settler(), **options)

    def candidate(self, **options: Any) -> Candidate:
        return Candidate(self.program, self.session(**options))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    servers: list[LMServer] = []

    def start(reply: Any = None, latency: float = 0.0, **options: Any) -> World:
        servers.append(LMServer(reply or searching_model(FILMS), latency=latency).start())
        return World(tmp_path, servers[-1], **options)

    yield start
    for server in servers:
        server.stop()


def ask(world: World, candidate: Candidate, number: int, **settings: Any) -> Any:
    with dspy.context(lm=world.model.lm, **settings):
        return candidate(question=questions(number)[0].question)


def test_an_answer_carries_the_candidate_and_its_usage_is_in_the_ledger(world) -> None:
    here = world()
    candidate = here.candidate()
    answer = ask(here, candidate, 2)
    assert (answer.answer, answer.finish, answer.question_id) == (FILMS[list(FILMS)[2]], "answered", "q2")
    assert answer.candidate == here.ledger.candidate(here.program)
    assert (here.ledger.spent.questions, here.ledger.spent.calls) == (1, 3)
    assert here.ledger.spent.prompt_tokens == answer.usage["prompt_tokens"] > 0


def test_optimizers_see_the_chain_but_no_times_while_a_metric_sees_all(world) -> None:
    here = world()
    answer = ask(here, here.candidate(), 2)
    assert set(dict(answer)) == {"reasoning", "answer", "finish", "error", "rejection"}
    assert "start" not in repr(answer)
    assert dict(zip(answer, answer.values(), strict=True)) == dict(answer.items())
    assert (len(answer), answer["events"], answer.get("searches")) == (5, answer.events, answer.searches)
    assert {"events", "usage", "contamination"} <= set(answer.toDict())


def test_predictors_have_the_names_that_proposals_are_made_for(world) -> None:
    here = world()
    assert [name for name, _ in here.candidate().named_predictors()] == ["program.reason", "program.refine"]


@pytest.mark.parametrize(("only", "hidden"), [("reason", "refine"), ("refine", "reason")])
def test_a_frozen_predictor_is_hidden_from_every_way_of_asking_and_keeps_its_demos(world, only, hidden) -> None:
    here = world()
    demo = {"question": "q", "reasoning": "r", "answer": "a"}
    for predictor in (here.program.reason, here.program.refine):
        predictor.demos = [demo]
    candidate = here.candidate(only=only)
    assert [name for name, _ in candidate.named_predictors()] == [f"program.{only}"]
    assert len(candidate.predictors()) == len(candidate.parameters()) == len(candidate.deepcopy().predictors()) == 1
    assert set(candidate.dump_state()) == {f"program.{only}"}
    assert getattr(candidate.reset_copy().program, hidden).demos == [demo]
    assert getattr(candidate.reset_copy().program, only).demos == []
    trace: list[Any] = []
    answer = ask(here, candidate, 2, trace=trace)
    assert answer.finish == "answered"
    assert [entry[0] for entry in trace] == [getattr(candidate.program, only)]


def test_the_trace_of_both_predictors_reaches_the_optimizer(world) -> None:
    here = world()
    candidate = here.candidate()
    trace: list[Any] = []
    ask(here, candidate, 2, trace=trace)
    assert [entry[0] for entry in trace] == [candidate.program.refine, candidate.program.reason]


def test_a_candidate_without_the_protocol_makes_no_model_call_and_scores_nothing(world) -> None:
    here = world()
    here.program.reason.signature = here.program.reason.signature.with_instructions("Just answer.")
    candidate = here.candidate()
    metric = AccountedMetric(
        lambda example, answer, *_: ScoreWithFeedback(float(bool(answer.answer))), candidate.session
    )
    answer = ask(here, candidate, 2)
    assert (answer.finish, answer.rejection, answer.answer) == ("rejected", "the query marker is gone", "")
    assert metric(dspy.Example(id="q2"), answer) == 0.0
    assert here.server.counts["/v1/completions"] == 0
    (trial,) = here.ledger.trials()
    assert (trial.rejected, here.ledger.best()) == ("the query marker is gone", None)


def test_demos_are_settled_before_the_candidate_is_known_by_its_digest(world) -> None:
    here = world()
    here.program.reason.demos = [
        {"question": f"q{i}", "reasoning": f"\\boxed{{{i}}}", "answer": str(i)} for i in range(5)
    ]
    candidate = here.candidate()
    answer = ask(here, candidate, 2)
    assert len(here.ledger.state(answer.candidate)["reason"]["demos"]) == len(candidate.program.reason.demos) == 2


def test_a_failing_question_is_an_answer_like_any_other(world) -> None:
    here = world()
    candidate = here.candidate()
    here.server.fail_next(100, status=400, body={"error": {"message": "no such model"}})
    answer = ask(here, candidate, 2)
    assert (answer.finish, answer.error_kind, answer.answer) == ("error", "model", "")
    assert "no such model" in answer.error
    here.program.options = None
    assert ask(here, candidate, 3).error_kind == "unexpected"


def test_each_question_and_round_is_sampled_under_its_own_rollout_and_found_again(world) -> None:
    here = world()
    candidate = here.candidate(seed=7)
    ask(here, candidate, 2)
    seeds = [call.body["seed"] for call in here.server.calls]
    ask(here, candidate, 2)
    assert len(here.server.calls) == len(seeds)
    with dspy.context(lm=here.model.lm.copy(rollout_id=3)):
        again = candidate(question=questions(2)[0].question)
    assert again.rollout == "3"
    later = [call.body["seed"] for call in here.server.calls[len(seeds) :]]
    assert not set(seeds) & set(later)
    assert (here.ledger.spent.questions, here.ledger.spent.calls) == (2, 6)


def test_an_evaluation_of_the_same_program_finds_every_reply_in_the_cache(world) -> None:
    from runs.answering import answer_one

    here = world(seed=7)
    ask(here, here.candidate(seed=7), 2)
    calls = len(here.server.calls)
    record = asyncio.run(answer_one(here.program, here.model, questions(2)[0], 0, 7))
    assert (record["strict"]["em"], len(here.server.calls)) == (1.0, calls)


def test_a_language_model_set_on_a_copy_answers_for_it_alone(world) -> None:
    here = world()
    candidate = here.candidate()
    twin = candidate.deepcopy()
    twin.set_lm(here.model.lm.copy(rollout_id=2, temperature=1.0))
    assert ask(here, twin, 2).rollout == "2"
    assert ask(here, candidate, 2).rollout == "0"
    assert (candidate.get_lm(), twin.deepcopy().lm is twin.lm, twin.program.reason.lm) == (None, True, None)


def test_copies_share_the_session_and_nothing_else(world) -> None:
    here = world()
    candidate = here.candidate()
    for twin in (candidate.deepcopy(), copy.deepcopy(candidate), candidate.reset_copy()):
        assert twin.session is candidate.session
        assert twin.program is not candidate.program
        twin.program.reason.demos.append({"question": "q"})
        assert candidate.program.reason.demos == []


def test_an_unknown_question_is_answered_and_judged_by_nobody(world) -> None:
    here = world()
    with dspy.context(lm=here.model.lm):
        answer = here.candidate()(question="Who directed nothing at all?")
    assert answer.question_id.startswith("?")
    assert here.ledger.spent.questions == 1


def test_the_same_question_put_twice_at_once_is_paid_for_once(world) -> None:
    here = world(latency=0.1)
    candidate = here.candidate()
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(here, candidate, 2))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.finish for answer in answers] == ["answered"] * 3
    assert len(here.server.calls) == 3


def test_a_stop_ends_calls_in_flight_and_goes_through_dspys_thread_pool(world) -> None:
    here = world(latency=30.0)
    candidate = here.candidate()
    examples = [dspy.Example(question=q.question, id=q.id).with_inputs("question") for q in questions(2, 3)]
    metric = AccountedMetric(lambda *_: ScoreWithFeedback(1.0), candidate.session)
    raised: list[BaseException] = []

    def evaluate() -> None:
        try:
            with dspy.context(lm=here.model.lm):
                dspy.Evaluate(devset=examples, metric=metric, num_threads=2, max_errors=100)(candidate)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=evaluate)
    thread.start()
    while here.server.running < 2:
        time.sleep(0.02)
    began = time.monotonic()
    candidate.session.stop()
    thread.join(10)
    assert [type(error) for error in raised] == [Stopped]
    assert time.monotonic() - began < 3
    with pytest.raises(Stopped):
        ask(here, candidate, 2)
    with pytest.raises(Stopped):
        metric(examples[0], None)


def test_on_an_event_loop_too(world) -> None:
    here = world()
    candidate = here.candidate()

    async def run() -> Any:
        with dspy.context(lm=here.model.lm):
            return await candidate.acall(question=questions(3)[0].question)

    assert asyncio.run(run()).answer == FILMS[list(FILMS)[3]]
    assert here.ledger.spent.questions == 1


def test_a_metric_that_raises_is_one_failed_example(world) -> None:
    here = world()
    candidate = here.candidate()

    def broken(example: Any, answer: Any, *_: Any) -> ScoreWithFeedback:
        if example.id == "q2":
            raise ZeroDivisionError("by hand")
        return ScoreWithFeedback(1.0)

    metric = AccountedMetric(broken, candidate.session)
    scores = [metric(dspy.Example(id=f"q{i}"), ask(here, candidate, i)) for i in (2, 3)]
    assert scores == [0.0, 1.0]
    assert scores[0].feedback == "The answer could not be scored: ZeroDivisionError: by hand"
    assert here.ledger.best()[1:] == (0.5, 2)


def test_the_stricter_rule_for_demos_is_no_score(world) -> None:
    here = world()
    candidate = here.candidate()
    metric = AccountedMetric(lambda *_: ScoreWithFeedback(0.0), candidate.session)
    metric(dspy.Example(id="q2"), ask(here, candidate, 2), [])
    assert here.ledger.best() is None


def test_a_failed_prediction_of_gepa_is_scored_without_an_account(world) -> None:
    here = world()
    metric = AccountedMetric(lambda *_: ScoreWithFeedback(0.0), here.session())
    assert metric(dspy.Example(id="q2"), None) == 0.0
    assert here.ledger.trials() == []
