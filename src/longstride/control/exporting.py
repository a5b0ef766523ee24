"""The policy of a control run as one TorchScript file, which acts without this library.

What always holds: it maps [B, O] observations and [B, G] goals (no columns where there are none) to what the
environment takes: [B, A] real numbers in its own units, or [B] numbers of discrete actions; it does what
`longstride eval` evaluates, which is tried before the file is written. A policy that draws, that remembers or that
decides in levels or chunks is no function of one observation and is refused.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longstride import __version__
from longstride.control.evaluation import trained_agent
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.control.recipe import ControlRecipe
from longstride.core.config import dump_toml
from longstride.core.errors import ConfigError, RunError
from longstride.core.files import new_folder
from longstride.run.folder import read_rows

POLICY = "policy.pt"
TRIED = 64
"""Random states that the file is tried with."""


class ExportedPolicy(nn.Module):
    """What acts, with the units of the environment.

    Raises:
        ConfigError: it is no function of one observation.
    """

    low_A: Tensor
    width_A: Tensor

    def __init__(self, recipe: ControlRecipe, learner: ControlLearner) -> None:
        super().__init__()
        level = recipe.agent.levels[-1]
        remembers = level.memory is not None or level.extraction.adapts
        if len(recipe.agent.levels) > 1 or remembers or level.data.action != "action":
            raise ConfigError(
                f"the policy of {recipe.name} has levels, a memory or chunks, or adapts while it acts, and only what "
                "acts on one observation at a time is exported"
            )
        self.net, self.discrete, self.seeks = (
            learner.levels[0],
            recipe.tasks.spec.discrete,
            level.data.goals is not None,
        )
        low_A, high_A = recipe.tasks.bounds()
        self.register_buffer("low_A", torch.as_tensor(low_A, dtype=torch.float32))
        self.register_buffer("width_A", torch.as_tensor(high_A - low_A, dtype=torch.float32))

    def decide(self, observation_BO: Tensor, goal_BG: Tensor, seed: int = 0) -> Tensor:
        """[B, A] actions as the agent has them."""
        state_BS = torch.cat((observation_BO, goal_BG), -1) if self.seeks else observation_BO
        noise = RunNoise.seeded(seed)
        return self.net.act(state_BS, noise, explore=False)

    def forward(self, observation_BO: Tensor, goal_BG: Tensor) -> Tensor:
        action_BA = self.decide(observation_BO, goal_BG)
        if self.discrete:
            return action_BA.argmax(-1) + self.low_A[0].long()
        return self.low_A + (action_BA.clamp(-1, 1) + 1) / 2 * self.width_A


def export_policy(run: Path, recipe: ControlRecipe, target: Path) -> Path:
    """Writes the policy of a run's last checkpoint to a new folder: `policy.pt`, `recipe.toml` and a `README.md`.

    Args:
        run: the run folder.
        recipe: its recipe.
        target: must not exist, or be empty.

    Raises:
        RunError: there is no checkpoint yet, it is damaged, or the target holds something.
        ConfigError: the policy is no function of one observation.
    """
    learner, _ = trained_agent(recipe, run)
    player, spec = ExportedPolicy(recipe, learner).eval().requires_grad_(False), recipe.tasks.spec
    generator = torch.Generator().manual_seed(0)
    seen = [torch.randn(TRIED, size, generator=generator) for size in (spec.observation, len(spec.goal))]
    with torch.inference_mode():
        once, again = (player.decide(*seen, seed=seed) for seed in (0, 1))
    if not torch.equal(once, again):
        raise ConfigError(
            f"the policy of {recipe.name} ({recipe.agent.levels[-1].policy.type_name()}) draws its actions, and only "
            "one that gives the same action for the same observation is exported"
        )
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated, and is what runs without Python
        script: Any = torch.jit.trace(player, tuple(part[:2] for part in seen), check_trace=False)
        if not torch.equal(script(*seen), player(*seen)):
            raise RunError(f"the exported policy of {recipe.name} does not do what the agent does")
        with new_folder(target) as part:
            torch.jit.save(script, str(part / POLICY))
            (part / "recipe.toml").write_text(dump_toml(recipe), encoding="utf-8")
            (part / "README.md").write_text(_page(recipe, run), encoding="utf-8")
    return target.absolute()


def _page(recipe: ControlRecipe, run: Path) -> str:
    spec, rows = recipe.tasks.spec, [row for row in read_rows(run / "metrics.jsonl") if row["kind"] == "eval"]
    measured = "".join(
        f"| {row['iteration']} | {row['summary']['success']:.2f} | "
        f"{f'{np.mean(found):.4g}' if (found := row['measures'].get('return')) else ''} |\n"
        for row in (rows[0], rows[-1])
    )
    gives = "the number of one of {n} actions" if spec.discrete else "{n} numbers in the units of the environment"
    return PAGE.format(
        name=recipe.name,
        task=getattr(recipe.tasks, "id", recipe.tasks.type_name()),
        version=__version__,
        observation=spec.observation,
        goal=len(spec.goal),
        gives=gives.format(n=spec.action),
        measured=measured,
    )


PAGE = """# A policy of `{name}` in `{task}`

Trained with Longstride {version}; `recipe.toml` has all settings. `policy.pt` is TorchScript and needs torch alone:

```python
import torch

policy = torch.jit.load("policy.pt")
observation, goal = torch.zeros(1, {observation}), torch.zeros(1, {goal})  # a row each; flat, single precision
action = policy(observation, goal)[0].numpy()
```

An observation is {observation} numbers, a goal {goal}, an action {gives}.

| iteration | success | return |
|---|---|---|
{measured}"""
