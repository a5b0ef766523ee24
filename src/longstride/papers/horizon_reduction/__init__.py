"""Horizon reduction: macro actions in training, atomic ones at the test. Kim et al., 2026, arXiv 2605.02572.

Tasks with the same rules and the same reasoning become harder to train on as they take more actions: a success is rarer, and a failure
blames more actions that were right. So in training several atomic actions are one, and tasks take fewer decisions; what is learned
there carries over to tasks that take more of them than any before (the paper's horizon generalisation).

| place | choice | paper | here |
|---|---|---|---|
| tasks | `MacroActions` | controlled tasks that differ in length alone; macro actions | trails of pages at distances 2 to 41; a followed sign is followed on, 4 links in a turn |
| roll out | `LatestObservation` | not known | a page says all that is to be known |
| score, credit, update | `TaskReward`, `GroupRelative`, `PPO` | RL with verifiable rewards | groups of 8, clip 0.2 |
| test | atomic actions | longer variants | held-out names, distances 8, 16, 32 and 64, 96 turns |

Three words are kept apart: goal distance (fewest atomic actions), interaction budget (what is allowed) and effective horizon (what the
policy takes). `goal_distance`, `budget` and `length` of every evaluation are these.

Deviations: the abstract and what others wrote of it were read, which name macro actions and sub-goals but not how they are made; sub-goals
are left out. What a macro action is, the environment says (`envs.base.Continuing`, one method `goes_on`); of the worlds here trails do. Turns are
what a claim holds equal: the atomic actions inside a macro action are not counted.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="On Training Large Language Models for Long-Horizon Tasks: An Empirical Study of Horizon Length",
    authors="Sunghwan Kim, Junhee Cho, Beong-woo Kwak, Taeyoon Kwon, Liang Wang, Nan Yang, Xingxing Zhang, Furu Wei, Jinyoung Yeo",
    year=2026,
    arxiv="2605.02572",
    read="notes",
    topics=("agents", "horizon"),
)
