"""Open questions: NQ, TriviaQA, HotpotQA, 2WikiMultihopQA, MuSiQue and Bamboogle in FlashRAG's files.

The paper's authors took the first 500 rows of each. A row has `id`, `question`, `golden_answers` and `metadata`, which
holds HotpotQA's and 2WikiMultihopQA's `type` and `supporting_facts`, and MuSiQue's `question_decomposition`.
"""

from __future__ import annotations

from functools import partial
from itertools import islice

from runs.benchmarks.hub import dataset_page, fetch
from runs.benchmarks.question_files import read_rows
from runs.benchmarks.rows import questions_of
from runs.benchmarks.spec import Benchmark, LoadedSplit

_REPO = "RUC-NLPIR/FlashRAG_datasets"
_FIRST = 500


def _load(name: str, split: str) -> LoadedSplit:
    files = fetch(_REPO, [f"{name}/{split}.jsonl"])
    return LoadedSplit(questions_of(islice(read_rows(files.paths[0]), _FIRST)), files.revision)


def _open_questions(
    name: str,
    split: str,
    count: int,
    summary: str,
    licence: str,
    *,
    groups: tuple[str, ...] = (),
    multi_hop: bool = True,
) -> Benchmark:
    return Benchmark(
        name=name,
        summary=summary,
        licence=licence,
        task="open_qa",
        metric="em",
        splits={split: count},
        default_split=split,
        load=partial(_load, name),
        groups=groups,
        source=dataset_page(_REPO),
        multi_hop=multi_hop,
    )


NQ = _open_questions(
    "nq", "test", 500, "Natural Questions: what people asked a search engine", "CC-BY-SA-3.0", multi_hop=False
)
TRIVIAQA = _open_questions("triviaqa", "test", 500, "TriviaQA: trivia with many aliases", "Apache-2.0", multi_hop=False)
HOTPOTQA = _open_questions(
    "hotpotqa", "dev", 500, "HotpotQA: two documents a question", "CC-BY-SA-4.0", groups=("type",)
)
TWO_WIKI = _open_questions(
    "2wikimultihopqa", "dev", 500, "2WikiMultihopQA: two to four documents a question", "Apache-2.0", groups=("type",)
)
MUSIQUE = _open_questions("musique", "dev", 500, "MuSiQue: two to four hops a question", "CC-BY-4.0", groups=("hops",))
BAMBOOGLE = _open_questions(
    "bamboogle", "test", 125, "Bamboogle: two-hop questions that one search does not answer", "MIT"
)

FLASHRAG_SETS = (NQ, TRIVIAQA, HOTPOTQA, TWO_WIKI, MUSIQUE, BAMBOOGLE)
