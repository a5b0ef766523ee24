"""The settings of the shipped models, by what follows `base-` in their names; `base` is made by the defaults, and
`base-wander` in two steps (see models/shipped/README.md)."""

MADE: dict[str, tuple[str, ...]] = {
    "dial": (
        "demonstrators.type=dial_walks",
        "demonstrators.begins=.33",
        "demonstrators.goes_on=.55",
        "context.type=latest_observation",
        "model.width=64",
        "model.layers=3",
        "learner.dtype=float32",
        "learner.kernels=native",
        "learner.threads=2",
        "step_tokens=512",
        "tokens=900000",
        "page_weight=0",
    ),
    "judge": (
        "start=base-puzzles",
        "seed=2",
        "demonstrators.type=puzzle_judgements",
        "learner.lr=2e-3",
        "learner.dtype=float32",
        "learner.kernels=native",
        "tokens=3000000",
        "step_tokens=2048",
        "page_weight=0",
    ),
    "keep-last": (
        "context.type=recent_observations",
        "tokens=6000000",
        "step_tokens=1536",
    ),
    "miniwob": (
        "demonstrators.type=miniwob_tasks",
        'demonstrators.names=["click-tab-2","click-collapsible-2"]',
        "demonstrators.episodes=2400",
        "tokens=6000000",
        "page_weight=0",
    ),
    "puzzles": (
        "demonstrators={type='puzzle_traces'}",
        "recitals=0",
        "tokens=12000000",
        "step_tokens=2048",
        "page_weight=0",
    ),
    "thoughts": (
        "start=base-puzzles",
        "seed=1",
        "demonstrators={type='puzzle_thoughts'}",
        "learner.lr=2e-3",
        "learner.dtype=float32",
        "learner.kernels=native",
        "tokens=7000000",
        "step_tokens=2048",
        "page_weight=0",
    ),
}
"""Settings as the command line takes them."""
