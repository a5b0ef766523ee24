"""Verifier-based and verifier-free finetuning of a language model, from as many of its own traces.

On one's own: `longstride train vb_vf model=MODEL tasks.path=tasks.jsonl`; `reward.type=scored_reward reward.judge=RUN`
takes a verifier that was trained (docs/guides/judge.md), `credit.type=filtered_bc loss.type=reinforce` is the
verifier-free side.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, FilteredBC, GroupRelative, Mean, Reinforce
from longstride.run.imitation import Cloning, StrategySuccesses
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies.think_on import ThinkOn

TRACES = 1024
"""Of the base, or of the policy as it becomes, that each side is given."""


def within(tokens: int, **changes: Any) -> Recipe:
    """The verifier-based side where a trace may have so many tokens, in training and at test time."""
    return puzzles.recipe(
        "vb_vf",
        credit=GroupRelative(),
        loss=PPO(aggregation=Mean(over="token")),
        model="base-thoughts",
        iterations=16,
        episodes_per_iteration=TRACES // 16,
        learner={"epochs": 2, "batch_samples": 64},
        budget={"turn_tokens": tokens},
        test_budget={"turn_tokens": tokens},
        evaluation={"every": 16, "tasks": 300},
    ).replace(**changes)


RECIPE = within(96)

CLONED: dict[str, Any] = {
    "iterations": 1,
    "episodes_per_iteration": TRACES,
    "credit": FilteredBC(),
    "loss": Reinforce(),
    "learner": {"epochs": 4},
}
"""The verifier-free side: all traces are the base's, and right ones are imitated, whatever their style."""

ONE_STYLE = Cloning(
    demonstrations=StrategySuccesses(strategy=ThinkOn(most=64)),
    episodes=512,
    learner=LearnerConfig(lr=1e-3, warmup_steps=0, batch_samples=32, epochs=6),
)
"""What a base has learned whose traces are all as long: thoughts of 64 tokens."""

_chains = {"tasks": ModularChain()}
_budgets = {tokens: within(tokens, **_chains) for tokens in (24, 48, 96)}

CLAIM = Claim(
    name="vb_vf",
    paper="arXiv 2502.12118, abstract and theorem on the gap by the budget",
    statement="From as many traces, a language model that learns from their rewards has more success within its tokens than "
    "one that clones right ones, and the more so the more tokens there are.",
    recipe=_budgets[96],
    arms={
        **{f"verified_{tokens}": arm for tokens, arm in _budgets.items()},
        **{f"cloned_{tokens}": arm.replace(**CLONED) for tokens, arm in _budgets.items()},
        "one_verified": _budgets[96].replace(cloning=ONE_STYLE),
        "one_cloned": _budgets[96].replace(cloning=ONE_STYLE, **CLONED),
    },
    expected=Ordering(relations=("verified_96 > cloned_96 by 0.03",)),
    # of traces that are all alike none is to be preferred
    control=Ordering(relations=("one_verified > one_cloned by 0.03",)),
    # with more tokens there are more ways to spend them, and cloning keeps them all
    dose=tuple(f"verified_{tokens} > cloned_{tokens}" for tokens in _budgets),
    seeds=tuple(range(480, 488)),
    tuning_seeds=(930, 931),
    grid={"learner.lr": (1e-4, 3e-4, 6e-4, 1e-3, 2e-3)},
    cost="env_steps",
)
