"""A trained judge at work: the policy of a run, or a model, as who is asked by scorers, guides and rewards.

What always holds: it is asked in the words that it was trained on (`envs.questions`), without reasons where it was
trained to give none; all that it samples and reads is in its replies; what it says depends on its weights, the
question, the vote and the seed, and not on what is asked beside it. Questions of many episodes are asked together.
"""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from longstride.core.errors import ConfigError
from longstride.core.implementation import implements
from longstride.engines.base import Sampling
from longstride.engines.config import Local
from longstride.envs.judgements import Judgements
from longstride.envs.questions import FIRST_SECOND, SCORES, YES_NO, Question
from longstride.rewards.scorers import Answered, RunJudge
from longstride.rollout.context import FullHistory
from longstride.rollout.players import LanguagePlayer
from longstride.run.experiment import RUN_FILE, Experiment, checkpoint_folders, load_run_experiment
from longstride.run.policies import load
from longstride.run.recipe import Recipe
from longstride.strategies.scored import AskedPolicy

SCORERS = {"right": "generative", "better": "pairwise", "scores": "longstride.papers.spct.method:SummedScores"}
"""Who asks what a judge was trained on."""
KEPT = 4
"""Judges that a process keeps loaded."""


@implements(RunJudge)
class TrainedJudge:
    """What a `RunJudge` does; see there."""

    def __init__(self, judge: RunJudge) -> None:
        self._judge, self._folder = judge, Path(judge.run)

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """See `RunJudge.ask`."""
        questions = self.as_trained(questions)
        return self._desk.ask(questions, seed)

    async def answers(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """See `Judge.answers`."""
        questions = self.as_trained(questions)
        return await self._desk.answers(questions, seed)

    def as_trained(self, questions: Sequence[Question]) -> Sequence[Question]:
        """The questions, without reasons where the run was trained to give none.

        Raises:
            ConfigError: it was trained to give other verdicts.
        """
        file = self._folder / RUN_FILE
        recipe = _recipe(self._folder, file.stat().st_mtime_ns) if file.is_file() else None
        if not (isinstance(recipe, Recipe) and isinstance(recipe.tasks, Judgements)):
            return questions
        asks = recipe.tasks.asks
        options = {"right": YES_NO, "better": FIRST_SECOND, "scores": SCORES}.get(asks)
        if other := next((q for q in questions if options and q.options != options), None):
            wanted = {YES_NO: "right", FIRST_SECOND: "better", SCORES: "scores"}.get(other.options, "line")
            raise ConfigError(
                f"{self._judge.run} was trained to say {' or '.join(options or ())}, and is asked for "
                f"{', '.join(other.options)}; set scorer.type={SCORERS[asks]}, or train a judge with "
                f"tasks.asks={wanted}"
            )
        return questions if recipe.tasks.reasons else [replace(q, reasons=0) for q in questions]

    @property
    def _desk(self) -> "_Desk":
        return _loaded(self._judge.run, self._judge.temperature, str(checkpoint_folders(self._folder)[-1:]))


@lru_cache(KEPT)
def _recipe(run: Path, written: int) -> Experiment:
    """What a run was trained by; `written`, when its file was, tells apart what ran in one folder."""
    return load_run_experiment(run)


@lru_cache(KEPT)
def _loaded(run: str, temperature: float, checkpoint: str) -> "_Desk":
    """The judge at work; `checkpoint`, the newest, tells the states of a run apart."""
    policy, sampling = load(run), Sampling(temperature=temperature)
    engine = Local().make(policy, 0, [sampling])
    return _Desk(LanguagePlayer(engine, policy.chat, FullHistory(), sampling))


class _Desk:
    """Takes the questions of several threads and coroutines, and asks them together."""

    def __init__(self, player: LanguagePlayer) -> None:
        self._player, self._lock = player, threading.Lock()
        self._waiting: list[tuple[Sequence[Question], int, Future[list[Answered]]]] = []

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """Replies, in the order of the questions."""
        return self._serve(self._put(questions, seed))

    async def answers(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        """The same, beside what else waits."""
        asked = self._put(questions, seed)
        await asyncio.sleep(0)  # episodes that end together put theirs first
        return await asyncio.to_thread(self._serve, asked)

    def _put(self, questions: Sequence[Question], seed: int) -> "Future[list[Answered]]":
        asked: Future[list[Answered]] = Future()
        self._waiting.append((questions, seed, asked))
        return asked

    def _serve(self, asked: "Future[list[Answered]]") -> list[Answered]:
        with self._lock:  # whoever waited for it mostly finds the own questions answered
            waiting, self._waiting = self._waiting, []
            self._player.engine.forget()  # the same question has the same answer, whatever was asked before
            for seed in dict.fromkeys(seed for _, seed, _ in waiting):
                together = [(questions, future) for questions, s, future in waiting if s == seed]
                try:
                    came = iter(AskedPolicy(self._player, seed)([q for questions, _ in together for q in questions]))
                    for questions, future in together:
                        future.set_result([next(came) for _ in questions])
                except Exception as e:
                    for _, future in together:
                        future.set_exception(e)
        return asked.result()
