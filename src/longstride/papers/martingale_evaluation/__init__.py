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

| place | choice | paper | `martingale_evaluation` | `martingale_evaluation/exact` |
|---|---|---|---|---|
| problem | a diffusion of known value | Brownian motion and linear-quadratic control | Ornstein-Uhlenbeck, reward X^2, discounted | the same, undiscounted |
| problem | others | | a shaken pendulum (`/pendulum`), walks of your own (`/recorded`) | |
| function | | parametric families that hold the value | a network of time and state | two features, which hold it |
| data | walks on a mesh | one after the other | 200, mesh 0.02, transitions exact | 50 an iteration, the best mesh of nine |
| update | orthogonality | CTD(0), CTD(lambda), and solved (LSTD, GTD) | CTD(0); `lam` for CTD(lambda), by lambda-returns | solved, with f itself as test function |
| update | martingale loss | gradient Monte Carlo | `lam=1` | solved |
| update | what is warned of | mean-square TD | `residual=true` | solved |
| test | error of the value | against the known one | against the known one (`true_error`), and against returns (`value_error`) | against the known one |

`martingale_evaluation` acts: a value network learns from walks of the policy. What acts in its tests is the policy that is evaluated: there is
none in a diffusion, a random one on the pendulum, and that of the walks that are held out in `/recorded`, which needs a file and no environment
(`tasks.data=mine.hdf5`). Fineness of time is `tasks.mesh`, or `tasks.seconds` of the pendulum.

One look that decides nothing (seed 900, 2,000 updates, error against the known value): with a mesh of 50 steps 0.11 for CTD(0) and 0.22 for the
mean square; with 2 steps 0.14 and 0.11.

Deviations: of discounted problems with a free end of the horizon the return of a truncated walk goes on with V of its last state, and
its second half is not measured. CTD(lambda) is offline: a walk's sum at once, by V as it was at the beginning of an iteration but for the first step.
GTD and the solved conditions are in the exact problem alone, without traces. The conditions are after the abstract and the standard theory, and no
code of the authors was found; `test_martingale_evaluation.py` checks the solved ones against exact moments, and measures the bias of the mesh.
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
