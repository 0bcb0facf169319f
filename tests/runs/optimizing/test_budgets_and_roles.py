from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.cache import Cache
from runs.home import Home
from runs.models.factory import make_model
from runs.optimizing.budgets import parse_budget
from runs.optimizing.roles import parse_role, proposing_lm, teaching_lm
from runs.optimizing.settings import OptimizeSettings
from signatures.errors import ModelError, OptionError
from tests.servers.lm import LMServer


@pytest.mark.parametrize(("given", "candidates"), [("light", 6), ("Medium", 12), ("heavy", 18), ("7", 7), (1, 1)])
def test_a_budget_is_a_word_or_a_number_of_candidates(given: str | int, candidates: int) -> None:
    assert parse_budget(given).candidates == candidates


@pytest.mark.parametrize("given", ["lots", "0", -1, "1.5", "", "²", "9" * 5_000])
def test_an_impossible_budget_says_what_is_possible(given: str | int) -> None:
    with pytest.raises(OptionError, match=r"light \(6\), medium \(12\), heavy \(18\), or a number of candidates"):
        parse_budget(given)


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("openai/gpt-4.1", ("openai/gpt-4.1", None)),
        ("http://a.example/v1", ("hosted_vllm/", "http://a.example/v1")),
        ("hosted_vllm/Qwen/QwQ-32B@https://a.example/v1", ("hosted_vllm/Qwen/QwQ-32B", "https://a.example/v1")),
        ("azure/o@1", ("azure/o@1", None)),
    ],
)
def test_a_second_model_is_a_name_an_address_or_both(text: str, role: tuple[str, str | None]) -> None:
    assert parse_role(text, "--teacher") == role


@pytest.mark.parametrize("text", ["", "  ", "@http://a.example/v1", "x@http://"])
def test_a_second_model_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"--teacher .*give a model name, an address"):
        parse_role(text, "--teacher")


def settings(server: LMServer, **changes: object) -> OptimizeSettings:
    return OptimizeSettings(model=f"hosted_vllm/{server.model}", base_url=server.base_url, **changes)  # type: ignore[arg-type]


def test_samples_of_one_prompt_differ_and_are_all_in_the_cache_the_second_time(tmp_path: Path) -> None:
    with LMServer(lambda prompt, body: f"sample {body.get('seed')}") as server:
        model = make_model(f"hosted_vllm/{server.model}", server.base_url, cache=Cache(tmp_path / "cache.sqlite"))
        lm = proposing_lm(settings(server), Home(tmp_path), model, print)
        first = lm("propose", n=3, temperature=1.0) + lm.copy(rollout_id=7)("propose", temperature=1.0)
        asked = len(server.calls)
        assert len(set(first)) == asked == 4
        again = lm("propose", n=3, temperature=1.0) + lm.copy(rollout_id=7)("propose", temperature=1.0)
        assert again == first
        assert len(server.calls) == asked


async def test_samples_asked_for_on_an_event_loop_are_the_same(tmp_path: Path) -> None:
    with LMServer(lambda prompt, body: f"sample {body.get('seed')}") as server:
        model = make_model(f"hosted_vllm/{server.model}", server.base_url, cache=Cache(tmp_path / "cache.sqlite"))
        lm = proposing_lm(settings(server, seed=3), Home(tmp_path), model, print)
        assert await lm.acall("propose", n=2, temperature=1.0) == lm("propose", n=2, temperature=1.0)
        assert len(server.calls) == 2


def test_an_address_alone_takes_the_first_model_served_there(tmp_path: Path) -> None:
    with LMServer(lambda prompt, body: "well") as server:
        teacher = teaching_lm(settings(server, teacher=server.base_url), Home(tmp_path), print)
        assert teacher.model == f"hosted_vllm/{server.model}"


def test_without_a_teacher_there_is_none(tmp_path: Path) -> None:
    assert teaching_lm(OptimizeSettings(), Home(tmp_path), print) is None


def test_a_teacher_that_does_not_answer_is_named_before_anything_is_paid_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9"):
        teaching_lm(OptimizeSettings(teacher="x@http://127.0.0.1:9/v1"), Home(tmp_path), print)
