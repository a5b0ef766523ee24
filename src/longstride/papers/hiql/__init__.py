"""HIQL: hierarchical implicit Q-learning. Park et al., 2023, arXiv 2307.11949.

Offline, toward goals. One kind of value, without actions, serves two policies: a high one that chooses a way-point, the
state k steps ahead, by V(way-point, goal) - V(s, goal), and a low one that goes there, by V(s', way-point) - V(s, way-point).
Far off, values are noisy, and the difference over k steps is larger than over one; near by they are not.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | walks from goal to goal as data | D4RL's antmaze, kitchen; OGBench | `PointMaze`, medium |
| value | `ImplicitV`: two networks, expectile 0.7 | discount 0.99, tau 0.005 | 0.99, 0.02 |
| value | goals: 0.2 here, 0.5 later, 0.3 any | later ones geometric | the same |
| value | -1 a step until the goal | values from -100 | 1 at the goal: values from 0 to 1 |
| policies | `AWR`: exp(beta A), at most 100 | beta 3 | `temperature` (1 - 0.99) / 3 |
| policies | way-points `k` steps ahead, of goals later in the walk | k 25, in OGBench's mazes | the same |
| policies | both are Gaussian | of deviation 1 in OGBench; way-points as features of (s, way-point), 10 numbers | `FlowPolicy` of coordinates; `NormalPolicy` |
| update | Adam 3e-4 | 512 wide, 3 layers, batch 1024, 1M updates | 1e-3; 64, 2, 128, 4,000 |

Deviations: each policy has values of its own, learned alike, where the paper shares one network. A value v of the paper is
(V - 1) / (1 - 0.99) here, an equal order and, with that temperature, equal weights. Way-points are goals themselves, as
fits states whose goals are few numbers; for pixels the paper's features are missing. Values begin at 0: what is too high falls slowly.
Unlike OGBench's code, `NormalPolicy` has means from -1 to 1 and learns its deviation; goals of way-points are all later states alike (there
rounding makes the next and the last one half as likely); and critics step first, so advantages and target networks read values after that
step. The loss of V, the weights of both policies and the batches are held to that code (`test_released.py`); the flow of way-points is not.
With seed 0 and half of the walks, 0.46 of the goals are reached after 2,000 updates and 0.72 after 4,000.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="HIQL: Offline Goal-Conditioned RL with Latent States as Actions",
    authors="Seohong Park, Dibya Ghosh, Benjamin Eysenbach, Sergey Levine",
    year=2023,
    arxiv="2307.11949",
    read="notes",
    topics=("offline", "values", "horizon"),
)
