"""Lite PPO: the mean of the group, the deviation of the batch, a loss over tokens. Liu et al., 2025, arXiv 2508.08221.

A group that is nearly all right or all wrong has a small deviation, and GRPO divides by it. The deviation of the whole
batch is one number for all tasks, so that no group is blown up. In a mean over tokens a long answer weighs as much as
it is long.

| place | choice | paper (Qwen3-4B and 8B base, ROLL) | here |
|---|---|---|---|
| plan | groups of one task | 8 answers, batches of 1,024 | 8 answers, 32 puzzles of unequal difficulty |
| score | right or wrong | verifier | the same |
| credit | `GroupRelative` | (r - mean of the group) / deviation of the batch | the same |
| update | `PPO`, `Mean` over tokens | vanilla PPO loss, clip 0.2, no critic, no KL | the same |

Deviations: model and tasks are those of `grpo`; advantages are not clipped (2 in ROLL), and there is no dual clip. With
right-or-wrong rewards and groups of 8 a group's deviation is at least 0.33, so nothing is blown up: where all tasks are
hard it is the batch's deviation that is the smaller one.

What the exact problem shows: the advantage is one of step length. Where all tasks are hard the batch's deviation is about
0.21 at first and that of a mixed group 0.33 or more, so steps are 1.6 times as long; GRPO with a rate 1.6 times as large
does better still, for the batch's deviation grows with success. As a direction, neither deviation weighs a task of 0.1
otherwise than one of 0.5 by more than a tenth (tested).

On your own model and tasks; rewards need not be 0 and 1, and the deviation of rare partial rewards is where the two differ:

    longstride train lite_ppo model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048
    longstride train lite_ppo credit.normalize=std loss.aggregation.over=sequence    # what it is compared with

Compare at the best rate of each: a deviation is a length of steps, so one rate for both compares rates.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning",
    authors="Zihe Liu, Jiashun Liu, Yancheng He, Weixun Wang, Jiaheng Liu, Ling Pan, Xinyu Hu, Shaopan Xiong, Ju Huang, "
    "Jian Hu, Shengyi Huang, Siran Yang, Jiamang Wang, Wenbo Su, Bo Zheng",
    year=2025,
    arxiv="2508.08221",
    read="notes",
    topics=("reasoning", "credit"),
    systems=(134,),
)
