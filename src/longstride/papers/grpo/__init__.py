"""GRPO: group relative policy optimisation. Shao et al., 2024, arXiv 2402.03300.

PPO without a critic: the baseline of an episode is the mean reward of its group, several episodes of one task, and the
group's deviation is what rewards are divided by.

| place | choice | paper (section 4.2) | here |
|---|---|---|---|
| plan | tasks uniform with replacement, groups of one task | 64 answers a question, training batch 1,024 | 8 answers a task, 32 tasks |
| plan | `Fixed` | one answer of at most 1,024 tokens | one turn of at most 160 |
| roll out | sampling | from the old policy, temperature not given | temperature 1, no nucleus |
| score | `TaskReward` | a learned reward model | the puzzle's verifier |
| credit | `GroupRelative` | (r - mean) / deviation, on every token of the answer | the same |
| update | `PPO`, `Mean` over episodes | ratio clipped, mean over the tokens of each answer | the same, clip 0.2 |
| update | KL to the reference | coefficient 0.04, in the loss | none |
| update | steps | one after each exploration | four: two passes in steps of 128 episodes |
| update | rate | 1e-6 | 3e-4, warm-up of 5 steps |

Deviations: a model of less than half a million parameters on chains modulo 7 and Countdown stands for
DeepSeekMath-Instruct 7B, so rate, batch and lengths are a small model's; there is no KL term and no reference policy,
as in most later work; the deviation has the divisor n. The rate was chosen once, of 1e-4 and 3e-4 (5e-4 and more lost
success from an earlier, weaker warm start); the other papers on puzzles take it as it is, but for `dars` and `pope`.

On the embedded sites: `longstride train grpo model=base tasks.type=embedded_web budget.turns=24 test_budget.turns=24`.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    authors="Zhihong Shao, Peiyi Wang, Qihao Zhu, Runxin Xu, Junxiao Song, Xiao Bi, Haowei Zhang, Mingchuan Zhang, Y. K. "
    "Li, Y. Wu, Daya Guo",
    year=2024,
    arxiv="2402.03300",
    read="full",
    topics=("reasoning", "credit"),
)
