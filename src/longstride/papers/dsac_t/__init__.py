"""DSAC-T: a distributional soft actor-critic with three refinements. Duan et al., 2023, arXiv 2310.05858.

A critic that learns the whole distribution of the return, a normal one, estimates its mean better, since a mean whose
returns scatter is moved by shorter steps. DSAC did so by a draw of the next return, and its gradients grew with what
scatters. Three refinements calm them: the mean is moved toward the next mean instead of a draw; of two distributions that
are learned, the one with the lesser mean is the target; and how far a draw may be, and how much a transition weighs, is
measured in deviations, so that rewards of any size take the same settings.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan, roll out | seeds of an environment of Gymnasium | MuJoCo's robots, 1.5M updates, 20 steps for each | Pendulum-v1, 40 episodes of 200, 0.5 updates a step |
| value | `GaussianReturns`, two of them | the next value has the entropy in it | it has not |
| value | H, and what is added to the divisors | Huber's loss up to 50; 0.1 | the same |
| value | how far a draw may be; weights | 3 b; 0.1 to 10 | the same |
| policy | `SAC` with a target network, entropy of -1 per dimension | temperature from e, rate 3e-4 | from 0.1, of rewards scaled by 0.1 |
| policy | a step for two of the critics | on the last of their batches | `slices=2`: on both of their batches |
| update | Adam, tau, b's rate | 1e-4, 0.005 for both; 256 wide, three layers of GELU, batch 256 | 1e-3, 0.01, 0.005; 64 wide, two of ReLU, 128 |

`dsac_t/scales` compares it with SAC where rewards are of any size, and has the claim. Both run on `longstride.control.Pendulum`,
which is Pendulum-v1 with constants that can be drawn.

Deviations: the entropy counts in the policy's loss alone; target networks of the critics move after
each step of theirs, where the code moves them when the policy moves. The loss is that of the released code, which is
compared (`test_released.py`): since Huber's loss is half the square there, sigma comes to the deviation divided by the
square root of two.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Distributional Soft Actor-Critic with Three Refinements",
    authors="Jingliang Duan, Wenxuan Wang, Liming Xiao, Jiaxin Gao, Shengbo Eben Li, Chang Liu, Ya-Qin Zhang, Bo Cheng, Keqiang Li",
    year=2023,
    arxiv="2310.05858",
    read="notes",
    topics=("values",),
    systems=(133,),
)
