"""An evaluation end to end: a model server over HTTP, a real index, a journal, scores."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from programs.registry import PROGRAMS
from programs.saving import save_program
from runs import evaluate
from runs.summary import compare_records
from signatures.errors import ModelError, OptionError, ProgramError
from tests.programs.world import search_o1
from tests.runs.world import facts, read_records


def test_four_methods_are_scored_on_the_same_questions(films) -> None:
    world = films()
    done = {e.method: e for e in world.run(methods=tuple(PROGRAMS))}
    em = {method: e.summary.scores["strict"]["em"].mean for method, e in done.items()}
    # The scripted model knows nothing, so only those that search can be right.
    assert em == {"direct": 0.0, "standard_rag": 1.0, "rag_agent": 1.0, "search_o1": 1.0}
    assert [len(e.records) for e in done.values()] == [8, 8, 8, 8]
    assert done["search_o1"].summary.groups["type=bridge"].n == 4
    assert done["search_o1"].summary.chains["searches"] == 1.0
    assert done["direct"].summary.chains["searches"] == 0.0
    assert len({e.folder for e in done.values()}) == 4
    assert not world.server.errors


def test_methods_side_by_side_end_with_their_paired_difference(films) -> None:
    screen = io.StringIO()
    world = films()
    first, second = evaluate(
        "films",
        home=world.home,
        console=Console(file=screen, width=160),
        **world.settings(methods=("direct", "search_o1")),
    )
    text = screen.getvalue()
    assert "search_o1 - direct: em (strict) +100.0" in text
    assert "on 8 questions (only search_o1 right 8, only direct 0, McNemar p = 0.0078)" in text
    assert "em (strict)" in text
    assert "type=single" in text
    difference = compare_records(second.records, first.records)
    assert (difference.n, difference.only_a, difference.only_b) == (8, 8, 0)
    assert compare_records(second.records, first.records, group="type=bridge").n == 4


def test_a_record_holds_all_that_scores_traces_and_reports_need(films) -> None:
    done = films(2).run_one()
    record = read_records(done.folder / "journal.jsonl")[0]
    assert record["prediction"] == record["answers"][0] == facts()["Sunrise over Arden 00"]
    assert (record["finish"], record["searches"], record["turns"], record["refinements"]) == ("answered", 1, 2, 1)
    assert record["official"]["em"] == record["strict"]["em"] == 1.0
    assert record["prompt_tokens"] > record["cached_tokens"] > 0
    assert record["completion_tokens"] > 0
    assert (record["calls"], record["calls_from_cache"], record["retokenised"]) == (3, 0, 0)
    assert record["ended"] - record["started"] == pytest.approx(record["seconds"])
    (search,) = record["search_log"]
    assert search["query"] == "Sunrise over Arden 00"
    assert search["hits"][0]["title"] == "Sunrise over Arden 00"
    assert "\\boxed{Director Arden 00}" in record["chain"]
    kinds = [event["type"] for event in record["events"]]
    assert kinds[0] == "generate"
    assert {"search", "read", "refine", "generate"} <= set(kinds)
    assert record["gold_titles"] == ["Sunrise over Arden 00"]
    assert record["groups"] == {"type": "bridge"}


def test_a_limit_takes_the_first_questions_and_a_larger_one_goes_on(films) -> None:
    world = films()
    first = world.run_one(limit=3)
    assert [r["id"] for r in first.records] == ["q0", "q1", "q2"]
    calls = len(world.server.calls)
    more = world.run_one(limit=5)
    assert (more.answered, more.id) == (2, first.id)
    assert [r["id"] for r in more.records] == ["q0", "q1", "q2", "q3", "q4"]
    assert len(world.server.calls) == calls + 6
    everything = world.run_one(limit=0)
    assert (everything.answered, len(everything.records)) == (3, 8)
    assert world.run_one(limit=3).summary.questions == 3


def test_a_finished_run_asks_nothing_and_scores_the_same(films) -> None:
    world = films()
    first = world.run_one()
    calls = len(world.server.calls)
    again = world.run_one()
    assert (again.answered, len(world.server.calls)) == (0, calls)
    assert again.summary.metrics() == first.summary.metrics()


def test_a_fresh_start_forgets_the_journal(films) -> None:
    world = films(3)
    world.run_one()
    again = world.run_one(fresh=True)
    assert again.answered == 3
    assert len(read_records(again.folder / "journal.jsonl")) == 3


def test_samples_differ_on_the_wire_and_are_averaged_a_question(films) -> None:
    world = films(4)
    done = world.run_one(samples=3)
    assert [(r["id"], r["sample"]) for r in done.records[:4]] == [("q0", 0), ("q0", 1), ("q0", 2), ("q1", 0)]
    assert (done.summary.questions, done.summary.samples, done.summary.scores["strict"]["em"].n) == (4, 3, 4)
    seeds = [call.body["seed"] for call in world.server.calls]
    assert len(seeds) == len(set(seeds)) == 4 * 3 * 3
    more = world.run_one(samples=4)
    assert more.answered == 4


def test_the_run_seed_changes_every_sampling_seed(films) -> None:
    world = films(2)
    world.run_one()
    first = {call.body["seed"] for call in world.server.calls}
    world.server.calls.clear()
    world.run_one(seed=1)
    assert not first & {call.body["seed"] for call in world.server.calls}


def test_greedy_samples_come_from_the_reply_cache(films) -> None:
    world = films(2)
    done = world.run_one(samples=3, temperature=0.0, concurrency=1)
    assert len(world.server.calls) == 2 * 3
    assert [r["calls_from_cache"] for r in done.records if r["sample"] == 2] == [3, 3]


def test_no_more_chains_are_in_flight_than_allowed(films) -> None:
    world = films(latency=0.05)
    world.run_one(concurrency=3)
    assert world.server.max_running == 3


def test_failures_are_counted_by_kind_stay_in_the_denominator_and_are_tried_again(films) -> None:
    world = films()
    world.server.fail_next(2, status=400, body={"error": {"message": "Injected refusal"}})
    done = world.run_one(concurrency=1)
    assert done.summary.failures == {"model": 2}
    assert done.summary.questions == len(done.records) == 8
    assert done.summary.scores["strict"]["em"].mean == pytest.approx(6 / 8)
    failed = [r for r in done.records if r["finish"] == "error"]
    assert all("Injected refusal" in r["error"] and r["strict"]["em"] == 0.0 for r in failed)
    calls = len(world.server.calls)
    again = world.run_one(concurrency=1)
    assert (again.answered, again.summary.failures) == (2, {})
    assert again.summary.scores["strict"]["em"].mean == 1.0
    assert len(world.server.calls) == calls + 6


def test_a_chain_that_breaks_off_is_wrong_whatever_its_partial_text_holds(films) -> None:
    def reply(prompt: str, body: dict[str, object]) -> str:
        return "Perhaps \\boxed{Director Arden 00}. <|begin_search_query|>Arden<|end_search_query|>"

    world = films(1, reply=reply)
    world.server.fail_next(1, status=None)
    world.server.fail_next(1, status=400, body={"error": {"message": "Injected refusal"}})
    done = world.run_one()
    (record,) = done.records
    assert (record["finish"], done.summary.failures) == ("error", {"model": 1})
    assert "Perhaps" in record["chain"]
    assert record["strict"]["em"] == record["official"]["em"] == 0.0


def test_a_bug_in_one_question_does_not_take_the_others_with_it(films) -> None:
    world = films(3)
    world.data.write_text(
        world.data.read_text()
        + json.dumps({"id": "odd", "question": "Who?", "answers": ["x"], "question_title": "T"})
        + "\n"
    )
    done = world.run_one()
    assert len(done.records) == 4
    assert done.records[-1]["id"] == "odd"


def test_the_direct_answer_stands_in_where_a_method_gives_none(films) -> None:
    def reply(prompt: str, _: dict[str, object]) -> str:
        if "<|begin_search_query|>" in prompt:
            return "I do not know."
        return "\\boxed{Director Arden 00}"

    world = films(2, reply=reply)
    plain = world.run_one()
    assert plain.summary.finishes == {"no_answer": 2}
    done = world.run_one(fallback="generate")
    assert done.id != plain.id
    assert done.summary.fallbacks == 2
    assert [r["strict"]["em"] for r in done.records] == [1.0, 0.0]
    assert all(r["fallback"] and r["chain"] == "I do not know." and r["direct_chain"] for r in done.records)
    assert done.summary.finishes == {"no_answer": 2}


def test_a_compiled_program_is_taken_from_a_file_by_name_or_not_at_all(films, tmp_path) -> None:
    world = films(1)
    program = search_o1()
    program.reason.signature = program.reason.signature.with_instructions(
        "EDITED {max_search_limit} <|begin_search_query|>"
    )
    path = tmp_path / "edited.json"
    save_program(program, path, model="qwq-32b")
    plain, auto = world.run_one(program="none"), world.run_one()
    assert (plain.id, plain.compiled) == (auto.id, "")
    edited = world.run_one(program=str(path))
    assert edited.compiled == "edited.json"
    assert edited.id != plain.id
    assert "EDITED 10 <|begin_search_query|>" in world.server.prompts[-1]
    with pytest.raises(ProgramError, match="compiled for method search_o1"):
        world.run_one(program=str(path), methods=("rag_agent",))


def test_the_small_models_programs_are_taken_by_default_and_said(films) -> None:
    screen = io.StringIO()
    world = films(1, model="SmolLM2-135M-Instruct")
    (done,) = evaluate("films", home=world.home, console=Console(file=screen, width=160), **world.settings())
    assert done.compiled == "search_o1--smollm2-135m--open_qa.json"
    assert "compiled program search_o1--smollm2-135m--open_qa.json (without it: --program none)" in screen.getvalue()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"methods": ("direct", "search_o2")}, "Unknown method 'search_o2'"),
        ({"speed": 3}, "Unknown option 'speed'; known options: .*concurrency"),
        ({"samples": 0}, "Option samples = 0"),
        ({"options": {"top_q": 3}}, "Unknown option 'top_q'; known options: .*top_k"),
        ({"options": {"top_k": 0}}, "Option top_k = 0"),
        ({"fallback": "other-run"}, "Unknown fallback 'other-run'; known: generate"),
        ({"search": "alta-vista"}, "alta-vista"),
        ({"corpus": None}, "needs documents: give --corpus"),
        ({"split": "dev"}, "No questions left in films"),
    ],
)
def test_what_cannot_be_is_refused_before_any_question_is_asked(films, changes, complaint) -> None:
    world = films(2)
    with pytest.raises(OptionError, match=complaint):
        world.run(**changes)
    assert not world.server.calls


def test_an_unknown_benchmark_or_split_is_refused_with_the_known_ones(tmp_path) -> None:
    with pytest.raises(OptionError, match="Unknown benchmark 'nq2'; known: quickstart"):
        evaluate("nq2")
    with pytest.raises(OptionError, match="has no split 'dev'; it has: train, validation, test"):
        evaluate("quickstart", split="dev")


def test_a_missing_corpus_and_a_missing_server_say_the_way_out(films, tmp_path) -> None:
    world = films(1)
    with pytest.raises(OptionError, match=r"No corpus file or folder at .*nowhere\.jsonl"):
        world.run(corpus=tmp_path / "nowhere.jsonl")
    world.server.stop()
    with pytest.raises(ModelError, match="No model server answers"):
        world.run()


def test_the_papers_settings_reach_the_wire(films) -> None:
    world = films(1)
    world.run_one(paper=True)
    body = world.server.calls[0].body
    assert {k: body[k] for k in ("temperature", "top_p", "top_k", "repetition_penalty")} == {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "repetition_penalty": 1.05,
    }


def test_an_index_built_before_is_used_by_its_name(films) -> None:
    from retrieval.corpus.index import build_index

    world = films(2)
    build_index([world.corpus], world.home.indexes / "library", "library")
    done = world.run_one(corpus=None, index="library")
    assert done.summary.scores["strict"]["em"].mean == 1.0
    assert done.records[0]["search_log"][0]["hits"][0]["url"] == "corpus://library/d0"


def test_an_edited_corpus_is_indexed_again(films) -> None:
    world = films(2)
    first = world.run_one()
    world.corpus.write_text(world.corpus.read_text().replace("cold", "mild"))
    second = world.run_one()
    assert first.id != second.id
    assert len(list(world.home.indexes.iterdir())) == 2
