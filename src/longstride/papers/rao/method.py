"""Agents that leave parts of their task to new instances of themselves: how that is said (`Delegation`), the environment
that waits for what comes of it (`Delegating`), the trees of agents that are trained (`Delegated`) and tested (`Recursive`),
and their credit (`NodeRelative`)."""

import itertools
import random
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from pydantic import StringConstraints

from longstride.core.budget import StopReason
from longstride.core.component import Component, build
from longstride.core.errors import ConfigError, TaskError
from longstride.core.numbers import Count, CountOrZero, Share, Weight
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Env, Observation, OtherTasks, Step
from longstride.envs.interface import ask
from longstride.envs.puzzles import Vaults
from longstride.envs.puzzles.base import Action
from longstride.envs.puzzles.vaults import Opening, Vault
from longstride.envs.text import MARK, said
from longstride.envs.tools import Manual, Tool, arguments
from longstride.methods import Advantage, Credit
from longstride.rollout.episode import PastTurn, Plan, set_failure
from longstride.rollout.planning import Planner, Sampler, Stages
from longstride.rollout.players import Player
from longstride.starts.demonstrators import Demonstration, Demonstrators
from longstride.strategies.base import APART, EvalEpisode, EvalPlan, Strategy

DELEGATION = "delegation"
"""In the `meta` of a task: how one delegates, how deep in the tree its agent stands, and what came of what it delegated."""
NODE = "node"
"""In `Trajectory.evidence`: the fields of `Node`."""
WAITING, SUB_AGENT = "waiting", "sub_agent"
"""Roles of a part of an episode that ends where something was delegated, and of the last part of a sub-agent; the last part
of a root has none."""


class SubTasks(Component):
    """Family: the task that a sub-agent is given."""

    judged: ClassVar[bool] = True
    """Whether its own evaluator says if it was done; if not, it is as good as what came of the root's."""

    @abstractmethod
    def of(self, task: Task, text: str) -> Task | None:
        """Of an agent's task and what it delegates, in its own words; None where that is no task."""


class AnyGoal(SubTasks):
    """The same world with another goal: what was delegated. Nobody knows whether it was done, so a sub-agent is scored
    by what came of the whole (`propagate_root_success` in the authors' code)."""

    judged: ClassVar[bool] = False

    def of(self, task: Task, text: str) -> Task | None:
        return task.model_copy(update={"goal": text})


class Keys(SubTasks):
    """Of `Vaults`: the key that is named."""

    def of(self, task: Task, text: str) -> Task | None:
        try:
            return Vaults().part(task, int(text))
        except (ValueError, TaskError):  # no number, or no such key
            return None


class Delegation(Component):
    """How an agent leaves a part of its task to another one, and how far that goes."""

    verb: Annotated[str, StringConstraints(pattern=r"^\S+$")] = "delegate"
    """The action; what follows is delegated."""
    tasks: SubTasks = AnyGoal()
    """What a sub-agent is given."""
    done: str = "done"
    failed: str = "nothing came of it"
    """What the parent reads where a sub-agent gave no answer."""
    deepest: CountOrZero = 4
    """Depth of the deepest agent; the root has 0. At 0 nobody delegates."""
    agents: Count = 32
    """Most agents of a tree, its root too."""

    def asked(self, text: str) -> str | None:
        """What a turn delegates; None where it does something else."""
        verb, _, rest = said(text).partition(" ")
        return rest.strip() or None if verb == self.verb else None

    def told_of(self, manual: Manual | None) -> Manual:
        """What an agent reads that may delegate, of a world that says what can be done in it, or does not."""
        what = "leaves a part of the task to another agent, who reads this alone and answers"
        tool = Tool(self.verb, arguments(goal="string"), what, f"{self.verb} {{goal}}")
        if manual is None:
            return Manual((tool,), words=f"A turn that ends with {MARK} {self.verb} GOAL {what}.", needed=False)
        return replace(manual, tools=(*manual.tools, tool))

    def told(self, task: Task, part: Trajectory | None, child: Task | None) -> Task:
        """The task of a parent that knows what came of what it delegated last."""
        done = part is not None and part.success
        answer = part.answer if part is not None else None
        reply: dict[str, Any] = {"text": answer or (self.done if done else self.failed)}
        if done and child is not None:
            reply["task"] = child.model_dump(mode="json")
        known = task.meta[DELEGATION]
        return _with(task, known | {"replies": [*known["replies"], reply]})

    def given(self, task: Task, depth: int) -> Task:
        """A task as an agent at this depth is given it."""
        return _with(task, {"by": self.as_data(), "depth": depth, "replies": []})

    @staticmethod
    def of(task: Task) -> "Delegation":
        """How one delegates in a task.

        Raises:
            ConfigError: one does not.
        """
        if DELEGATION not in task.meta:
            raise ConfigError(
                f"trees of agents take tasks that may be delegated, and {task.source!r} has none; set tasks.type="
                f"{__name__}:Delegating, with these tasks in tasks.tasks"
            )
        return build(Delegation, task.meta[DELEGATION]["by"])


def _with(task: Task, known: dict[str, Any]) -> Task:
    return task.model_copy(update={"meta": {**task.meta, DELEGATION: known}})


def _plain(task: Task) -> Task:
    return task.model_copy(update={"meta": {k: v for k, v in task.meta.items() if k != DELEGATION}})


@runtime_checkable
class Receiving(Protocol):
    """An environment that changes by what a sub-agent did."""

    def receive(self, task: Task) -> Observation:
        """What is seen once somebody else has done a part of the task."""
        ...


class Delegating(OtherTasks):
    """Other tasks, of which parts may be delegated."""

    by: Delegation = Delegation()
    """How."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self.by.given(task, 0) for task in super().sample(rng, n)]

    def held_out(self, n: int) -> list[Task]:
        return [self.by.given(task, 0) for task in super().held_out(n)]

    def env(self) -> "DelegatingEnv":
        return DelegatingEnv(self.tasks.env())


class DelegatingEnv:
    """An `Env` around another one that never sees what is delegated. A delegation whose outcome is not in the task yet
    cuts the episode: it is to go on from its turns with a task that has it."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self.final_state, self.close = env.final_state, env.close

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the other environment. Raises: EnvFailure as that does."""
        self._by, known = Delegation.of(task), task.meta[DELEGATION]
        self._depth, self._replies = known["depth"], iter(known["replies"])
        first = await ask(Observation, self._env, "reset", _plain(task), seed)
        return replace(first, manual=self._by.told_of(first.manual)) if self._depth < self._by.deepest else first

    async def step(self, text: str) -> Step:
        """Does what the policy's text says. Raises: EnvFailure as the other environment."""
        asked = self._by.asked(text)
        if asked is None:
            return await ask(Step, self._env, "step", text)
        action = f"{self._by.verb} {asked}"
        if self._depth >= self._by.deepest:
            error = f"there is nobody to {self._by.verb} to"
            return Step(Observation(f"error: {error}"), action=action, error=error)
        if (reply := next(self._replies, None)) is None:
            return Step(Observation(""), truncated=True, action=action)
        if "task" in reply and isinstance(self._env, Receiving):
            return Step(self._env.receive(Task.model_validate(reply["task"])), action=action)
        return Step(Observation(reply["text"]), action=action)


@dataclass(eq=False, slots=True)
class RecursiveAgent:
    """An agent of a tree, as far as it is."""

    plan: Plan
    """Of its newest part."""
    parent: "RecursiveAgent | None" = None
    depth: int = 0
    parts: list[Trajectory] = field(default_factory=list)
    """What it played: each part begins with the turns of the one before, and all but the last end with a delegation."""
    children: list["RecursiveAgent"] = field(default_factory=list)

    @property
    def root(self) -> "RecursiveAgent":
        return self if self.parent is None else self.parent.root

    @property
    def last(self) -> Trajectory:
        return self.parts[-1]

    def tree(self) -> Iterator["RecursiveAgent"]:
        """The agent, and all below it."""
        yield self
        for child in self.children:
            yield from child.tree()

    def node(self, judged: bool) -> "Node":
        """What credit has to know of it, once its tree has ended; `judged`: whether its own task says what came of it."""
        judge = self if judged else self.root
        failed = self.last.stop.failed or judge.last.stop.failed
        first, parent, root = (a.parts[0].ordinal if a else -1 for a in (self, self.parent, self.root))
        return Node(first, parent, root, self.depth, None if failed else judge.last.reward)


Fresh = Callable[[Plan, Task, tuple[PastTurn, ...]], Plan]
"""A plan as another one, under a new ordinal, of a task and after earlier turns."""


def grow(roots: Sequence[Plan], fresh: Fresh) -> Generator[Sequence[Plan], list[Trajectory], list[RecursiveAgent]]:
    """Plays trees of agents in stages, a part of an agent of each tree in each of them; returns the roots.

    An agent waits for the one that it delegated to, and has failed where infrastructure ended that one. All agents have the
    budget of their root, each for itself; turns that are played again count in it.

    Raises:
        ConfigError: the tasks are not `Delegating`.
    """
    found = [RecursiveAgent(plan) for plan in roots]
    ways = {agent: Delegation.of(agent.plan.task) for agent in found}
    live = found
    while live:
        played = yield [agent.plan for agent in live]
        for agent, part in zip(live, played, strict=True):
            agent.parts.append(part)
        live = [goes_on for agent in live if (goes_on := _next(agent, ways[agent.root], fresh))]
    return found


def _next(agent: RecursiveAgent, by: Delegation, fresh: Fresh) -> RecursiveAgent | None:
    """Who goes on after a part of an agent: a sub-agent, itself or its parent, with a plan; None where a tree has ended."""
    part, child, waits = agent.last, None, agent
    if part.stop.failed:  # what its parents would read is not what it was worth
        cause, above = part.evidence.get("failure"), agent.parent
        while above is not None:
            set_failure(above.last, f"a sub-agent failed: {cause}", above.last.length)
            above = above.parent
        return None
    if part.turns and part.stop is StopReason.ENV_TRUNCATED and (asked := by.asked(part.turns[-1].text)) is not None:
        task = by.tasks.of(_plain(agent.plan.task), asked)
        if task is not None and sum(1 for _ in agent.root.tree()) < by.agents:
            plan = fresh(agent.plan, by.given(task, agent.depth + 1), ())
            agent.children.append(RecursiveAgent(plan, agent, agent.depth + 1))
            return agent.children[-1]
    elif agent.parent is None:
        return None
    else:
        child, waits = agent, agent.parent
    told = by.told(waits.plan.task, child and child.last, child and _plain(child.plan.task))
    waits.plan = fresh(waits.plan, told, PastTurn.of(waits.last.turns))
    return waits


class Delegated(Sampler):
    """Groups of roots, of tasks that are `Delegating`; each of them may delegate to new instances of the policy, as these
    may. All that they play is of the group of their root."""

    def plan(self, planner: Planner) -> Stages:
        if planner.trial.episodes > 1:
            raise ConfigError(f"sampler {self.type_name()} plays no trials; set trial.episodes=1")
        plans = [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)]

        def fresh(like: Plan, task: Task, history: tuple[PastTurn, ...]) -> Plan:
            (new,) = planner.group(task, 1, history=history)
            return replace(new, seed=like.seed, group=like.group)

        roots = yield from grow(plans, fresh)
        found = []
        for root in roots:
            judged = Delegation.of(root.plan.task).tasks.judged
            for agent in root.tree():
                for part in agent.parts:
                    part.evidence = part.evidence | {NODE: [*agent.node(judged)]}
                    part.role = WAITING
                agent.last.role = SUB_AGENT if agent.parent else ""
                found += agent.parts
        return sorted(found, key=lambda t: t.ordinal)


class Recursive(Strategy):
    """The policy and new instances of it, to which it delegates, on tasks that are `Delegating`. What the root came to
    counts."""

    @property
    def name(self) -> str:
        return self.type_name()

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        counts: defaultdict[int, Iterator[int]] = defaultdict(lambda: itertools.count(1))

        def fresh(like: Plan, task: Task, history: tuple[PastTurn, ...]) -> Plan:
            ordinal = (like.group + 1) * APART + next(counts[like.group])
            return replace(like, task=task, history=history, ordinal=ordinal)

        # a group names the tree here, and its members find their root by it
        roots = yield from grow([replace(p, group=p.ordinal) for p in plans], fresh)
        return [self._ended(root, plan) for root, plan in zip(roots, plans, strict=True)]

    def _ended(self, root: RecursiveAgent, plan: Plan) -> EvalEpisode:
        agents = [*root.tree()]
        spent = sum(part.sampled_tokens for agent in agents for part in agent.parts) - root.last.sampled_tokens
        measures = {
            "agents": len(agents),
            "depth": max(agent.depth for agent in agents),
            "tree_turns": sum(agent.last.length for agent in agents),
        }
        counts = replace(root.last, task=plan.task, ordinal=plan.ordinal, group=plan.group)
        return EvalEpisode(counts, measures, spent)


class Node(NamedTuple):
    """What credit has to know of an agent."""

    agent: int
    """Ordinal of its first part."""
    parent: int
    """That of the agent that delegated to it; -1 for a root."""
    root: int
    depth: int
    score: float | None
    """Of its own task; None where it failed for want of infrastructure, and is neither trained nor compared with."""

    @classmethod
    def of(cls, part: Trajectory) -> "Node":
        """The agent of a part of it; an episode that is of no tree is a root."""
        known = part.evidence.get(NODE)
        return cls(*known) if known else cls(part.ordinal, -1, part.ordinal, 0, part.reward)


class NodeRelative(Credit):
    """Every agent of a tree is credited with its own score and a bonus for the mean score of those that it delegated to:

        R_n = s_n + bonus mean_{children c} s_c,    A_n = w_d (R_n - mean of R_root over the other roots of the group)

    A bonus is of own scores, so that it does not grow up the tree; a group of a single root has A = 0. Sub-agents, of which a
    tree may have many, weigh with w_d as much as roots do: in an update agents of each depth d weigh alike, one over their
    number, times what keeps the sum of weights over tokens what it is without them.
    """

    bonus: Weight = 0.4
    """Of the mean score of those that were delegated to."""
    by_depth: bool = True
    """Whether depths weigh alike; if not, w_d = 1."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        nodes = [Node.of(t) for t in played]
        scores = {node.agent: node.score for node in nodes if node.score is not None}
        below, roots = defaultdict[int, dict[int, float]](dict), defaultdict[int, dict[int, float]](dict)
        for node in nodes:
            if node.score is not None:
                below[node.parent][node.agent] = node.score
        rewards = {n: s + self.bonus * fmean(below[n].values() or [0.0]) for n, s in scores.items()}
        for t, node in zip(played, nodes, strict=True):
            if node.root in rewards:
                roots[t.group][node.root] = rewards[node.root]
        weights = self._weights(played, nodes)

        def credit(t: Trajectory, node: Node) -> float | None:
            if node.score is None:
                return None
            others = [reward for root, reward in roots[t.group].items() if root != node.root]
            return weights[node.depth] * (rewards[node.agent] - fmean(others)) if others else 0.0

        return [[credit(t, node)] * t.length for t, node in zip(played, nodes, strict=True)]

    def _weights(self, played: Sequence[Trajectory], nodes: Sequence[Node]) -> dict[int, float]:
        """w_d by depth."""
        tokens, agents = defaultdict[int, int](int), defaultdict[int, set[int]](set)
        for t, node in zip(played, nodes, strict=True):
            if node.score is not None:
                tokens[node.depth] += t.sampled_tokens
                agents[node.depth].add(node.agent)
        if not self.by_depth or not sum(tokens.values()):
            return dict.fromkeys(agents, 1.0)
        scale = sum(tokens.values()) / sum(tokens[d] / len(agents[d]) for d in agents)
        return {d: scale / len(agents[d]) for d in agents}


class VaultAgents(Demonstrators):
    """Agents at `Vaults`, each in a context of its own, who find some keys alone and leave others to a sub-agent that finds
    them. For a model that follows no instructions."""

    tasks: Vaults = Vaults()
    """What roots have to find; an agent stands at any of its keys."""
    verb: str = "find"
    """By which they delegate."""
    delegates: Share = 0.5
    """Probability that a key is left to somebody else."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            (root,) = self.tasks.sample(rng, 1)
            task = self.tasks.part(root, rng.choice([*Vault.of(root).takes]))
            yield self._shown(task, rng)

    def words(self) -> list[str]:
        return [self.verb]

    def _shown(self, task: Task, rng: random.Random) -> Demonstration:
        vault, shown = Vault.of(task), Demonstration(task)
        game: Opening = vault.start()

        def say(text: str) -> None:
            shown.observations.append(game.look())
            shown.texts.append(text)
            shown.weights.append(1.0)

        def pull(key: int) -> None:
            say(f"pull {key}")
            game.act(Action("pull", (key,)))

        def get(key: int) -> None:
            if key != vault.wanted and rng.random() < self.delegates:
                say(f"{self.verb} {key}")
                game.receive(key)
                return
            if vault.takes[key] and key != vault.wanted:
                pull(key)
            for k in vault.takes[key]:
                get(k)
            pull(key)

        get(vault.wanted)
        return shown
