"""Policy evaluation in continuous time by martingales. Jia and Zhou, 2021, arXiv 2108.06655.

Under the policy that is evaluated, M_t = J(t, X_t) + integral of the reward until t is a martingale, and J is the value
if and only if it is one. The squared temporal difference, which one minimises in discrete time, misses this: summed over
a fine mesh it is the quadratic variation of M, which belongs to the noise and not to the error. What it prefers is a
function that is flat where the state is noisy. Two other uses of the martingale are right, here for J = theta . f with
features f_i, their changes d_i and rewards r_i of a mesh:

| `way` | condition | theta solves |
|---|---|---|
| `loss` | martingale loss: least squares to the rewards to come, G_i | sum f_i (f_i . theta - G_i) = 0 |
| `orthogonality` | dM is orthogonal to the test function f: the least-squares form of TD(0) | sum f_i (d_i . theta + r_i) = 0 |
| `mean_square` | least squares of the temporal difference itself | sum d_i (d_i . theta + r_i) = 0 |

| place | choice | paper | here |
|---|---|---|---|
| problem | `OrnsteinUhlenbeck` | Brownian motion and linear-quadratic control, known values | reward X^2 until 1, known value |
| function | linear, zero at the horizon | parametric families that hold the value | two features, which hold it |
| data | paths on a mesh | one path after the other | 50 an iteration, mesh 0.01, transitions exact |
| update | sums of f and d | stochastic approximation, or solved | solved from all paths so far |

Deviations: the conditions are solved and not followed by stochastic steps; of the test functions only f itself is here
(not traces, nor GTD). Equations after the abstract and the standard theory; `test_martingale_evaluation.py`
checks them against exact moments, and measures the bias of the mesh.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Policy Evaluation and Temporal-Difference Learning in Continuous Time and Space: A Martingale Approach",
    authors="Yanwei Jia, Xun Yu Zhou",
    year=2021,
    arxiv="2108.06655",
    read="abstract",
    topics=("values",),
    systems=(101,),
)
