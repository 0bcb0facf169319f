"""What the program says to the model inside result markers, in both languages (design section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from signatures.markup import (
    BEGIN_FULL_PAGE,
    BEGIN_SEARCH_QUERY,
    BEGIN_SEARCH_RESULT,
    END_FULL_PAGE,
    END_SEARCH_QUERY,
    END_SEARCH_RESULT,
)
from signatures.templates import Language


@dataclass(frozen=True)
class Messages:
    """The fixed messages of one language.

    Attributes:
        no_query: After an empty or unpaired query.
        limit: After the search limit.
        repeated: After a query that was executed before in this chain.
        fetch_limit: When no URL fetch remains.
        repeated_urls: When every URL asked for was fetched before.
        unknown_urls: When no URL asked for was returned by a search (and `open_urls` is off).
        no_page: When none of the pages could be read.
        no_information: When nothing was found; also the sentence that Reason-in-Documents uses itself.
        force: Begins the one short turn of `force_answer`.
    """

    no_query: str
    limit: str
    repeated: str
    fetch_limit: str
    repeated_urls: str
    unknown_urls: str
    no_page: str
    no_information: str
    force: str


MESSAGES: dict[Language, Messages] = {
    "en": Messages(
        no_query=f"No search query was found. Write it between {BEGIN_SEARCH_QUERY} and {END_SEARCH_QUERY}.",
        limit="The maximum search limit is exceeded. You are not allowed to search.",
        repeated="You have searched this query. Please refer to previous results.",
        fetch_limit="The maximum number of URL fetches has been reached. You are not allowed to fetch more URLs.",
        repeated_urls="You have fetched these URLs. Please refer to previous results.",
        unknown_urls="None of these URLs was returned by a search. Fetch URLs from the search results only.",
        no_page="None of these pages could be read.",
        no_information="No helpful information found.",
        force="\n\nI have to answer now. The final answer is ",
    ),
    "zh": Messages(
        no_query=f"未找到检索查询。请将其写在 {BEGIN_SEARCH_QUERY} 与 {END_SEARCH_QUERY} 之间。",
        limit="已超过检索次数上限。不允许再进行检索。",
        repeated="你已检索过该查询。请参考之前的结果。",
        fetch_limit="已达到 URL 获取次数上限。不允许再获取更多 URL。",
        repeated_urls="你已获取过这些 URL。请参考之前的结果。",
        unknown_urls="这些 URL 均不是检索返回的结果。请只获取检索结果中的 URL。",
        no_page="这些页面均无法读取。",
        no_information="未找到有用信息。",
        force="\n\n我现在必须作答。最终答案是 ",
    ),
}


@dataclass(frozen=True)
class Block:
    """Text to inject into a chain, in its markers.

    Attributes:
        opening: Everything before the body, the begin marker included.
        body: The part that may be shortened.
        closing: Everything after it, the end marker included.
    """

    opening: str
    body: str
    closing: str

    @property
    def text(self) -> str:
        """The whole block."""
        return self.opening + self.body + self.closing


def message_block(message: str) -> Block:
    """Put one of the fixed messages into result markers."""
    return Block(f"\n{BEGIN_SEARCH_RESULT}\n", message, f"\n{END_SEARCH_RESULT}\n")


def information_block(information: str) -> Block:
    """Put refined information into result markers."""
    return Block(f"\n\n{BEGIN_SEARCH_RESULT}", information, f"{END_SEARCH_RESULT}\n\n")


def page_block(body: str) -> Block:
    """Put full pages, or a message about them, into full-page markers."""
    return Block(f"\n{BEGIN_FULL_PAGE}\n", body, f"\n{END_FULL_PAGE}\n")
