"""`longstride card`: the horizon card of a run or a model, as a page and as data: success by budget, the distance and
the budget of half and of four fifths of the tasks, what tokens are best spent on, and a prediction of twice the budget
that is written before it is measured."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from longstride.cli.common import RUN_FILE, print_json, say
from longstride.core.errors import ConfigError

CARD_FILE = "card.json"


def add(commands: Any) -> None:
    """Adds the command."""
    from longstride.cli.evaluate import add_tasks

    parser = commands.add_parser(
        "card",
        help="the horizon card of a run or a model",
        description=__doc__,
        epilog="example: longstride card runs/tti-1 --budget 12",
        allow_abbrev=False,
    )
    parser.add_argument(
        "target", metavar="RUN_OR_MODEL", help="a run folder, `base`, a model folder or a Hugging Face name"
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting of the run's recipe")
    add_tasks(parser)
    parser.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="turns up to which is measured before twice as many are predicted; tokens where an episode is one turn "
        "(default: half of the recipe's test budget)",
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=4,
        metavar="N",
        help="episodes of each task, to see what tokens are best spent on; 1 leaves that out (default: 4)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help=f"where card.html and {CARD_FILE} go (default: the run's folder)"
    )
    parser.add_argument("--json", action="store_true", help="the card as one JSON object")
    parser.set_defaults(run=run, horizon=None)


def run(args: argparse.Namespace) -> int:
    """Writes the prediction, measures, writes the card, and prints what it says."""
    from longstride.cli.evaluate import agent_of, bars, experiment_of, overrides_of
    from longstride.core.config import resolve
    from longstride.core.files import make_folder, write_atomically
    from longstride.models.api import ChatAPI
    from longstride.report.card import as_text, write_card
    from longstride.report.play import carried, policies_of
    from longstride.run.card import measure_card
    from longstride.run.evaluation import language_player
    from longstride.run.recipe import Recipe

    recipe = experiment_of(args.target)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"a card is of a language agent, and {args.target} is of a {recipe.type_name()}")
    recipe = resolve(Recipe, recipe, overrides_of(args))
    if args.samples < 1:
        raise ConfigError(f"--samples is at least 1; got {args.samples}")
    folder = args.out or _folder(args.target)
    policy = agent_of(args.target, recipe)
    player = language_player(policy, recipe, testing=True)
    tasks = recipe.held_out()
    make_folder(folder)

    def keep(card: dict[str, Any]) -> None:
        card |= {"policy": _name(args.target), "command": _command(args)}
        write_atomically(folder / CARD_FILE, json.dumps(card, indent=1) + "\n")

    with bars() as watch:
        card = measure_card(player, recipe, tasks, args.budget, args.samples, watch, keep)
    keep(card)
    play = {"why": "The policy is behind an API, so no page can carry it."}
    if not isinstance(policy, ChatAPI):
        play = carried(policies_of(args.target, recipe, policy), recipe, tasks)
    page = write_card(card, folder / "card.html", play)
    if args.json:
        print_json(card)
    else:
        say(f"{as_text(card)}\n\nkept: {page}")
    return 0


def _folder(target: str) -> Path:
    """A run's card stands in the run's folder, that of a model in a folder of its own."""
    return Path(target) if (Path(target) / RUN_FILE).is_file() else Path(f"card-{_name(target).replace('/', '-')}")


def _name(target: str) -> str:
    """The model as it was named, or the run's folder."""
    path = Path(target)
    return path.resolve().name if path.is_dir() else target


def _command(args: argparse.Namespace) -> str:
    words = ["longstride", "card", args.target, *args.overrides]
    for task in args.tasks:
        words += ["--tasks", task]
    if args.browser:
        words += ["--browser", args.browser]
    if args.budget is not None:
        words += ["--budget", str(args.budget)]
    return shlex.join([*words, "--samples", str(args.samples)])
