from __future__ import annotations

import math

import numpy
import pytest

from metrics.labels import as_labels, as_output
from signatures.errors import DataError


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("Paris", ["Paris"]),
        (["Paris", "Lyon"], ["Paris", "Lyon"]),
        (("Paris",), ["Paris"]),
        (73, ["73"]),
        (73.0, ["73"]),
        (0.5, ["0.5"]),
        (True, ["True"]),
        ([1, "2"], ["1", "2"]),
        (None, []),
        (math.nan, []),
        ("", []),
        ("  ", []),
        ([], []),
        ([None, math.nan, "", "Paris"], ["Paris"]),
        (math.inf, ["inf"]),
        ((label for label in ("a", "b")), ["a", "b"]),
    ],
)
def test_labels_are_read_as_data_files_hold_them(value: object, labels: list[str]) -> None:
    assert as_labels(value) == labels


@pytest.mark.parametrize("value", [{"answer": "Paris"}, [["Paris"]], b"Paris", object(), [{"a": 1}]])
def test_a_label_of_another_type_is_named_with_the_way_out(value: object) -> None:
    with pytest.raises(DataError, match=r"a label must be text or a number, not .*flat list"):
        as_labels(value)


def test_an_array_of_labels_is_a_list_of_labels() -> None:
    assert as_labels(numpy.array(["Paris", "Lyon"])) == ["Paris", "Lyon"]
    assert as_labels(numpy.array([73])) == ["73"]


def test_a_missing_output_is_an_empty_one_and_another_type_is_refused() -> None:
    assert as_output(None) == as_output(math.nan) == as_output("") == ""
    with pytest.raises(DataError, match="an output must be text, not list"):
        as_output(["text"])
