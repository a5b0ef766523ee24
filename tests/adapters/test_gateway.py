"""Programs that call a chat API as environments."""

from pathlib import Path
from typing import Any

from longstride.adapters.gateway.agents import Function
from longstride.adapters.gateway.source import ChatGateway
from longstride.core.trajectory import Trajectory
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.methods import GroupRelative, Reinforce
from longstride.rewards import Reward, Verdict
from longstride.rollout import AsRequested, TrajectoryStore
from longstride.run.loop import train
from longstride.run.recipe import Recipe
from longstride.setups import sites

READ = ("find", "search", "compare", "survey", "hop")
"""Errands whose answer is all that is judged."""


def native(**changes: Any) -> Recipe:
    """Two iterations of four short episodes on the embedded sites."""
    fields: dict[str, Any] = {
        "iterations": 2,
        "episodes_per_iteration": 4,
        "group_size": 2,
        "tasks": EmbeddedWeb(errands=READ),
        "budget": {"turns": 3},
        "test_budget": {"turns": 3},
        "evaluation": {"tasks": 2, "baselines": False},
        "reward": Anything(),
        "seed": 900,
    }
    return sites.recipe("native", GroupRelative(), Reinforce()).replace(**fields | changes)


def through_gateway(recipe: Recipe, function: str = "gateway_programs:browse", **fields: Any) -> Recipe:
    """The same, played by a program."""
    source = ChatGateway(agent=Function(function=function), tasks=recipe.tasks, result="answer", calls="text", **fields)
    return recipe.replace(tasks=source, context=AsRequested())


class Anything(Reward):
    """So that every group has something to compare."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        return Verdict(sum(trajectory.turns[0].sampled_ids) % 7 / 7, False, {}, {})


def trained(recipe: Recipe, folder: Path, **how: Any) -> tuple[list[Trajectory], bytes]:
    """What was played, and the weights that came of it."""
    train(recipe, folder, **how)
    last = max((folder / "checkpoints").iterdir(), key=lambda path: path.name)
    return list(TrajectoryStore(folder / "trajectories.jsonl")), (last / "model.safetensors").read_bytes()


def test_a_program_that_plays_as_the_native_loop_does_gets_equal_ids_and_equal_weights(tmp_path) -> None:
    recipe = native()
    (ours, weights), (theirs, learned) = (
        trained(recipe, tmp_path / "a"),
        trained(through_gateway(recipe), tmp_path / "b"),
    )
    assert len(ours) == len(theirs) == 8 and any(len(t.turns) > 1 for t in ours)
    for a, b in zip(ours, theirs, strict=True):
        assert [t.prompt_ids for t in a.turns] == [t.prompt_ids for t in b.turns]
        assert [t.sampled_ids for t in a.turns] == [t.sampled_ids for t in b.turns]
        assert [t.behaviour_logprobs for t in a.turns] == [t.behaviour_logprobs for t in b.turns]
        assert (a.stop, a.reward) == (b.stop, b.reward)
        assert not any(t.fork for t in b.turns)
    assert weights == learned
