"""SAW: hierarchies flattened by policy bootstrapping. Zhou and Kao, 2025, arXiv 2505.14975.

Offline, toward goals. A policy toward way-points is easy to learn and a flat one toward far goals is not, for the values of
single actions hardly differ there. HIQL keeps both and learns to propose way-points, which is the hard part where a goal has
many coordinates. SAW proposes none: way-points are what the data reached some steps later, weighted by how much nearer to the
goal they are, and the flat policy imitates what the other one would do to get there,

    exp(A(s, w, g)) |flat(s, g) - near(s, w)|^2,   A(s, w, g) = V(w, g) - V(s, g)

beside the regression on single actions that both have. Then the flat policy acts alone.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | walks from goal to goal as data | OGBench | `PointMaze`, medium |
| value | that of `hiql` | discount 0.99 (0.995 where goals are farthest), tau 0.005 | 0.99, 0.02 |
| value | -1 a step until the goal | values from -100 | 1 at the goal: values from 0 to 1 |
| policy | `Waypoint`: exp(3 A), at most 100 | for actions and for way-points (0.3 and 1 with cubes) | temperatures (1 - 0.99) / 3 |
| policy | way-points | 25 steps ahead, 10 with objects | the same |
| policy | goals later in the walk, evenly | the same | the same |
| policy | Gaussians of one fixed deviation | half the squared distance for actions, all of it for way-points | `DeterministicPolicy`; 1 and 2 times its mean |
| update | Adam 3e-4 | 512 wide, 3 layers, batch 1024, 1M updates | 1e-3; 64, 2, 128, 4,000 |

Deviations: those of `hiql`, which has the same values. The policy toward way-points learns from the same rows with a
way-point of its own. The paper writes the divergence from the flat policy to the other; for Gaussians of one deviation either
is the squared distance. Features of goals, for pixels, are missing. `saw/recorded` takes data of others, discrete actions
too.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Flattening Hierarchies with Policy Bootstrapping",
    authors="John L. Zhou, Jonathan C. Kao",
    year=2025,
    arxiv="2505.14975",
    read="notes",
    topics=("offline", "values", "horizon"),
    systems=(87,),
)
