"""Episodes: how they end and are scored, what they begin with, who speaks in them, and which tokens were sampled."""

from types import SimpleNamespace
from typing import Any

import pytest
from helpers import content, make_turn
from line_world import CHAT, END, RED, Line, LineEngine, ids, language, plan, play, script, walk

from longstride.core.budget import StopReason
from longstride.core.content import Media, text_in, with_lines
from longstride.core.errors import EnvFailure, JudgeFailure
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Usage, usages
from longstride.engines.base import Completion
from longstride.envs.base import HELD_ANSWER, Step
from longstride.methods import GroupRelative
from longstride.methods.advantages import GAE
from longstride.models.chat import ChatConfig, ChatFormat
from longstride.rewards import Reward, Verdict
from longstride.rollout import FullHistory, PastTurn, Plan, ScriptedPlayer, summarise
from longstride.rollout.companions import CompanionPlayer
from longstride.rollout.episode import Episode, Generation


@pytest.fixture(autouse=True)
def _no_environments():
    Line.opened.clear()


class Noted(Reward):
    """Half of a success for every episode; keeps why each of them stopped, and the state that it was given."""

    asks: bool = True
    seen: list[tuple[StopReason, dict[str, Any]]] = []

    def needs_state(self, trajectory: Trajectory) -> bool:
        return self.asks

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        self.seen.append((trajectory.stop, state))
        return Verdict(0.5, False, {"place": 0.25, "answer": 0.25}, {"note": "half"})


class TestEnding:
    """The table of `rollout/episode.py`."""

    def test_a_right_answer_is_judged(self):
        t = play(script("go north", "answer red"), plan())[0]
        assert (t.stop, t.answer, t.reward, t.success, t.length) == (StopReason.ANSWERED, "red", 1.0, True, 2)
        assert t.evidence["matched"]

    def test_an_answer_in_the_last_turn_is_an_answer_and_not_the_end_of_the_budget(self):
        assert play(script("go north", "answer red"), plan(turns=2))[0].stop is StopReason.ANSWERED

    @pytest.mark.parametrize("evaluator", [RED, {"type": "state", "expected": {"at": 2}}])
    def test_an_episode_that_the_budget_cut_earns_0_without_asking_for_the_state(self, evaluator):
        t = play(script("go north"), plan(turns=2, seed=0, evaluator=evaluator))[0]
        assert (t.stop, t.reward, t.answer, t.evidence) == (StopReason.TURNS, 0.0, None, {})
        assert not Line.opened[0].state_asked

    def test_a_state_is_judged_when_the_episode_was_answered(self):
        state = {"type": "state", "expected": {"at": 2}}
        t = play(script("go north", "go north", "answer done"), plan(seed=0, evaluator=state))[0]
        assert (t.stop, t.reward) == (StopReason.ANSWERED, 1.0)

    @pytest.mark.parametrize(
        ("last", "stop"), [("terminated", StopReason.ENV_ENDED), ("truncated", StopReason.ENV_TRUNCATED)]
    )
    def test_an_end_by_the_environment_differs_from_a_cut_by_it(self, last, stop):
        how: dict[str, Any] = {last: True}
        t = play(script("go north"), plan(task=walk(ends_at=2)), env=lambda: Line(**how))[0]
        assert (t.stop, t.length, t.reward) == (stop, 2, 0.0)
        assert t.stop.terminated == (last == "terminated") and t.stop.truncated == (last == "truncated")

    def test_an_answer_that_cannot_be_parsed_where_one_was_needed_terminates(self):
        t = play(script("nonsense"), plan(task=walk(must_answer=True)))[0]
        assert (t.stop, t.turns[0].action, t.turns[0].finish) == (StopReason.PARSE_FAILURE, None, "stop")
        assert t.stop.terminated

    def test_an_answer_that_was_cut_where_one_was_needed_is_truncated_by_its_tokens(self):
        t = play(language(), plan(task=walk(must_answer=True), budget={"turn_tokens": 1}))[0]
        assert (t.stop, t.turns[0].action, t.turns[0].finish) == (StopReason.TOKENS, None, "length")
        assert t.stop.truncated

    def test_another_action_where_an_answer_was_needed_is_an_end_by_the_environment(self):
        assert play(script("go north"), plan(task=walk(must_answer=True)))[0].stop is StopReason.ENV_ENDED

    def test_a_cut_turn_of_a_longer_episode_is_said_to_be_cut_and_the_episode_goes_on(self):
        t = play(language(), plan(turns=4, budget={"turn_tokens": 1}))[0]
        assert t.stop is StopReason.TURNS and t.length == 4
        assert [(turn.finish, turn.action) for turn in t.turns] == [("length", None)] * 4
        assert summarise([t])["cut"] == 1.0

    def test_rewards_of_the_environment_are_the_reward_without_an_evaluator(self):
        task = Task(id="t", source="line", goal="g", start="", meta={"ends_at": 1})
        t = play(script("go north"), plan(task=task), env=lambda: Line(terminated=True, reward=0.25))[0]
        assert (t.reward, t.turns[0].reward, t.success) == (0.25, 0.25, True)

    def test_the_tasks_own_horizon_is_a_cap_and_no_extension(self):
        def length(horizon):
            task = Task(id="t", source="line", goal="g", start="", evaluator=RED, horizon=horizon)
            t = play(script("go north"), plan(task=task, turns=5))[0]
            return t.length, t.budget.turns

        assert length(3) == (3, 3)
        assert length(9) == (5, 5)

    def test_the_token_budget_stops_the_episode_and_caps_the_last_turn(self):
        engine = LineEngine()
        t = play(language(engine), plan(4, turns=99, budget={"tokens": 5, "turn_tokens": 2}))[0]
        assert t.stop is StopReason.TOKENS
        assert [len(turn.sampled_ids) for turn in t.turns] == [r.max_new for r in engine.requests] == [2, 2, 1]

    def test_tool_calls_are_turns_that_do_not_answer(self):
        assert play(script("go north"), plan(budget={"tool_calls": 2}))[0].stop is StopReason.TOOL_CALLS
        assert play(script("go north", "answer red"), plan(budget={"tool_calls": 2}))[0].stop is StopReason.ANSWERED

    def test_the_wall_clock_stops_the_episode(self, monkeypatch):
        now = 0.0

        async def slow(task, turn):
            nonlocal now
            now += 1.0

        monkeypatch.setattr("longstride.rollout.episode.time", SimpleNamespace(monotonic=lambda: now))
        t = play(script("go north"), plan(turns=99, budget={"seconds": 3.5}), env=lambda: Line(slow))[0]
        assert (t.stop, t.length, t.seconds) == (StopReason.SECONDS, 3, 4.0)

    def test_a_full_context_ends_the_episode_without_a_step(self):
        t = play(language(LineEngine(finish="context")), plan())[0]
        assert (t.stop, t.length, t.reward) == (StopReason.CONTEXT, 0, 0.0)
        assert Line.opened[0].turn == 0

    def test_a_turn_has_what_was_seen_and_whether_it_changed_anything(self):
        t = play(script("nonsense", "go north"), plan(turns=2, seed=0))[0]
        assert [(x.observation, x.url, x.action, x.changed) for x in t.turns] == [
            ("at 0", "/start", None, False),
            ("at 0", "/0", "go north", True),
        ]

    def test_an_error_line_is_no_change(self):
        class Explained(Line):
            async def step(self, text):
                step = await super().step(text)
                if step.action is None:
                    step.error = "say where to go"
                    step.observation.content = with_lines(step.observation.content, f"error: {step.error}")
                return step

        t = play(script("nonsense", "nonsense", "go north"), plan(turns=3), env=Explained)[0]
        assert [x.changed for x in t.turns] == [False, False, True]
        assert text_in(t.turns[1].observation).endswith("\nerror: say where to go")


class TestScoring:
    @pytest.mark.parametrize(
        ("player", "fields", "last", "stop"),
        [
            (script("answer red"), {}, {}, StopReason.ANSWERED),
            (script("go north"), {"task": walk(ends_at=1)}, {"terminated": True}, StopReason.ENV_ENDED),
            (script("go north"), {"task": walk(ends_at=1)}, {"truncated": True}, StopReason.ENV_TRUNCATED),
            (script("nonsense"), {"task": walk(must_answer=True)}, {}, StopReason.PARSE_FAILURE),
            (script("go north"), {"turns": 1}, {}, StopReason.TURNS),
            (script("go north"), {"budget": {"tool_calls": 1}}, {}, StopReason.TOOL_CALLS),
            (script("go north"), {"budget": {"seconds": 1e-9}}, {}, StopReason.SECONDS),
            (language(), {"budget": {"tokens": 1}}, {}, StopReason.TOKENS),
            (language(), {"marks": tuple((k,) for k in range(200))}, {}, StopReason.MARK),
            (language(LineEngine(finish="context")), {}, {}, StopReason.CONTEXT),
        ],
    )
    def test_an_episode_is_scored_whatever_ended_it(self, player, fields, last, stop):
        reward = Noted(seen=[])
        t = play(player, plan(seed=0, **fields), env=lambda: Line(**last), reward=reward)[0]
        assert [seen for seen, _ in reward.seen] == [t.stop] == [stop]
        assert (t.reward, t.success, t.terms) == (0.5, False, {"place": 0.25, "answer": 0.25})
        assert t.evidence == {"note": "half"} and "at" in reward.seen[0][1]

    def test_what_the_end_of_the_context_cut_is_counted_and_kept(self):
        class Cut(LineEngine):
            def _complete(self, request):
                return Completion([3, 3], [-0.5] * 2, [7] * 2, "context")

        t = play(language(Cut()), plan(seed=0))[0]
        assert (t.length, t.stop, t.sampled_tokens) == (0, StopReason.CONTEXT, 2)
        assert Trajectory.from_json(t.to_json()).sampled_tokens == t.sampled_tokens == summarise([t])["sampled_tokens"]

    def test_what_servers_were_paid_for_tries_that_failed_is_counted_too(self):
        judged = list[int]()

        class Moody(Noted):
            def __call__(self, trajectory, state, seed):
                judged.append(1)
                trajectory.judge_usage = Usage(1, read=50, sampled=7)
                if len(judged) == 1:
                    raise JudgeFailure("no verdict")
                return super().__call__(trajectory, state, seed)

        player = ScriptedPlayer(
            lambda e: Generation([], [], [], [], "answer red", usage=Usage(1, read=10, sampled=100))
        )
        t = play(player, plan(), reward=Moody(), retries=1)[0]
        assert usages([t]) == {"usage": Usage(2, read=20, sampled=200), "judge_usage": Usage(2, read=100, sampled=14)}
        assert (t.sampled_tokens, usages([Trajectory.from_json(t.to_json())])) == (100, usages([t]))

    def test_an_episode_that_failed_is_not_scored(self):
        async def dead(task, turn):
            raise EnvFailure("gone")

        reward = Noted(seen=[])
        t = play(script("answer red"), plan(), env=lambda: Line(dead), reward=reward)[0]
        assert (t.stop, t.reward, t.success, t.terms, reward.seen) == (StopReason.INFRA_FAILURE, 0.0, False, {}, [])

    def test_a_reward_that_does_not_need_the_state_gets_none(self):
        reward = Noted(asks=False, seen=[])
        play(script("answer red"), plan(), reward=reward)
        assert reward.seen == [(StopReason.ANSWERED, {})] and not Line.opened[0].state_asked

    def test_the_verdict_is_added_to_what_the_environment_gave_turn_by_turn(self):
        t = play(
            script("go north"),
            plan(task=walk(ends_at=1)),
            env=lambda: Line(terminated=True, reward=1.0),
            reward=Noted(),
        )[0]
        assert (t.reward, t.success) == (1.5, False)

    def test_a_summary_has_means_of_the_reward_and_of_its_terms_beside_the_share_of_successes(self):
        episodes = play(script("go north"), plan(0, turns=1), plan(1, turns=1), reward=Noted())
        episodes[1].terms = {"place": 0.75}
        found = summarise(episodes)
        assert (found["success"], found["reward"], found["length_success"]) == (0.0, 0.5, 0.0)
        assert found["terms"] == {"answer": 0.25, "place": 0.5}

    def test_an_answer_that_the_environment_held_counts_where_a_limit_cuts_the_episode(self):
        class Holds(Line):
            async def step(self, text):
                step = await super().step(text)
                held = {} if self.turn > 1 else {HELD_ANSWER: "red"}
                return Step(step.observation, action=step.action, info=held)

        t = play(script("go north"), plan(turns=3), env=Holds)[0]
        assert (t.stop, t.answer, t.reward) == (StopReason.TURNS, "red", 1.0)


class TestSampledTokens:
    def test_every_sampled_token_has_its_log_probability_and_version_and_prompts_are_what_was_asked(self):
        engine = LineEngine()
        trajectories = play(language(engine), *(plan(i, turns=4) for i in range(6)))
        turns = [turn for t in trajectories for turn in t.turns]
        for turn in turns:
            assert len(turn.sampled_ids) == len(turn.behaviour_logprobs) == len(turn.versions)
            assert set(turn.versions) == {7} and turn.given == 0
        asked = sorted(r.prompt for r in engine.requests)
        assert sorted(turn.prompt_ids for turn in turns) == asked

    def test_a_group_shares_the_environment_and_not_the_samples(self):
        engine = LineEngine()
        play(language(engine), plan(0, turns=1, seed=4), plan(1, turns=1, seed=4))
        assert {env.env_seed for env in Line.opened} == {4}
        assert engine.requests[0].prompt == engine.requests[1].prompt
        assert engine.requests[0].seed != engine.requests[1].seed

    def test_every_turn_has_a_seed_of_its_own(self):
        engine = LineEngine()
        play(language(engine), *(plan(i, turns=6) for i in range(4)))
        seeds = [r.seed for r in engine.requests]
        assert len(set(seeds)) == len(seeds)

    def test_a_scripted_player_samples_nothing(self):
        assert play(script("go north"), plan())[0].sampled_tokens == 0


def past(t: Trajectory, turns: int) -> tuple[PastTurn, ...]:
    return tuple(PastTurn(turn.text, tuple(turn.ids)) for turn in t.turns[:turns])


class TestHistory:
    """An episode that takes over the first turns of an earlier one."""

    def earlier(self) -> tuple[Plan, Trajectory]:
        p = plan(3, turns=4)
        return p, play(language(context=FullHistory()), p)[0]

    def later(self, **fields: Any) -> tuple[Trajectory, Trajectory, LineEngine]:
        p, earlier = self.earlier()
        assert earlier.length == 4
        engine = LineEngine()
        again = plan(9, seed=p.seed, task=p.task, **({"turns": 4, "history": past(earlier, 2)} | fields))
        return earlier, play(language(engine, FullHistory()), again)[0], engine

    def test_its_turns_are_said_again_in_a_fresh_environment_and_nothing_of_them_is_sampled(self):
        earlier, t, engine = self.later()
        assert t.history == 2 and Line.opened[1].turn == t.length
        assert [turn.observation for turn in t.turns[:3]] == [turn.observation for turn in earlier.turns[:3]]
        assert [turn.text for turn in t.turns[:2]] == [turn.text for turn in earlier.turns[:2]]
        assert [turn.ids for turn in t.turns[:2]] == [turn.sampled_ids for turn in earlier.turns[:2]]
        assert [turn.sampled_ids for turn in t.turns[:2]] == [[], []]
        assert len(engine.requests) == t.length - 2

    def test_it_is_read_before_the_turns_of_its_own(self):
        earlier, t, engine = self.later()
        assert engine.requests[0].prompt == earlier.turns[2].prompt_ids == t.turns[2].prompt_ids

    def test_it_is_never_trained(self):
        _, t, _ = self.later()
        t.reward = 1.0
        for credit in (GroupRelative(baseline="none", normalize="none"), GAE()):
            samples = credit([t])
            assert [s.turn for s in samples] == list(range(2, t.length))

    @pytest.mark.parametrize("budget", [{"turns": 2}, {"budget": {"tool_calls": 2}}, {"budget": {"tokens": 4}}])
    def test_it_counts_in_the_budget(self, budget):
        _, t, engine = self.later(**budget)
        assert (t.length, engine.requests) == (2, []) and t.stop.truncated

    def test_the_tokens_that_are_left_bound_the_first_turn_of_its_own(self):
        earlier, _, engine = self.later(budget={"tokens": 8})
        assert engine.requests[0].max_new == 8 - sum(len(turn.ids) for turn in earlier.turns[:2])

    def test_an_answer_in_it_ends_the_episode(self):
        _, t, engine = self.later(history=(PastTurn("answer red", (END,)), PastTurn("go north", (END,))))
        assert (t.stop, t.length, t.reward, engine.requests) == (StopReason.ANSWERED, 1, 1.0, [])

    def test_a_prefix_begins_the_first_turn_after_it(self):
        _, t, engine = self.later(prefix=tuple(ids("go")))
        assert t.prefix == ids("go") == t.turns[2].given_ids
        assert engine.requests[0].prompt[-1:] == ids("go") and engine.requests[1].prompt[-1:] != ids("go")
        assert t.turns[2].text.startswith("go ")

    def test_it_stands_on_disk(self):
        _, t, _ = self.later()
        assert content(Trajectory.from_json(t.to_json())) == content(t)


class TestMarks:
    """An episode that pauses where a mark is sampled."""

    def test_it_stops_at_the_mark_without_a_step(self):
        (go,) = ids("go")
        t = play(language(), plan(3, marks=((go,),)))[0]
        assert (t.stop, t.stop.truncated) == (StopReason.MARK, True)
        assert t.turns[-1].sampled_ids == [go] and t.turns[-1].finish == "mark"
        assert not t.turns[-1].changed and Line.opened[0].turn == t.length - 1

    def test_a_mark_may_be_several_tokens(self):
        mark = tuple(ids("go north"))
        stopped = [
            t for t in play(language(), *(plan(k, marks=(mark,)) for k in range(8))) if t.stop is StopReason.MARK
        ]
        assert stopped and all(t.turns[-1].sampled_ids[-2:] == list(mark) for t in stopped)

    def test_an_end_token_is_no_mark(self):
        stops = {t.stop for t in play(language(), *(plan(k, marks=((END + 1000,),)) for k in range(8)))}
        assert StopReason.MARK not in stops

    def test_what_was_paused_goes_on_in_an_episode_that_begins_with_it(self):
        (go,) = ids("go")
        p = plan(3, marks=((go,),))
        paused = play(language(), p)[0]
        assert paused.length == 1
        t = play(language(), plan(4, seed=p.seed, task=p.task, prefix=tuple(paused.turns[-1].ids)))[0]
        assert t.prefix == [go] and t.turns[0].prompt_ids == paused.turns[0].prompt_ids + [go]


class TestCompanions:
    """Episodes in which another model speaks, too."""

    def episodes(self) -> tuple[list[Trajectory], LineEngine, LineEngine]:
        mine, theirs = LineEngine(), LineEngine()
        theirs.version = 0
        player = CompanionPlayer(language(mine, FullHistory()), {"guide": language(theirs, FullHistory())})
        task = walk(speakers=["", "guide"])
        return play(player, *(plan(k, turns=6, task=task) for k in range(6))), mine, theirs

    def test_each_speaker_has_its_own_turns(self):
        trajectories, mine, theirs = self.episodes()
        turns = [turn for t in trajectories for turn in t.turns]
        assert {turn.speaker for turn in turns} == {"", "guide"}
        assert all(turn.speaker == ("", "guide")[k % 2] for t in trajectories for k, turn in enumerate(t.turns))
        assert len(mine.requests) == sum(not turn.speaker for turn in turns)
        assert len(theirs.requests) == sum(turn.speaker == "guide" for turn in turns)

    def test_tokens_of_another_model_are_given_and_never_trained(self):
        trajectories, _, _ = self.episodes()
        for t in trajectories:
            for turn in t.turns:
                assert bool(turn.sampled_ids) == (turn.speaker == "") and bool(turn.given) == (turn.speaker == "guide")
                assert turn.ids and turn.text == CHAT.decode(turn.ids)
            samples = GroupRelative(baseline="none", normalize="none")([t])
            assert [s.turn for s in samples] == list(range(0, t.length, 2))

    def test_what_another_model_said_stands_in_later_prompts(self):
        t = next(t for t in self.episodes()[0] if t.length >= 3)
        before = t.turns[0].prompt_ids + t.turns[0].ids
        assert t.turns[1].prompt_ids[: len(before)] == before
        assert t.turns[2].prompt_ids[: len(t.turns[1].prompt_ids)] == t.turns[1].prompt_ids

    def test_all_players_forget_an_episode_that_is_over(self):
        trajectories, mine, theirs = self.episodes()
        assert len(set(mine.released)) == len(set(theirs.released)) == len(trajectories)

    def test_they_cost_no_tokens_of_the_budget_when_they_are_played_again_either(self):
        first, own = next(t for t in self.episodes()[0] if t.length > 3), [1, 4]
        for again in (first, Trajectory.from_json(first.to_json())):
            for k in own:  # what went on from there is gone on from once more
                engine = LineEngine()
                player = CompanionPlayer(language(engine, FullHistory()), {"guide": language(None, FullHistory())})
                on = plan(
                    k, 6, first.seed, task=first.task, budget={"tokens": 30}, history=PastTurn.of(again.turns[:2])
                )
                again = play(player, on)[0]
                assert engine.requests[0].max_new == 30 - len(first.turns[0].sampled_ids)


def test_an_episode_that_goes_on_from_what_a_server_said_has_spent_what_it_sampled_there():
    player = ScriptedPlayer(lambda _: Generation([], [], [], [], "go north", usage=Usage(1, sampled=5)))
    first = play(player, plan(turns=9, budget={"tokens": 21}))[0]
    assert (first.length, first.stop) == (5, StopReason.TOKENS)
    for ordinal in (1, 2):
        again = PastTurn.of(first.turns[:3])
        first = play(player, plan(ordinal, turns=9, budget={"tokens": 21}, history=again))[0]
        assert (first.length, first.stop) == (5, StopReason.TOKENS)


def test_ids_of_a_turn_are_what_was_given_and_what_was_sampled():
    turn = make_turn([3, 4], [1, 2], given=1)
    assert (turn.given_ids, turn.ids) == ([2], [2, 3, 4])


def test_an_episode_of_a_world_that_makes_up_its_goal_has_that_goal():
    class Names(Line):
        async def reset(self, task, seed):
            first = await super().reset(task, seed)
            first.goal = "find it"
            return first

    t = play(script("answer red"), plan(), env=Names)[0]
    assert (t.task.goal, t.task.id) == ("find it", "t0")
    assert Episode(plan(), Names()).goal == "g"


class Pictured(Line):
    """Shows where it stands as a picture."""

    def _seen(self, url):
        seen = super()._seen(url)
        seen.content = ("at", Media(f"picture {self.at}".encode()), "over")
        return seen


class TestMedia:
    def test_a_prompt_has_them_in_their_places_with_their_bytes_beside_it(self):
        engine = LineEngine()
        (t,) = play(language(engine, FullHistory()), plan(seed=1, turns=3), env=Pictured)
        pictures = [Media(f"picture {k}".encode()) for k in range(-9, 9)]
        for turn, request in zip(t.turns, engine.requests, strict=True):
            assert turn.media == request.media and turn.prompt_ids == request.prompt
            assert [i for i in turn.prompt_ids if i < 0] == [
                chunk.placeholder for u in t.turns for chunk in u.observation if isinstance(chunk, Media)
            ][: turn.prompt_ids.count(ids("over")[0])]
            assert set(turn.media) <= set(pictures) and turn.left_out == 0

    def test_a_turn_after_which_the_picture_is_another_changed_something(self):
        (t,) = play(script("go north", "nonsense", "go north"), plan(turns=3), env=Pictured)
        assert [turn.changed for turn in t.turns] == [True, False, True]

    def test_an_error_line_behind_a_picture_is_no_change(self):
        class Explained(Pictured):
            async def step(self, text):
                step = await super().step(text)
                if step.action is None:
                    step.error = "say where to go"
                    step.observation.content = with_lines(step.observation.content, f"error: {step.error}")
                return step

        (t,) = play(script("nonsense", "nonsense", "go north"), plan(turns=3), env=Explained)
        assert [turn.changed for turn in t.turns] == [False, False, True]

    def test_what_a_prompt_leaves_out_is_counted(self):
        player = language()
        player.chat = ChatFormat(CHAT._tokenizer, ChatConfig(media="leave_out"))
        played = play(player, plan(0, turns=2), plan(1, turns=1), env=Pictured)
        assert all(turn.media == () and turn.left_out == 1 for t in played for turn in t.turns)
        assert summarise(played)["left_out"] == sum(t.length for t in played)
        assert "left_out" not in summarise(play(language(), plan(turns=2), env=Pictured))
