"""OTC-PO: few tool calls, paid only where the answer is right. Wang et al., 2025, arXiv 2504.14870.

A price on each call teaches not to try: where a task is hard and calls are needed, giving up is cheaper. OTC multiplies
instead, r = alpha r_tool r_correct, so a wrong answer earns 0 whatever it cost. With m calls, and n the fewest of the
group's right answers,

    r_tool = 1 if m = n = 0;  cos(m pi / (2 m + c)) if n = 0 < m;  sin(f pi / (2 n)), f = 2 n m / (m + n), else

which is 1 at m = n and falls on both sides. OTC-PPO, without groups, takes the second form for all.

| place | choice | paper (OTC-GRPO, Qwen2.5) | here |
|---|---|---|---|
| plan | groups of one task | answers of one question | 8 |
| roll out | tools | search, code | actions of the embedded sites; an answer is no call |
| score | `ToolProductivity` | alpha 1; n is kept for each question over epochs | the group's n: no task is drawn twice |
| score | c | most calls | turns of the budget, 24 |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO` | GRPO's | clip 0.2, KL 1e-3 |

`Calls` is the model of the claim: k calls are needed for a task of level k, fewer are never enough, and a policy is a
table of how many are made. There the reward is all that differs.

Deviations: the policy is a model of half a million parameters on embedded sites, rate and batch are its. The language
model was only tried, for two iterations of 32 episodes: that its held-out success rises has not been shown.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="OTC: Optimal Tool Calls via Reinforcement Learning",
    authors="Hongru Wang, Cheng Qian, Wanjun Zhong, Xiusi Chen, Jiahao Qiu, Shijue Huang, Bowen Jin, Mengdi Wang, Kam-Fai "
    "Wong, Heng Ji",
    year=2025,
    arxiv="2504.14870",
    read="notes",
    topics=("agents", "tools", "credit"),
    systems=(108,),
)
