"""`longstride gateway`: a policy behind OpenAI's and Anthropic's chat API on this machine, for programs that are
started by hand. Every key is an episode, whatever it is, with its turns, its budget and its tokens."""

import argparse
from pathlib import Path
from typing import Any

from longstride.cli.common import free_folder, print_json, say
from longstride.cli.evaluate import agent_of, experiment_of
from longstride.core.errors import ConfigError


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "gateway",
        help="serve a policy to programs",
        description=__doc__,
        epilog="example: longstride gateway RUN --episodes 3 --out runs/by_hand test_budget.turns=24; then, for each "
        "episode, OPENAI_BASE_URL=http://127.0.0.1:8766/v1 OPENAI_API_KEY=any-new-key python agent.py",
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="TARGET", help="a run folder, `base`, a model folder, or a Hugging Face name")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting of the run's recipe")
    parser.add_argument("--port", type=int, default=8766, help="0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--episodes", type=int, default=1, metavar="N", help="it ends after so many (default: %(default)s)"
    )
    parser.add_argument(
        "--quiet",
        type=float,
        default=300.0,
        metavar="S",
        help="an episode ends when nothing was asked for so many seconds",
    )
    parser.add_argument(
        "--calls",
        choices=("tool_calls", "explained", "text"),
        default="tool_calls",
        help="how the model calls tools: as its chat template presents them, in words that are explained, or in "
        "words that it knows (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the episodes there, as `eval --out` does")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until all episodes have ended, or until Ctrl-C.

    Raises:
        ConfigError: what is served is not the policy of a language agent, or the port is taken.
    """
    from longstride.adapters.gateway.agents import Stranger
    from longstride.adapters.gateway.server import END, server
    from longstride.adapters.gateway.source import ChatGateway
    from longstride.adapters.seeded import EnvironmentReward
    from longstride.core.config import resolve
    from longstride.core.numbers import MOST
    from longstride.core.task import Task
    from longstride.models.load import Policy
    from longstride.report.html import write_report
    from longstride.rollout import AsRequested
    from longstride.run.evaluation import evaluate_policy
    from longstride.run.folder import keep_evaluation
    from longstride.run.recipe import Recipe

    if args.episodes < 1:
        raise ConfigError(f"--episodes is at least 1, got {args.episodes}")
    if not 0 < args.quiet <= MOST:
        raise ConfigError(f"--quiet is above 0 and up to {MOST} seconds, got {args.quiet:g}")
    if not 0 <= args.port < 2**16:
        raise ConfigError(f"--port is a port up to {2**16 - 1}, or 0 for any that is free, got {args.port}")
    folder = free_folder(args.out) if args.out else None
    recipe = experiment_of(args.target)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"{args.target} is of a {recipe.type_name()}, which has no language model to ask")
    recipe = recipe.replace(
        tasks=ChatGateway(
            agent=Stranger(quiet=args.quiet), tasks=recipe.tasks, calls=args.calls, deadline=MOST, port=args.port
        ),
        context=AsRequested(),
        reward=EnvironmentReward(),
        actions="text",
        pool={"step_deadline": MOST, "lockstep": False, "retries": 0},
        evaluation={"attempts": 1, "reward": None},
    )
    recipe = resolve(Recipe, recipe, args.overrides)
    policy = agent_of(args.target, recipe)
    if not isinstance(policy, Policy):
        raise ConfigError(f"{policy} is behind a chat API itself: programs ask it there")
    address = server(recipe.tasks.port if isinstance(recipe.tasks, ChatGateway) else args.port).address
    say(f"OPENAI_BASE_URL={address}/v1\nANTHROPIC_BASE_URL={address}")
    say(f"Each new key is an episode; POST {END} ends it with a result. Ctrl-C stops, and nothing is kept then.")
    tasks = [
        Task(id=f"stranger/{k}", source="stranger", goal="what a program asks", start="") for k in range(args.episodes)
    ]
    result = evaluate_policy(policy, recipe, tasks)
    if folder:
        keep_evaluation(policy, recipe, folder, [("agent", "direct", result)])
        write_report(folder)
    if args.json:
        print_json({"target": args.target, "summary": result.summary})
        return 0
    for k, t in enumerate(result.trajectories, 1):
        forks = sum(bool(turn.fork) for turn in t.turns)
        say(
            f"episode {k}: {t.length} turns, {t.sampled_tokens} tokens, {forks} branches, reward {t.reward:g}, {t.stop}"
        )
    if folder:
        say(f"kept:   {folder}\nreport: {folder / 'report.html'}")
    return 0
