"""ExIt: single turns of self-improvement, from whatever earlier ones came to. Jiang et al., 2025, arXiv 2509.04575.

A policy that may improve its answer for many turns is trained on single turns: the first one of a task, or the next one after a history that an earlier
episode left. So the number of turns at the test is free, and training goes on most often from the histories that taught most.

| place | choice | paper | here |
|---|---|---|---|
| plan | `PartialHistories` | a base task, or a partial history, by the variance of its group's returns | the same, half of the groups each |
| plan | what is kept | a buffer of tasks that grows | groups of the last 4 iterations |
| roll out | turns | one of its own, K at the test | one, 16 at the test |
| roll out | `LatestObservation`, tokens | the history, with the request to improve | task and summary (`Iterated`), 32 tokens |
| score, credit, update | `TaskReward`, `GroupRelative`, `PPO` | GRPO; a bonus for what differs from its group | the same, mixed groups only, no bonus; a turn of its own that cannot be parsed earns nothing |

`longstride train exit` takes about 5 minutes of one core. On your own model and tasks, whose environment lets an answer be improved on and ends where
`Task.horizon` says (`rewards.Attempts` does it for tasks of one turn by asking again):

    longstride train exit model=Qwen/Qwen3-0.6B tasks.type=my_module:MyTasks context.type=full_history learner.lr=1e-6 \\
        budget.turn_tokens=1024 test_budget.turn_tokens=1024

The sampler alone is `sampler.type="longstride.papers.exit.method:PartialHistories"`, in any recipe of several turns.

Before training `base-puzzles` does .08 of chains of twelve operations in one turn of 32 tokens, and .43 in
sixteen (60 tasks).

Deviations: the abstract and notes were read. Requests to diverge and the bonus for diversity are left out: a model of half a million parameters
follows no requests. How many groups go on, and how long they are kept, is not known, nor are the paper's
rates and batches. A summary stands for the history, so that sixteen turns fit a small context (see `reasoning_cache`, which draws states of one exploring episode instead).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Bootstrapping Task Spaces for Self-Improvement",
    authors="Minqi Jiang, Andrei Lupu, Yoram Bachrach",
    year=2025,
    arxiv="2509.04575",
    read="notes",
    topics=("reasoning", "horizon"),
    systems=(83,),
)
