"""The protocol of an evaluation: all that has to be the same where two results are compared, as flat plain data.

What always holds: a key has one meaning wherever the result is from; what is not known has no key; neither the policy
nor what trained it is part of it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from longstride.core.sealed import dumps
from longstride.core.task import DIFFICULTIES, Task
from longstride.core.trajectory import Trajectory
from longstride.models.api import ChatAPI
from longstride.models.load import Policy, folder_of
from longstride.report.curves import flat
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.recipe import Recipe
from longstride.strategies import Direct, Strategy

Protocol = dict[str, Any]
PROTOCOL = "protocol.json"
"""Its name beside exported evaluation episodes."""
OWN_TEMPLATE = "the server's own"
"""The chat template of a model behind a chat API."""


def protocol_of(recipe: Recipe, tasks: Sequence[Task], strategy: Strategy, template: str | None) -> Protocol:
    """The protocol under which a recipe evaluates.

    Args:
        recipe: of the evaluation.
        tasks: in their order.
        strategy: what is done with the policy.
        template: the chat template of the policy; None where it is not known.
    """
    data, chat = recipe.as_data(), recipe.chat.as_data()
    del chat["template"]
    budgets = {d: strategy.budget(recipe.test_budget.at(1, d)).model_dump() for d in DIFFICULTIES}
    limits = {name: {d: budget[name] for d, budget in budgets.items()} for name in budgets["easy"]}
    found = {
        "environment": data["tasks"],
        "attempts": recipe.evaluation.attempts,
        "trial": data["trial"],
        "seed": recipe.seed,
        "actions": recipe.actions,
        "context": data["context"],
        "companions": data["companions"],
        "chat": chat,
        "limits": limits,
        "sampling": (recipe.evaluation.sampling or recipe.sampling).as_data(),
        "strategy": strategy.as_data(),
        "judge": recipe.test_reward.as_data(),
    }
    known = {} if template is None else {"template": template if template == OWN_TEMPLATE else fingerprint(template)}
    return dict(flat(found)) | known | of_tasks(tasks)


def of_tasks(tasks: Sequence[Task]) -> Protocol:
    """What tasks say of a protocol: which they are, in which order, and how each is judged."""
    asked = sorted(dumps(t.model_dump(mode="json", exclude={"evaluator", "split"}), sort_keys=True) for t in tasks)
    judged = sorted(dumps([t.id, t.evaluator], sort_keys=True) for t in tasks)
    return {
        "tasks": f"{len(tasks)}, {fingerprint(*asked)}",
        "order": fingerprint(*(t.id for t in tasks)),
        "evaluators": fingerprint(*judged),
    }


def names_of(ids: Iterable[str]) -> list[str]:
    """Ids of tasks, each once: the second one of an id is `ID#2`."""
    seen: Counter[str] = Counter()
    names = []
    for each in ids:
        seen[each] += 1
        names.append(each if seen[each] == 1 else f"{each}#{seen[each]}")
    return names


def by_place(episodes: Iterable[Trajectory]) -> dict[str, list[Trajectory]]:
    """The episodes of each task of an evaluation, by its name (`names_of`): a group is of one place among them."""
    groups: dict[tuple[str, int], list[Trajectory]] = {}
    for t in episodes:
        groups.setdefault((t.task.id, t.group), []).append(t)
    return dict(zip(names_of(task for task, _ in groups), groups.values(), strict=True))


def fingerprint(*texts: str) -> str:
    """A short hash of texts."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:12]


def template_of(policy: Policy | ChatAPI) -> str:
    """The chat template of a policy."""
    return OWN_TEMPLATE if isinstance(policy, ChatAPI) else str(policy.tokenizer.chat_template)


def template_of_run(run: Path, recipe: Recipe) -> str | None:
    """The chat template of the policy of a run; None where that is not on this machine."""
    if isinstance(recipe.model, ChatAPI):
        return OWN_TEMPLATE
    if recipe.chat.template:
        return recipe.chat.template
    checkpoint = latest_checkpoint(run)
    folder = checkpoint.folder if checkpoint else folder_of(recipe.model)
    return str(AutoTokenizer.from_pretrained(str(folder)).chat_template) if folder else None


def strategy_named(recipe: Recipe, name: object) -> Strategy:
    """The strategy of a row."""
    return next((s for s in recipe.evaluation.strategies if s.name == name), Direct())
