"""SPCT: a judge that says first what matters. Liu et al., 2025, arXiv 2504.02495.

The judge writes principles, then a critique by them, then a score of 1 to 10 for each answer. Judgements differ in
their principles, so several see more than one, and their sums are finer than a score. Self-principled critique tuning
teaches by outcome which principles to write; a second, small model tells which judgements are likely right, and only
these are summed.

| place | choice | paper (DeepSeek-GRM, 16B to 671B) | here |
|---|---|---|---|
| tasks | `Judgements(asks="scores")` | one or more answers, each scored from 1 to 10 after principles and critiques | two solutions of `base-puzzles`, or of any model or file |
| cold start | `FilteredBC`, `MixedGroups` | 3 judgements an item; wrong ones are left out, and items with 3 right ones; hints for hard items | 4, left out likewise; no hints |
| score | the scores | 1 or -1: whether the best answer has the highest score, alone (equations 10, 11) | 1 or 0, of which a normalised group makes the same |
| update | `ObjectivePhase` | GRPO with groups of 4, KL 0.08, no reward of format | the same |
| vote | `Voted`, `SummedScores` | k judgements, answers shuffled in each, scores summed (equation 14) | the same, k = 8 |
| filter | `filtered_by`, `meta` | a scalar model of whether a judgement is right, taught on judgements of both stages; the better half is summed | a head on hidden states of `base-judge`, or any scorer |

With your own: `longstride train spct model=MODEL tasks.path=solutions.jsonl cloning=`; then `--strategy best_of by.type=scored by.judge=RUN
by.scorer.type=longstride.papers.spct.method:SummedScores` (docs/guides/judge.md). What a model writes before its scores is its own affair: its
chat template and `chat.system` may ask for principles. The shipped judge is first shown what scores look like (`cloning`), after going through
one solution, the other, or both; its only principle is which of them it reads.

`exact.py` has the mechanism in small, with the same filter: items are of a kind of prompt, which has one criterion by which its answers are
right, and does not name it. A principle is a criterion; by it each answer is read, with noise, and the first of them as a little better than it
is. The filter learns from the judgements that training makes. In one world it was worth 0.061 [0.056, 0.066] as long as judgements differed in
their principles; after longer steps of RL, which settled on the right ones, it dropped half of the votes for nothing (-0.002 [-0.004, 0.001]).
There the judge is a table of principles by kind of prompt, and what it reads is not learned.

Deviations: hinted sampling, single answers and more than two in one judgement are left out; the filter learns on one half of the tasks and is
used on the other, and not on training data. KL is to the policy after `cloning`, not to the one after rejection.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Inference-Time Scaling for Generalist Reward Modeling",
    authors="Zijun Liu, Peiyi Wang, Runxin Xu, Shirong Ma, Chong Ruan, Peng Li, Yang Liu, Yu Wu",
    year=2025,
    arxiv="2504.02495",
    read="notes",
    topics=("judges", "search"),
    systems=(73,),
)
