"""The programs compiled for the embedded model: where they come from and what they put into prompts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.options import COMPACT_OPTIONS
from programs.registry import PROGRAMS, make_program
from programs.saving import SHIPPED, load_program, read_compiled, save_program, shipped_programs
from retrieval.corpus.index import build_index
from retrieval.corpus.local import LocalSearch
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.optimizing.labelled import worked_program
from signatures.adapter import ChainAdapter
from signatures.errors import ProgramError
from signatures.nearest import nearest_demos
from signatures.profiles import profile_for
from tests.programs.world import MemoryReader, MemorySearch

PROFILE = profile_for("SmolLM2-135M-Instruct")
INPUTS = {"question": "Who designed the lighthouse?", "documents": "A: b\n"}
REFINE = {"prev_reasoning": "Step 1: x", "search_query": "lighthouse", "document": "A: b\n"}


def program(method: str):
    return make_program(method, MemorySearch(), MemoryReader(), **COMPACT_OPTIONS)


def prompts(built) -> list[str]:
    """Return what the predictors of a program would send."""
    rendered = []
    for name, predictor in built.named_predictors():
        adapter = ChainAdapter(predictor.layout, PROFILE)
        inputs = REFINE if "refine" in name else INPUTS
        (message,) = adapter.format(predictor.signature, predictor.demos, inputs)
        rendered.append(message["content"])
    return rendered


def test_there_is_one_for_each_method_made_from_training_questions() -> None:
    shipped = {compiled.method: compiled for compiled in shipped_programs()}
    assert set(shipped) == set(PROGRAMS)
    train = {q.question for q in QUICKSTART.load("train")}
    held_out = [q.question for split in ("validation", "test") for q in QUICKSTART.load(split)]
    for compiled in shipped.values():
        learned_from = compiled.metadata["train"]["name"]
        assert (compiled.model, compiled.task, learned_from) == ("smollm2-135m", "open_qa", "quickstart train")
        demos = compiled.state["reason"]["demos"]
        assert len(demos) >= 100
        assert {demo["question"] for demo in demos} <= train
        text = compiled.path.read_text(encoding="utf-8")
        assert not [q for q in held_out if q in text]


@pytest.mark.parametrize("method", PROGRAMS)
def test_a_program_saved_and_loaded_sends_the_same_bytes(tmp_path, method) -> None:
    (compiled,) = [c for c in shipped_programs() if c.method == method]
    original = load_program(program(method), compiled)
    save_program(original, tmp_path / "copy.json", model="smollm2-135m")
    loaded = load_program(program(method), tmp_path / "copy.json")
    assert prompts(loaded) == prompts(original) != prompts(program(method))
    assert read_compiled(tmp_path / "copy.json").digest == compiled.digest


@pytest.mark.parametrize("method", PROGRAMS)
def test_a_shipped_file_that_was_touched_is_refused(tmp_path, method) -> None:
    path = tmp_path / "touched.json"
    text = (SHIPPED / f"{method}--smollm2-135m--open_qa.json").read_text(encoding="utf-8")
    path.write_text(text.replace("boxed{", "boxed{un", 1), encoding="utf-8")
    with pytest.raises(ProgramError, match=r"touched\.json was changed after it was written"):
        read_compiled(path)


def test_a_chain_is_shown_the_nearest_demos_and_no_others() -> None:
    built = load_program(program("search_o1"), SHIPPED / "search_o1--smollm2-135m--open_qa.json")
    reason, refine = prompts(built)
    assert reason.count("\\boxed{") == 3 + 1  # three demos, and the answer format in the task's own words
    assert refine.count("**Final Information**") >= 3


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> LocalSearch:
    folder = tmp_path_factory.mktemp("quickstart") / "index"
    build_index([QUICKSTART.corpus], folder, "quickstart")
    return LocalSearch(folder)


@pytest.mark.parametrize("method", PROGRAMS)
def test_the_labels_of_the_training_questions_give_the_shipped_prompts_again(library, method) -> None:
    bare = make_program(method, library, library.reader(), **COMPACT_OPTIONS)
    made, used = worked_program(bare, QUICKSTART.load("train"), PROFILE)
    (compiled,) = [c for c in shipped_programs() if c.method == method]
    shipped = load_program(program(method), compiled)
    assert len(used) == len(shipped.reason.demos)
    assert made.dump_state() == shipped.dump_state()


def test_what_is_told_of_a_program_says_how_to_make_it_and_what_it_is_worth() -> None:
    for compiled in shipped_programs():
        told = compiled.metadata
        assert (told["optimizer"], told["command"]["start"]) == ("labeled", "zero-shot")
        assert told["before"]["mean"] <= told["after"]["mean"]


demo_lists = st.lists(st.text(alphabet="abc ?", max_size=12), max_size=12).map(
    lambda texts: [{"question": text, "n": i} for i, text in enumerate(texts)]
)


@given(demos=demo_lists, text=st.text(alphabet="abc ?", max_size=12), count=st.integers(0, 6))
def test_nearest_demos_are_some_of_the_pool_never_the_question_itself(demos, text, count) -> None:
    chosen = nearest_demos(demos, text, "question", count)
    others = [demo for demo in demos if demo["question"] != text]
    assert len(chosen) == min(count, len(others))
    assert all(any(demo is other for other in others) for demo in chosen)
    assert len({demo["n"] for demo in chosen}) == len(chosen)
    assert chosen == nearest_demos(demos, text, "question", count)
    # Fewer are the last ones of more: the most similar stands last.
    if chosen:
        assert nearest_demos(demos, text, "question", len(chosen) - 1) == chosen[1:]


def test_the_most_similar_demo_stands_last() -> None:
    pool = [
        {"question": "Which novel was published first, Emma or Ivanhoe?"},
        {"question": "Who composed the opera Norma?"},
        {"question": "Which novel was published first, Dracula or Kim?"},
        {"question": "Who composed the opera Tosca?"},
        {},
    ]
    chosen = nearest_demos(pool, "Who composed the opera Carmen?", "question", 2)
    assert [d["question"] for d in chosen] == ["Who composed the opera Tosca?", "Who composed the opera Norma?"]
    (nearest,) = nearest_demos(pool, "Which novel was published first, Kim or She?", "question", 1)
    assert nearest["question"].startswith("Which novel was published first")
