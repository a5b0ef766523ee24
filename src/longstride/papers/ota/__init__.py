"""OTA: option-aware temporally abstracted value. Ahn et al., 2025, arXiv 2505.12737.

HIQL's policy of way-points goes by differences of values, and far from the goal their sign is often wrong: values of a
thousand steps are as noisy as they are flat. OTA learns the values of way-points with options: n steps of the data count as
one, in the discount too, so a goal d steps away is d / n away, and V falls as gamma^(d / n). All else is `hiql`.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | walks from goal to goal as data | OGBench: mazes of point, ant and humanoid | `PointMaze`, large |
| value of way-points | `ImplicitV` on transitions of n steps, `discount_per="transition"` | n 5 | the same |
| value of way-points | a goal within n steps | reached, also at n steps | reached, at n steps not yet |
| value of actions, policies | those of `hiql` | the same | the same |
| update | Adam 3e-4 | 512 wide, 3 layers, batch 1024, 1M updates | 1e-3; 64, 2, 128, 4,000 |

Deviations: those of `hiql`. With n = 1 agent and numbers are those of `hiql`. The paper's measure, how often V rises along
shortest paths, is the measure `order` of every evaluation in a maze; the claim is of success.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Option-aware Temporally Abstracted Value for Offline Goal-Conditioned Reinforcement Learning",
    authors="Hongjoon Ahn, Heewoong Choi, Jisu Han, Taesup Moon",
    year=2025,
    arxiv="2505.12737",
    read="notes",
    topics=("offline", "values", "horizon"),
    systems=(95,),
)
