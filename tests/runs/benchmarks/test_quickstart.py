"""The shipped questions and articles keep what they promise."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter

import pytest

from metrics.normalise import normalise_official
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.benchmarks.registry import data_folder

SPLITS = ("train", "validation", "test")
FOLDER = data_folder("quickstart")


@pytest.fixture(scope="module")
def questions():
    return {split: list(QUICKSTART.load(split)) for split in SPLITS}


@pytest.fixture(scope="module")
def articles():
    rows = [json.loads(line) for line in (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    return {row["title"]: row for row in rows}


def contains(text: str, answer: str) -> bool:
    return f" {normalise_official(answer)} " in f" {normalise_official(text)} "


def test_the_files_are_the_ones_that_were_hashed() -> None:
    listed = [line.split() for line in (FOLDER / "SHA256SUMS").read_text().splitlines()]
    assert sorted(name for _, name in listed) == ["corpus.jsonl", "test.jsonl", "train.jsonl", "validation.jsonl"]
    for expected, name in listed:
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected


def test_there_are_as_many_questions_as_promised_with_ids_of_their_own(questions) -> None:
    assert {split: len(qs) for split, qs in questions.items()} == {"train": 185, "validation": 79, "test": 212}
    ids = [q.id for qs in questions.values() for q in qs]
    assert len(set(ids)) == len(ids)
    assert len({q.question for qs in questions.values() for q in qs}) == len(ids)
    assert all(q.split == split for split, qs in questions.items() for q in qs)


def test_every_split_has_every_type(questions) -> None:
    for qs in questions.values():
        assert set(Counter(q.groups["type"] for q in qs)) == {"single", "bridge", "comparison", "yes_no"}


def test_articles_are_many_short_and_each_their_own(articles) -> None:
    rows = list(articles.values())
    assert len(rows) == 360
    assert len({row["id"] for row in rows}) == 360
    assert max(len(row["text"].split()) for row in rows) <= 60


def test_gold_titles_exist_and_are_one_for_single_two_for_others(questions, articles) -> None:
    for q in itertools.chain(*questions.values()):
        assert set(q.gold_titles) <= set(articles), q.id
        assert len(q.gold_titles) == (1 if q.groups["type"] == "single" else 2), q.id


def test_no_article_answers_questions_of_two_splits(questions) -> None:
    titles = {split: {t for q in qs for t in q.gold_titles} for split, qs in questions.items()}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not titles[one] & titles[other]


def test_no_question_tells_its_answer_except_comparisons(questions) -> None:
    for q in itertools.chain(*questions.values()):
        told = any(contains(q.question, answer) for answer in q.answers)
        assert told == (q.groups["type"] == "comparison"), q.id


def test_the_answer_stands_in_its_gold_article(questions, articles) -> None:
    for q in itertools.chain(*questions.values()):
        if q.groups["type"] in ("single", "bridge"):
            article = articles[q.gold_titles[-1]]
            text = f"{article['title']} {article['text']}"
            assert any(contains(text, answer) for answer in q.answers), q.id


def test_yes_and_no_are_both_common(questions) -> None:
    for qs in questions.values():
        said = Counter(q.answers[0] for q in qs if q.groups["type"] == "yes_no")
        assert set(said) == {"yes", "no"}
        assert min(said.values()) >= 0.25 * sum(said.values())


def test_the_corpus_is_plain_text(articles) -> None:
    for row in articles.values():
        assert not re.search(r"<[a-z|/]", row["text"]), row["id"]
        assert row["text"].strip() == row["text"]
