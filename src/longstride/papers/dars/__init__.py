"""DARS-B: more rollouts for hard tasks, and full batches. Yang et al., 2025, arXiv 2508.13755.

What a group adds to the gradient grows with p (1 - p): tasks of middling difficulty drown the hard ones, whose success
is what widens what the model can do at all. So a first group shows how hard a task is, and hard ones are played more
often; and updates take the whole batch, for noise in them costs exploration.

| place | choice | paper and released code (Qwen2.5-Math) | here |
|---|---|---|---|
| plan | `DifficultyAdaptive` | 8 answers, then more, 64 at most (hardness weighted) | 8, then more, 32 at most |
| plan | tasks | 3,072 an update | 32 |
| roll out | sampling | temperature 1, 3,072 tokens | temperature 1, 160 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `GroupRelative`, mixed groups only | r - mean | the same |
| update | `PPO` over the whole batch | two passes, clip 0.2, no KL; tokens summed, divided by a constant | the same, mean over tokens |
| update | rate | 5e-6 | 5e-4, for two steps an iteration (1e-3 lost what it had won) |

Deviations: model and tasks are those of `grpo`; the release's entropy bonus, 0.001 by default, is left out. Both stages
are one group for the advantage, as in the release.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
    authors="Zhicheng Yang, Zhijiang Guo, Yinya Huang, Yongxin Wang, Dongchun Xie, Yiwei Wang, Xiaodan Liang, Jing Tang",
    year=2025,
    arxiv="2508.13755",
    read="notes",
    topics=("reasoning",),
    systems=(89,),
)
