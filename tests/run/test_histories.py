"""Learning histories as samples: what is read, what is imitated, and that both are what a policy will meet."""

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import SMALL, rows_of, trajectories_of, word_chat
from one_page import WORDS, OnePage, OnePageTasks, make_recipe

from longstride.core.errors import ConfigError
from longstride.core.trajectory import by_trial
from longstride.envs.hidden import Bandits, Corridors, DarkRooms
from longstride.methods.base import Sample
from longstride.models.chat import ChatFormat
from longstride.models.load import Policy, save_policy
from longstride.models.tiny import build_model, build_tokenizer
from longstride.rollout.context import FullHistory, LatestObservation, TrialHistory
from longstride.run.histories import (
    FileHistories,
    History,
    HistoryFilter,
    LearningHistories,
    StoredHistories,
    history_samples,
)
from longstride.run.imitation import Imitation, SolverDemonstrations
from longstride.run.recipe import Recipe
from longstride.setups import trials
from longstride.starts.hidden_walks import HiddenWalks
from longstride.strategies.learners import UCB, AnyChoice, Optimal, QLearning, Thompson

TOKENIZER = build_tokenizer(["pull arms find the goal reach doors : ; ,", *HiddenWalks().words()])
CHAT = ChatFormat(TOKENIZER)


def recipe(histories: LearningHistories, **changes: Any) -> Recipe:
    return trials.recipe("own", histories, **({"tasks": Bandits(arms=3, pulls=4), "episodes": 3} | changes))


def samples(histories: LearningHistories, n: int = 2, **changes: Any) -> list[Sample]:
    own = recipe(histories, **changes)
    return histories.samples(own, CHAT, n * own.trial.episodes, random.Random(0))


def imitated(sample: Sample) -> list[tuple[str, str]]:
    """What was said and what is imitated, at every place that weighs something."""
    targets = sample.targets or sample.sampled_ids
    pairs = zip(sample.sampled_ids, targets, sample.advantages, strict=True)
    return [(str(TOKENIZER.decode([a])), str(TOKENIZER.decode([b]))) for a, b, w in pairs if w]


def test_a_history_is_one_sample_that_imitates_every_choice_and_no_observation() -> None:
    (one, _) = samples(LearningHistories(learner=Thompson()))
    said = imitated(one)
    assert len(said) == 3 * 4 * 2, "of each turn the choice and its end"
    assert all(was == wanted for was, wanted in said) and {a for a, _ in said} <= {*"abc", "<end>"}
    words = CHAT.decode([*one.prompt_ids, *one.sampled_ids]).split()
    assert words[:2] == ["pull", "arms"] and words.count("next") == 2
    weights = [w for w in one.advantages if w]
    assert sum(weights) == pytest.approx(len(one.sampled_ids)) and len(set(weights)) == 1


def test_a_history_reads_as_the_policy_s_own_trial(tmp_path: Path) -> None:
    """The prompts of a run's second and third episodes begin as histories do: same words, same places."""
    save_policy(
        Policy("own", build_model(SMALL.replace(context=256), len(TOKENIZER), 0), TOKENIZER, CHAT, 256), tmp_path / "m"
    )
    own = recipe(LearningHistories(learner=AnyChoice()), model=str(tmp_path / "m"), trials=240)
    own = own.replace(evaluation={"tasks": 2}, cloning={"learner": {"batch_samples": 4}})
    own.train(tmp_path / "run")
    played = by_trial(trajectories_of(tmp_path / "run"))
    whole = [t for t in played if all(turn.finish == "stop" for episode in t for turn in episode.turns)]
    assert len(whole) > len(played) / 2, "what can be said was learned"
    for trial in whole:
        (again,) = history_samples(History(trial), own, CHAT)
        last = trial[-1].turns[-1]
        assert again.prompt_ids + again.sampled_ids == last.prompt_ids + last.sampled_ids
    rows = rows_of(tmp_path / "run", "eval")
    assert {r["strategy"] for r in rows} == {"direct", "thompson", "ucb", "greedy_mean", "any_choice"}
    for row in rows:
        for k in (1, 2, 3):
            assert len(row["measures"][f"regret@{k}"]) == len(row["measures"][f"reward@{k}"]) == 2
    assert rows_of(tmp_path / "run", "cloning")[-1]["loss"] < rows_of(tmp_path / "run", "cloning")[0]["loss"]


def test_labels_are_asked_of_one_who_has_seen_the_same_and_what_was_done_is_read() -> None:
    histories = LearningHistories(learner=AnyChoice(), labels=Optimal())
    (one, _) = samples(histories, tasks=Corridors())
    said = imitated(one)
    assert any(was != wanted for was, wanted in said)
    assert one.targets is not None and len(one.targets) == len(one.sampled_ids)
    differ = [k for k, (a, b) in enumerate(zip(one.sampled_ids, one.targets, strict=True)) if a != b]
    assert differ and all(one.advantages[k] for k in differ), "what is read was said, and is no label"


def test_labels_of_another_length_make_a_sample_of_each_turn() -> None:
    class TwoWords(ChatFormat):
        """Says amber in two tokens."""

        def encode(self, text: str) -> list[int]:
            return super().encode(text.replace("amber", "amber wall"))

    histories = LearningHistories(learner=AnyChoice(), labels=Optimal())
    own = recipe(histories, tasks=Corridors(doors=8), episodes=4)
    found = histories.samples(own, TwoWords(TOKENIZER), 40, random.Random(0))
    turns = [s for s in found if s.targets is None]
    assert turns and any(s.targets for s in found)
    assert all(s.advantages == [1.0] * len(s.sampled_ids) for s in turns)


def test_a_context_that_is_made_anew_has_a_sample_of_each_turn() -> None:
    found = samples(LearningHistories(learner=Thompson()), n=1, context=TrialHistory(within=LatestObservation()))
    assert len(found) == 12 and len({len(s.prompt_ids) for s in found}) <= 3


def test_a_window_of_episodes_has_a_sample_of_each_turn_too() -> None:
    whole = samples(LearningHistories(learner=Thompson()), n=1)[0]
    found = samples(LearningHistories(learner=Thompson()), n=1, context=trials.CONTEXT.replace(episodes=1))
    assert len(found) == 12
    read = [*whole.prompt_ids, *whole.sampled_ids]
    assert [*found[3].prompt_ids, *found[3].sampled_ids] == read[: len(found[3].prompt_ids) + 2]
    assert len(found[-1].prompt_ids) < len(read) - 2


def test_episodes_are_left_out_and_the_first_is_kept() -> None:
    own = recipe(LearningHistories(learner=QLearning(), every=4), tasks=DarkRooms(size=3, turns=4), episodes=3)
    assert isinstance(own.cloning, object) and own.cloning
    every, each = (
        own.cloning.demonstrations.replace(every=n).played(own, CHAT, 6, random.Random(0))  # pyright: ignore[reportAttributeAccessIssue]
        for n in (4, 1)
    )
    assert [len(h.episodes) for h in every] == [3] * 6
    assert [h.returns[0] for h in every] == [h.returns[0] for h in each]
    assert sum(h.returns[-1] for h in every) > sum(h.returns[-1] for h in each)


class Broken(OnePage):
    """Hangs in the middle of a step, or has an error in the second environment; counts those that are open."""

    hangs, opened, closed = True, 0, 0

    def choices(self) -> list[str]:
        return ["a", "home"]

    async def reset(self, task: Any, seed: int) -> Any:
        Broken.opened += 1
        return await super().reset(task, seed)

    async def step(self, text: str) -> Any:
        await asyncio.sleep(60 if Broken.hangs else 0)
        if Broken.opened == 3:
            raise ZeroDivisionError("in the environment")
        return await super().step(text)

    async def close(self) -> None:
        Broken.closed += 1


class BrokenTasks(OnePageTasks):
    def env(self) -> Broken:
        return Broken()


def test_an_environment_that_hangs_is_left_out_and_each_is_closed() -> None:
    own = make_recipe(Path("none"), tasks=BrokenTasks(), pool={"step_deadline": 0.01}, trial={"episodes": 1})
    chat, rng = word_chat(WORDS), random.Random(0)
    Broken.hangs, Broken.opened, Broken.closed = True, 0, 0
    with pytest.raises(ConfigError, match="of 3 histories the environment let none come to its end"):
        LearningHistories(learner=UCB()).samples(own, chat, 3, rng)
    assert (Broken.opened, Broken.closed) == (6, 6), "each was tried twice"
    assert SolverDemonstrations().samples(own, chat, 3, rng) == [] and (Broken.opened, Broken.closed) == (12, 12)
    Broken.hangs, Broken.opened, Broken.closed = False, 0, 0
    with pytest.raises(ZeroDivisionError):
        LearningHistories(learner=UCB()).samples(own, chat, 3, rng)
    assert Broken.closed == Broken.opened == 3


class Best(HistoryFilter):
    """The history that earned most, as often as there are histories."""

    def __call__(self, histories: Any, rng: random.Random) -> list[History]:
        return [max(histories, key=lambda h: sum(h.returns))] * len(histories)


def test_a_filter_says_which_histories_are_imitated() -> None:
    found = samples(LearningHistories(learner=Thompson(), filter=Best()), n=5)
    assert len(found) == 5 and len({tuple(s.sampled_ids) for s in found}) == 1


def test_histories_depend_on_their_stream_alone() -> None:
    a, b = (samples(LearningHistories(learner=Thompson())) for _ in range(2))
    assert a == b


def test_histories_of_one_task_are_a_pair() -> None:
    found = samples(LearningHistories(learner=Thompson(), windows=2), n=6, tasks=Corridors())
    assert [s.pair for s in found] == [0, 0, 1, 1, 2, 2]
    assert len({tuple(s.prompt_ids) for s in found[:2]}) == 1 and found[0].sampled_ids != found[1].sampled_ids
    assert {s.pair for s in samples(LearningHistories(learner=Thompson()))} == {-1}
    with pytest.raises(ConfigError, match="compared as a whole"):
        samples(LearningHistories(windows=2), context=TrialHistory(within=LatestObservation()))


def test_files_of_others_are_histories_of_a_task_each(tmp_path: Path) -> None:
    for name in ("one", "two", "short"):
        rows = [
            [("user", "find the goal"), ("assistant", "red"), ("user", str(k)), ("assistant", "blue")]
            for k in range(2 if name == "short" else 4)
        ]
        said = [{"messages": [{"role": role, "content": text} for role, text in row]} for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, said)))
    files = FileHistories(path=tmp_path, windows=2)
    own = recipe(LearningHistories(), episodes=2, context={"rewards": False})
    found = files.samples(own, CHAT, 99, random.Random(0))
    read = [CHAT.decode([*s.prompt_ids, *s.sampled_ids]) for s in found]
    assert [s.pair for s in found] == [0, 0, 1, 1]
    assert [[n for n in "0123" if f" {n} blue" in text] for text in read] == 2 * [["0", "2"], ["1", "3"]]
    assert {word for s in found for word, _ in imitated(s)} == {"red", "blue", "<end>"}
    with pytest.raises(ConfigError, match="of no task there are 10 episodes"):
        files.samples(own.replace(trial={"episodes": 5}, episodes_per_iteration=40), CHAT, 4, random.Random(0))


@pytest.mark.parametrize("of", ["trials", "training"])
def test_a_run_that_was_stored_is_a_source_of_histories(of: Any, tmp_path: Path) -> None:
    save_policy(
        Policy("own", build_model(SMALL.replace(context=256), len(TOKENIZER), 0), TOKENIZER, CHAT, 256), tmp_path / "m"
    )
    first = recipe(LearningHistories(learner=AnyChoice()), model=str(tmp_path / "m"), trials=24)
    first = first.replace(iterations=2, evaluation={"tasks": 1, "strategies": first.evaluation.strategies[:1]})
    first.train(tmp_path / "run")
    stored = StoredHistories(run=tmp_path / "run", of=of)
    found = stored.samples(first, CHAT, 6, random.Random(0))
    assert found == stored.samples(first, CHAT, 6, random.Random(0))
    read = [CHAT.decode([*s.prompt_ids, *s.sampled_ids]).split() for s in found]
    assert all(words[:2] == ["pull", "arms"] for words in read) and len({s.episode for s in found}) == 2
    with pytest.raises(ConfigError, match="no 99 episodes of one of its"):
        stored.samples(first.replace(trial={"episodes": 99}, episodes_per_iteration=99 * 8), CHAT, 6, random.Random(0))


def test_imitation_beside_a_run_keeps_what_observations_weigh(tmp_path: Path) -> None:
    """The weight of an imitation multiplies those of its samples."""
    save_policy(
        Policy("own", build_model(SMALL.replace(context=256), len(TOKENIZER), 0), TOKENIZER, CHAT, 256), tmp_path / "m"
    )
    histories = LearningHistories(learner=Thompson())
    own = recipe(histories, model=str(tmp_path / "m"), cloning=None, evaluation={"tasks": 1, "strategies": ()})
    own = own.replace(imitation=Imitation(demonstrations=histories, episodes=24), learner={"epochs": 1}, iterations=2)
    own.replace(evaluation={"strategies": trials.recipe("x", histories).evaluation.strategies[:1]}).train(
        tmp_path / "r"
    )
    first, second = (row["imitation_loss"] for row in rows_of(tmp_path / "r", "train"))
    assert second < first < 12


def test_the_file_of_a_run_names_them_and_is_read_by_whoever_knows_recipes_alone() -> None:
    data = {"type": "learning_histories", "learner": {"type": "ucb"}, "labels": {"type": "optimal"}}
    read = "from longstride.run.recipe import *; from longstride.run.imitation import Demonstrations as D"
    subprocess.run(
        [sys.executable, "-c", f"{read}; from longstride.core.component import build; build(D, {data!r})"], check=True
    )


def test_learners_do_not_call_tools() -> None:
    with pytest.raises(ConfigError, match="actions=text"):
        samples(LearningHistories(), actions="explained")


def test_how_rewards_are_said_is_a_setting() -> None:
    assert trials.CONTEXT.parts is not None and isinstance(trials.CONTEXT.within, FullHistory)
    with pytest.raises(ConfigError, match="may name"):
        trials.CONTEXT.replace(turn="{earned}")
