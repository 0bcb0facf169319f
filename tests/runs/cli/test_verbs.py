"""The verbs of the command line, each against real things."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat

import pytest
import requests

from runs.home import Home
from tests.runs.world import command, corpus_file, facts, start_command, write_lines

FILM = "Sunrise over Arden 00"


def test_evaluate_prints_scores_and_where_everything_lies(films) -> None:
    world = films(3)
    done = command(
        *world.arguments("--method", "direct, search_o1", "--limit", "2", "--no-track", "--set", "max_searches=3"),
        home=world.home.root,
    )
    assert done.exit_code == 0, done.output
    text = done.output
    assert "First 2 of 3 questions (all: --limit 0)" in text
    assert "2 questions, scores in percent with 95 % intervals" in text
    assert "search_o1 - direct: em (strict) +100.0" in text
    assert "search_o1: 2 questions in" in text
    assert "direct: 2/2" in text
    assert "search-o1 ui" not in text
    facts_file = next(world.home.runs.glob("*search_o1*/facts.json"))
    assert json.loads(facts_file.read_text())["options"]["max_searches"] == 3
    again = command(
        *world.arguments("--method", "search_o1", "--no-track", "--set", "max_searches=3"), home=world.home.root
    )
    assert "search_o1: going on after 2 finished questions (--fresh starts anew)" in again.output


def test_evaluate_takes_the_name_of_a_question_file_where_no_label_is_given(films) -> None:
    world = films(1)
    arguments = world.arguments("--no-track")
    arguments.remove("films")
    world.data = world.data.rename(world.data.with_name("mine.jsonl"))
    arguments[arguments.index("--data") + 1] = str(world.data)
    assert command(*arguments, home=world.home.root).exit_code == 0
    (folder,) = world.home.runs.iterdir()
    assert folder.name.startswith("mine-search_o1-qwq-32b-")


def test_evaluate_fails_when_every_question_failed(films) -> None:
    world = films(2)
    done = command(
        *world.arguments("--no-track", "--search", "bing"),
        home=world.home.root, BING_ENDPOINT="http://127.0.0.1:9/", BING_KEY="k",
    )  # fmt: skip
    assert done.exit_code == 1
    assert "search_o1: every question failed; the first one: " in done.output


def test_an_empty_question_is_refused(films) -> None:
    done = ask(films(1), question="  ")
    assert done.exit_code == 2
    assert "The question is empty" in done.output


def ask(world, *arguments: str, question: str = f"Who directed {FILM}?"):
    return command(
        "ask", question, "--model", "hosted_vllm/QwQ", "--base-url", world.server.base_url,
        "--corpus", str(world.corpus), *arguments, home=world.home.root,
    )  # fmt: skip


def test_ask_prints_chain_answer_and_sources(films) -> None:
    world = films(2)
    done = ask(world)
    assert done.exit_code == 0, done.output
    assert f"Answer: {facts()[FILM]}   (answered)" in done.stdout
    assert "<|begin_search_result|>" in done.stdout
    assert "[1] corpus://library/d0" in done.stdout
    assert "Indexing library.jsonl" in done.stderr


def test_ask_prints_json_and_nothing_else_on_standard_output(films) -> None:
    done = ask(films(2), "--json", "--method", "rag_agent")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["answer"], found["finish"]) == (0, facts()[FILM], "answered")
    assert found["searches"][0]["query"] == FILM


def test_ask_ends_with_3_where_there_is_no_answer_and_with_2_after_an_error(films) -> None:
    world = films(2, reply=lambda prompt, body: "I do not know.")
    none = ask(world)
    assert (none.exit_code, "Answer: -   (no_answer)" in none.stdout) == (3, True)
    world.server.fail_next(1, status=400, body={"error": {"message": "Injected refusal"}})
    failed = ask(world, "--set", "seed=1")
    assert (failed.exit_code, "Injected refusal" in failed.stderr) == (2, True)


def test_ask_keeps_the_chain_of_a_question_that_broke_off(films) -> None:
    world = films(2)
    world.server.fail_next(2, status=None)
    world.server.fail_next(1, status=400, body={"error": {"message": "Injected refusal"}})
    done = ask(world)
    assert done.exit_code == 2
    assert "I need to know about" in done.stdout
    assert "Error: " in done.stderr
    assert "Injected refusal" in done.stderr


def test_ask_without_a_corpus_says_that_it_searches_the_quickstart(films) -> None:
    world = films(2)
    done = command(
        "ask", f"Who directed {FILM}?", "--model", "hosted_vllm/QwQ", "--base-url", world.server.base_url,
        home=world.home.root,
    )  # fmt: skip
    assert "searching the quickstart's 360 articles" in done.stderr
    assert (done.exit_code, "Answer: unknown" in done.stdout) == (0, True)
    unknown = ask(world, "--set", "speed=3")
    assert (unknown.exit_code, "Unknown option 'speed'" in unknown.stderr) == (2, True)


def test_ask_the_embedded_model(tmp_path) -> None:
    done = command("ask", "What is the highest mountain on Earth?", "--method", "direct", "--json", home=tmp_path)
    assert done.exit_code in (0, 3), done.output
    assert json.loads(done.stdout)["usage"]["completion_tokens"] > 0


def test_an_index_is_built_and_searched(tmp_path) -> None:
    corpus = corpus_file(tmp_path)
    built = command("index", "build", "films", str(corpus), home=tmp_path)
    assert (built.exit_code, "Index films: 8 documents in" in built.stdout) == (0, True)
    found = command("index", "search", "films", "Arden", "--k", "2", home=tmp_path)
    assert found.stdout.startswith(f"1. {FILM}  corpus://films/d0\n")
    assert command("index", "search", "films", "zzzz", home=tmp_path).stdout == "No hits.\n"
    write_lines(corpus, [{"id": "1", "title": "Other", "text": "Other text"}])
    assert "1 documents" in command("index", "build", "films", str(corpus), home=tmp_path).stdout


def test_benchmarks_are_listed_and_shown(tmp_path) -> None:
    listed = command("benchmarks", home=tmp_path, COLUMNS="200")
    assert (listed.exit_code, "quickstart" in listed.output, "CC0-1.0" in listed.output) == (0, True, True)
    shown = command("benchmarks", "show", "quickstart", "--split", "validation", "--limit", "2", home=tmp_path)
    assert shown.output.count("answers: ") == 2
    assert "gold documents: " in shown.output


def test_programs_are_listed(tmp_path) -> None:
    lines = command("programs", home=tmp_path).output.splitlines()
    assert len(lines) == 4
    assert any(
        line.startswith("search_o1--smollm2-135m--open_qa.json: search_o1, open_qa, for smollm2-135m") for line in lines
    )


def tool(folder, name: str, script: str) -> str:
    path = folder / name
    path.write_text(script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_serve_on_the_cpu_shows_its_command_without_starting_it(tmp_path) -> None:
    python = tool(tmp_path, "python", "#!/bin/sh\nexit 0\n")
    done = command("serve", "--local", "--vllm-python", python, "--port", "8123", "--dry-run", home=tmp_path)
    assert done.exit_code == 0, done.output
    assert "vLLM on the CPU in float32" in done.output
    assert (
        f"{python} -m runs.serving.vllm_cpu serve {Home(tmp_path).models}/SmolLM2-135M-Instruct.Q4_1-float32"
        in done.output
    )
    assert "--port 8123" in done.output
    assert "--served-model-name SmolLM2-135M-Instruct" in done.output
    without = tool(tmp_path, "other", "#!/bin/sh\nexit 1\n")
    refused = command("serve", "--local", "--vllm-python", without, home=tmp_path)
    assert (refused.exit_code, "has no vllm-cpu; make an environment for it" in refused.stderr) == (2, True)


def test_serve_on_gpus_needs_vllm(tmp_path) -> None:
    tool(tmp_path, "nvidia-smi", "#!/bin/sh\necho 'GPU 0: NVIDIA H100'\necho 'GPU 1: NVIDIA H100'\n")
    done = command("serve", "--dry-run", home=tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.exit_code, "vLLM is not installed here" in done.stderr) == (2, True)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_ui_serves_mlflow_until_it_is_stopped(tmp_path) -> None:
    port = free_port()
    process = start_command("ui", "--port", str(port), home=tmp_path)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert lines[0] == f"Starting MLflow for sqlite:///{tmp_path}/mlflow.db ...\n"
        assert lines[1] == f"MLflow on http://127.0.0.1:{port} (Ctrl-C stops it)\n"
        assert requests.get(f"http://127.0.0.1:{port}/", timeout=30).status_code == 200
        # Sent to the command alone: the workers that MLflow starts must go with it.
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "\nStopped.\n", "")
        with pytest.raises(requests.ConnectionError):
            requests.get(f"http://127.0.0.1:{port}/", timeout=5)
    finally:
        # A test that failed half-way must not leave MLflow's workers behind.
        process.terminate()
        process.wait(60)


def test_ui_says_why_mlflow_does_not_start(tmp_path) -> None:
    done = command("ui", "--tracking-uri", "nonsense://store", "--port", str(free_port()), home=tmp_path)
    assert (done.exit_code, "Error: The server ended while starting. End of" in done.stderr) == (2, True)
    assert "nonsense" in done.stderr
