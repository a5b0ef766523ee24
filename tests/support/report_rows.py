"""Metrics rows of a run, as reports read them."""

from typing import Any


def summary(success: float, **more: Any) -> dict[str, Any]:
    parts = {d: {"episodes": 30, "success": success, "length": 5.0} for d in ("easy", "medium", "hard")}
    return {
        "episodes": 90, "failed": 1, "success": success, "length": 5.5, "length_success": 4.5, "timeouts": 0.2,
        "invalid": 0.01, "actions": {"click": 300, "answer": 80}, "stops": {"answered": 80, "turns": 10},
        "by_difficulty": parts, **more,
    }  # fmt: skip


def evaluation(iteration: int, policy: str, success: float, strategy: str = "direct") -> dict[str, Any]:
    return {
        "kind": "eval", "iteration": iteration, "total_episodes": 100 * iteration, "total_env_steps": 4100 * iteration,
        "seconds": 16.8 * iteration, "policy": policy, "strategy": strategy,
        "horizon": {"easy": 12, "medium": 12, "hard": 12}, "summary": summary(success),
        "interval": [success - 0.05, success + 0.05],
    }  # fmt: skip


def training(iteration: int) -> dict[str, Any]:
    return {
        "kind": "train", "iteration": iteration, "total_episodes": 100 * iteration, "total_env_steps": 4100 * iteration,
        "seconds": 16.8 * iteration, "horizon": {"easy": 4, "medium": 8, "hard": 12},
        "summary": summary(0.03 * iteration), "loss": 1 / iteration, "tokens_per_second": 1900.0,
    }  # fmt: skip


ROWS = [
    evaluation(0, "random_walk", 0.05), evaluation(0, "warm_start", 0.27), *map(training, range(1, 16)),
    evaluation(10, "agent", 0.5), evaluation(15, "agent", 0.58), evaluation(15, "agent", 0.6, "check_again_2"),
]  # fmt: skip
