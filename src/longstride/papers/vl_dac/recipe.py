"""VL-DAC on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.learner.critics import TurnValue
from longstride.methods import KL, PPO, Mean
from longstride.methods.advantages import GAE
from longstride.papers.loop.method import TrajectoryPPO
from longstride.setups import sites
from longstride.stats import Ordering

_kl = KL(coefficient=0.04)

RECIPE = sites.recipe(
    "vl_dac",
    iterations=12,
    credit=GAE(values="critic", discount=0.95, lam=0.95, whiten=True),
    critic=TurnValue(),
    loss=PPO(clip_low=0.1, clip_high=0.1, dual_clip=10.0, kl=_kl, aggregation=Mean(over="sequence")),
)

ARM = sites.arm(RECIPE, every=3)
_whole = {
    "loss": TrajectoryPPO(clip_low=0.1, clip_high=0.1, dual_clip=10.0, kl=_kl, aggregation=Mean(over="sequence")),
}
_by = {passes: ARM.replace(learner={"epochs": passes}) for passes in (1, 2, 4)}

CLAIM = Claim(
    name="vl_dac",
    paper="arXiv 2508.04280, abstract",
    statement="By equal environment steps, with values of turns, clipping each token beats clipping a turn's tokens together, "
    "and by the more the more often the turns are used.",
    recipe=ARM,
    arms={
        **{f"tokens_{passes}": arm for passes, arm in _by.items()},
        **{f"turns_{passes}": arm.replace(**_whole) for passes, arm in _by.items()},
    },
    expected=Ordering(relations=("tokens_4 > turns_4 by 0.03",)),
    # the farther the policy is from the one that sampled, the more a clip takes
    dose=tuple(f"tokens_{passes} > turns_{passes}" for passes in _by),
    seeds=tuple(range(1720, 1736)),
    tuning_seeds=(972, 973),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 5, "evaluation.every": 5},
    cost="env_steps",
    equal_cost=True,
)
