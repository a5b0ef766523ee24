"""POPE: which tasks are guided, by which beginnings of their solutions."""

from typing import Any

import pytest
from helpers import make_planner, played, run_stages, trajectories_of, word_chat

from longstride.core.errors import ConfigError, LongstrideWarning
from longstride.core.task import Task
from longstride.envs.puzzles import ModularChain
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.models.chat import ChatFormat
from longstride.papers.pope.method import GUIDED, OraclePrefix
from longstride.papers.pope.recipe import RECIPE

CHAINS = ModularChain(lengths=(8, 8, 8))
CHAT = word_chat("≡ ; + - *")


def solution(task: Task) -> str:
    return CHAINS.demonstrate(task)[0]


def text(prefix: Any, chat: ChatFormat = CHAT) -> str:
    return chat.decode(prefix)


def stages(sampler: OraclePrefix, solved: tuple[int, ...] = (), episodes: int = 8) -> Any:
    """What the sampler plans where the episodes of these ordinals succeed."""
    plans = sampler.plan(make_planner(CHAINS, episodes=episodes, chat=CHAT))
    return run_stages(plans, lambda plan: played(plan, reward=float(plan.ordinal in solved)))


@pytest.mark.parametrize(
    ("share", "checkpoints", "steps"),
    [(0.25, 4, [1, 2]), (0.25, 1, [2]), (0.5, 4, [1, 2, 3, 4]), (0.95, 4, [2, 4, 6]), (0.01, 2, [1])],
)
def test_beginnings_are_complete_steps_up_to_a_share_of_eight_and_never_all(share, checkpoints, steps):
    shown = solution(CHAINS.held_out(1)[0])
    found = OraclePrefix(share=share, checkpoints=checkpoints).beginnings(CHAT, shown)
    assert [text(ids) for ids in found] == [" ; ".join(shown.split(" ; ")[:n]) for n in steps]


def test_what_is_solved_is_left_alone_and_the_rest_is_guided_from_the_shortest_beginning_on():
    # groups 0, 4, 8: the first is solved by one episode; of the others one needs the second beginning
    plans, episodes = stages(OraclePrefix(share=0.5, checkpoints=2), solved=(1, 13, 23), episodes=12)
    assert [[p.group for p in stage[::4]] for stage in plans] == [[0, 4, 8], [12, 16], [20]]
    assert [t.ordinal for t in episodes] == list(range(24))
    assert [stage[0].role for stage in plans] == ["", GUIDED, GUIDED]
    guided, longer = plans[1], plans[2]
    assert [p.task for p in guided[::4]] == [p.task for p in plans[0][4::4]] and longer[0].task == guided[4].task
    begun = text(guided[4].prefix)
    assert text(longer[0].prefix).startswith(begun + " ;")
    assert solution(guided[4].task).startswith(begun)


def test_all_tasks_are_guided_where_none_is_played_without():
    plans, _ = stages(OraclePrefix(unguided=False, checkpoints=1), solved=tuple(range(8)))
    assert len(plans) == 1 and all(p.prefix and p.role == GUIDED for p in plans[0])


def test_the_search_ends_where_no_beginning_is_left():
    plans, _ = stages(OraclePrefix(share=0.1, checkpoints=4))
    assert len(plans) == 2  # one step is all that a tenth of eight can be


def test_a_mark_that_no_solution_has_is_said():
    with pytest.warns(LongstrideWarning, match="of the 2 tasks that are hard has '<step>' in it, so nothing is guided"):
        plans, _ = stages(OraclePrefix(mark="<step>"))
    assert len(plans) == 1


def test_tasks_without_known_solutions_are_refused():
    with pytest.raises(ConfigError, match="oracle_prefix shows the beginning.*EmbeddedWeb know none"):
        next(OraclePrefix().plan(make_planner(EmbeddedWeb(), chat=CHAT)))


def test_a_run_shows_beginnings_of_solutions_of_what_was_not_solved(tmp_path):
    changes = {"iterations": 1, "episodes_per_iteration": 16, "evaluation": {"tasks": 1}}
    RECIPE.replace(**changes).train(tmp_path / "run")
    episodes = trajectories_of(tmp_path / "run")
    solved = {t.task.id for t in episodes if not t.role and t.success}
    guided = [t for t in episodes if t.role == GUIDED]
    assert guided and not solved & {t.task.id for t in guided}
    for t in guided:
        (turn,) = t.turns
        assert t.prefix and turn.given == len(t.prefix) and turn.prompt_ids[-len(t.prefix) :] == t.prefix
