"""Playing an episode back: its actions are taken again in a new environment, and what differs is listed.

What always holds: the environment is set up as it was (task, seed and budget are the trajectory's), so a world that
depends on nothing else answers the same; no model is asked.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from longstride.core.content import described
from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.base import Env
from longstride.rewards import Reward
from longstride.rollout.episode import Episode, Generation, Plan
from longstride.rollout.players import ScriptedPlayer
from longstride.rollout.pool import Pool


class Difference(NamedTuple):
    """One thing that came out otherwise."""

    turn: int
    """From 1; 0 is the end of the episode."""
    what: str
    """Field of the turn or of the trajectory."""
    was: Any
    now: Any


def play_back(
    trajectory: Trajectory, make_env: Callable[[], Env], reward: Reward
) -> tuple[Trajectory, list[Difference]]:
    """Takes the actions of a trajectory again.

    Args:
        trajectory: as it was stored.
        make_env: makes an environment as the run had it.
        reward: rewards as the run did.

    Returns:
        what came out, and where it differs from what was stored (timings aside).

    Raises:
        RunError: the episode failed for want of infrastructure before it took a turn: no action can be taken again.
    """
    turns = trajectory.turns
    if not turns:
        raise RunError(f"episode {trajectory.ordinal} took no turn ({trajectory.stop}): nothing can be played back")

    def act(episode: Episode) -> Generation:
        turn = turns[min(episode.turns, len(turns) - 1)]
        return Generation([], [], [], [], turn.text, turn.finish)

    # an episode that tokens or seconds ended in the old run ends after as many turns in this one
    budget = trajectory.budget.model_copy(update={"turns": len(turns), "seconds": None})
    t = trajectory
    at = t.group, t.iteration
    plan = Plan(t.task, t.ordinal, t.seed, budget, *at, tuple(t.prefix), t.role, env_seed=t.env_seed)
    again = Pool(ScriptedPlayer(act), make_env, reward, batch=1).run([plan])[0]
    found = [
        Difference(k, name, getattr(old, name), getattr(new, name))
        for k, (old, new) in enumerate(zip(trajectory.turns, again.turns, strict=False), 1)
        for name in ("observation", "url", "action", "error", "changed", "reward")
        if getattr(old, name) != getattr(new, name)
    ]
    found += [
        Difference(0, name, getattr(trajectory, name), getattr(again, name))
        for name in ("length", "answer", "reward", "success")
        if getattr(trajectory, name) != getattr(again, name)
    ]
    if again.stop.failed and not trajectory.stop.failed:
        found.append(Difference(0, "stop", trajectory.stop.value, f"{again.stop.value}: {again.evidence['failure']}"))
    return again, found


def describe(turn: Turn) -> str:
    """A turn in a few lines."""
    acted = turn.action or f"(not understood) {turn.text!r}"
    error = f"\n  error: {turn.error}" if turn.error else ""
    return f"{turn.url}\n  sees:  {' '.join(described(turn.observation).split())}\n  does:  {acted}{error}"
