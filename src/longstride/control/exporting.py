"""The policy of a control run as one TorchScript file, which acts without this library.

What always holds: it maps [B, O] observations and [B, G] goals (no columns where there are none) to what the
environment takes: [B, A] real numbers in its own units, or [B] numbers of discrete actions; it does what
`longstride eval` evaluates, which is tried before the file is written. What draws its actions draws them by torch's
own generator. A policy that remembers, that decides in chunks, or that adapts while it acts needs more than what is
seen now, and is refused.
"""

import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longstride import __version__
from longstride.control.envs import play
from longstride.control.evaluation import trained_agent
from longstride.control.learner import ControlLearner
from longstride.control.networks import LevelNets
from longstride.control.noise import RunNoise
from longstride.control.recipe import ControlRecipe
from longstride.core.config import dump_toml
from longstride.core.errors import ConfigError
from longstride.core.files import new_folder
from longstride.run.folder import read_rows

POLICY = "policy.pt"
TRIED = 64
"""Steps of each test task whose states the file is tried with."""


class ExportedPolicy(nn.Module):
    """What acts, with the units of the environment.

    Raises:
        ConfigError: it needs more than what is seen now.
    """

    low_A: Tensor
    width_A: Tensor

    def __init__(self, recipe: ControlRecipe, learner: ControlLearner) -> None:
        super().__init__()
        levels = recipe.agent.levels
        remembers = any(level.memory is not None or level.extraction.adapts for level in levels)
        if remembers or levels[-1].data.action != "action":
            raise ConfigError(
                f"the policy of {recipe.name} has a memory or chunks, or adapts while it acts, and only what acts on "
                "one observation at a time is exported"
            )
        self.levels, self.discrete = nn.ModuleList(learner.levels), recipe.tasks.spec.discrete
        low_A, high_A = recipe.tasks.bounds()
        self.register_buffer("low_A", torch.as_tensor(low_A, dtype=torch.float32))
        self.register_buffer("width_A", torch.as_tensor(high_A - low_A, dtype=torch.float32))

    def forward(self, observation_BO: Tensor, goal_BG: Tensor) -> Tensor:
        action_BA, noise = goal_BG, RunNoise.of_torch()
        for net in self.levels:  # what one decides is the goal of the next
            assert isinstance(net, LevelNets)
            seeks = net.level.data.goals is not None
            state_BS = torch.cat((observation_BO, action_BA), -1) if seeks else observation_BO
            action_BA = net.act(state_BS, noise, explore=False)
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
        ConfigError: the policy needs more than what is seen now, or cannot be traced.
    """
    learner, _ = trained_agent(recipe, run)
    player = ExportedPolicy(recipe, learner).eval().requires_grad_(False)
    seen = _seen(recipe, learner)
    with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated, and is what runs without Python
        again, other = (_drawn(player, seen, seed) for seed in (0, 1))
        try:
            script: Any = torch.jit.trace(player, tuple(part[:2] for part in seen), check_trace=False)
            same = torch.equal(_drawn(script, seen, 0), again)
        except RuntimeError:  # what takes slopes while it acts
            same = False
        if not same:
            raise ConfigError(
                f"the exported policy of {recipe.name} would not do what the agent does: its policy or extraction "
                "computes what TorchScript does not record"
            )
        with new_folder(target) as part:
            torch.jit.save(script, str(part / POLICY))
            (part / "recipe.toml").write_text(dump_toml(recipe), encoding="utf-8")
            (part / "README.md").write_text(_page(recipe, run, not torch.equal(again, other)), encoding="utf-8")
    return target.absolute()


def _seen(recipe: ControlRecipe, learner: ControlLearner) -> tuple[Tensor, Tensor]:
    """[B, O] observations and [B, G] goals of an episode of each test task."""
    env, _ = recipe.tasks.tests(1, TRIED)
    with closing(env):
        episodes = play(env, learner.actor(0, explore=False), 0)
    no_goal = np.zeros(len(recipe.tasks.spec.goal), np.float32)
    goals = [np.tile(no_goal if e.goal is None else e.goal, (e.length + 1, 1)) for e in episodes]
    observations = [e.observation for e in episodes]
    first, second = (torch.from_numpy(np.concatenate(of).astype(np.float32)) for of in (observations, goals))
    return first, second


def _drawn(policy: Any, seen: Sequence[Tensor], seed: int) -> Tensor:
    """What a policy does if torch's generator begins with a seed."""
    torch.manual_seed(seed)
    return policy(*seen)


def _page(recipe: ControlRecipe, run: Path, draws: bool) -> str:
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
        drawn=" It is drawn: `torch.manual_seed` repeats it." if draws else "",
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

An observation is {observation} numbers, a goal {goal}, an action {gives}.{drawn}

| iteration | success | return |
|---|---|---|
{measured}"""
