"""Which answer counts, beside the code of "Can 1B LLM Surpass 405B LLM?": what `_agg_majority_vote`, `_agg_prm_last_max`
and `_agg_prm_last_vote` of RyanLiu112/compute-optimal-tts (`src/reason/reranking/vote_utils.py`, commit 0ee2578) choose."""

from typing import Literal

import pytest

from longstride.strategies.search import Partial, chosen

POOLS = [
    ("aabbba", [0.1, 0.2, 0.1, 0.7, 0.5, 0.6]),
    ("abcbbc", [0.8, 0.9, 0.4, 0.7, 0.9, 0.6]),
    ("bacacb", [0.3, 0.7, 0.4, 0.8, 0.9, 0.3]),
    ("accabb", [0.5, 0.1, 0.6, 0.3, 0.5, 0.4]),
    ("bcbaac", [0.3, 0.8, 0.2, 0.9, 0.2, 0.6]),
    ("cacbca", [0.1, 0.8, 0.6, 0.4, 0.9, 0.9]),
]
"""Six answers each, and the scores of their last steps, with ties of votes and of scores."""


@pytest.mark.parametrize(
    ("by", "released"),
    [
        ("votes", "abbabc"),
        ("score", "bbccac"),
        ("weighted", "bbabca"),
    ],
)
def test_the_answer_is_the_released_one(by: Literal["score", "votes", "weighted"], released: str) -> None:
    pools = [[Partial(x, s, True, x) for x, s in zip(answers, scores, strict=True)] for answers, scores in POOLS]
    assert "".join(chosen(pool, by).answer or "" for pool in pools) == released
