"""Best of n and forced longer thoughts: which plans are played, which episode counts, and that all tokens are
counted."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from helpers import make_task, make_trajectory, make_turn, played, word_chat

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Sampling
from longstride.models.chat import ChatFormat
from longstride.models.load import load_policy
from longstride.models.tiny import build_tokenizer
from longstride.papers.tti import recipe as tti
from longstride.rollout import FullHistory, LanguagePlayer, Plan, ScriptedPlayer
from longstride.run.evaluation import Result, evaluate_policy
from longstride.strategies import Direct, EvalEpisode, EvalPlan, Strategy
from longstride.strategies.best_of import BestOf, Choice, Likelihood, Majority, Verifier
from longstride.strategies.think_on import ThinkOn

CHAT = word_chat("Thought: see lamp yes Action: click lamp [3] answer red back")
PLAYER = LanguagePlayer(cast(Any, None), CHAT, FullHistory(), Sampling())
FAILED = StopReason.INFRA_FAILURE


def plan(ordinal: int = 0) -> Plan:
    return Plan(make_task(), ordinal, 10 + ordinal, Budget(turns=4), group=ordinal)


def ended(stages: EvalPlan, came: Sequence[Trajectory]) -> list[EvalEpisode]:
    with pytest.raises(StopIteration) as end:
        stages.send(list(came))
    return end.value.value


def sample(answer: str | None = None, success: bool = False, logprobs: Sequence[float] = (-1.0,), **fields: Any):
    turn = make_turn([1] * len(logprobs), behaviour_logprobs=list(logprobs))
    return make_trajectory([turn], float(success), answer=answer, **fields)


# best of n


def test_each_task_is_played_n_times_and_the_first_time_as_direct_does() -> None:
    stages = BestOf(attempts=3).run([plan(0), plan(1)], PLAYER)
    plans = next(stages)
    assert [p.group for p in plans] == [0, 0, 0, 1, 1, 1]
    assert plans[0] == plan(0) and plans[3] == plan(1)
    assert len({p.ordinal for p in plans}) == 6 and {p.seed for p in plans[:3]} == {10}
    assert next(BestOf(attempts=5).run([plan(1)], PLAYER))[:3] == plans[3:]


def test_the_tokens_of_all_samples_are_counted_whichever_counts() -> None:
    stages = BestOf(attempts=3).run([plan()], PLAYER)
    came = [played(p, range(n + 1), answer="a" if n else "b") for n, p in enumerate(next(stages))]
    (found,) = ended(stages, came)
    assert found.trajectory is came[1] and found.spent_tokens == 1 + 2 + 3
    assert Result({}, (0, 1), [found], 1).measures["spent_tokens"] == [6]


def test_a_failed_sample_does_not_count_unless_all_failed() -> None:
    strategy = BestOf(attempts=2, by=Verifier())
    for stops, chosen in (([FAILED, StopReason.ANSWERED], 1), ([FAILED, FAILED], 0)):
        stages = strategy.run([plan()], PLAYER)
        came = [played(p, stop=stop) for p, stop in zip(next(stages), stops, strict=True)]
        assert ended(stages, came)[0].trajectory is came[chosen]


def test_majority_counts_answers_and_takes_the_first_of_equals() -> None:
    red, blue, again, none = sample("Red"), sample("blue"), sample("red "), sample()
    assert Majority()([none, blue, red, again]) is red
    assert Majority()([none, blue, red]) is blue and Majority()([none, none]) is none


def test_a_verifier_takes_the_first_success_and_errs_as_often_as_it_says() -> None:
    wrong, right = sample(), sample(success=True)
    assert Verifier()([wrong, right]) is right and Verifier()([wrong, wrong]) is wrong


@pytest.mark.parametrize(("success", "share"), [(True, 0.7), (False, 0.2)])
def test_a_verifier_that_errs_accepts_as_often_as_it_says(success: bool, share: float) -> None:
    """Of 4,000 samples, each behind one that it rejects: three standard errors are .02."""
    judge, accepted = Verifier(false_positive=0.2, false_negative=0.3), sample(success=True)
    rejected = next(t for seed in range(99) if judge([t := sample(seed=seed), accepted]) is not t)
    found = [sample(success=success, seed=n) for n in range(4000)]
    assert sum(judge([rejected, t]) is t for t in found) / 4000 == pytest.approx(share, abs=0.03)


def test_likelihood_takes_the_highest_mean_and_an_attempt_without_a_token_only_where_there_is_no_other() -> None:
    short, long, silent = sample(logprobs=[-1.0]), sample(logprobs=[-0.5, -0.7]), make_trajectory([make_turn([])])
    assert Likelihood()([short, long]) is long and Likelihood()([silent, short]) is short
    assert Likelihood()([silent]) is silent


# longer thoughts


def turns(*texts: str, given: str = "", stop: StopReason = StopReason.MARK) -> dict[str, Any]:
    """Turns of these texts; what the last of them began with was not sampled."""
    *past, last = [CHAT.encode(text) for text in texts]
    begun = CHAT.encode(given)
    now = make_turn(last[len(begun) :], [0, *begun], given=len(begun), text=texts[-1])
    return {"turns": [*(make_turn([], [0, *ids], given=len(ids)) for ids in past), now], "stop": stop}


def stage(p: Plan, **fields: Any) -> Trajectory:
    return make_trajectory(fields.pop("turns"), task=p.task, ordinal=p.ordinal, seed=p.seed, **fields)


def said(p: Plan) -> tuple[list[str], str]:
    """What a plan plays again, and what its own first turn begins with."""
    return [CHAT.decode(turn.ids) for turn in p.history], CHAT.decode(p.prefix)


def test_what_ends_a_thought_is_replaced_by_a_word_and_then_the_policy_acts() -> None:
    """One further thought a turn: thought, thought, action and the next thought, which is made to go on in its turn."""
    stages = ThinkOn(times=1).run([plan()], PLAYER)
    (first,) = next(stages)
    assert (first.ordinal, first.prefix, first.history) == (0, (), ()) and first.marks == (
        tuple(CHAT.encode("Action:")),
    )
    (second,) = stages.send([stage(first, **turns("Thought: see Action:"))])
    assert said(second) == ([], "Thought: see Thought:")
    (third,) = stages.send([stage(second, **turns("Thought: see Thought: yes Action:", given="Thought: see Thought:"))])
    assert said(third) == ([], "Thought: see Thought: yes Action:")
    clicked = "Thought: see Thought: yes Action: click lamp [3]"
    (fourth,) = stages.send([stage(third, **turns(clicked, "Action:"))])
    assert said(fourth) == ([clicked], "Thought:")
    assert len({0, second.ordinal, third.ordinal, fourth.ordinal}) == 4
    last = stage(fourth, **turns(clicked, "Thought: answer red", given="Thought:", stop=StopReason.ANSWERED))
    (found,) = ended(stages, [last])
    assert found.trajectory is last and last.ordinal == 0
    # 3 and 2 tokens of thoughts, 1 of a thought's end (the turn before is counted when it was sampled), 2 of the answer
    assert found.spent_tokens == 3 + 2 + 1 + 2


def test_episodes_that_have_ended_are_not_played_again() -> None:
    stages = ThinkOn().run([plan(0), plan(1)], PLAYER)
    first, second = next(stages)
    over = stage(first, **turns("answer red", stop=StopReason.ANSWERED))
    (left,) = stages.send([over, stage(second, **turns("Action:"))])
    assert left.group == 1
    found = ended(stages, [stage(left, **turns("Thought: answer", given="Thought:", stop=FAILED))])
    assert [e.trajectory.ordinal for e in found] == [0, 1] and found[0].spent_tokens == 2


def test_a_thought_that_is_long_enough_gets_its_end_given_and_the_policy_acts() -> None:
    """The first turn's thought is cut at 2 tokens; that of the second turn ends by itself, one token before."""
    whole = Plan(make_task(), 0, 10, Budget(turns=4, turn_tokens=9))
    stages = ThinkOn(times=0, most=2).run([whole], PLAYER)
    (first,) = next(stages)
    assert (first.budget.turns, first.budget.turn_tokens) == (1, 2)
    came = stage(first, **turns("Thought: see", stop=StopReason.ENV_ENDED))  # what the world makes of it is not kept
    came.turns[0].finish = "length"
    (second,) = stages.send([came])
    assert said(second) == ([], "Thought: see Action:") and not second.marks
    assert (second.budget.turns, second.budget.turn_tokens) == (1, 9)
    clicked = "Thought: see Action: click lamp [3]"
    acted = turns(clicked, given="Thought: see Action:", stop=StopReason.TURNS)
    (third,) = stages.send([stage(second, **acted)])
    assert said(third) == ([clicked], "") and (third.budget.turns, third.budget.turn_tokens) == (2, 2)
    (fourth,) = stages.send([stage(third, **turns(clicked, "Thought: Action:"))])
    assert said(fourth) == ([clicked], "Thought: Action:")
    last = stage(
        fourth, **turns(clicked, "Thought: Action: answer red", given="Thought: Action:", stop=StopReason.ANSWERED)
    )
    (found,) = ended(stages, [last])
    assert found.trajectory is last and last.budget == whole.budget
    assert len({0, second.ordinal, third.ordinal, fourth.ordinal}) == 4
    # a cut thought of 2, `click lamp [3]`, a thought of 1 and its end, `answer red`; the given end is nobody's
    assert found.spent_tokens == 2 + 3 + 2 + 2


def test_a_thought_goes_on_until_it_is_long_enough() -> None:
    """Up to 4 tokens: `see` and its end come to 2 and a further word, and 2 are left; then a word would fill it up."""
    stages = ThinkOn(most=4).run([Plan(make_task(), 0, 10, Budget(turns=1, turn_tokens=9))], PLAYER)
    (first,) = next(stages)
    (second,) = stages.send([stage(first, **turns("Thought: see Action:"))])
    assert said(second) == ([], "Thought: see Thought:") and second.budget.turn_tokens == 4
    again = stage(second, **turns("Thought: see Thought: Action:", given="Thought: see Thought:"))
    (third,) = stages.send([again])
    assert said(third) == ([], "Thought: see Thought: Action:") and not third.marks


def test_an_episode_whose_tokens_ran_out_in_a_thought_is_over() -> None:
    stages = ThinkOn(times=0, most=4).run([Plan(make_task(), 0, 10, Budget(turns=1, tokens=2, turn_tokens=9))], PLAYER)
    came = stage(next(stages)[0], **turns("Thought: see", stop=StopReason.TOKENS))
    came.turns[0].finish = "length"
    assert ended(stages, [came])[0].trajectory is came


def test_of_a_reasoning_model_a_thought_is_closed_and_speech_is_not() -> None:
    """A thought and speech of 3 tokens: the first is followed behind its end, the second at once."""
    tokenizer = build_tokenizer(["see lamp red answer"])
    tokenizer.add_tokens(["<think>", "</think>"])
    chat = ChatFormat(tokenizer)
    player = LanguagePlayer(cast(Any, None), chat, FullHistory(), Sampling())
    plans = [Plan(make_task(), n, 10, Budget(turns=1, turn_tokens=9), group=n) for n in range(2)]
    stages = ThinkOn(word="see", most=3).run(plans, player)
    first = next(stages)
    assert first[0].marks == ((chat.thought_end,),)
    texts = ["<think> see lamp", "answer red lamp"]
    cut = [
        stage(p, turns=[make_turn(chat.encode(text), [0], finish="length", text=text)], stop=StopReason.ENV_ENDED)
        for p, text in zip(first, texts, strict=True)
    ]
    thought, speech = stages.send(cut)
    assert list(thought.prefix) == chat.encode(texts[0]) + chat.thought_close
    assert list(speech.prefix) == chat.encode(texts[1])


def test_a_length_that_says_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="times=0 changes no thought without most"):
        build(Strategy, {"type": "think_on", "times": 0})


@pytest.mark.parametrize("strategy", [ThinkOn(), ThinkOn(most=8), ThinkOn(times=1, most=8)])
def test_how_long_thoughts_are_made_survives_as_data(strategy: ThinkOn) -> None:
    assert build(Strategy, strategy.as_data()) == strategy


def test_a_turn_without_room_for_the_longest_thought_and_an_action_is_refused() -> None:
    with pytest.raises(ConfigError, match="thoughts have 64 tokens, and a turn may have 64, its action included"):
        next(ThinkOn(times=0, most=64).run([plan()], PLAYER))


def test_who_is_no_language_model_cannot_think_on() -> None:
    with pytest.raises(ConfigError, match="language model thinks: .* ScriptedPlayer gives text alone"):
        next(ThinkOn().run([plan()], ScriptedPlayer(lambda _: "back")))


def test_strategies_are_named_and_built_from_data() -> None:
    assert (
        build(Strategy, {"type": "best_of", "attempts": 2, "by": {"type": "verifier"}}).name == "best_of_2_by_verifier"
    )
    assert build(Strategy, {"type": "think_on", "times": 2}) == ThinkOn(times=2)
    named = (
        ThinkOn(), ThinkOn(word="Wait"), ThinkOn(times=0, most=8), ThinkOn(most=8),
        BestOf(by=Verifier(false_positive=0.1)),
    )  # fmt: skip
    assert [s.name for s in named] == [
        "think_on_1", "think_on_1_Wait", "think_on_0_to_8", "think_on_to_8", "best_of_4_by_verifier_0.1_0",
    ]  # fmt: skip
    assert {"majority", "verifier", "likelihood"} <= set(Choice.members())


def test_with_a_model_all_that_is_sampled_is_counted() -> None:
    """Two tasks of three turns at most: one sample of two is that of direct, and each thought that goes on is said."""
    recipe = tti.RECIPE.replace(test_budget={"turns": 3}, engine={"processes": 1})
    policy, tasks = load_policy("base"), recipe.tasks.held_out(2)
    direct, best, longer = (
        evaluate_policy(policy, recipe, tasks, s) for s in (Direct(), BestOf(attempts=2, by=Verifier()), ThinkOn())
    )
    one, two = (r.measures["spent_tokens"] for r in (direct, best))
    assert all(a and b and a < b for a, b in zip(one, two, strict=True))
    assert one == direct.measures["sampled_tokens"]
    for e in longer.episodes:
        assert all(turn.text.count("Thought:") >= 1 for turn in e.trajectory.turns if "Action:" in turn.text)
        assert e.spent_tokens > e.trajectory.sampled_tokens
