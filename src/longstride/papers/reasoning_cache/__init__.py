"""Reasoning Cache: reason, summarise, forget, reason on from the summary. Wu et al., 2026, arXiv 2602.03773.

Each round reads the task and a summary, and what it thought is dropped but for the next summary. So the length that
is trained is that of a round, and how many rounds there are is free: what a round has to learn is to go on from where
it is. Training begins in states that the policy itself came to.

| place | choice | paper (table 5) and released code (4B) | here |
|---|---|---|---|
| plan | `SummaryStates` | 3 rounds explore, 2 of the states that they saw, 8 rollouts of a round from each | the same |
| plan | tasks | 64 an update | 16 |
| roll out | `LatestObservation`, sampling | task and summary; temperature 1, at most 16,384 tokens | temperature 1, 48 tokens |
| roll out | summary | by the model itself, not trained | by rule: what is left of a chain, failed first moves of a Countdown |
| score | `TaskReward` | the answer of the round | the same |
| credit | `GroupRelative` | (r - mean) / deviation in the group of a state | the same, mixed groups only |
| update | `PPO` | clip 0.2 and 0.28, mean over tokens, KL 0.001 in the loss | the same, no KL |
| update | passes, rate | one in two steps, 1e-6 | as `grpo`: two, 3e-4 |
| test | rounds | 12 or 16, 32 for 512k tokens | 3, beside it 1, 8 and 12 |

Deviations: model and puzzles are those of `grpo`; the summariser is a rule, so that nothing but reasoning is learned,
and believes what the policy says: an answer that it wrongly calls found stands until a round says no; groups of one
outcome are left out, many of which begin in such a state; there is no second stage, with replay of earlier summaries.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Reasoning Cache: Continual Improvement Over Long Horizons via Short-Horizon RL",
    authors="Ian Wu, Yuxiao Qu, Amrith Setlur, Aviral Kumar",
    year=2026,
    arxiv="2602.03773",
    read="notes",
    topics=("reasoning", "horizon", "context"),
    systems=(14,),
)
