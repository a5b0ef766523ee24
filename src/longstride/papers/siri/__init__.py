"""SIRI: reinforcement learning under a length limit that goes down and up. Wen et al., 2025, arXiv 2509.25176.

Under a tight limit only an early answer earns anything, so the model learns to think in few tokens; under a wide
one it learns to search. Taken in turns, each cycle begins from a denser policy than the one before.

| place | choice | paper (section 5.1: R1-Distill-Qwen-1.5B) | here |
|---|---|---|---|
| plan | groups of one task | 128 prompts an update | 32 tasks, 8 answers each |
| plan | `Cosine` over tokens | 16,384 down to 8,192 and back, cycles of 640 updates | 128 to 48, cycles of 12 iterations |
| roll out | sampling | temperature 1 | the same |
| score | `TaskReward` | 1 if the answer within the limit is right | the same: what is cut has no answer |
| credit | `GroupRelative` | GRPO | (r - mean) / deviation |
| update | `PPO` | clip 0.2 and 0.28, no KL | the same, mean over tokens |
| update | rate | 1e-6 | 3e-4, as `grpo` |

Deviations: model and tasks are those of `grpo`; three cycles in all, as in the paper. The released models were
trained with the cosine; `Stair` and `StairCosine`, which the paper compares with it, are settings of the limit. The limit
binds what is sampled in training; evaluation allows 160 tokens always, and 64 beside it. In an earlier, untuned form of
the claim (`results/untuned.json`) siri and the long limit came to the same within 64 tokens (-.007 [-.019, .006]).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="SIRI: Scaling Iterative Reinforcement Learning with Interleaved Compression",
    authors="Haoming Wen, Yushi Bai, Juanzi Li, Jie Tang",
    year=2025,
    arxiv="2509.25176",
    read="full",
    topics=("reasoning", "horizon"),
    systems=(55,),
)
