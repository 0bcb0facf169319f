"""Options of backends and readers as a person types them."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval.http.limits import Limits
from retrieval.registry import READERS, SEARCHES, make_reader, make_search
from retrieval.typed_options import typed_options
from signatures.errors import OptionError


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("bing", {"market": [1]}, "'bing': the option market = [1]: Input should be a valid string"),
        ("bing", {"market": True}, "market = True: Input should be a valid string"),
        ("bing", {"limits": 3}, "limits = 3: Input should be"),
        ("bing", {"limits": {"read_s": "fast"}}, "limits = {'read_s': 'fast'}"),
        ("bing", {"limits": {"speed": 3}}, "limits = {'speed': 3}: Unexpected keyword argument"),
        ("serper", {"requests_per_second": "fast"}, "requests_per_second = 'fast': Input should be a valid number"),
        ("serper", {"endpoint": {}}, "endpoint = {}"),
        ("ddgs", {"region": []}, "region = []"),
        ("retriever", {"batch_size": "x"}, "batch_size = 'x': Input should be a valid integer"),
        ("searxng", {"safesearch": "abc"}, "safesearch = 'abc'"),
        ("brave", {"extra_snippets": "perhaps"}, "extra_snippets = 'perhaps': Input should be a valid boolean"),
        ("local", {"directory": []}, "directory = []"),
        ("bing", {"name": "x"}, "'bing' has no option 'name'"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_search(name, **options)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "options"), [("web", {"page_chars": "abc"}), ("jina", {"requests_per_minute": "x"})])
def test_readers_check_theirs_too(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(options))} = '"):
        make_reader(name, **options)


def test_digits_are_a_text_where_one_is_wanted_and_a_number_where_that_is() -> None:
    assert vars(make_search("bing", key=123456, market="de-DE"))["_key"] == "123456"
    assert vars(make_reader("web", page_chars="100"))["page_chars"] == 100


def test_limits_can_be_given_by_field_and_pass_through_as_they_are() -> None:
    limits = Limits(read_s=3)
    made = make_search("retriever", limits={"read_s": 5})
    assert vars(made)["_client"].limits.read_s == 5
    assert vars(make_search("retriever", limits=limits))["_client"].limits is limits


def test_a_key_of_the_wrong_type_is_not_shown() -> None:
    with pytest.raises(OptionError) as caught:
        make_search("serper", key=["s3cret-key"])
    assert "s3cret" not in str(caught.value)


def test_every_registered_option_has_a_type_that_can_be_checked() -> None:
    for name, backend in [*SEARCHES.items(), *READERS.items()]:
        made = backend._load()
        for option, parameter in backend.options().items():
            if parameter.default is not parameter.empty:
                assert typed_options(name, made, {option: parameter.default}) == {option: parameter.default}
