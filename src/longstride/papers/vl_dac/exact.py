"""The values of turns of `vl_dac`, on walks whose success is computed.

In a long episode the return says the same of every turn. A value of the state before each turn says which of them
brought the end nearer.

| place | choice | `vl_dac` | here |
|---|---|---|---|
| credit | `GAE` over turns, whitened | discount 0.95, lam 0.95 | the same |
| credit | `TurnValue` | a network on what was read | a table by what was seen, moved to the mean target of each row |
| update | `PPO` | clip 0.1, dual 10, KL (k3) 0.04 to the start | the same |
| update | `Mean` over sequences | mean over a turn's tokens, then over turns | the same: a turn is one token |
| update | passes | 2 in steps | one step |

Deviations: an episode is a walk (`exact.walks.SearchWalk`). A turn is one token, so its ratio and that of its sequence are
one and the paper's other part, a clip of tokens, cannot be seen here.
"""

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Share
from longstride.core.trajectory import Trajectory
from longstride.curriculum import Fixed
from longstride.exact.experiment import State
from longstride.exact.learner import recipe
from longstride.exact.walks import SearchWalk, Walk, Walked
from longstride.methods import KL, PPO, Mean
from longstride.methods.advantages import GAE
from longstride.stats import Ordering


class Valued(Walked):
    """`Walked` with a critic: a value for everything that is seen, 0 at first. It is asked before it learns from the
    episodes of an iteration."""

    trust: Share = 0.5
    """How far an update moves a value towards the mean target of its turns."""

    def start(self, problem: Walk, rng: np.random.Generator) -> State:
        state = super().start(problem, rng)
        return state | {"values": np.zeros(len(state["logits"]))}

    def collect(self, problem: Walk, logits: np.ndarray, state: State, rng: np.random.Generator) -> list[Trajectory]:
        played = super().collect(problem, logits, state, rng)
        rows = np.array([turn.prompt_ids[0] for t in played for turn in t.turns])
        for t in played:
            for turn in t.turns:
                turn.estimates["value"] = float(state["values"][turn.prompt_ids[0]])
        targets = np.concatenate(self.credit.targets(played))
        count = np.bincount(rows, minlength=len(state["values"]))
        mean = np.bincount(rows, targets, len(count)) / count.clip(1)
        state["values"] = np.where(count > 0, (1 - self.trust) * state["values"] + self.trust * mean, state["values"])
        return played


TURNS = 40

RECIPE = recipe(
    "vl_dac/exact",
    SearchWalk(depths=(2, 4, 8, 14), wastes=0.6, horizon=TURNS),
    Valued(
        turns=Fixed(limit=TURNS),
        credit=GAE(values="critic", discount=0.95, lam=0.95, whiten=True),
        loss=PPO(
            clip_low=0.1, clip_high=0.1, dual_clip=10.0, kl=KL(coefficient=0.04), aggregation=Mean(over="sequence")
        ),
        rate=8.0,
    ),
    iterations=30,
)

_no_values = {"credit": {"values": "none"}}

_shorter = {
    name: RECIPE.replace(problem={"depths": of})
    for name, of in {"near": (1, 1, 2, 2), "middling": (2, 3, 4, 5)}.items()
}

CLAIM = Claim(
    name="vl_dac/exact",
    paper="arXiv 2508.04280, abstract",
    statement="In long episodes values of turns end with more success than returns without values, each at its own best step, "
    "in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "values": RECIPE,
        "no_values": RECIPE.replace(method=_no_values),
        **{f"{way}_values": arm for way, arm in _shorter.items()},
        **{f"{way}_no_values": arm.replace(method=_no_values) for way, arm in _shorter.items()},
    },
    expected=Ordering(relations=("values > no_values by 0.02",)),
    # the more turns a task takes, the more there is that values of turns tell apart
    dose=(*(f"{way}_values > {way}_no_values" for way in _shorter), "values > no_values"),
    worlds={
        "problem.depths": Between(low=2, high=14, shape=(4,)),
        "problem.wastes": Between(low=0.3, high=0.7),
    },
    grid={"method.rate": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "Open: 0.519 and 0.430 (+0.089 [-0.125, 0.302]). The best steps on two tuning seeds were long ones, with which either side "
    "solves all or nothing, by the seed; more tuning seeds would choose shorter steps."
)
