"""A run's identity changes with what changes its results, and with nothing else."""

from __future__ import annotations

import pytest

from runs.asking import ask
from runs.home import Home
from signatures.errors import OptionError

CHANGES = {
    "method": {"methods": ("direct",)},
    "option": {"options": {"max_searches": 2}},
    "seed": {"seed": 1},
    "temperature": {"temperature": 0.3},
    "context": {"context_length": 8_000},
    "profile": {"profile": {"reasoning": False}},
    "fallback": {"fallback": "generate"},
    "paper": {"paper": True},
    "revision": {"revision": "r2"},
}
SAME = {
    "concurrency": {"concurrency": 1},
    "limit": {"limit": 1},
    "samples": {"samples": 2},
    "progress": {"progress": True},
    "experiment": {"experiment": "other"},
    "program": {"program": "none"},
}


def test_only_what_changes_results_starts_another_run(films) -> None:
    world = films(2)
    base = world.run_one().id
    assert {name: world.run_one(**{"limit": 1, **change}).id for name, change in SAME.items()} == dict.fromkeys(
        SAME, base
    )
    others = {name: world.run_one(**{"limit": 1, **change}).id for name, change in CHANGES.items()}
    assert len({base, *others.values()}) == len(CHANGES) + 1
    world.data.write_text(world.data.read_text().replace("Who directed", "Who was the director of"))
    assert world.run_one(limit=1).id not in {base, *others.values()}


def test_a_server_that_moved_is_the_same_run(films) -> None:
    from tests.servers.lm import LMServer

    world = films(2)
    first = world.run_one(limit=1)
    with LMServer(world.server.reply) as other:
        assert world.run_one(base_url=other.base_url).id == first.id


def test_a_seed_set_as_an_option_counts(films) -> None:
    world = films(1)
    assert world.run_one(options={"seed": 5}).id == world.run_one(seed=5).id


def test_the_run_folder_says_what_was_run(films) -> None:
    done = films(1).run_one()
    assert done.id.startswith("films-search_o1-qwq-32b-")
    assert sorted(p.name for p in done.folder.iterdir()) == [
        "facts.json", "journal.jsonl", "plan.json", "summary.json",
    ]  # fmt: skip
    assert done.facts["model"] == "vllm:QwQ:models/QwQ"
    assert done.facts["sampling"]["temperature"] == 0.7


def test_home_paths_follow_the_environment(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SEARCH_O1_HOME", str(tmp_path))
    monkeypatch.setenv("SEARCH_O1_MODELS", str(tmp_path / "shared"))
    home = Home()
    assert (home.models, home.runs, home.tracking_uri) == (
        tmp_path / "shared", tmp_path / "runs", f"sqlite:///{tmp_path}/mlflow.db",
    )  # fmt: skip
    monkeypatch.delenv("SEARCH_O1_MODELS")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example")
    assert (home.models, home.tracking_uri) == (tmp_path / "models", "http://tracking.example")
    monkeypatch.delenv("SEARCH_O1_HOME")
    assert Home().root.name == "search-o1"


def test_ask_from_python_answers_and_refuses_unknown_settings(films) -> None:
    world = films(1)
    settings = {
        "model": "hosted_vllm/QwQ",
        "base_url": world.server.base_url,
        "corpus": world.corpus,
        "home": world.home,
    }
    assert ask("Who directed Sunrise over Arden 00?", **settings).answer == "Director Arden 00"
    with pytest.raises(OptionError, match=r"Unknown option 'speed'; known options: .*corpus"):
        ask("Who?", speed=3, **settings)
