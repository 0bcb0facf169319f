"""Programs fetched from MLflow's registry by every kind of address, and asked through MLflow as any other model."""

from __future__ import annotations

import os
import re
from pathlib import Path

import mlflow
import pandas as pd
import pytest
import requests

from programs.registry import make_program
from programs.saving import load_program, read_compiled
from runs.optimizing.registered import Registration
from runs.registered_programs import ProgramKind, fetch_registered
from signatures.errors import ProgramError
from tests.runs.optimizing.tracked_world import Store, compiled, free_port, outcome, trial
from tests.runs.world import Films, interrupt, model, start_command
from tests.servers.lm import LMServer

KIND = ProgramKind("search_o1", "qwq-32b", "open_qa")


class Registered(Store):
    """A store with two programs: of `search_o1`, which is the plain champion, and of `direct`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.mine = compiled(folder, name="mine.json")
        self.direct = compiled(folder, method="direct", text="Think.", name="direct.json")
        tracker, self.registration = self.track(outcome(self.mine.path))
        self.run_id = str(tracker.run_id)
        self.track(outcome(self.direct.path))

    def fetch(self, reference: str, folder: Path, kind: ProgramKind | None = None) -> Path:
        return fetch_registered(reference, self.uri, folder, kind=kind)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Registered:
    """One store for all tests of this file: a fresh one costs seconds."""
    return Registered(tmp_path_factory.mktemp("registered"))


@pytest.mark.parametrize(
    "reference",
    [
        "models:/search-o1/1", "models:/search-o1/champion", "models:/search-o1@champion",
        "models:/search-o1/champion--search_o1--qwq-32b--open_qa--en", "models:/{model}", "runs:/{run}",
        "runs:/{run}/program", "runs:/{run}/program/mine.json",
    ],
)  # fmt: skip
def test_every_address_leads_to_the_very_file(store, tmp_path, reference) -> None:
    address = reference.format(model=store.registration.model_id, run=store.run_id)
    path = store.fetch(address, tmp_path, KIND)
    assert (path.name, path.read_bytes()) == ("mine.json", store.mine.path.read_bytes())
    assert read_compiled(path).digest == store.mine.digest
    assert store.fetch(address, tmp_path) == path
    assert [found.name for found in tmp_path.rglob("*") if found.is_file()] == ["mine.json"]
    assert "MLFLOW_TRACKING_URI" not in os.environ


def test_an_alias_means_the_kind_that_is_asked_for(store, tmp_path) -> None:
    direct = ProgramKind("direct", "qwq-32b", "open_qa")
    assert read_compiled(store.fetch("models:/search-o1/champion", tmp_path, direct)).method == "direct"
    assert read_compiled(store.fetch("models:/search-o1/latest", tmp_path)).method == "direct"
    # A kind without a champion of its own gets the plain one, and loading it says that it does not fit.
    other = store.fetch("models:/search-o1/champion", tmp_path, ProgramKind("rag_agent", "qwq-32b", "open_qa"))
    with pytest.raises(ProgramError, match=r"compiled for method search_o1, .* this program is rag_agent"):
        load_program(make_program("rag_agent"), other)


def test_an_evaluation_takes_the_champion(store, tmp_path) -> None:
    with LMServer(model(3)) as server:
        films = Films(tmp_path, server, 3)
        done = films.run_one(program="models:/search-o1/champion", tracking_uri=store.uri)
        assert done.facts["compiled"] == "mine.json"
        assert done.summary.scores["strict"]["em"].mean == 1.0
        assert any("{{double}} {% if x %}" in prompt for prompt in server.prompts)
        with pytest.raises(ProgramError, match="neither version nor alias 'best'"):
            films.run_one(program="models:/search-o1/best", tracking_uri=store.uri)


def test_a_registered_program_is_fetched_once_and_a_run_s_file_anew(store, tmp_path) -> None:
    registered, of_run = (store.fetch(f"models:/{store.registration.model_id}", tmp_path / "a"),
                          store.fetch(f"runs:/{store.run_id}", tmp_path / "b"))  # fmt: skip
    times = registered.stat().st_mtime_ns, of_run.stat().st_ino
    assert store.fetch("models:/search-o1/1", tmp_path / "a") == registered
    assert store.fetch(f"runs:/{store.run_id}", tmp_path / "b") == of_run
    assert (registered.stat().st_mtime_ns, of_run.stat().st_ino != times[1]) == (times[0], True)


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("models:/search-o1", r"says no version; write models:/search-o1/champion"),
        ("models:/search-o1/7", r"neither version nor alias '7'. It has the versions 2, 1, newest first, and the "),
        ("models:/search-o1/best", r"nor alias 'best'\. .* aliases champion, champion--direct--qwq-32b--open_qa--en, "),
        ("models:/nothing/1", r"is not in MLflow's store sqlite:.*Registered Model with name=nothing not found"),
        ("models:/m-00000000000000000000000000000000", "is not in MLflow's store"),
        ("models:/search_o1--qwq-32b--open_qa--en--reason/1", "is not in MLflow's store"),
        ("runs:/00000000000000000000000000000000", "is not in MLflow's store"),
        ("runs:/{run}/elsewhere", r"its folder 'elsewhere' holds: no JSON file"),
        ("runs:/{run}/learning_curve.json", "is not in MLflow's store"),
        ("models:search-o1", "names no program in MLflow; write models:/NAME/VERSION"),
        ("models:/", "names no program in MLflow"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(store, tmp_path, reference, told) -> None:
    with pytest.raises(ProgramError, match=told):
        store.fetch(reference.format(run=store.run_id), tmp_path)


def test_a_store_that_is_not_there_is_not_made_and_one_that_is_down_keeps_its_password(tmp_path) -> None:
    with pytest.raises(ProgramError, match="there is no MLflow store at"):
        fetch_registered("models:/search-o1/1", f"sqlite:///{tmp_path / 'none.db'}", tmp_path)
    assert not list(tmp_path.iterdir())
    down = f"http://user:secret@127.0.0.1:{free_port()}"
    with pytest.raises(ProgramError, match=r"cannot be fetched, .*check --tracking-uri") as error:
        fetch_registered("models:/search-o1/1", down, tmp_path)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "described",
    [
        "flavors: {sklearn: {}}", "flavors: {python_function: {artifacts: {program: {path: ../../mine.json}}}}",
        "flavors: {python_function: {artifacts: {program: {path: /etc/x.json}}}}", "[", "",
    ],
)  # fmt: skip
def test_a_model_of_another_making_is_no_program(store, tmp_path, described) -> None:
    experiment = store.client.get_run(store.run_id).info.experiment_id
    other = store.client.create_logged_model(experiment, name="other")
    (tmp_path / "MLmodel").write_text(described)
    store.client.log_model_artifacts(other.model_id, str(tmp_path))
    with pytest.raises(ProgramError, match="is no compiled program of this project: it has no artifact `program`"):
        store.fetch(f"models:/{other.model_id}", tmp_path / "fetched")


def test_a_program_that_was_changed_in_the_store_is_refused(store, tmp_path) -> None:
    _, done = store.track(outcome(compiled(tmp_path, "m-changed").path))
    (kept,) = [p for p in store.artifacts.rglob("program.json") if done.model_id in str(p)]
    kept.write_text(kept.read_text(encoding="utf-8").replace("by a test", "by another"), encoding="utf-8")
    with pytest.raises(ProgramError, match="was changed after it was written"):
        store.fetch(done.uri, tmp_path)


@pytest.fixture(scope="module")
def loaded(store):
    """The program as MLflow loads it, from the code and the JSON that lie in the store."""
    place = store.client.get_logged_model(store.registration.model_id).artifact_location
    return mlflow.pyfunc.load_model(place)


def test_mlflow_loads_the_program_and_it_answers(loaded, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SEARCH_O1_HOME", str(tmp_path / "home"))
    with LMServer(model(3)) as server:
        films = Films(tmp_path, server, 3)
        params = {"model": f"hosted_vllm/{server.model}", "base_url": server.base_url, "corpus": str(films.corpus)}
        first, second = "Who directed Sunrise over Arden 00?", "Who directed Sunrise over Bergen 01?"
        found = loaded.predict(pd.DataFrame({"question": [first, second]}), params=params)
        assert list(found["answer"]) == ["Director Arden 00", "Director Bergen 01"]
        assert list(found["searches"]) == [["Sunrise over Arden 00"], ["Sunrise over Bergen 01"]]
        assert list(found["finish"]) == ["answered", "answered"]
        # The registered prompt and demo are what the model saw.
        assert any(
            "{{double}} {% if x %}" in prompt and "<|begin_search_query|>x" in prompt for prompt in server.prompts
        )
        for name, value in params.items():
            monkeypatch.setenv(f"SEARCH_O1_{name.upper()}", value)
        for given in ([first], [{"question": first}], {"question": [first]}, first):
            assert list(loaded.predict(given)["answer"]) == ["Director Arden 00"]


def test_a_real_server_registers_and_gives_back(tmp_path) -> None:
    port = free_port()
    home = tmp_path / "home"
    process = start_command("ui", "--port", str(port), home=home)
    try:
        assert process.stdout is not None
        while "(Ctrl-C stops it)" not in (line := process.stdout.readline()):
            assert line
        here = Store(tmp_path, f"http://127.0.0.1:{port}")
        program = compiled(tmp_path)
        tracker, done = here.track(outcome(program.path), [trial(0), trial(1)], artifacts=None)
        assert isinstance(done, Registration)
        assert (done.uri, done.champion) == ("models:/search-o1/1", True)
        assert len(here.children(str(tracker.run_id))) == 2
        for reference in ("models:/search-o1/champion", f"runs:/{tracker.run_id}", f"models:/{done.model_id}"):
            assert fetch_registered(reference, here.uri, tmp_path / "fetched").read_bytes() == program.path.read_bytes()
        with pytest.raises(ProgramError, match=re.escape(f"is not in MLflow's store http://127.0.0.1:{port}")):
            fetch_registered("models:/nothing/1", here.uri, tmp_path / "fetched")
        assert requests.get(f"http://127.0.0.1:{port}/", timeout=30).status_code == 200
    finally:
        interrupt(process)
