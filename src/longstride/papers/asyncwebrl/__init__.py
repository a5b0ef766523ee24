"""AsyncWebRL: multi-step GRPO with rollouts that run ahead of the update. Bai et al., 2026, arXiv 2606.05597.

A pool that never waits for an iteration's slowest episode makes training off-policy by up to two versions; decoupled PPO corrects that.
Dividing every step's advantage by a constant k, and not by the length of its own episode, takes away a bias: long failures were punished
less for each token than short successes were praised, which teaches to fail slowly.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes; waits for 16 groups with unequal rewards | 8; 32 groups, those with equal rewards dropped |
| plan | `PerDifficulty` | trains at 10, 20, 30 turns, tests at 30, 50, 70 | 8, 16, 24; tests at 24 |
| roll out | `pool.staleness` | at most 2 versions, 1280 episodes in flight | the same bound |
| roll out | sampling, context | temperature 1; only the newest page | temperature 1; all pages stay (the base was made so) |
| score | `TaskReward` | a rubric's judge | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / std, divided by k = 10 | the same, k = 8, the easy horizon |
| update | `PPO` with `ImportanceCorrection` | clip 0.2, dual 3; w = start / sampler, masked above 5; mean over tokens, no KL | the same |
| update | passes, rate | 2 minibatches, 3 epochs; 5e-6, cosine over 300 steps to a tenth | the same passes; 3e-4 |

Deviations: a model of half a million parameters on embedded sites; an iteration starts a fixed number of groups and trains on those that
are mixed, where the paper goes on until it has 16 of them. A mean over tokens divides by the turns of the whole batch, so part of the
bias stays: `asyncwebrl/length` computes how much.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="AsyncWebRL: Efficient Multi-Step RL for Visual Web Agents",
    authors="Hao Bai, Rui Yang, Chenlu Ye, Spencer Whitehead, Aviral Kumar, Tong Zhang",
    year=2026,
    arxiv="2606.05597",
    read="notes",
    topics=("agents", "systems", "credit", "horizon"),
    systems=(22,),
)
