"""LOOP: leave-one-out PPO for long episodes. Chen et al., 2025, arXiv 2502.01600.

PPO without a critic, in which rollouts are used for several steps. What is clipped matters then: the ratio of a whole
trajectory is the product over its tokens, leaves the clip range after a small step and loses its gradient; ratios of
single tokens stay inside.

| place | choice | paper and released code (Qwen2.5-32B on AppWorld) | here |
|---|---|---|---|
| plan | groups of one task | 6 rollouts, 40 tasks | 6 rollouts, 8 tasks |
| score | the final state | share of unit tests that pass | right or wrong |
| credit | `DeadZone` | r - mean of the others, not divided; none below 0.01 | the same |
| update | `PPO` | token by token, ratio clipped to [1 / 1.1, 1.1] | the same |
| update | steps | 2 epochs of batches of 32 | 8 on the whole batch |

Deviations: an episode is one answer of eight binary tokens (`exact.answers`), not forty turns; no LoRA, no clipping of
gradients, no rule for stragglers. Ratios of turns are `gspo` here: the geometric mean of a turn's tokens, as the only
turn is the whole answer. What the trajectory's ratio loses is what clipping takes: with a clip that never binds the
difference is gone (the second control), and both learn more than with it, for a table is in no danger of leaving the
region where its samples say something.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Reinforcement Learning for Long-Horizon Interactive LLM Agents",
    authors="Kevin Chen, Marco Cusumano-Towner, Brody Huval, Aleksei Petrenko, Jackson Hamburger, Vladlen Koltun, Philipp "
    "Krähenbühl",
    year=2025,
    arxiv="2502.01600",
    read="notes",
    topics=("agents", "credit", "tools"),
    systems=(92,),
)
