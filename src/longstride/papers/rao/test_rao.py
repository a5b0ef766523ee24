"""RAO: parts of a task are played by new instances of the policy, and every one of them is credited."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, make_turn, rows_of, run_stages, trajectories_of

from longstride.core.budget import Budget
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import Vaults
from longstride.envs.puzzles.vaults import Vault
from longstride.papers.rao.method import (
    NODE,
    SUB_AGENT,
    WAITING,
    Delegating,
    Delegation,
    Keys,
    NodeRelative,
    Recursive,
    VaultAgents,
)
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.rollout.episode import Episode, set_failure
from longstride.starts.demonstrators import run_now
from longstride.strategies import EvalEpisode

BY = Delegation(verb="find", tasks=Keys(), failed="wall")
VAULT = Vault(wanted=1, takes={1: (2, 3), 2: (4,), 3: (), 4: ()})
ROOT = Vaults()._task(VAULT, "easy")  # pyright: ignore[reportPrivateUsage]


def delegating(episode: Episode) -> str:
    """Finds nothing alone: leaves every key to somebody else."""
    wanted = episode.goal.removeprefix("find ")
    takes = str(episode.observations[0]).partition(" : ")[2].split()
    had = sum(str(seen).startswith("key") for seen in episode.observations)
    return f"find {takes[had]}" if had < len(takes) else f"pull {wanted}"


def played(by: Delegation, turns: int = 4) -> tuple[EvalEpisode, list[list[Plan]]]:
    """The tree of agents at `ROOT`, and its plans by stage."""
    player = ScriptedPlayer(delegating)
    pool = Pool(player, Delegating(tasks=Vaults()).env, TaskReward())
    root = Plan(by.given(ROOT, 0), 0, 7, Budget(turns=turns), group=3)
    stages, (found,) = run_stages(Recursive().run([root], player), lambda plan: pool.run([plan])[0])
    return found, stages


def test_each_agent_has_a_context_of_its_own_and_reads_what_came_of_what_it_delegated() -> None:
    found, stages = played(BY)
    assert found.trajectory.success and found.trajectory.group == 3 and found.trajectory.ordinal == 0
    assert [turn.text for turn in found.trajectory.turns] == ["find 2", "find 3", "pull 1"]
    assert [turn.observation for turn in found.trajectory.turns] == ["1 : 2 3", "key 2", "key 3"]
    assert found.measures == {"agents": 4, "depth": 2, "tree_turns": 3 + 2 + 1 + 1}
    goals = [plan.task.goal for (plan,) in stages]
    assert goals == ["find 1", "find 2", "find 4", "find 2", "find 1", "find 3", "find 1"], "who delegates waits"
    assert [len(plan.history) for (plan,) in stages] == [0, 0, 0, 1, 1, 0, 2]
    assert len({plan.ordinal for (plan,) in stages}) == len(stages) and {plan.seed for (plan,) in stages} == {7}


def test_as_deep_as_nobody_may_delegate_the_same_turns_are_refused() -> None:
    found, stages = played(BY.replace(deepest=0))
    assert len(stages) == 1 and not found.trajectory.success and found.measures["agents"] == 1
    assert found.trajectory.turns[0].error == "there is nobody to find to"


def test_an_agent_is_told_that_it_may_delegate_as_long_as_it_may() -> None:
    def told(depth: int) -> str:
        env = Delegating(tasks=Vaults()).env()
        return str(run_now(env.reset(BY.replace(deepest=1).given(ROOT, depth), 0)).manual)

    assert "find GOAL: leaves a part" in told(0) and "pull NUMBER_1" in told(0) and "GOAL" not in told(1)
    assert str(BY.told_of(None)).startswith("A turn that ends with Action: find GOAL leaves a part of the task")


def test_a_tree_has_so_many_agents_and_what_is_no_task_comes_to_nothing() -> None:
    found, _ = played(BY.replace(agents=2), turns=6)
    assert found.measures["agents"] == 2 and not found.trajectory.success
    assert found.trajectory.turns[1].observation == "wall", "its only sub-agent had nobody to delegate to"
    assert Keys().of(ROOT, "4") is not None and Keys().of(ROOT, "9") is None and Keys().of(ROOT, "four") is None


def test_who_waits_for_an_agent_that_infrastructure_ended_has_failed_and_goes_on_with_nothing() -> None:
    player, env = ScriptedPlayer(delegating), Delegating(tasks=Vaults()).env
    pool = Pool(player, env, TaskReward())
    root = Plan(BY.given(ROOT, 0), 0, 7, Budget(turns=4), group=3)

    def play(plan: Plan) -> Trajectory:
        (t,) = pool.run([plan])
        if plan.task.goal == "find 4":
            set_failure(t, "no vault", 1)
        return t

    stages, (found,) = run_stages(Recursive().run([root], player), play)
    assert len(stages) == 3 and found.trajectory.stop.failed
    assert found.trajectory.evidence["failure"] == "a sub-agent failed: no vault"


def agent(ordinal: int, parent: int, root: int, depth: int, score: float | None, group: int = 0) -> Trajectory:
    t = make_trajectory([make_turn([0, 0], [0])], ordinal=ordinal, group=group)
    t.evidence = {NODE: [ordinal, parent, root, depth, score]}
    return t


def test_an_agent_is_credited_with_its_score_and_the_mean_of_those_it_delegated_to() -> None:
    # the root earns .8 + .4 (1 + .5) / 2 = 1.1; the others have .4, .7 and 1, .7 in the mean
    tree = [agent(0, -1, 0, 0, 0.8), agent(1, 0, 0, 1, 1.0), agent(2, 0, 0, 1, 0.5)]
    others = [agent(3, -1, 3, 0, 0.4), agent(4, -1, 4, 0, 0.7), agent(5, -1, 5, 0, 1.0)]
    found = NodeRelative(by_depth=False).advantages(tree + others)
    assert [a for (a,) in found[:3]] == pytest.approx([0.4, 0.3, -0.2])
    assert found[3] == [pytest.approx(0.4 - (1.1 + 0.7 + 1.0) / 3)]
    assert NodeRelative(bonus=0.0, by_depth=False).advantages(tree + others)[0] == [pytest.approx(0.1)]
    assert NodeRelative().advantages(tree) == [[0.0]] * 3, "a single root is compared with nobody"


def test_depths_weigh_alike() -> None:
    roots = [agent(k, -1, k, 0, k / 4) for k in range(4)]
    below = [agent(4 + k, k // 2, k // 2, 1, 0.0) for k in range(8)]
    plain, weighed = (
        np.array(NodeRelative(bonus=0.0, by_depth=w).advantages(roots + below)).ravel() for w in (False, True)
    )
    assert weighed == pytest.approx(np.repeat([1.5, 0.75], [4, 8]) * plain) and plain.any()


def test_who_failed_for_want_of_infrastructure_is_neither_trained_nor_compared_with() -> None:
    found = NodeRelative(by_depth=False).advantages(
        [agent(0, -1, 0, 0, None), agent(1, 0, 0, 1, 1.0), agent(2, -1, 2, 0, 0.5), agent(3, -1, 3, 0, 0.0)]
    )
    assert found == [[None], [pytest.approx(1 - 0.25)], [0.5], [-0.5]]


def test_agents_are_shown_alone_or_leaving_every_key_to_others() -> None:
    for shown in islice(VaultAgents(delegates=0.0).demonstrations(0), 20):
        vault = Vault.of(shown.task)
        assert shown.texts == vault.steps() and shown.observations[0] == vault.shown(vault.wanted)
    for shown in islice(VaultAgents(delegates=1.0).demonstrations(0), 20):
        vault = Vault.of(shown.task)
        wanted = [f"find {key}" for key in vault.takes[vault.wanted]]
        assert shown.texts == [*wanted, f"pull {vault.wanted}"] and shown.task.split == "train"


def test_it_trains_another_model_that_delegates_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    rows = [{"prompt": "red lamp", "completion": text} for text in ("red lamp", "home lamp no", "blue")]
    (tmp_path / "shown.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = train_elsewhere(
        "rao",
        tmp_path,
        f'cloning.demonstrations={{type="file_successes",path="{tmp_path / "shown.jsonl"}",unjudged=true}}',
        "cloning.episodes=3",
        "cloning.learner={lr=1e-2,warmup_steps=0,epochs=15}",
        "tasks.type=longstride.papers.rao.method:Delegating",
        "tasks.tasks.type=one_page:OnePageTasks",
        'tasks.by={verb="red",tasks={type="any_goal"},deepest=2,agents=3}',
        "budget.turns=3",
    )
    parts = trajectories_of(run)
    nodes = {t.ordinal: t.evidence[NODE] for t in parts}
    assert {SUB_AGENT, WAITING, ""} == {t.role for t in parts}
    for t in parts:
        ordinal, parent, root, depth, score = nodes[t.ordinal]
        assert (parent == -1) == (depth == 0) and root <= ordinal <= t.ordinal
        assert score == nodes[root][4], "nobody knows what a sub-agent did, so it has the score of its root"
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
