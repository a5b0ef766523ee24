"""INPO on preferences that go round in a circle: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import DPO, INPO, KL, Latest
from longstride.setups import duels
from longstride.setups.duels import preferring
from longstride.stats import Ordering

RECIPE = duels.recipe("inpo", INPO(tau=1.0, share=0.1))

ARM = RECIPE.replace(
    iterations=12, episodes_per_iteration=128, learner={"batch_samples": 128}, evaluation={"every": 12, "start": False}
)
ITERATED_DPO = DPO(beta=1.0, kl=KL(coefficient=0.0, anchor=Latest(every=1)))
"""The same loop with the loss of a reward: its reference is the policy of the iteration before."""
_by = {right: ARM.replace(**preferring(right)) for right in (0.5, 0.25, 0.0)}

CLAIM = Claim(
    name="inpo",
    paper="arXiv 2407.00617, sections 1 and 3",
    statement="Where preferences go round in a circle, a policy that INPO has trained can be beaten by less than one that "
    "iterated DPO has trained, each at its own best rate and hold.",
    recipe=ARM,
    arms={
        **{f"inpo_{round(100 * (1 - right))}": arm for right, arm in _by.items()},
        **{f"dpo_{round(100 * (1 - right))}": arm.replace(loss=ITERATED_DPO) for right, arm in _by.items()},
    },
    measure="exploitability",
    expected=Ordering(relations=("dpo_100 > inpo_100 by 0.02",)),
    # the larger the share of the preference that is a circle, the less it is that of a reward
    dose=tuple(f"dpo_{n} > inpo_{n}" for n in (50, 75, 100)),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={
        "learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        **{f"dpo_{n}: loss.beta": (0.1, 0.3, 1.0, 3.0, 10.0) for n in (50, 75, 100)},
        **{f"inpo_{n}: loss.tau": (0.1, 0.3, 1.0, 3.0, 10.0) for n in (50, 75, 100)},
    },
    lower_is_better=True,
    cost="env_steps",
    scale=(0.0, 0.5),
)
