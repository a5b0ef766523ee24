"""BATS: what is left of the budget is in view. Liu et al., 2025, arXiv 2511.17006.

More calls of tools do not help an agent that does not know how many it has: it stops early, or is cut in the middle. A line
after every result says what was used and what is left; then the agent digs deeper while it can afford to, and answers with
what it has before it is cut. Timely Machine (arXiv 2601.16486) puts the time in view and trains for it.

| place | choice | paper | here |
|---|---|---|---|
| plan | limits | several, by tool | 6, 12, 24 turns by difficulty in training; tests at 24, 12 and 6 |
| roll out | `BudgetInView` | used and left of each tool, after each result | `7 of 24` at the end of every page; turns, tokens or calls of tools |
| score | `TaskReward` | right or not, and the price of tokens and calls | the same, without prices |
| credit | `GroupRelative` | none, a prompt | (r - mean) / deviation |
| update | `PPO` | none | clip 0.2 |
| exact | `BudgetedLooks` | - | look again or answer, under limits that are drawn |

Deviations: the abstract and what others wrote of it were read. The paper prompts large models and trains none, so that a model learns
what to do with what it sees is Timely Machine's part. Planning and verification by the budget, the other half of BATS, are left out;
so are prices. Words of the line are those that the shipped starts know. `BudgetInView` is a setting of any recipe,
`context="{type='budget_in_view', within={type='full_history'}}"`, and an arm beside any claim about horizons.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Budget-Aware Tool-Use Enables Effective Agent Scaling",
    authors="Tengxiao Liu, Zifeng Wang, Jin Miao, I-Hung Hsu, Jun Yan, Jiefeng Chen, Rujun Han, Fangyuan Xu, Yanfei Chen, "
    "Ke Jiang, Samira Daruki, Yi Liang, William Yang Wang, Tomas Pfister, Chen-Yu Lee",
    year=2025,
    arxiv="2511.17006",
    read="notes",
    topics=("agents", "horizon", "tools"),
)
