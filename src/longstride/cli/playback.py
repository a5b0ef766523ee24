"""`longstride playback`: one episode of a run again, in a new environment; lists what comes out otherwise. Of a run of
control it is a test episode, which can be filmed."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.cli.common import print_json, run_recipe, say
from longstride.core.errors import ConfigError, RunError

if TYPE_CHECKING:
    from longstride.control.recipe import ControlRecipe


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("playback", help="play an episode again", description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="RUN", help="a run folder, finished or not")
    parser.add_argument("episode", type=int, metavar="N", help="the episode's ordinal, from 0")
    parser.add_argument("--video", type=Path, metavar="FILE.gif", help="of control: where its animation goes")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays it back; 1 where anything came out otherwise.

    Raises:
        RunError: no run, or no such episode in it.
    """
    from longstride.control.recipe import ControlRecipe
    from longstride.run.experiment import load_run_experiment

    found = load_run_experiment(args.folder)
    if isinstance(found, ControlRecipe):
        return _control(args, found)
    if args.video:
        raise ConfigError(f"--video is for runs of control, and {args.folder} is none")
    recipe = run_recipe(args.folder)

    from longstride.rollout.playback import describe, play_back
    from longstride.rollout.store import TrajectoryStore

    store = TrajectoryStore(args.folder / "trajectories.jsonl")
    if not 0 <= args.episode < len(store):
        raise RunError(f"{args.folder} has the episodes 0 to {len(store) - 1}, not {args.episode}")
    stored = store[args.episode]
    again, differences = play_back(stored, recipe.env, recipe.reward)
    if args.json:
        found = [d._asdict() for d in differences]
        print_json({"ordinal": stored.ordinal, "task": stored.task.id, "reward": again.reward, "differences": found})
        return int(bool(differences))
    say(f"episode {stored.ordinal} of iteration {stored.iteration}: {stored.task.goal}")
    for k, turn in enumerate(again.turns, 1):
        say(f"{k:2} {describe(turn)}")
    say(f"stopped ({stored.stop}), reward {again.reward:g}")
    for turn, what, was, now in differences:
        say(f"differs: {what} {f'in turn {turn}' if turn else 'at the end'}: was {was!r}, is {now!r}")
    say("nothing differs from what was stored" if not differences else f"{len(differences)} differences")
    return int(bool(differences))


def _control(args: argparse.Namespace, recipe: "ControlRecipe") -> int:
    from longstride.control.filming import play_again

    task, episode = play_again(recipe, args.folder, args.episode, args.video)
    earned = float(episode.reward.sum())
    if args.json:
        print_json({"task": task, "steps": episode.length, "return": earned, "success": episode.solved})
        return 0
    say(f"episode {args.episode}, {task}: {episode.length} steps, return {earned:.4g}, success {episode.solved}")
    if args.video:
        say(f"video: {args.video}")
    return 0
