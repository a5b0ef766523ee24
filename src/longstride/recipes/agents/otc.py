"""OTC-PO: few tool calls, paid only where the answer is right. Wang et al., 2025, arXiv 2504.14870.

A price on each call teaches not to try: where a task is hard and calls are needed, giving up is cheaper. OTC multiplies
instead, r = alpha r_tool r_correct, so a wrong answer earns 0 whatever it cost. With m calls, and n the fewest of the
group's right answers,

    r_tool = 1 if m = n = 0;  cos(m pi / (2 m + c)) if n = 0 < m;  sin(f pi / (2 n)), f = 2 n m / (m + n), else

which is 1 at m = n and falls on both sides. OTC-PPO, without groups, takes the second form for all.

| place | choice | paper (OTC-GRPO, Qwen2.5) | here |
|---|---|---|---|
| plan | groups of one task | answers of one question | 8 |
| roll out | tools | search, code | actions of the embedded sites; an answer is no call |
| score | `ToolProductivity` | alpha 1; n is kept for each question over epochs | the group's n: no task is drawn twice |
| score | c | most calls | turns of the budget, 24 |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO` | GRPO's | clip 0.2, KL 1e-3 |

`Calls` is the model of the claim: k calls are needed for a task of level k, fewer are never enough, and a policy is a
table of how many are made. There the reward is all that differs.

Deviations: the policy is a model of about a million parameters on embedded sites, rate and batch are its. The language
model was only tried, for two iterations of 32 episodes: that its held-out success rises has not been shown.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.core.trajectory import Trajectory
from longstride.methods import KL, PPO, GroupRelative
from longstride.methods.advantages import group_advantages
from longstride.recipes.setups import sites
from longstride.recipes.setups.sites import LONG
from longstride.rewards import TaskReward, Verdict
from longstride.run.exact import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.stats import Ordering


def productivity(m: int, n: int, c: float) -> float:
    """r_tool of m calls where n were enough, in [0, 1]."""
    if n:
        return math.sin(math.pi * m / (m + n))  # f pi / (2 n)
    return math.cos(m * math.pi / (2 * m + c)) if m else 1.0


class ToolProductivity(TaskReward):
    """The task's own reward, times r_tool for the fewest calls of a success in the group."""

    most: Positive
    """c: with the fewest being none, a success with m calls earns cos(m pi / (2 m + c))."""

    def compare(self, group: Sequence[Trajectory]) -> Sequence[Verdict]:
        calls = [sum(turn.verb != "answer" for turn in t.turns) for t in group]
        fewest = min((m for m, t in zip(calls, group, strict=True) if t.success), default=0)
        verdicts = []
        for m, t in zip(calls, group, strict=True):
            terms = {"correct": float(t.success), "tool": productivity(m, fewest, self.most)}
            verdicts.append(Verdict(terms["correct"] * terms["tool"], t.success, terms, t.evidence))
        return verdicts


RECIPE = sites.recipe(
    "otc",
    iterations=12,
    group_size=8,
    reward=ToolProductivity(most=LONG),
    credit=GroupRelative(),
    loss=PPO(kl=KL(coefficient=1e-3)),
)


class Calls(ExactProblem):
    """Tasks of levels 0 to K - 1: with level or more calls one is solved with a probability, with fewer never. A solution
    has `logits` [K, most + 1] of how many calls are made."""

    solved: tuple[Share, ...] = (0.95, 0.9, 0.8, 0.6, 0.4, 0.3)
    """By level: how likely enough calls are to lead to a right answer."""
    most: Count = 10
    """Most calls."""

    def right(self) -> np.ndarray:
        """[K, most + 1] probability of a right answer by level and calls."""
        enough = np.arange(self.most + 1) >= np.arange(len(self.solved))[:, None]
        return enough * np.array(self.solved)[:, None]

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Exact: share of right answers, calls of an episode, and right answers per call (the paper's productivity)."""
        p = softmax(solution["logits"])
        success, calls = float((p * self.right()).sum(1).mean()), float((p @ np.arange(self.most + 1)).mean())
        return {"success": success, "calls": calls, "productivity": success / max(calls, 1e-9)}


class CallGRPO(ExactMethod):
    """GRPO on `Calls`: an iteration samples a group of each level."""

    reward: Literal["otc", "additive", "outcome"] = "otc"
    """r_tool r_correct, r_correct less a price a call, or r_correct."""
    price: Weight = 0.1
    """Of a call, where it is additive."""
    size: Count = 16
    """Episodes of a group."""
    rate: Positive = 0.3
    """Of the update of the logits."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Calls):
            raise ConfigError(f"call_grpo solves calls, not {problem.type_name()}")
        return {"logits": np.zeros((len(problem.solved), problem.most + 1))}

    def step(self, problem: Any, state: State, rng: np.random.Generator) -> State:
        logits, right = state["logits"].copy(), problem.right()
        for level, p in enumerate(softmax(state["logits"])):
            calls = rng.choice(len(p), size=self.size, p=p)
            won = rng.random(self.size) < right[level, calls]
            advantage = group_advantages(self.rewards(calls, won, problem.most), np.zeros(self.size, int).tolist())
            logits[level] += self.rate * ((np.eye(len(p))[calls] - p) * advantage[:, None]).mean(0)
        return {"logits": logits}

    def rewards(self, calls: np.ndarray, won: np.ndarray, most: int) -> list[float]:
        """Of the episodes of a group."""
        if self.reward != "otc":
            return (won - (self.price if self.reward == "additive" else 0.0) * calls).tolist()
        fewest = min(calls[won], default=0)
        return [float(w) * productivity(int(m), int(fewest), most) for m, w in zip(calls, won, strict=True)]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


_exact = ExactRecipe(name="otc", problem=Calls(), method=CallGRPO(), iterations=300, every=50)
_easy = _exact.replace(problem={"solved": (0.95, 0.9)})
_additive = {"reward": "additive"}

CLAIM = Claim(
    name="otc",
    paper="arXiv 2504.14870, section 3 and table 1",
    statement="A factor for tool calls keeps the success that a price for each call costs.",
    measure="success",
    recipe=_exact,
    arms={
        "otc": _exact,
        "additive": _exact.replace(method=_additive),
        "outcome": _exact.replace(method={"reward": "outcome"}),
        "easy_otc": _easy,
        "easy_additive": _easy.replace(method=_additive),
    },
    expected=Ordering(relations=("otc > additive by 0.05",)),
    # where a call or none is enough, no task is worth giving up
    control=Ordering(relations=("easy_otc > easy_additive by 0.05",)),
    seeds=tuple(range(100, 150)),
)
