"""TRIM: two models share a solution. Kapoor et al., 2026, arXiv 2601.10245.

The weak model proposes each step; a scorer sees the solution so far, and where it doubts, the strong model takes the
step instead. A wrong step is caught where it is made, so the strong model is paid for a few steps of many tasks, and
not for all steps of the tasks that are hard.

| place | choice | paper (Qwen2.5-3B and Claude 3.7 on MATH-500) and code (1.5B and 7B) | here |
|---|---|---|---|
| strategy | `RoutedSteps` | steps end at an empty line; a rejected one is taken again by the strong model | steps end at `mark`; the same |
| score | `guide` | a process reward model of 7B | any scorer of beginnings; of the strong model's steps too |
| route | `Threshold` | TRIM-Thr: again where the score is below k | the same |
| route | `Logistic`, `LearnedSteps` | TRIM-Agg: PPO on scores, tokens and step, 8e-4 a token | a logistic policy of the same five features, by policy gradient |
| route | `Belief`, `fitted` | TRIM-POMDP: right, lost, last step wrong; scores read as ProcessBench's labels say, then SARSOP | the same states, filtered over all steps, by dynamic programming |
| compared | `each="episode"` | learned routers of whole tasks | the same scorer on the whole answer of the weak model |
| measure | `worth` | task reward less lambda a token of the strong model | the same; the curve of CPT95 is that of `exact.py` |

On your own models, of one vocabulary, with any scorer of steps (docs/guides/scorers.md):

    longstride eval WEAK --strategy longstride.papers.trim.method:RoutedSteps model=STRONG router.below=0.35 --guide JUDGE

`LearnedSteps` in place of `RoutedSteps` learns a router on one half of the tasks and is tested on the other, both ways round:

    longstride eval WEAK --tasks 400 --strategy longstride.papers.trim.method:LearnedSteps model=STRONG per_token=8e-4 rounds=20

From Python `learned(policy, recipe, RoutedSteps(...))` plays training tasks and gives a router for `router`, and
`fitted(scores, right, ...)` one that knows how far your scorer can be trusted. `longstride train trim` makes a strong model of
the shipped start by cloning, and routes between the two.

`exact.py` has the mechanism in small, with the same routers, in worlds that the seed draws: 3 to 12 steps, five levels, a strong
model of skill 1 to 4, a scorer whose unbiased noise is a third of the label to three times as much, and routers of whole tasks
that know the gain of every task.

Deviations: models of different tokenizers share no steps here; the code reads each score alone, with an even prior, and asks its
table only where the last step may be wrong, where `Belief` filters; how many steps are left is a number, and not a distribution.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="TRIM: Hybrid Inference via Targeted Stepwise Routing in Multi-Step Reasoning Tasks",
    authors="Vansh Kapoor, Aman Gupta, Hao Chen, Anurag Beniwal, Jing Huang, Aviral Kumar",
    year=2026,
    arxiv="2601.10245",
    read="notes",
    topics=("search",),
    systems=(17,),
)
