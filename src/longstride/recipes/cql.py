"""CQL: conservative Q-learning. Kumar et al., 2020, arXiv 2006.04779.

An offline critic overrates actions that its data does not hold, and the policy finds them. CQL pushes the values of
sampled actions down and those of the data's actions up, so that what the policy climbs is a bound from below.

| place | choice | paper and Cal-QL's released code | here |
|---|---|---|---|
| plan | walks to one goal each as data, 1 at success | D4RL; its antmaze has the same reward | `PointMaze`, 400 walks |
| roll out | none: offline | | five test tasks, 10 episodes each |
| value | `PolicyValue`, two critics, the least of them | gamma 0.99, no entropy in the target | the same |
| value | `Conservative`, weight 5, temperature 1 | 10 actions of each of three sources | 4 of each |
| value | reward | 10 r - 5 in antmaze | r - 1 |
| policy | `Gaussian`, `SAC`, entropy of -1 a dimension | temperature tuned, from 1 | from 0.1: as the reward |
| update | Adam 3e-4, policy 1e-4, tau 0.005 | 256 wide, batch 256, 1M updates | 2 layers of 128, batch 128, 6,000 |

Deviations: a point in a maze stands for D4RL's robots, so that data, training and tests take minutes on two cores; the
weight of the gap is fixed, not tuned to a target.
"""

from longstride.envs.control import PointMaze
from longstride.recipes.sharsa import HORIZON, SMALL
from longstride.training.control import ControlEvaluation, ControlRecipe
from longstride.value import SAC, Agent, Conservative, Level, PolicyValue, algorithms


def level(critic: PolicyValue) -> Level:
    """SAC's level for tasks that end at their goal, with a temperature that is small beside a step's cost of 1."""
    return algorithms.reaching(critic).model_copy(update={"extraction": SAC(temperature=0.1)})


def agent(conservative: Conservative) -> Agent:
    """An actor-critic for tasks that end at their goal."""
    levels = (level(PolicyValue(conservative=conservative)),)
    return algorithms.sized(Agent(levels=levels, policy_lr=1e-4, batch=128), SMALL)


RECIPE = ControlRecipe(
    name="cql",
    tasks=PointMaze(maze="medium", walks="reach", episodes=400, length=HORIZON.limit),
    agent=agent(Conservative(actions=4)),
    phases=(algorithms.offline(6),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)
