"""Scorers: what they ask, how replies become scores, and that trouble is no score."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from guides import follow
from helpers import make_task, make_trajectory, make_turn, tiny_policy, word_chat
from judge_server import Server, response
from judge_server import reply as said
from judge_server import said as counted

from longstride.cli.main import main
from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, JudgeFailure, ModelError
from longstride.core.task import Task, split_of
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Completion, Outcome, Request, Sampling
from longstride.engines.local import LocalEngine
from longstride.envs.judgements import Judgements
from longstride.models.load import save_policy
from longstride.report.reliability import draw_reliability
from longstride.rewards import Reward
from longstride.rewards.probe import LinearHead, Probe, TaughtProbe, hidden_states
from longstride.rewards.scorers import (
    Answered,
    Generative,
    Judge,
    Pairwise,
    Question,
    Reply,
    RunJudge,
    Score,
    Scorer,
    score,
)
from longstride.rollout import FullHistory, LanguagePlayer, ScriptedPlayer
from longstride.stats.agreement import calibration_error, kappa, pair_accuracy, reliability
from longstride.strategies import Strategy
from longstride.strategies.best_of import BestOf
from longstride.strategies.scored import AskedPolicy, Scored

FAILED = JudgeFailure("nobody there")
STRENGTH = {"bad": 0.0, "fair": 1.0, "good": 2.0, "best": 3.0}


def asked(reply: Callable[[Question], Answered], log: list[Sequence[Question]] | None = None):
    def ask(questions: Sequence[Question]) -> list[Answered]:
        if log is not None:
            log.append(questions)
        return [reply(q) for q in questions]

    return ask


def values(scores: Sequence[Score]) -> list[float | None]:
    return [s.value for s in scores]


# generative


def test_the_votes_of_an_answer_are_averaged_and_their_tokens_are_counted() -> None:
    log: list[Sequence[Question]] = []
    ask = asked(lambda q: Reply((0.2 * (1 + q.vote), 0.0), tokens=3, read=10), log)
    (found,) = score(Generative(votes=3), [("add", ["4", "5"])], ask)
    assert values(found) == pytest.approx([0.4, 0.4]) and [s[1:] for s in found] == [(9, 30)] * 2
    assert [(q.about["answer"], q.vote) for q in log[0]] == [(a, v) for a in "45" for v in range(3)]
    assert log[0][0].options == ("yes", "no") and log[0][0].reasons == 256


def test_votes_that_failed_are_left_out_and_an_answer_without_a_vote_failed() -> None:
    replies = {("4", 0): Reply((0.9, 0.1), 1, 1), ("4", 1): FAILED}
    (found,) = score(
        Generative(votes=2), [("add", ["4", "5"])], asked(lambda q: replies.get((q.about["answer"], q.vote), FAILED))
    )
    assert found == [Score(0.9, 1, 1), Score(None)]


def test_what_is_open_of_all_tasks_is_asked_at_once() -> None:
    log: list[Sequence[Question]] = []
    found = score(Generative(), [("a", ["x", "y"]), ("b", ["z"])], asked(lambda q: Reply((0.5, 0.5)), log))
    assert [len(of) for of in found] == [2, 1] and len(log) == 1 and len(log[0]) == 3


# pairwise


def by_strength(bias: float = 0.0) -> Callable[[Question], Reply]:
    """The better answer is preferred with .8; the first place adds a bias."""

    def reply(q: Question) -> Reply:
        a, b = STRENGTH[q.about["first"]], STRENGTH[q.about["second"]]
        p = 0.5 + 0.3 * np.sign(a - b) + bias
        return Reply((p, 1 - p), tokens=1)

    return reply


def test_every_pair_is_asked_in_both_orders_so_that_a_liking_for_a_place_cancels() -> None:
    log: list[Sequence[Question]] = []
    answers = ["fair", "good", "bad"]
    (plain,) = score(Pairwise(), [("t", answers)], asked(by_strength(), log))
    (biased,) = score(Pairwise(), [("t", answers)], asked(by_strength(0.15)))
    assert values(plain) == pytest.approx([0.5, 0.8, 0.2]) and values(biased) == pytest.approx([0.5, 0.8, 0.2])
    assert len(log[0]) == 6 and sum(s.tokens for s in plain) == 6


def test_a_knockout_asks_about_one_pair_fewer_than_answers_and_the_best_wins_all_rounds() -> None:
    log: list[Sequence[Question]] = []
    scorer = Pairwise(tournament="knockout")
    (found,) = score(scorer, [("t", ["bad", "good", "fair", "best"])], asked(by_strength(), log))
    assert values(found) == [0.0, 0.5, 0.0, 1.0] and [len(q) for q in log] == [4, 2]
    (odd,) = score(scorer, [("t", ["best", "fair", "good"])], asked(by_strength()))
    assert values(odd) == [1.0, 0.0, 0.5]


def test_an_answer_whose_pairs_all_failed_was_not_scored() -> None:
    answers = ["good", "fair", "best"]

    def reply(q: Question) -> Answered:
        return FAILED if "best" in q.about.values() else by_strength()(q)

    (found,) = score(Pairwise(), [("t", answers)], asked(reply))
    assert values(found) == pytest.approx([0.8, 0.2, None]) and found[0].tokens == 2
    (found,) = score(Pairwise(tournament="knockout"), [("t", ["good", "best", "fair"])], asked(reply))
    assert values(found) == [None, None, 0.5]


def test_a_reward_sees_one_answer_and_a_judge_samples_as_engines_do() -> None:
    judged = {"type": "scored_reward", "judge": "base-judge"}
    build(Reward, judged)
    with pytest.raises(ConfigError, match=r"scorer: pairwise compares .* take scorer.type=generative"):
        build(Reward, judged | {"scorer": {"type": "pairwise"}})
    with pytest.raises(ConfigError, match=r"temperature: expected 0, which is greedy, or 0.001 at least"):
        build(Judge, {"type": "run_judge", "run": "base-judge", "temperature": 1e-4})


@pytest.mark.parametrize("kind", ["round_robin", "knockout"])
def test_one_answer_alone_asks_nothing(kind: str) -> None:
    scorer = build(Scorer, {"type": "pairwise", "tournament": kind})
    assert score(scorer, [("t", ["good"])], asked(lambda q: FAILED)) == [[Score(0.5)]]


# a head on hidden states


def test_a_head_recovers_planted_weights_and_has_the_exact_optimum() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(3, 2, (4000, 3)), np.array([1.0, -0.5, 0.0])
    y = (rng.random(4000) < 1 / (1 + np.exp(-(x @ w - 1)))).astype(float)
    head = LinearHead.fit(x, y, decay=0.0)
    assert head.weight_D == pytest.approx(w, abs=0.1) and head.bias == pytest.approx(-1, abs=0.35)
    assert (head(x) - y) @ np.column_stack([x, np.ones(4000)]) == pytest.approx([0] * 4, abs=1e-5)
    with pytest.raises(ValueError, match="right and wrong"):
        LinearHead.fit(x, np.ones(4000))


def test_a_head_on_separable_states_is_finite_and_is_kept(tmp_path: Path) -> None:
    x, y = np.array([[-1.0], [1.0]]), np.array([0.0, 1.0])
    head = LinearHead.fit(x, y)
    assert head(x) == pytest.approx([1 - head(x)[1], head(x)[1]]) and 0.8 < head(x)[1] < 1
    head.save(tmp_path / "head")
    assert LinearHead.load(tmp_path / "head")(x) == pytest.approx(head(x))
    with pytest.raises(ModelError, match="no head of a probe"):
        LinearHead.load(tmp_path / "none")
    with pytest.raises(ModelError, match="size 1"):
        head(np.zeros((1, 2)))


def test_a_probe_scores_by_the_hidden_states_of_a_model(tmp_path: Path) -> None:
    answers = ["answer red", "click lamp"]
    states, read = hidden_states("base", [("go", a) for a in answers])
    LinearHead.fit(states, np.array([1.0, 0.0])).save(tmp_path / "head")
    (found,) = score(Probe(model="base", head=str(tmp_path / "head")), [("go", answers)], asked(lambda q: FAILED))
    first, second = values(found)
    assert first is not None and second is not None and first > 0.5 > second
    assert [s.read for s in found] == read and found[0].tokens == 0
    with pytest.raises(ValueError, match="the model's context cannot hold"):
        LinearHead.fit(np.array([[np.nan], [1.0]]), np.array([1, 0]))
    (found,) = score(
        Probe(model="base", head=str(tmp_path / "head")), [("go", ["red " * 2000])], asked(lambda q: FAILED)
    )
    assert found == [Score(None)]


def test_a_taught_probe_learns_from_solutions_of_training_tasks_alone_and_from_both_labels(tmp_path: Path) -> None:
    def taught(of_held_out: str, right: bool = False) -> TaughtProbe:
        """What is said is red, which is right, or search; in held-out tasks another word is the right one."""
        rows = [
            {"task": f"home {k}", "solution": f"answer {word}", "right": word == is_right or right}
            for k in range(40)
            for held_out in (split_of(Task(id=f"home {k}", source="", goal="", start=""), 0.5, 0) == "test",)
            for is_right in (of_held_out if held_out else "red",)
            for word in ("red", "search")
        ]
        path = tmp_path / f"{of_held_out}-{right}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return TaughtProbe(model="base", solutions=Judgements(path=path, test_share=0.5), decay=0.01)

    tasks = [("home 50", ["answer red", "answer search"])]
    (found,), (same,) = (score(taught(word), tasks, asked(lambda q: FAILED)) for word in ("red", "search"))
    right, wrong = values(found)
    assert right is not None and wrong is not None and right > 0.8 and wrong < 0.2
    assert found == same and found[0].read > 0 and found[0].tokens == 0
    with pytest.raises(ConfigError, match="taught_probe: a head needs right and wrong answers"):
        score(taught("red", right=True), tasks, asked(lambda q: FAILED))


# the policy is asked


class Scripted:
    """An engine that says what it is told by how a prompt ends."""

    def __init__(self, say: Callable[[str], str | EngineFailure]) -> None:
        self.say, self.requests = say, list[Request]()

    def submit(self, request: Request) -> int:
        self.requests.append(request)
        return len(self.requests)

    def poll(self) -> list[tuple[int, Outcome]]:
        out: list[tuple[int, Outcome]] = []
        for ticket, request in enumerate(self.requests, 1):
            said = self.say(CHAT.decode(request.prompt))
            ids = [] if isinstance(said, EngineFailure) else CHAT.encode(said)[: request.max_new]
            done = (
                said if isinstance(said, EngineFailure) else Completion(ids, [-0.5] * len(ids), [0] * len(ids), "stop")
            )
            out.append((ticket, done))
        return out


CHAT = word_chat("Is the answer correct? task: answer: add red blue yes no maybe because Verdict: go")


def player(say: Callable[[str], str | EngineFailure]) -> LanguagePlayer:
    return LanguagePlayer(cast(Any, Scripted(say)), CHAT, FullHistory(), Sampling())


def question(answer: str, reasons: int = 0) -> Question:
    return Question("Is the answer correct?", {"task": "add", "answer": answer}, ("yes", "no"), reasons)


def test_the_policy_reasons_first_and_its_verdict_has_the_probability_it_was_sampled_with() -> None:
    def say(prompt: str) -> str:
        if prompt.endswith("Verdict :"):
            return "yes" if "because" in prompt else "no"
        return "because red Verdict:" if "blue" in prompt else "because red"

    who = player(say)
    direct, reasoned = AskedPolicy(who, 7)([question("red"), question("red", 5)])
    p = float(np.exp(-0.5))
    assert isinstance(direct, Reply) and direct.shares == pytest.approx((1 - p, p)) and direct.tokens == 1
    assert isinstance(reasoned, Reply) and reasoned.shares == pytest.approx((p, 1 - p)) and reasoned.tokens == 3
    requests = cast(Any, who.engine).requests
    assert [r.max_new for r in requests] == [5, 1, 1] and requests[0].stop == (tuple(CHAT.encode("Verdict:")),)
    (itself,) = AskedPolicy(who, 7)([question("blue", 5)])  # the model begins its verdict by itself
    assert isinstance(itself, Reply) and itself.tokens == 5 and itself.read == reasoned.read


def test_no_verdict_and_a_dead_engine_are_failures() -> None:
    said: dict[str, str | EngineFailure] = {"red": "maybe", "blue": EngineFailure("gone")}
    replies = AskedPolicy(player(lambda prompt: said["red" if "red" in prompt else "blue"]), 0)(
        [question("red"), question("blue")]
    )
    assert isinstance(replies[0], JudgeFailure) and "said 'maybe'" in str(replies[0])
    assert isinstance(replies[1], EngineFailure)


def test_the_probability_of_a_verdict_is_that_of_the_model_after_its_reasons_also_where_it_is_read_from_its_folder(
    tmp_path: Path,
) -> None:
    """A model that has learned to say one of a few words answers; what it says is compared with a pass over the ids."""
    import torch

    policy = tiny_policy("Is the answer correct? task: answer: add red Verdict: yes no because")
    prompt = torch.tensor([policy.chat.head("red") + policy.chat.encode("Verdict:")])
    words = torch.tensor([policy.chat.encode(word)[0] for word in ("yes", "no", "because")])
    optimiser = torch.optim.Adam(policy.model.parameters(), 0.01)
    for _ in range(15):
        loss = -policy.model(prompt).logits[0].log_softmax(-1)[:, words].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    engine = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
    who = LanguagePlayer(engine, policy.chat, FullHistory(), Sampling())
    questions = [replace(question("red", reasons), vote=v) for reasons in (0, 2) for v in range(12)]
    replies = AskedPolicy(who, 0)(questions)
    again = AskedPolicy(who, 0)(questions[::-1])[::-1]  # a reply does not hang on what else is asked
    for one, other in zip(replies, again, strict=True):
        assert type(one) is type(other)
        assert not isinstance(one, Reply) or one.shares == pytest.approx(getattr(other, "shares", ()), abs=1e-5)
    save_policy(policy, tmp_path / "judge")
    for one, other in zip(replies, RunJudge(run=str(tmp_path / "judge")).ask(questions, 0), strict=True):
        assert getattr(one, "shares", ()) == pytest.approx(getattr(other, "shares", ()), abs=1e-5)
    said_of_red = "Is the answer correct?\ntask: add\nanswer: red\nSay Verdict: and one of yes, no"
    for q, reply in zip(questions, replies, strict=True):
        if isinstance(reply, Reply) and not q.reasons:
            ids = policy.chat.head(said_of_red)
            ids += policy.chat.observation("", first=True) + policy.chat.encode("Verdict:")
            with torch.inference_mode():
                p = policy.model(torch.tensor([ids])).logits[0, -1].softmax(-1)[words[:2]].tolist()
            said = [i for i in range(2) if reply.shares[i] == pytest.approx(p[i], abs=1e-5)]
            assert said and reply.read == len(ids) and reply.tokens == 1
    votes = [sum(isinstance(r, Reply) for r in part) for part in (replies[:12], replies[12:])]
    assert all(3 <= n <= 12 for n in votes)


def test_a_script_is_no_language_model() -> None:
    with pytest.raises(ConfigError, match="ScriptedPlayer gives text alone"):
        AskedPolicy(ScriptedPlayer(lambda _: "back"), 0)


# a judge over HTTP


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 0.001)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    yield server
    server.stop()


def test_a_judge_over_http_gives_verdicts_and_what_it_does_not_say_is_no_vote(server: Server) -> None:
    server.always = said("so it is\nVERDICT: no")
    judge = build(Judge, {"type": "http_judge", "judge": {"url": server.url, "model": "m", "retries": 0}})
    (found,) = score(Generative(votes=2), [("add", ["4 </answer>"])], lambda q: judge.ask(q, 0))
    assert found == [Score(0.0)]
    server.always = response(counted("VERDICT: no", usage={"prompt_tokens": 30, "completion_tokens": 4}))
    assert score(Generative(votes=2), [("add", ["4 </answer>"])], lambda q: judge.ask(q, 0)) == [[Score(0.0, 8, 60)]]
    prompt = server.bodies[0]["messages"][0]["content"]
    assert "<answer>\n4 < /answer>\n</answer>" in prompt and "one of: yes, no" in prompt
    server.always = said("perhaps")
    (unclear,) = judge.ask([question("red")], 0)
    assert isinstance(unclear, JudgeFailure) and "said none of yes, no" in str(unclear)
    server.always = response(counted("perhaps", usage={"prompt_tokens": 30, "completion_tokens": 4}))
    assert score(Generative(), [("add", ["4"])], lambda q: judge.ask(q, 0)) == [[Score(None, 4, 30)]]
    server.always = response("busy", 503)
    assert score(Generative(), [("add", ["4"])], lambda q: judge.ask(q, 0)) == [[Score(None)]]


# best of n


class Sure(Judge):
    """Knows by the answer; of an unknown one it says nothing."""

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        shares = {"red": (0.9, 0.1), "blue": (0.2, 0.8)}
        return [Reply(shares[a], 2) if (a := q.about["answer"]) in shares else FAILED for q in questions]


def sample(answer: str | None, stop: StopReason = StopReason.ANSWERED) -> Trajectory:
    return make_trajectory([make_turn([1])], 1.0, answer=answer, stop=stop, task=make_task())


@pytest.mark.parametrize(
    ("answers", "chosen", "tokens"),
    [(["blue", "red", None], 1, 2 + 4), ([None, "blue"], 1, 1 + 2), (["odd", None], 1, 1), (["odd", "blue"], 1, 1 + 2)],
)
def test_the_highest_score_counts_and_what_could_not_be_scored_does_not(
    answers: list[str | None], chosen: int, tokens: int
) -> None:
    (found,) = Scored(scorer=Generative(), judge=Sure()).choose([[sample(a) for a in answers]], player(lambda _: ""))
    assert found.trajectory.answer == answers[chosen] and found.further_tokens == tokens
    assert found.measures == {"scored_tokens": tokens - len(answers) + 1}
    assert not found.trajectory.stop.failed


def test_a_task_of_which_nothing_could_be_scored_failed_and_was_not_unsolved(caplog: pytest.LogCaptureFixture) -> None:
    groups = [[sample("odd"), sample("strange")], [sample(None)]]
    failed, unsolved = Scored(scorer=Generative(), judge=Sure()).choose(groups, player(lambda _: ""))
    assert failed.trajectory.stop.failed and not failed.trajectory.success
    assert not unsolved.trajectory.stop.failed
    assert "2 of 2 questions of a scorer have no reply: nobody there" in caplog.text


def test_a_scorer_that_says_nothing_is_no_judge_and_the_command_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    by = ["by.type=scored", "by.scorer.type=generative"]
    command = ["eval", "base-puzzles", "--tasks", "2", "--strategy", "best_of", "attempts=2", *by]
    assert main(command) == 2  # the start knows neither yes nor no
    said = capsys.readouterr().err
    assert "nothing was measured, for every episode failed" in said and said.endswith("that model is no judge\n")


def test_samples_that_say_the_same_are_scored_once_and_reasons_are_shown_where_that_is_asked_for() -> None:
    asked: list[str] = []

    class Listens(Judge):
        def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
            asked.extend(q.about["answer"] for q in questions)
            return [Reply((float(len(q.about["answer"])) / 20, 0.0), 2) for q in questions]

    said = ["so red", "so red", "it is surely red"]
    group = [make_trajectory([make_turn([1], text=text)], 1.0, answer="red", task=make_task()) for text in said]
    (one,) = Scored(scorer=Generative(), judge=Listens()).choose([group], player(lambda _: ""))
    assert asked == ["red"] and one.trajectory.turns is group[0].turns and one.further_tokens == 2 + 2
    turn = Scored(scorer=Generative(), judge=Listens(), shown="turn")
    (other,) = turn.choose([group], player(lambda _: ""))
    assert asked[1:] == said[1:] and other.trajectory.turns is group[2].turns and turn.name.endswith("_turn")


def test_it_is_named_and_built_from_data() -> None:
    data = {"type": "best_of", "attempts": 2, "by": {"type": "scored", "scorer": {"type": "generative", "votes": 4}}}
    strategy = build(Strategy, data)
    assert isinstance(strategy, BestOf) and strategy.name == "best_of_2_by_generative_4"
    assert Scored(scorer=Pairwise(reasons=0), judge=Sure()).name == "pairwise_round_robin_1_direct_sure"


# what a scorer is worth


def test_calibration_error_by_hand() -> None:
    scores, right = [0.1, 0.1, 0.9, 0.9, 0.95, 1.0], [0, 1, 1, 1, 1, 0]
    bins = reliability(scores, right)
    assert [(b.count, b.right) for b in bins] == [(2, 0.5), (4, 0.75)] and bins[1].score == pytest.approx(0.9375)
    assert calibration_error(scores, right) == pytest.approx((2 * 0.4 + 4 * 0.1875) / 6)
    with pytest.raises(ValueError, match="from 0.5 to 1.5"):
        reliability([0.5, 1.5], [0, 1])


def test_agreement_by_hand() -> None:
    assert pair_accuracy([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]) == pytest.approx(3.5 / 4)
    with pytest.raises(ValueError, match="all labels are the same"):
        pair_accuracy([0.1], [1])
    assert kappa("yynn", "ynnn") == pytest.approx((0.75 - 0.5) / 0.5)
    assert kappa("yy", "yy") == 1 and kappa("yn", "ny") == -1
    with pytest.raises(ValueError, match="got 1 and 2"):
        kappa("y", "yn")


def test_a_reliability_diagram_is_the_same_file_each_time_and_names_the_error(tmp_path: Path) -> None:
    bins = reliability([0.1, 0.9], [0, 1])
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        draw_reliability({"generative": bins}, tmp_path / name / "r.svg")
    first = (tmp_path / "a" / "r.svg").read_text()
    assert first == (tmp_path / "b" / "r.svg").read_text() and "generative (0.100)" in first


def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow("scorers.md", tmp_path)
    assert "probe (" in (tmp_path / "probe.svg").read_text()
