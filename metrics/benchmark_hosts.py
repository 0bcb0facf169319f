"""Where copies of the benchmarks are known to lie: data set hubs, their repositories, the pages they were taken from.

A rule is a place, not a topic: an article, an encyclopedia page or a preprint about a benchmark is none of these, and
if one does hold a question, its text gives it away (`metrics.contamination`). Of sites where contest problems first
appeared, only the contests that a benchmark is made of are listed.
Sources: Han et al. 2025, arXiv 2508.13180 (data set hubs among the pages that search agents read); the data statements
of GPQA, MATH, AIME 2024, AMC 2023, LiveCodeBench, Natural Questions, TriviaQA, HotpotQA, 2WikiMultihopQA, MuSiQue and
Bamboogle.

This module is a leaf: it imports the standard library only.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote, urlsplit

_URL_CHARS = 4_000
_INNER_URL = re.compile(r"https?:/{1,2}[^/\s].*", re.IGNORECASE)
_NAMED = (
    r"(?=.*(?:gpqa|math[-_]?500|prm800k|competition_math|aime[-_]?(?:20)?24|aimo[-_]validation|(?<![a-z])amc[-_]?(?:20)?23"
    r"|livecodebench|code_generation_lite|natural[-_]?questions|nq[-_]open|trivia[-_]?qa|hotpot[-_]?qa"
    r"|2[-_]?wiki[-_]?multi[-_]?hop|musique|bamboogle|flashrag))"
)
"""Somewhere in the rest of the path stands the name of a benchmark."""

_REPOSITORY = (
    r"(?:[^/]+/(?:gpqa|prm800k|livecodebench|natural-questions|triviaqa|hotpot|hotpotqa|2wikimultihop(?:qa)?|bamboogle"
    r"|flashrag|search-o1|search-r1|simple-evals)"
    r"|hendrycks/math|stonybrooknlp/musique|ofirpress/self-ask)(?:\.git)?(?:[/@].*)?"
)
"""Forks keep the name; where a name means other things as well, the owner is named too."""

RULES: tuple[tuple[str, str], ...] = (
    ("data set hub", r"(?:huggingface\.co|hf\.co|hf-mirror\.com)/(?:api/)?datasets/.+"),
    ("data set hub", r"datasets-server\.huggingface\.co/.+"),
    ("data set hub", r"huggingface\.co/spaces/livecodebench/.+"),
    ("data set hub", r"modelscope\.(?:cn|ai)/(?:api/v1/)?datasets/.+"),
    ("data set hub", rf"kaggle\.com/(?:datasets|code|competitions)/{_NAMED}.+"),
    ("data set hub", rf"opendatalab\.(?:com|org\.cn)/{_NAMED}.+"),
    ("data set hub", rf"paperswithcode\.com/dataset/{_NAMED}.+"),
    # Copies of a hub come and go under many names, but they keep its paths.
    ("copy of a data set hub", rf"[^/]+/datasets/{_NAMED}.+"),
    ("benchmark repository", rf"(?:github\.com|raw\.githubusercontent\.com|gitee\.com|gitlab\.com)/{_REPOSITORY}"),
    ("benchmark repository", rf"(?:api\.github\.com/repos|cdn\.jsdelivr\.net/gh|deepwiki\.com)/{_REPOSITORY}"),
    ("benchmark site", r"(?:hotpotqa|livecodebench)\.github\.io(?:/.*)?"),
    ("benchmark site", r"(?:nlp\.cs\.washington\.edu/triviaqa|ai\.google\.com/research/naturalquestions)(?:/.*)?"),
    ("benchmark site", r"curtis\.ml\.cmu\.edu/datasets/hotpot(?:/.*)?"),
    ("benchmark site", r"people\.eecs\.berkeley\.edu/~hendrycks/math(?:[./].*)?"),
    ("contest page", r"artofproblemsolving\.com/wiki/(?:index\.php(?:/|\?title=))?2024_aime(?:_.*)?"),
    ("contest page", r"artofproblemsolving\.com/wiki/(?:index\.php(?:/|\?title=))?2023_amc_1[02](?:[ab_].*)?"),
    ("contest page", r"atcoder\.jp/contests/(?:abc3(?:6[5-9]|7[0-9]|8[0-2])|arc18[1-8])/.+"),
    ("contest page", r"leetcode\.(?:com|cn)/contest/weekly-contest-4(?:09|1[0-9]|2[0-5])(?:/.*)?"),
    ("contest page", r"leetcode\.(?:com|cn)/contest/biweekly-contest-1(?:3[6-9]|4[0-4])(?:/.*)?"),
)
"""(what it is, pattern of the whole of host and path in lower case, without `www.`) pairs."""
_PATTERNS = [(name, re.compile(pattern, re.DOTALL)) for name, pattern in RULES]
MIRROR_RULES = hashlib.sha256(repr(RULES).encode()).hexdigest()[:8]
"""Names the list of mirrors in identities: another list is another run."""


def benchmark_mirror(url: str) -> str | None:
    """Tell whether an address is one where copies of benchmarks are known to lie.

    Args:
        url: Any address; one inside a proxy's or an archive's address counts as well.

    Returns:
        What kind of place it is, such as `data set hub`; None for any other address.
    """
    for _ in range(3):
        place = _place(url)
        for name, pattern in _PATTERNS:
            if pattern.fullmatch(place):
                return name
        inner = _INNER_URL.search(place)
        if inner is None:
            return None
        url = inner.group()
    return None


def _place(url: str) -> str:
    """Return host and path of an address in one spelling."""
    text = unquote(url[:_URL_CHARS]).strip().lower()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return ""
    host = re.sub(r"^(?:www|m|en)\.", "", host)
    query = f"?{parts.query}" if parts.query else ""
    return host + re.sub(r"(?<!:)/{2,}", "/", parts.path) + query
