"""WebAgent-R1: multi-turn GRPO after behaviour cloning, with older pages left out. Wei et al., 2025, arXiv 2505.16421.

Every earlier page becomes a placeholder and every action stays, so a prompt is one page and all earlier actions: what has to be
remembered has to be written down. Behaviour cloning under the same context comes first: without it a policy of 3B went from 6.1 % to 4.8 %, with
it to 33.9 %.

| place | choice | paper and released code (WebArena-Lite) | here |
|---|---|---|---|
| start | behaviour cloning | of demonstrations, in the compressed context | `base-keep-last` |
| plan | groups of one task | 4 episodes side by side, 16 tasks | 8, 32 |
| plan | `Fixed` | 15 turns; tests at up to 30 | 16; tests at 24 |
| roll out | `RecentObservations`, sampling | newest page, placeholder for older ones; temperature 1 | the same |
| score | `TaskReward` | WebArena's own checks, 0 or 1 | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / (std + 1e-4), divided by the turns of the episode | the same, std of divisor n without 1e-4 |
| update | `PPO`, `Mean` over turns | mean over the tokens of a turn, then over turns; clip, KL 1e-3 to the start | the same, clip 0.2 |
| update | passes, rate | one pass, a step of 64 episodes; 1e-6, clipped at 0.01 | one pass in steps of about 64 episodes; 5e-4, 1.0 |

The paper's objective is the mean over episodes of 1/|tau| sum_turns 1/|a| sum_tokens. Here 1/|tau| stands in the credit and the mean
is over the turns of a step, which is that objective divided by the mean number of turns; the KL is a mean over turns.

Deviations: a model of half a million parameters on embedded sites; a sample is a turn under the very prompt that was read, where the
released code trains on one sequence an episode. In steps of 128 turns, three times as many, held-out success grew less (0.25 against
0.29 after 16 iterations).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="WebAgent-R1: Training Web Agents via End-to-End Multi-Turn Reinforcement Learning",
    authors="Zhepei Wei, Wenlin Yao, Yao Liu, Weizhi Zhang, Qin Lu, Liang Qiu, Changlong Yu, Puyang Xu, Chao Zhang, Bing "
    "Yin, Hyokun Yun, Lihong Li",
    year=2025,
    arxiv="2505.16421",
    read="notes",
    topics=("agents", "context", "cloning"),
    systems=(126,),
)
