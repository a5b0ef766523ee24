"""A trained judge is taken by strategies, guides and rewards, in the words of its training; all its tokens count."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from bigrams import bigram_policy
from guides import follow
from helpers import begin_run, make_task, make_trajectory, make_turn, rows_of

from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, JudgeFailure
from longstride.core.trajectory import Trajectory, Usage
from longstride.envs.judgements import Judgements
from longstride.envs.puzzles import ModularChain
from longstride.envs.questions import YES_NO, Question
from longstride.models.load import save_policy
from longstride.papers.grpo.recipe import RECIPE
from longstride.rewards import Generative, Judge, Reward, ScoredReward
from longstride.rewards.scorers import Answered, NoVerdict, Reply, RunJudge, Score, Scorer, Scoring
from longstride.rollout.interface import ask_reward
from longstride.rollout.summary import summarise
from longstride.run.checkpoint import save_checkpoint
from longstride.run.evaluation import evaluate_policy
from longstride.run.judges import TrainedJudge
from longstride.strategies import Strategy
from longstride.strategies.best_of import BestOf
from longstride.strategies.scored import Scored
from longstride.strategies.searched import Asked, Guide

WORDS = "start mod 7 ; + - * Is the answer correct ? task : Give your reasons , then say Verdict and one of yes no"
SAYS = {"<agent>": {"so": 1.0}, "so": {"Verdict": 1.0}, "Verdict": {":": 1.0}, ":": {"yes": 0.8, "no": 0.2}}
"""A judge that always has one word of reasons, and says yes in four of five cases."""
QUESTION = Question("Is the answer correct?", {"task": "t", "answer": "a"}, YES_NO, reasons=9)


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    save_policy(bigram_policy(WORDS, SAYS), tmp_path / "judge")
    return tmp_path / "judge"


def answered(text: str = "Thought: a Action: answer 4", answer: str | None = "4") -> Trajectory:
    return make_trajectory([make_turn(text=text)], answer=answer, task=make_task(goal="add 2 and 2"))


def test_a_verdict_comes_with_its_probability_and_all_that_was_sampled_and_read(judge: Path) -> None:
    asked = [Question("Is the answer correct?", {}, YES_NO, 9, vote) for vote in range(40)]
    replies = RunJudge(run=str(judge)).ask(asked, seed=3)
    shares = [reply.shares for reply in replies if isinstance(reply, Reply)]
    assert len(shares) == 40 and {round(yes, 2) for yes, _ in shares} == {0.8}
    assert {(r.tokens, r.read > 20) for r in replies if isinstance(r, Reply)} == {(4, True)}  # so Verdict : yes
    assert replies == RunJudge(run=str(judge)).ask(asked, seed=3)


def test_what_a_judge_says_does_not_depend_on_what_is_asked_beside_it(judge: Path) -> None:
    one = RunJudge(run=str(judge))

    async def beside() -> list[Sequence[Answered]]:
        return await asyncio.gather(*(one.answers([Question(str(k), {}, YES_NO, 9)], 0) for k in range(12)))

    alone = [one.ask([Question(str(k), {}, YES_NO, 9)], 0) for k in range(12)]
    for (one_of_many,), (single,) in zip(asyncio.run(beside()), alone, strict=True):
        assert isinstance(one_of_many, Reply) and isinstance(single, Reply)
        assert one_of_many.shares == pytest.approx(single.shares, abs=1e-5) and one_of_many.tokens == single.tokens


def test_a_reply_without_a_verdict_is_no_vote_and_its_tokens_count(tmp_path: Path) -> None:
    save_policy(bigram_policy(WORDS, SAYS | {":": {"so": 1.0}}), tmp_path / "mute")
    mute = RunJudge(run=str(tmp_path / "mute"))
    (reply,) = mute.ask([QUESTION], 0)
    assert isinstance(reply, NoVerdict) and reply.tokens == 4 and reply.read > 20
    reward = ScoredReward(judge=mute)
    with pytest.raises(JudgeFailure, match="run_mute gave no verdict: .*one of yes, no; it said 'so'"):
        asyncio.run(ask_reward(reward, answered(), {}, 0))


def test_a_judge_that_was_trained_without_reasons_is_asked_without(
    judge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = judge.parent / "run"
    begin_run(trained, RECIPE.replace(tasks={"type": "judgements", "reasons": False}))
    one = RunJudge(run=str(trained))
    assert TrainedJudge(one).as_trained([QUESTION])[0].reasons == 0
    begin_run(judge.parent / "other", RECIPE.replace(tasks={"type": "judgements", "asks": "better"}))
    with pytest.raises(ConfigError, match="trained to say first or second, and is asked for yes, no; set scorer.type="):
        RunJudge(run=str(judge.parent / "other")).ask([QUESTION], 0)
    with pytest.raises(ConfigError, match="is asked for none, 1, 2; .* train a judge with tasks.asks=line"):
        RunJudge(run=str(trained)).ask([replace(QUESTION, options=("none", "1", "2"))], 0)


def test_a_run_is_read_once_for_all_questions_and_again_when_it_has_a_newer_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(module: str, name: str) -> None:
        real = getattr(import_module(module), name)
        monkeypatch.setattr(f"{module}.{name}", lambda path: (read.append(name), real(path))[1])

    counted("longstride.run.judges", "load_run_experiment")
    counted("longstride.run.checkpoint", "open_checkpoint")
    begin_run(tmp_path, RECIPE)
    policy = bigram_policy(WORDS, SAYS)
    for newest in (1, 2):
        save_checkpoint(tmp_path, newest, lambda folder: save_policy(policy, folder), {}, {"iteration": newest})
        for _ in range(3):
            assert isinstance(RunJudge(run=str(tmp_path)).ask([QUESTION], 0)[0], Reply)
    assert read == ["load_run_experiment", "open_checkpoint", "open_checkpoint"]


def test_a_text_stands_for_a_trained_judge_wherever_one_is_asked(judge: Path) -> None:
    run, name = RunJudge(run=str(judge)), str(judge)
    assert build(Reward, {"type": "scored_reward", "judge": name}) == ScoredReward(judge=run)
    strategy = build(Strategy, {"type": "best_of", "by": {"type": "scored", "judge": name}})
    assert strategy == BestOf(by=Scored(scorer=Generative(), judge=run))
    assert strategy.name == "best_of_4_by_generative_1_run_judge_turn"
    guide = build(Guide, {"type": "asked", "scorer": {"type": "generative"}, "judge": name})
    assert guide == Asked(scorer=Generative(), judge=run) and guide.name == "generative_1_run_judge"


def test_a_strategy_counts_the_tokens_of_its_judge(judge: Path) -> None:
    recipe = RECIPE.replace(tasks=ModularChain(lengths=(1, 1, 1)), evaluation={"tasks": 2}, test_budget={"turns": 1})
    says = {"<agent>": {"Action:": 1.0}, "Action:": {"answer": 1.0}, "answer": {"4": 0.5, "5": 0.5}}
    by = Scored(scorer=Generative(votes=3), judge=RunJudge(run=str(judge)))
    found = evaluate_policy(bigram_policy(WORDS, says), recipe, strategy=BestOf(attempts=4, by=by))
    assert set(found.measures["spent_tokens"]) <= {
        4 * 4 + 3 * 4 * different
        for different in (1, 2)  # what differs is judged once: so Verdict : yes
    }


class Firm(Judge):
    """Finds long answers good."""

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return [self._reply(q) for q in questions]

    def _reply(self, q: Question) -> Answered:
        if "?" in q.about["answer"]:
            return EngineFailure("nobody there")
        p = min(1.0, len(q.about["answer"]) / 10)
        return Reply((p, 1 - p), tokens=5, read=7)


def test_a_reward_is_the_score_and_keeps_what_the_judge_took() -> None:
    t = answered(answer="1234567")
    verdict = asyncio.run(ask_reward(ScoredReward(judge=Firm(), scorer=Generative(votes=2)), t, {}, 0))
    assert (verdict.reward, verdict.success) == (pytest.approx(0.7), True)
    assert verdict.evidence == {"evaluator": "firm"}
    used = summarise([t, t])["judge_usage"]
    assert (used["sampled"], used["read"]) == (20, 28) and "judge_usage" not in summarise([answered()])


class Long(Scorer):
    """The longer, the better; asks nobody."""

    asks = False

    @property
    def name(self) -> str:
        return "long"

    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        yield from ()
        return [Score(len(answer) / 10, read=3) for answer in answers]


def test_who_asks_nobody_needs_no_judge_and_who_asks_does() -> None:
    verdict = asyncio.run(ask_reward(ScoredReward(scorer=Long()), t := answered(answer="1234567"), {}, 0))
    assert (verdict.reward, verdict.evidence, t.judge_usage) == (0.7, {"evaluator": "long"}, Usage(0, read=3))
    with pytest.raises(ValueError, match="generative asks somebody: set reward.judge"):
        ScoredReward()


def test_an_episode_without_an_answer_asks_nobody_and_one_without_a_verdict_fails() -> None:
    reward = ScoredReward(judge=Firm(), shown="answer")
    assert asyncio.run(ask_reward(reward, answered(answer=None), {}, 0)).reward == 0
    with pytest.raises(JudgeFailure, match="firm gave no verdict: nobody there"):
        asyncio.run(ask_reward(reward, answered(answer="?"), {}, 0))


def test_rl_is_rewarded_by_a_judge_and_its_row_has_what_that_took(judge: Path, tmp_path: Path) -> None:
    recipe = RECIPE.replace(
        iterations=1,
        episodes_per_iteration=8,
        group_size=4,
        tasks=ModularChain(lengths=(1, 1, 1)),
        reward={"type": "scored_reward", "judge": str(judge)},
        evaluation={"tasks": 1, "baselines": False},
    )
    recipe.train(tmp_path / "out")
    (row,) = rows_of(tmp_path / "out", "train")
    answers = sum(n for verb, n in row["summary"]["actions"].items() if verb == "answer")
    assert answers and row["summary"]["judge_usage"]["sampled"] == 4 * answers
    assert row["summary"]["reward"] == pytest.approx(0.8 * answers / 8, abs=0.25)


def test_the_world_of_judges_is_played_by_what_a_run_of_it_trained(judge: Path) -> None:
    source = Judgements(policy=str(judge), puzzles=ModularChain(lengths=(1, 1, 1)), solved=2, attempts=2, turn_tokens=8)
    assert {s.solution for of in source.solutions.values() for s in of} == {"so Verdict : yes", "so Verdict : no"}


@pytest.mark.slow
def test_the_guide_trains_a_judge_from_a_file_and_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    follow("judge.md", tmp_path)
    (row,) = rows_of(tmp_path / "runs" / "judged", "train")
    assert row["summary"]["judge_usage"]["sampled"] > 0
    said = capsys.readouterr().out
    assert "best_of_4_by_generative_2_run_judge_turn" in said and "guided_by_generative_1_run_judge" in said
