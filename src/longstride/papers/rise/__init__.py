"""RISE: recursive introspection. Qu et al., 2024, arXiv 2407.18219.

One problem becomes an episode of several attempts. The history is the policy's own failed attempts, so it learns from
the mistakes that it makes: it imitates the best of N attempts that it makes after them, weighted by reward.

| place | choice | paper and release (Llama 2, Llama 3 and Mistral of 7B and 8B) | here |
|---|---|---|---|
| plan | `Introspection` | attempts of the policy until one is right, 2 in training | the same, 3 in training |
| plan | the next attempt | best of N = 16 of the policy's own, or a stronger model's | best of 4 of its own |
| plan | rounds | 2 or 3, of all training problems | 10 iterations of 128 tasks |
| roll out | `RecentTurns` | a window: one earlier attempt | the same |
| roll out | what follows an attempt | "incorrect, try again" | `check again` |
| score | `TaskReward` | right or wrong, each attempt | the same |
| credit | `BestOfGroup` | exp(r / tau), tau = 0.4 in the release; in the paper r less the mean of the prompt | as the release |
| update | `Reinforce`, mean over samples | weighted likelihood of the attempt, mean over its tokens | the same |
| update | rate | 1e-5, cosine | 5e-4, as in `setups.puzzles` otherwise |
| test | `After`, `ParallelAttempts` | 5 attempts; majority vote, or with an oracle that stops at a right one | the same |

On your own model and tasks of one turn, each judged by its evaluator, such as a file of prompts and answers:

    longstride train rise model=Qwen/Qwen3-0.6B tasks.tasks.type=dataset tasks.tasks.path=sums.jsonl learner.lr=1e-5 \\
        budget.turn_tokens=1024 test_budget.turn_tokens=1024

Deviations: model and puzzles are those of `grpo`; the release also leaves out a target that repeats an earlier attempt.
The shipped base knows two attempts, and with the window a third one reads no more than a second. Centred weights learned
more slowly: in iterations 6 to 8 of one run 0.48 of first attempts were right, and 0.59 with those of the release. As in
the paper only a failure is followed by another attempt in training; so without an oracle a right answer is often lost.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Recursive Introspection: Teaching Language Model Agents How to Self-Improve",
    authors="Yuxiao Qu, Tianjun Zhang, Naman Garg, Aviral Kumar",
    year=2024,
    arxiv="2407.18219",
    read="notes",
    topics=("reasoning", "cloning"),
    systems=(42,),
)
