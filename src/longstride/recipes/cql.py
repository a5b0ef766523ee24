"""CQL: conservative Q-learning. Kumar et al., 2020, arXiv 2006.04779.

An offline critic overrates actions that its data does not hold, and the policy finds them. CQL pushes the values of
sampled actions down and those of the data's actions up, so that what the policy climbs is a bound from below.

| place | choice | paper and Cal-QL's released code | here |
|---|---|---|---|
| plan | walks to one goal each as data, 1 at success | D4RL; its antmaze has the same reward | `PointMaze`, 400 walks |
| roll out | none: offline | | five test tasks, 10 episodes each |
| value | `PolicyValue`, two critics, the least of them | gamma 0.99, no entropy in the target | targets cut to 0 to 10 |
| value | reward | 10 r - 5 in antmaze: values from -500 to 5 | 10 r: from 0 to 10 |
| value | `Conservative` | weight 5, T = 1, 10 actions of each of three sources | 1, 0.1, 2 of each |
| policy | `Gaussian`, `SAC`, entropy of -1 a dimension | temperature tuned, from 1 | from 0.01 |
| update | Adam 3e-4, policy 1e-4, tau 0.005 | 256 wide, batch 256, 1M updates | 1e-3, 3e-4, 0.02; 64, 128, 2,000 |

Deviations: a point in a maze stands for D4RL's robots, so that data, training and tests take a minute on two cores. A
step costs nothing: values that begin at 0 then begin too low and not too high, which few updates do not mend. Weight
and temperatures are smaller, as values are; the weight is fixed, not tuned to a target gap.
"""

from longstride.claims.claim import Claim
from longstride.control import SAC, Agent, Conservative, Gather, Given, Level, PolicyValue, algorithms
from longstride.control.envs import PointMaze
from longstride.control.policies import Gaussian
from longstride.control.recipe import ControlEvaluation, ControlRecipe
from longstride.models.mlp import Trunk
from longstride.recipes.sharsa import HORIZON
from longstride.stats import Ordering

TRUNK = Trunk(width=64, depth=2, activation="relu")
"""Hidden layers of every network."""
SUCCESS = 10.0
"""What a success earns, and so the largest of all values."""


def conservative(calibrated: bool = False, weight: float = 1.0) -> Conservative:
    """The conservative term beside values between 0 and `SUCCESS`."""
    return Conservative(weight=weight, temperature=0.1, actions=2, calibrated=calibrated)


def agent(
    term: Conservative, ensemble: int = 2, subset: int | None = None, slices: int = 1, critic_lr: float = 3e-4
) -> Agent:
    """An actor-critic for tasks that end at their goal."""
    critic = PolicyValue(ensemble=ensemble, subset=subset, tau=0.02, range=(0.0, SUCCESS), conservative=term)
    level = Level(
        data=Gather(goals=Given(), scale=SUCCESS), critic=critic, policy=Gaussian(), extraction=SAC(temperature=0.01)
    )
    return algorithms.sized(Agent(levels=(level,), critic_lr=critic_lr, batch=128, slices=slices), TRUNK)


RECIPE = ControlRecipe(
    name="cql",
    tasks=PointMaze(maze="medium", walks="reach", episodes=400, length=HORIZON.limit),
    agent=agent(conservative(), critic_lr=1e-3),
    phases=(algorithms.offline(4, updates=500),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

_plain = "phases=[{iterations=4, updates=500, conservative=false}]"
# noise far beyond the box of actions: the data holds all actions in all places, there are none to overrate
_covered = "tasks.noise=3.0"

CLAIM = Claim(
    name="cql",
    paper="arXiv 2006.04779",
    statement="Learning from given data alone, conservative values beat those of plain SAC.",
    arms={
        "cql": (),
        "sac": (_plain,),
        "covered_cql": (_covered,),
        "covered_sac": (_covered, _plain),
    },
    scale=("evaluation.every=4", "evaluation.episodes=20"),
    expected=Ordering(relations=("cql > sac by 0.1",)),
    control=Ordering(relations=("covered_cql > covered_sac by 0.1",)),
)
