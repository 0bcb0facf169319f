from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.livecodebench_tests import CodeTest, CodeTests, decode_private_tests, read_tests
from signatures.errors import DataError

PUBLIC = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}]
PRIVATE = [{"input": "5\n", "output": "6\n", "testtype": "stdin"}]
FUNCTIONAL = [{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]


def encode(value: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


class Malicious:
    def __init__(self, target: str) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.target,)


def test_public_tests_come_as_a_list_or_as_its_text() -> None:
    expected = CodeTests((CodeTest("1\n", "2\n"),))
    assert read_tests({"public_test_cases": PUBLIC}) == expected
    assert read_tests({"public_test_cases": json.dumps(PUBLIC), "private_test_cases": ""}) == expected
    assert expected.coverage == "public only"


@pytest.mark.parametrize("private", [PRIVATE, json.dumps(PRIVATE), encode(json.dumps(PRIVATE))])
def test_private_tests_come_plain_or_encoded(private: object) -> None:
    tests = read_tests({"public_test_cases": PUBLIC, "private_test_cases": private})
    assert tests.all == (CodeTest("1\n", "2\n"), CodeTest("5\n", "6\n"))
    assert tests.coverage == "all"


def test_a_malicious_pickle_is_refused_and_not_executed(tmp_path: Any) -> None:
    target = tmp_path / "made"
    with pytest.raises(DataError, match=r"asks for (posix|os)\.mkdir"):
        decode_private_tests(encode(Malicious(str(target))))
    assert not target.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_global_is_refused_in_every_protocol_and_however_deep(protocol: int) -> None:
    pickled = pickle.dumps([{"a": ("x", Malicious("/nowhere/made"))}], protocol)
    with pytest.raises(DataError, match="refused"):
        decode_private_tests(base64.b64encode(zlib.compress(pickled)).decode())


def test_a_decompression_bomb_is_refused_before_it_grows() -> None:
    bomb = base64.b64encode(zlib.compress(b"\0" * (64 << 20), 9)).decode()
    with pytest.raises(DataError, match=f"more than {1 << 20} bytes"):
        decode_private_tests(bomb, max_bytes=1 << 20)


def test_the_cap_is_met_exactly() -> None:
    pickled = pickle.dumps("[]")
    assert decode_private_tests(encode("[]"), max_bytes=len(pickled)) == "[]"
    with pytest.raises(DataError, match="more than"):
        decode_private_tests(encode("[]"), max_bytes=len(pickled) - 1)


@pytest.mark.parametrize(
    "encoded",
    [
        "not base64!",
        base64.b64encode(b"not zlib").decode(),
        base64.b64encode(zlib.compress(b"not a pickle")).decode(),
        base64.b64encode(zlib.compress(b"")).decode(),
        base64.b64encode(zlib.compress(pickle.dumps("[]"))[:-6]).decode(),
        encode([1, 2]),
        encode(b"[]"),
    ],
)
def test_damaged_private_tests_are_a_data_error(encoded: str) -> None:
    with pytest.raises(DataError, match=r"damaged|refused|hold"):
        decode_private_tests(encoded)


@given(st.binary(max_size=60))
def test_no_pickle_raises_anything_but_a_data_error(junk: bytes) -> None:
    encoded = base64.b64encode(zlib.compress(junk)).decode()
    with contextlib.suppress(DataError):
        assert isinstance(decode_private_tests(encoded, max_bytes=1000), str)


@given(st.text(max_size=200))
def test_what_was_encoded_is_decoded(text: str) -> None:
    assert decode_private_tests(encode(text)) == text


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"func_name": "solve"}, "solve"),
        ({"metadata": {"func_name": "solve"}}, "solve"),
        ({"metadata": '{"func_name": "solve"}'}, "solve"),
        (
            {"metadata": "{}", "starter_code": "class Solution:\n    def solve(self, a: List[int]) -> int:\n        "},
            "solve",
        ),
        ({"metadata": "not json", "starter_code": "def solve(a):\n    "}, "solve"),
    ],
)
def test_the_functions_name_is_found_where_the_row_has_it(row: dict[str, Any], name: str) -> None:
    assert read_tests({"public_test_cases": FUNCTIONAL, **row}).function == name


def test_a_stdin_problem_has_no_function_even_if_the_row_names_one() -> None:
    assert read_tests({"public_test_cases": PUBLIC, "func_name": "solve"}).function == ""


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "problem p1 has no tests"),
        ({"public_test_cases": "[]"}, "problem p1 has no tests"),
        ({"public_test_cases": "[{"}, "p1, public_test_cases is not JSON"),
        ({"public_test_cases": {"input": ""}}, "expected a list of tests, found dict"),
        ({"public_test_cases": [1]}, "test 1: expected an object"),
        ({"public_test_cases": [{"input": "1"}]}, "test 1: expected an object"),
        ({"public_test_cases": [{"input": 1, "output": "2"}]}, "test 1: expected an object"),
        ({"public_test_cases": [*PUBLIC, {"input": "", "output": "", "testtype": "file"}]}, "test 2: unknown testtype"),
        ({"public_test_cases": FUNCTIONAL}, "p1 calls a function, but its name"),
        ({"public_test_cases": [{**FUNCTIONAL[0], "input": "[1"}], "func_name": "f"}, "one JSON value a line"),
        ({"public_test_cases": [{**FUNCTIONAL[0], "output": "x"}], "func_name": "f"}, "one JSON value a line"),
        ({"public_test_cases": PUBLIC, "private_test_cases": "junk!"}, "problem p1: Private tests are damaged"),
    ],
)
def test_malformed_tests_are_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_tests({"question_id": "p1", **row})


def test_tests_travel_as_one_label() -> None:
    tests = CodeTests((CodeTest("1\n", "é", True),), (CodeTest("", "\ud800"),), "solve")
    assert CodeTests.from_label(tests.to_label()) == tests


@pytest.mark.parametrize(
    "label", ["", "42", "null", "[]", '{"public": []}', '{"public": [1], "private": [], "function": ""}']
)
def test_a_label_that_holds_no_tests_is_a_data_error(label: str) -> None:
    with pytest.raises(DataError, match="does not hold tests"):
        CodeTests.from_label(label)
