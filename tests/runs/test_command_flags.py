"""Settings as flags: what is printed is what `search-o1 evaluate` reads, and it reads the same settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from runs.cli.evaluate import command
from runs.command_flags import flags_of_options, flags_of_settings, note_without_flag
from runs.optimizing.settings import OptimizeSettings
from runs.settings import EvaluateSettings, ModelSettings, RetrievalSettings, make_settings
from runs.tuning.settings import TuneSettings
from tests.runs.evaluate_command import settings_of

GIVEN: dict[str, Any] = {
    "model": "hosted_vllm/Qwen/QwQ-32B",
    "base_url": "http://gpu:8000/v1",
    "revision": "main of May; it's new",
    "context_length": 8192,
    "temperature": 0.0,
    "search": "serper,brave",
    "search_options": {"serper.gl": "us", "serper.page": 2, "brave.name": "5", "brave.wide": True, "brave.none": None},
    "reader": "web,jina",
    "reader_options": {"web.agent": 'a "b" $c', "jina.rate": 0.5, "jina.kinds": ["text", "ä"]},
    "corpus": Path("my documents/films.jsonl"),
    "index": "films",
    "mode": "hybrid",
    "embeddings_url": "http://gpu:8001/v1",
    "allow_private": True,
    "cached": False,
    "max_age": "30d",
    "replay": True,
    "block_benchmark_hosts": True,
    "seed": 7,
    "paper": True,
    "unsafe_code": True,
    "tracking_uri": "http://mlflow:5000",
}


def read(flags: list[str]) -> EvaluateSettings:
    """Read flags as `search-o1 evaluate` does when they are pasted into a shell."""
    return settings_of(shlex.split(shlex.join(flags)))


@pytest.mark.parametrize("settings", [EvaluateSettings, TuneSettings, OptimizeSettings], ids=lambda cls: cls.__name__)
def test_evaluate_reads_equal_settings_from_the_flags(settings: type[BaseModel]) -> None:
    flags = flags_of_settings(make_settings(settings, GIVEN))
    found = read(flags)
    assert {name: getattr(found, name) for name in GIVEN} == GIVEN
    assert found == EvaluateSettings(**GIVEN)


def test_each_field_but_the_profile_has_a_flag() -> None:
    fields = {*ModelSettings.model_fields, *RetrievalSettings.model_fields}
    assert fields - GIVEN.keys() == {"profile"}
    for name, value in GIVEN.items():
        assert getattr(read(flags_of_settings(EvaluateSettings(**{name: value}))), name) == value
    assert note_without_flag(ModelSettings()) == ""
    assert "profile={'end': '</s>'}" in note_without_flag(ModelSettings(profile={"end": "</s>"}))
    assert flags_of_settings(ModelSettings(profile={"end": "</s>"})) == []


def test_defaults_need_no_flag() -> None:
    for settings in (EvaluateSettings(), TuneSettings(), OptimizeSettings(), ModelSettings(), RetrievalSettings()):
        assert flags_of_settings(settings) == []


def test_settings_of_a_verb_that_are_none_of_the_models_or_the_knowledge_stay_out() -> None:
    settings = TuneSettings(benchmark="films", method="direct", trials=3, storage="postgresql://me:topsecret@db/x")
    assert flags_of_settings(settings) == []


def test_an_age_in_seconds_stays_the_same_age() -> None:
    assert read(flags_of_settings(RetrievalSettings(max_age=90.0))).max_age == "90.0"


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://me:topsecret@gpu:8000/v1"},
        {"base_url": "https://gpu/v1?api_key=topsecret"},
        {"embeddings_url": "http://topsecret@gpu:8001/v1"},
        {"tracking_uri": "postgresql://me:topsecret@db/mlflow"},
        {"search_options": {"key": "topsecret & more"}},
        {"search": "brave,bing", "search_options": {"brave.key": "topsecret"}},
        {"search_options": {"url": "http://me:topsecret@searx/?token=topsecret"}},
        {"search_options": {"urls": ["http://me:topsecret@a", "http://me:topsecret@b"]}},
        {"reader_options": {"proxy": "http://me:topsecret@proxy:3128"}},
    ],
    ids=str,
)
def test_no_secret_is_shown(changes: dict[str, Any]) -> None:
    text = shlex.join(flags_of_settings(TuneSettings(**changes)))
    assert "secret" not in text
    assert "more" not in text
    assert "***" in text
    read(shlex.split(text))


def test_chain_options_are_read_as_they_were() -> None:
    options = {"top_k": 3, "force_answer": True, "language": "en", "name": "3", "quoted": '"x"', "sampling": {"n": 0.5}}
    assert read(flags_of_options(options)).options == options
    assert flags_of_options({"top_k": 3, "language": "en"}) == ["--set", "top_k=3", "--set", "language=en"]


def test_flags_are_those_of_the_help(capsys) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert {flag for flag in flags_of_settings(EvaluateSettings(**GIVEN)) if flag.startswith("--")} <= known
