"""Verifier-based and verifier-free finetuning of a language model, from as many of its own traces.

With your own: `longstride train vb_vf model=MODEL tasks.type=dataset tasks.path=tasks.jsonl`;
`reward.type=scored_reward reward.judge=RUN` takes a verifier that was trained (docs/guides/judge.md),
`credit.type=filtered_bc loss.type=reinforce` is the verifier-free side.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import PPO, FilteredBC, GroupRelative, Mean, Reinforce
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering

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

# a rate that is too high comes to no success in the end, and does not end the tuning
_budgets = {tokens: within(tokens, tasks=ModularChain(), patience=16) for tokens in (24, 96)}

CLAIM = Claim(
    name="vb_vf",
    paper="arXiv 2502.12118, abstract and theorem on the gap by the budget",
    statement="From as many traces, a language model that learns from their rewards has more success within 96 tokens than one "
    "that clones right ones; within 24 tokens it has not.",
    recipe=_budgets[96],
    arms={
        **{f"verified_{tokens}": arm for tokens, arm in _budgets.items()},
        **{f"cloned_{tokens}": arm.replace(**CLONED) for tokens, arm in _budgets.items()},
    },
    expected=Ordering(relations=("verified_96 > cloned_96 by 0.05",)),
    # within few tokens there is one way to be right
    control=Ordering(relations=("verified_24 > cloned_24 by 0.05",)),
    seeds=tuple(range(480, 490)),
    tuning_seeds=(930, 931),
    grid={"learner.lr": (3e-4, 6e-4, 1e-3, 2e-3, 4e-3)},
    cost="env_steps",
)
