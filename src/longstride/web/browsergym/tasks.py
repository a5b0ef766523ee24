"""The embedded sites as BrowserGym tasks. Imported only where BrowserGym is installed.

What always holds: the sites are one application on a free port of the loopback interface; a seed always gives the same
site, question and reward; the task's own evaluator judges the answer in the chat and the visitor's state of the site,
and the reward is given once, when there is an answer.
"""

import itertools
from contextlib import ExitStack
from functools import cache
from typing import Any

from browsergym.core.registration import register_task  # pyright: ignore[reportMissingImports]
from browsergym.core.task import AbstractBrowserTask  # pyright: ignore[reportMissingImports]

from longstride.core.errors import EnvFailure
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.sites import HELD_OUT, KINDS, application
from longstride.envs.sites.actions import INFEASIBLE
from longstride.envs.sites.tasks import Template, templates
from longstride.rewards import judge
from longstride.web.browsergym.loopback import loopback

SITES = 500
"""Different sites of a template (what `EmbeddedWeb.per_kind` is by default)."""
_open = ExitStack()


@cache
def origin() -> str:
    """Where the sites are served, from the first call to the end of the process."""
    return _open.enter_context(loopback(application()))


@cache
def register() -> list[str]:
    """Registers a task for every template; the ids."""
    ids = []
    for kind in KINDS:
        for template in templates(kind):
            name = f"longstride.{template.id.replace('/', '.')}"
            register_task(name, SiteTask, task_kwargs={"template": template}, nondeterministic=False)
            ids.append(f"browsergym/{name}")
    return ids


def task_of(template: Template, seed: int) -> Task:
    """The template's task for a seed; evaluation templates have evaluation sites."""
    rng = stream(seed, "browsergym", template.id)
    for _ in itertools.count():  # not every site has what every template asks for
        site = rng.randrange(SITES) + (HELD_OUT if template.held_out else 0)
        task = template.make(site, rng.getrandbits(40), rng.choice(template.difficulties))
        if task is not None:
            return task
    raise AssertionError("unreachable")


class SiteTask(AbstractBrowserTask):
    """A task of a template, in BrowserGym's terms."""

    def __init__(self, seed: int, template: Template) -> None:
        super().__init__(seed)
        self.slow_mo = 0  # BrowserGym's second per operation is for people who watch
        self.task = task_of(template, seed)

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        """Opens the site. Returns the goal, and the task's id."""
        page.goto(origin() + self.task.start)
        return self.task.goal, {"task": self.task.id}

    def validate(self, page: Any, chat_messages: list[dict[str, Any]]) -> tuple[float, bool, str, dict[str, Any]]:
        """Reward, whether the task is done, no message, and the evaluator's evidence.

        Raises:
            EnvFailure: the site's state could not be read.
        """
        last = chat_messages[-1]
        if last["role"] not in ("assistant", "infeasible"):
            return 0.0, False, "", {}
        answer = last["message"] if last["role"] == "assistant" else INFEASIBLE
        verdict = judge(self.task, answer, self._state(page))
        return verdict.reward, True, "", {"evidence": verdict.evidence}

    def _state(self, page: Any) -> dict[str, Any]:
        answer = page.context.request.get(f"{origin()}{self.task.start}__state__")
        if answer.status == 404:
            return {}
        if not answer.ok:
            raise EnvFailure(f"{answer.url} answered status {answer.status}; the state of the site was expected")
        return answer.json()
