"""TD3: twin delayed deep deterministic policy gradient. Fujimoto et al., 2018, arXiv 1802.09477.

An actor of one action a state follows the gradient of a critic, from replayed transitions. Three things keep the critic
from being believed where it is too high: of two critics the least counts in the target; the target's action has noise
around it, so that values are smooth in the action; the policy and the target networks move half as often as the critics.

| place | choice | paper | here |
|---|---|---|---|
| plan, roll out | seeds of an environment of Gymnasium | MuJoCo's robots, 1M steps, the first random | Pendulum-v1, 40 episodes of 200, none random |
| roll out | noise of an action | 0.1 | 0.2 |
| value | `TDCritic`, two critics, the least of them | discount 0.99, tau 0.005 | 0.99, 0.01 |
| value | noise in the target's action | 0.2, at most 0.5 | the same |
| policy | `DeterministicPolicy`, `TD3`, along the first critic | | the same |
| policy | a step for two of the critics | on the last of their batches | `slices=2`: on both of their batches |
| update | Adam, one update a step | 1e-3 (3e-4 in the authors' later code); 400 and 300 wide, batch 100 | 1e-3; 64 wide, batches of 128 |

Deviations: target critics move after each step of the critics, where the paper moves them when the policy moves. Networks
are small and rates high, so that a run takes a minute on one core; for a robot give back the paper's numbers
(`agent.levels.0...`). The loss of a batch is d3rlpy's (`make parity`).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Addressing Function Approximation Error in Actor-Critic Methods",
    authors="Scott Fujimoto, Herke van Hoof, David Meger",
    year=2018,
    arxiv="1802.09477",
    read="notes",
    topics=("values",),
)
