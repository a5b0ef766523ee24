"""Whether a trained judge is worth its tokens: `python examples/judge.py RUN [docs/judges/best_of_8.json]`.

RUN is a run of `longstride train genrm`. On held-out chains, `base-puzzles` answers eight times and the judge chooses;
beside it the majority of eight answers, and of as many as cost what eight answers and the judge do: what both sampled
and, to the judge's loss, all that it read. Differences are paired by task, with 95 % intervals.
"""

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from longstride.envs.puzzles import ModularChain
from longstride.papers.grpo.recipe import RECIPE
from longstride.rewards.scorers import Generative, RunJudge
from longstride.run.evaluation import evaluate_policy
from longstride.run.policies import load
from longstride.stats import mean_interval
from longstride.strategies import Direct
from longstride.strategies.best_of import BestOf, Verifier
from longstride.strategies.scored import Scored

TASKS = 300
ATTEMPTS = 8


def main(run: str, out: str = "docs/judges/best_of_8.json") -> None:
    recipe, policy = RECIPE.replace(tasks=ModularChain(), engine={"kernels": "auto"}), load("base-puzzles")
    tasks = recipe.tasks.held_out(TASKS)

    by = Scored(scorer=Generative(reasons=160), judge=RunJudge(run=run))
    arms = {
        "one answer": Direct(),
        "majority of 8": BestOf(attempts=ATTEMPTS),
        "judge": BestOf(attempts=ATTEMPTS, by=by),
        "whoever is right of 8": BestOf(attempts=ATTEMPTS, by=Verifier()),
    }
    found: dict[str, dict[str, Any]] = {}

    def play(name: str, arm: Direct | BestOf) -> None:
        result = evaluate_policy(policy, recipe, tasks, arm)
        of = result.measures
        found[name] = {
            "success": fmean(of["success"]),  # pyright: ignore[reportArgumentType]
            "sampled_tokens": fmean(of["spent_tokens"]),  # pyright: ignore[reportArgumentType]
            "total_tokens": fmean(of["total_tokens"]),  # pyright: ignore[reportArgumentType]
            "by_task": of["success"],
        }
        print(name, {k: round(v, 3) for k, v in found[name].items() if k != "by_task"}, flush=True)

    for name, arm in arms.items():
        play(name, arm)
    for what in ("sampled_tokens", "total_tokens"):
        n = round(ATTEMPTS * found["judge"][what] / found["majority of 8"][what])
        if f"majority of {n}" not in found:
            play(f"majority of {n}", BestOf(attempts=n))
        pairs = zip(found["judge"]["by_task"], found[f"majority of {n}"]["by_task"], strict=True)
        apart = sorted(a - b for a, b in pairs)
        low, high = mean_interval(apart, seed=0)
        found["judge"][f"over the majority at equal {what.replace('_', ' ')}"] = {
            "attempts": n,
            "difference": fmean(apart),
            "interval": [low, high],
        }
    rows = {name: {k: v for k, v in row.items() if k != "by_task"} for name, row in found.items()}
    kept = {"command": f"python examples/judge.py {Path(run).name}", "tasks": TASKS, "rows": rows}
    Path(out).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
