"""HL-Gauss in an actor-critic whose rewards are noisy; and the claim.

Arms learn to swing up `Pendulum` from as many steps and updates and differ in what the critic's outputs mean. The noise on a
reward is the dose: the mean of a reward says all there is to know of a step, and noise on it says nothing, so it can only be
followed. The squared error has its targets clamped to the bins too, so that nothing but the loss differs, and where values begin: near
the middle of the bins, or near 0. That is the same at every noise.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import SAC, ControlRecipe, GaussianPolicy, Pendulum
from longstride.models.heads import Head, Scalar
from longstride.papers.hl_gauss.recipe import HEAD
from longstride.setups import pendulum
from longstride.stats import Ordering


def _by(head: Head) -> ControlRecipe:
    critic = pendulum.CRITIC.replace(head=head, target_range=(HEAD.low, HEAD.high))
    actor, extraction = GaussianPolicy(trunk=pendulum.TRUNK), SAC(temperature=0.1)
    return pendulum.recipe("hl_gauss/noise", critic, actor, extraction).replace(
        tasks=Pendulum(reward_noise=20.0),
        phases=({"iterations": 15, "episodes": 2, "utd": 0.5},),
        evaluation={"episodes": 20, "every": 5},
    )


RECIPE = _by(HEAD)

_NOISE = {"none": 0.0, "some": 5.0, "much": 20.0}

CLAIM = Claim(
    name="hl_gauss/noise",
    paper="arXiv 2403.03950, abstract and on noisy rewards",
    statement="Where rewards are noisy, an actor-critic whose values are learned by classification keeps a pole up for longer, "
    "and the more so the noisier they are.",
    measure="upright",
    recipe=RECIPE,
    arms={
        f"{of}_{name}": _by(head).replace(tasks={"reward_noise": noise})
        for of, noise in _NOISE.items()
        for name, head in (("hl_gauss", HEAD), ("squared", Scalar()))
    },
    expected=Ordering(relations=("much_hl_gauss > much_squared by 0.1",)),
    dose=tuple(f"{of}_hl_gauss > {of}_squared" for of in _NOISE),
    worlds={"tasks.mass": Between(low=0.7, high=1.0), "tasks.length": Between(low=0.7, high=1.0)},
    grid={"agent.critic_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)},
    tuning_seeds=tuple(range(970, 976)),
    seeds=tuple(range(640, 820)),
    cost="env_steps",
)
