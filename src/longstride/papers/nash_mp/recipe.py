"""Nash-MP on preferences that go round in a circle: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import INPO
from longstride.setups import duels
from longstride.stats import Ordering

RECIPE = duels.recipe("nash_mp", INPO(tau=1.0, share=0.1, every=2))

ARM = RECIPE.replace(
    iterations=12, episodes_per_iteration=128, learner={"batch_samples": 128}, evaluation={"every": 12, "start": False}
)
_by = {share: ARM.replace(loss={"share": share}) for share in (0.5, 0.1, 0.02)}

CLAIM = Claim(
    name="nash_mp",
    paper="arXiv 2505.19731, abstract",
    statement="Where preferences go round in a circle and the hold on the start is weak, a policy can be beaten by less "
    "after steps of mirror prox than after as many of mirror descent, each at its own best rate and length of a step.",
    recipe=ARM,
    arms={
        **{f"prox_{share:g}": arm for share, arm in _by.items()},
        **{f"descent_{share:g}": arm.replace(loss={"every": 1}) for share, arm in _by.items()},
    },
    measure="exploitability",
    expected=Ordering(relations=("descent_0.02 > prox_0.02 by 0.02",)),
    # held strongly, the game is nearly one policy's own problem: no step turns around the equilibrium
    dose=tuple(f"descent_{share:g} > prox_{share:g}" for share in _by),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), "loss.tau": (0.1, 0.3, 1.0, 3.0, 10.0)},
    lower_is_better=True,
    cost="env_steps",
    scale=(0.0, 0.5),
)
