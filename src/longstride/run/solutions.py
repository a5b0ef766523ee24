"""Solutions that a policy wrote, with labels: what `envs.judgements` is made of.

What always holds: what is solved are tasks with verifiers, training ones for training and held-out ones for evaluation;
which solutions come depends on the settings and the policy's weights alone; episodes that failed are left out. What one
process has played it does not play again.
"""

import json
from functools import lru_cache
from pathlib import Path

from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.implementation import implements
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Sampling
from longstride.engines.config import Local
from longstride.envs.base import TaskSource
from longstride.envs.judgements import Judgements, LabelledSolution, Reviewer, Split
from longstride.rewards import TaskReward
from longstride.rollout.context import FullHistory
from longstride.rollout.episode import Plan
from longstride.rollout.players import LanguagePlayer
from longstride.rollout.pool import Pool
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.experiment import RUN_FILE
from longstride.run.policies import load

KEPT = 8
"""Sets of solutions that a process keeps."""


@implements(Judgements)
def written(source: Judgements) -> dict[Split, list[LabelledSolution]]:
    """The solutions of both splits, those of a task together.

    Raises:
        ModelError: the policy cannot be loaded.
    """
    written_alike = source.replace(asks="right", reasons=True, balanced=True, artefact=0.0)
    newest = latest_checkpoint(Path(source.policy)) if (Path(source.policy) / RUN_FILE).is_file() else None
    return _written(json.dumps(written_alike.as_data()), str(newest and newest.folder))


@lru_cache(KEPT)
def _written(settings: str, checkpoint: str) -> dict[Split, list[LabelledSolution]]:
    """The solutions by settings as JSON; `checkpoint` tells the states of a run apart."""
    source = build(Judgements, json.loads(settings))
    tasks: dict[Split, list[Task]] = {
        "train": source.puzzles.sample(stream(0, "judgements"), source.solved),
        "test": source.puzzles.held_out(source.solved),
    }
    policy, sampling = load(source.policy), Sampling()
    engine = Local().make(policy, 0, [sampling])
    player = LanguagePlayer(engine, policy.chat, FullHistory(), sampling)
    budget = Budget(turns=source.turns, turn_tokens=source.turn_tokens)
    every: list[tuple[Split, Task]] = [
        (split, task) for split, of_split in tasks.items() for task in of_split for _ in range(source.attempts)
    ]
    plans = [Plan(task, k, derive(0, "judgements", split, k), budget) for k, (split, task) in enumerate(every)]
    try:
        played = Pool(player, source.puzzles.env, TaskReward(), source.puzzles.at_once).run(plans)
    finally:
        engine.close()
    found: dict[Split, list[LabelledSolution]] = {"train": [], "test": []}
    for (split, _), t in zip(every, played, strict=True):
        if not t.stop.failed and any(turn.text for turn in t.turns):
            found[split].append(_labelled(t, source.puzzles))
    return found


def _labelled(played: Trajectory, source: TaskSource) -> LabelledSolution:
    text = "\n".join(turn.text for turn in played.turns)
    review = source.review(played.task, text) if isinstance(source, Reviewer) else None
    wrong = len(review) if review and review[-1].endswith(" no") else 0
    return LabelledSolution(
        task=played.task.goal,
        solution=text,
        right=played.success and wrong == 0,  # an answer may be right by luck
        wrong_line=wrong if review else None,
        reasons=" ; ".join(review) if review else None,
        difficulty=played.task.difficulty,
    )
