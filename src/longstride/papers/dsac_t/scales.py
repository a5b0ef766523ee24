"""DSAC-T where rewards are of any size, and one setting has to do for all of them; and the claim.

Both arms learn to swing up `Pendulum`, from as many steps and updates; they differ in the critic. The seed draws the factor
of all rewards between a hundredth and a hundred, and each arm has the learning rate that was best over other draws of it.
Where the factor is 1 in tuning and after it, a rate can be found that suits it, and there is nothing to be robust against.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import SAC, ControlCritic, ControlRecipe, GaussianPolicy, Pendulum, TDCritic
from longstride.papers.dsac_t.method import GaussianReturns
from longstride.setups import pendulum
from longstride.stats import Ordering


def _by(critic: ControlCritic) -> ControlRecipe:
    tau = pendulum.CRITIC.tau
    actor, extraction = GaussianPolicy(trunk=pendulum.TRUNK), SAC(temperature=0.1, tau=tau)
    return pendulum.recipe("dsac_t/scales", critic, actor, extraction, batch=256, slices=2).replace(
        tasks=Pendulum(reward_scale=10.0),
        phases=({"iterations": 15, "episodes": 2, "utd": 0.5},),
        evaluation={"episodes": 20, "every": 5},
    )


RECIPE = _by(GaussianReturns(trunk=pendulum.TRUNK, tau=pendulum.CRITIC.tau))

_arms = {"dsac_t": RECIPE, "sac": _by(TDCritic(trunk=pendulum.TRUNK, tau=pendulum.CRITIC.tau))}
_one = {f"one_{name}": arm.replace(tasks={"reward_scale": 1.0}) for name, arm in _arms.items()}

CLAIM = Claim(
    name="dsac_t/scales",
    paper="arXiv 2310.05858, abstract and figure on reward scales",
    statement="Under one setting for rewards of any size, a critic that measures its steps in deviations of the return keeps a "
    "pole up for longer than one of squared errors.",
    measure="upright",
    recipe=RECIPE,
    arms=_arms | _one,
    expected=Ordering(relations=("dsac_t > sac by 0.1",)),
    # rewards of one size, for which the rates were chosen
    control=Ordering(relations=("one_dsac_t > one_sac by 0.1",)),
    worlds={
        "tasks.reward_scale": Between(low=0.01, high=100.0, log=True),
        "tasks.mass": Between(low=0.7, high=1.0),
        "tasks.length": Between(low=0.7, high=1.0),
    },
    grid={"agent.critic_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)},
    tuning_seeds=(960, 961, 962),
    seeds=tuple(range(600, 620)),
    cost="env_steps",
)

FINDING = (
    "At its own best rate of the critic, 0.01, an agent with squared errors holds the pole for as long or longer in 19 of 20 worlds, with "
    "rewards of 0.03 to 43 times their size; in one it does not learn to, and is behind by 0.81."
)
