"""Search by sub-goals: a planner says what is to be reached on the way to an answer, and the search goes from one of
these to the next.

What always holds: what was reached is kept, and never searched again; a planner that says nothing of use, or fails,
leaves the search as it would have been without it, token for token; what it says is not trusted: so many lines of so
many characters are read, and nothing of them is shown to the policy as it acts. All tokens of planner, guide and searches are
counted. Plans and searches of all tasks go step by step together.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from longstride.core.content import text_in, with_lines
from longstride.core.numbers import Count, CountOrZero
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Sampling
from longstride.engines.config import Local
from longstride.envs.base import Counting, Env, Observation, Step
from longstride.envs.interface import ask
from longstride.models.api import ChatAPI
from longstride.models.thoughts import spoken
from longstride.rewards.evaluators import normalise
from longstride.rollout.chat_player import ChatPlayer
from longstride.rollout.context import FullHistory
from longstride.rollout.episode import Plan
from longstride.rollout.players import LanguagePlayer, Player
from longstride.strategies.base import APART, EvalEpisode, EvalPlan, Load, further_plan, settings_in
from longstride.strategies.delegate import HANDED, Pair
from longstride.strategies.ledger import Ledger
from longstride.strategies.search import BestFirst, Partial, Search, Searching
from longstride.strategies.searched import Checked, Guide, PathLikelihood, Searched, SearchTask

PROMPT = (
    "Do not solve this yet. Say what is to be reached on the way to it, one intermediate result a line, in their order, "
    "each in the words in which it will be said when it is reached."
)
LONGEST = 200
"""Characters of a sub-goal; what is longer is no line of a plan."""
SHOWN = 2000
"""Characters of how far a search came that a planner is shown, the last ones."""
ASKING = APART // 2
"""Numbers of what a planner is asked, among the further episodes of a task: no search has so many steps."""
QUESTION = "planner_is_asked"
"""In `Task.meta` of an episode in which a planner is asked: the question. The world itself never sees it."""
_SYMBOL = re.compile(r"\s*([^\w\s.,;:!?'\"])\s*")
_BULLET = re.compile(r"^\s*(?:[-*\u2022]|\d{1,3}[.):])(?:\s+|$)")


def sub_goals_in(reply: str, most: int, mark: str = "") -> list[str]:
    """The sub-goals that a planner's reply names, in their order and in normal form, each once; empty where it names
    none.

    Args:
        reply: anything.
        most: how many are taken, the first ones.
        mark: what ends a line, besides the end of a line; empty for nothing else.
    """
    text = spoken(reply)[: 2 * most * LONGEST]  # whatever comes, this is what is looked at
    lines = (text.replace(mark, "\n") if mark else text).splitlines()
    found = (_plain(_BULLET.sub("", line), mark) for line in lines)
    return list(dict.fromkeys(line for line in found if len(line) <= LONGEST and any(map(str.isalnum, line))))[:most]


def _plain(text: str, mark: str = "") -> str:
    """The normal form in which sub-goals are looked for: `x = 5` is `x=5`, as different tokenizers space it."""
    return _SYMBOL.sub(r"\1", normalise(text.replace(mark, " ") if mark else text))


class SubGoals(Searched):
    """Looks for a solution by way of sub-goals (BFS-Prover-V2, arXiv 2509.06493, multi-agent tree search): a planner is
    asked for them, the search goes to the first, from the best beginning that reached it to the second, and from the
    last one to the answer. A search that spends all it may before it reaches its sub-goal ends, and the planner is asked
    again, told what is reached and what is not.

    A sub-goal is reached where the turn that is being said contains its words (case, white space and a full stop at the
    end aside), or, where steps are turns, the observation that the last turn saw: what a turn led to is seen with the
    turn after it. That is all a world of text can check that has no verifier for a part of a solution; a planner that
    names what is said in any case is believed. A solution that ends before the last sub-goal was reached does not
    count, but for one that a `checked` guide verified, which ends the search. The policy is not told the sub-goal, so what
    it says does not depend on the plan: the plan says from where it goes on.

    What each sub-goal may cost is what `search` may. Measures: `sub_goals` that were named, `reached` ones, `replans`,
    and `planner_tokens`, sampled and read (as its server counts them, behind a chat API), which are in `spent_tokens` and
    `total_tokens` too.
    """

    search: Search = BestFirst(expansions=16, width=4)
    guide: Guide = PathLikelihood()
    planner: str | ChatAPI | None = None
    """Who is asked: a run folder, a model's folder, a name, or a model behind a chat API. The policy itself where left
    out. It reads the goal of the task and the first page, and then `prompt`."""
    prompt: str = PROMPT
    """What it is asked; behind it stands what is reached, when it is asked again."""
    most: Count = 8
    """Sub-goals that are taken of a plan, the first ones."""
    reply_tokens: Count = 256
    """Tokens that a plan may have."""
    replans: CountOrZero = 2
    """How often a planner may be asked again for a task."""

    @property
    def name(self) -> str:
        who = (
            self.planner.name if isinstance(self.planner, ChatAPI) else Path(self.planner).name if self.planner else ""
        )
        asked = "" if self.prompt == PROMPT else f"_asked_{crc32(self.prompt.encode()):08x}"
        more = settings_in(self, "search", "guide", "mark", "planner", "prompt")
        return f"sub_goals{who and f'_by_{who}'}{asked}{more}_{super().name}"

    def wrap(self, env: Env) -> Env:
        return _AskedEnv(env)

    def players(self, player: Player, load: Load) -> Player:
        """The policy, and the planner beside it where that is another model, which samples as the policy does.

        Raises:
            ConfigError, RunError, ModelError: it cannot be loaded, or its key is not set.
        """
        if self.planner is None:
            return player
        sampling = player.sampling if isinstance(player, LanguagePlayer | ChatPlayer) else Sampling()
        if isinstance(self.planner, ChatAPI):
            from longstride.models.chat import ChatConfig

            return Pair(player, ChatPlayer(self.planner, ChatConfig(), FullHistory(), sampling))
        other = load(self.planner)
        engine = Local().make(other, 0, [sampling])
        return Pair(player, LanguagePlayer(engine, other.chat, FullHistory(), sampling), engine)

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        if not isinstance(player, Pair):
            return (yield from super().run(plans, player))
        with closing(player):
            return (yield from super().run(plans, player.policy))

    def begun(self, plan: Plan) -> "SubGoalTask":
        """A task whose planner is to be asked."""
        return SubGoalTask(plan, self.searching(plan, Partial(None)), ())

    def under_way(
        self, tasks: Sequence[SearchTask]
    ) -> Generator[Sequence[Plan], list[Trajectory], Sequence[SearchTask]]:
        """Asks the planner of those that need it, and begins the search for what is next."""
        ready = [task for task in tasks if isinstance(task, SubGoalTask) and not (task.wanted or task.over)]
        for task in ready:
            self._close(task)
        if asking := [task for task in ready if task.asks]:
            came = yield [self._question(task) for task in asking]
            for task, reply in zip(asking, came, strict=True):
                self._hear(task, reply)
        for task in ready:
            if not task.over:
                stage = (task.stages,) if task.stages else ()  # without sub-goals it is the search alone
                searching = self.searching(task.plan, task.root, *stage)
                task.searching = self._towards(task, searching) if task.goals else searching
                task.wanted = next(task.searching)
                task.stages += 1
        return (yield from super().under_way(tasks))

    def _towards(self, task: "SubGoalTask", searching: Searching) -> Searching:
        """A search that ends in the step in which the next sub-goal is reached, with what reached it, the best one
        first; with nothing where it came to its own end before."""
        wanted = next(searching)
        while True:
            made = yield wanted
            if passed := [p for p in made if self._passes(task, p)]:
                return sorted(passed, key=lambda p: -p.score)
            try:
                # what ended elsewhere is a dead end here, and none of the candidates that are enough
                wanted = searching.send([replace(p, score=0.0, failed=True) if p.done else p for p in made])
            except StopIteration:
                return []

    def _passes(self, task: "SubGoalTask", p: Partial) -> bool:
        """Whether a partial reached the next sub-goal. What is finished cannot be gone on from: it has to have reached
        the last one, or to be verified."""
        if p.failed:
            return False
        if p.done and p.score == 1 and isinstance(self.guide, Checked):
            return True
        return (not p.done or len(task.goals) == 1) and task.reaches(self._seen(p.state))

    def _close(self, task: "SubGoalTask") -> None:
        """What a search that ended came to. Before the first one the planner is to be asked."""
        if not task.stages:
            return
        if not task.goals:
            task.over = True
        elif task.found:
            task.root = task.found[0]
            task.pass_by(self._seen(task.root.state))
            task.over = task.root.done
        elif task.asked <= self.replans:
            task.asks = True
        else:
            task.goals = []

    def _question(self, task: "SubGoalTask") -> Plan:
        plan = task.plan
        lines = [self.prompt]
        if task.asked:
            lines += [f"Reached: {'; '.join(task.reached) or 'nothing'}", f"Not reached: {task.goals[0]}"]
        if task.root.state is not None:
            lines.append(f"Where it stands: {' '.join(self._words(task.root.state))[-SHOWN:]}")
        told = plan.task.model_copy(update={"meta": plan.task.meta | {QUESTION: "\n".join(lines)}})
        budget = plan.budget.model_copy(
            update={"turns": 1, "turn_tokens": self.reply_tokens, "tokens": None, "tool_calls": None}
        )
        return replace(further_plan(plan, ASKING + task.asked), task=told, budget=budget, role=HANDED)

    def _hear(self, task: "SubGoalTask", reply: Trajectory) -> None:
        """Takes the planner's sub-goals in the place of what was left of the plan before."""
        said = reply.turns[-1].text if reply.turns and not reply.stop.failed else ""
        named = [goal for goal in sub_goals_in(said, self.most, self.mark) if goal not in task.reached]
        task.goals, task.asks = named, False
        task.asked += 1
        task.named += len(named)
        task.ledger += Ledger(sampled=reply.sampled_tokens)
        task.sampled += reply.sampled_tokens
        task.read += sum(turn.prompt_tokens for turn in reply.turns)
        if task.root.state is not None:
            task.pass_by(self._seen(task.root.state))

    def _seen(self, so_far: Trajectory) -> str:
        """The normal form of what counts of a beginning."""
        return "\n".join(_plain(text, self.mark) for text in self._words(so_far))

    def _words(self, so_far: Trajectory) -> list[str]:
        """What its last turn saw, where steps are turns, and said."""
        if not so_far.turns:
            return []
        last = so_far.turns[-1]
        # the first page is there before anything was done
        seen = [text_in(last.observation)] if not self.mark and so_far.length > 1 else []
        return [*seen, last.text]

    def ended(self, task: SearchTask) -> EvalEpisode:
        found = super().ended(task)
        assert isinstance(task, SubGoalTask)
        measures = {
            "sub_goals": task.named,
            "reached": len(task.reached),
            "replans": task.asked - 1,
            "planner_tokens": task.sampled + task.read,
        }
        return found._replace(measures={**found.measures, **measures}, read_tokens=found.read_tokens + task.read)


@dataclass(eq=False, slots=True)
class SubGoalTask(SearchTask):
    """A task on its way from sub-goal to sub-goal."""

    root: Partial = Partial(None)
    """The best beginning that reached the last one."""
    goals: list[str] = field(default_factory=list)
    """What is left of the plan; the search goes to the first, and where there is none to the answer."""
    reached: list[str] = field(default_factory=list)
    asks: bool = True
    """Whether the planner is to be asked."""
    over: bool = False
    asked: int = 0
    """How often it was."""
    named: int = 0
    """Sub-goals of all plans."""
    sampled: int = 0
    """Tokens, by the planner."""
    read: int = 0
    """Tokens, by the planner."""
    stages: int = 0
    """Searches that were begun."""

    def reaches(self, seen: str) -> bool:
        """Whether the next sub-goal stands in a text of normal form, as whole words."""
        if not self.goals:
            return False
        # neither inside a word nor inside a number: 1.5 does not say 1
        return re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(self.goals[0])}(?!\w|[.,]\d)", seen) is not None

    def pass_by(self, seen: str) -> None:
        """Ticks off the sub-goals that come next and stand in a text."""
        while self.reaches(seen):
            self.reached.append(self.goals.pop(0))


class _AskedEnv:
    """The world as it is, but where a planner is asked: there the first page ends with the question, and what is said
    does nothing."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._question: str | None = None
        self._page = Observation("")

    async def reset(self, task: Task, seed: int) -> Observation:
        self._question = task.meta.get(QUESTION)
        if self._question is None:
            return await ask(Observation, self._env, "reset", task, seed)
        own = {key: value for key, value in task.meta.items() if key != QUESTION}
        page = await ask(Observation, self._env, "reset", task.model_copy(update={"meta": own}), seed)
        self._page = replace(page, content=with_lines(page.content, self._question), speaker="")
        return self._page

    def sampled(self, ids: list[int], logprobs: list[float], read: int, finish: str) -> None:
        """For a world that counts (`Counting`); it knows nothing of a plan."""
        if isinstance(self._env, Counting) and self._question is None:
            self._env.sampled(ids, logprobs, read, finish)

    async def step(self, text: str) -> Step:
        if self._question is None:
            return await ask(Step, self._env, "step", text)
        # cut from outside: no reward judges what was never tried
        return Step(self._page, truncated=True, action="plan")

    async def final_state(self) -> dict[str, Any]:
        return await ask(dict, self._env, "final_state")

    async def close(self) -> None:
        await ask(object, self._env, "close")
