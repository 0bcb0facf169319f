from __future__ import annotations

from runs.retrieval_counts import UNKNOWN, retrieval_counts, total


def read(reason: str = "", *, cached: bool = False, source: str = "reader") -> dict[str, object]:
    return {"type": "read", "reason": reason, "cached": cached, "source": source}


def test_pages_and_searches_are_counted_by_what_became_of_them() -> None:
    events = [
        {"type": "search", "query": "a", "hits": 3},
        {"type": "backend_failed", "provider": "serper", "error": "429"},
        {"type": "search", "query": "b", "error": "gone", "provider": "bing"},
        {"type": "search", "query": "c", "error": "gone"},
        read(), read(cached=True), read("timeout"), read("timeout"), read("a_new_reason"), read(source="search"),
        {"type": "generate"},
    ]  # fmt: skip
    assert retrieval_counts(events, error_kind="search", error_provider="bing") == {
        "reads": 2,
        "reads_cached": 1,
        "reads_failed": {"timeout": 2, "a_new_reason": 1},
        "searches_failed": {"serper": 1, "bing": 1, UNKNOWN: 1},
    }


def test_a_search_that_ended_a_question_before_it_had_events_counts_too() -> None:
    assert retrieval_counts([], error_kind="search", error_provider="brave")["searches_failed"] == {"brave": 1}
    assert retrieval_counts([], error_kind="search")["searches_failed"] == {UNKNOWN: 1}
    assert retrieval_counts([], error_kind="model", error_provider="x")["searches_failed"] == {}


def test_events_of_an_earlier_version_name_no_source() -> None:
    assert retrieval_counts([{"type": "read", "reason": "", "cached": False}])["reads"] == 1


def test_counts_add_up_over_records_the_most_frequent_first() -> None:
    records = [{"reads_failed": {"empty": 1}}, {}, {"reads_failed": {"timeout": 2, "empty": 2}}, {"reads_failed": None}]
    assert list(total(records, "reads_failed").items()) == [("empty", 3), ("timeout", 2)]
