"""Measures the sentence window of a 50,000-character page: python tests/retrieval/measure_window.py.

The pages are made up from a seed: `ordinary` ones share a few words with the snippet here and there, in `worst` ones
every sentence shares most of them. Times are the best of 15, as other work on the machine only ever adds to them.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from retrieval import passages
from retrieval.sentences import cjk_sentence_spans, sentence_spans

CHARS = 50_000
ENGLISH_SNIPPET = (
    "The tower was built from 1887 to 1889 by the firm of Gustave Eiffel, whose engineers drew the first sketch"
)
CHINESE_SNIPPET = "埃菲尔铁塔由古斯塔夫·埃菲尔的公司于一八八七年至一八八九年建成，位于法国巴黎战神广场"
CHINESE_LETTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"
)


def english(generator: random.Random) -> str:
    words = [*ENGLISH_SNIPPET.split(), *(f"word{number}" for number in range(2_000))]
    sentences = (" ".join(generator.choices(words, k=generator.randint(6, 30))).capitalize() for _ in range(3_000))
    return ". ".join(sentences)[:CHARS]


def chinese(generator: random.Random) -> str:
    letters = CHINESE_LETTERS * 4 + CHINESE_SNIPPET
    sentences = ("".join(generator.choices(letters, k=generator.randint(12, 60))) for _ in range(3_000))
    return "。".join(sentences)[:CHARS]


def best_ms(action: Callable[[], object]) -> float:
    times = []
    for _ in range(15):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def main() -> None:
    generator = random.Random(0)
    for name, page, snippet, split in (
        ("English, ordinary", english(generator), ENGLISH_SNIPPET, sentence_spans),
        ("English, worst", (ENGLISH_SNIPPET + ". ") * 1000, ENGLISH_SNIPPET, sentence_spans),
        ("Chinese, ordinary", chinese(generator), CHINESE_SNIPPET, cjk_sentence_spans),
        ("Chinese, worst", (CHINESE_SNIPPET + "。") * 2000, CHINESE_SNIPPET, cjk_sentence_spans),
    ):
        page = page[:CHARS]
        spans = len(split(page))
        whole = best_ms(lambda page=page, snippet=snippet: passages.best_window(page, snippet))
        alone = best_ms(lambda page=page, split=split: split(page))
        print(f"{name}: {spans} sentences, {whole - alone:.1f} ms apart from splitting, which takes {alone:.1f} ms")


if __name__ == "__main__":
    main()
