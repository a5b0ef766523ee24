"""MRT: meta reinforcement fine-tuning. Qu et al., 2025, arXiv 2503.07572.

A long thought is a sequence of attempts, and each should bring an answer nearer, whatever the budget will be: to
minimise regret over the tokens that are spent. So episodes begin in the middle of the policy's own thought; a part of
them must answer at once, and the others are paid for what they add to that.

| place | choice | paper and release (R1-Distill-Qwen-1.5B, DeepScaleR-1.5B) | here |
|---|---|---|---|
| plan | `ForcedTermination` | a trace, cut after a random number of attempts; half of the rollouts must answer, half go on | the same, cut before any step or the answer |
| plan | groups | 4 branches a boundary in the online release | 8 from a place, of 32 traces |
| roll out | what forces an answer | "time is up" and the end of the thought | `Action: answer` |
| roll out | sampling | temperature 0.9 (online release), 16,384 tokens | temperature 1, 80 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `ProgressCredit` | outcome and progress; first released as reward less that of answering at once | both, alpha 1 as in the online release |
| update | `PPO` | GRPO | as in `dr_grpo`: no division by length or deviation |
| test | `Anytime` | normalised regret of answers forced at every step of a trace, 8 a step | the same, 1 a step |
| test | budgets | regret at 1/4 to 2 times the tokens of training | half and 2 times |

On your own model and tasks of one turn, with the words before which thoughts are cut and those that ask for an answer:

    longstride train mrt model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl tasks.mark=Answer: learner.lr=1e-6 \\
        budget.turn_tokens=2048 budget.tokens=2048 test_budget.turn_tokens=2048 loss.aggregation.length=2048 \\
        'sampler.marks=["\\n\\n","</think>"]' 'sampler.closing="</think>\\nAnswer:"' \\
        'evaluation.strategies=[{type="anytime",marks=["\\n\\n","</think>"],closing="</think>\\nAnswer:"}]'

Deviations: model and tasks are those of `grpo`; those that go on do so until they answer, not for one attempt more,
so that progress is that of all that follows; its bonus is one number an episode, as in the paper (the later release
finds it better than one number an attempt). The trace that leads to the place is sampled by the newest policy, where
the paper's is older, and not trained.

The claim compares 1 - normalised regret (`anytime`, see `strategies.anytime`). A test budget is another thing: it cuts a
thought and asks for no answer. The length penalty beside it is that of arXiv 2502.04463.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Optimizing Test-Time Compute via Meta Reinforcement Fine-Tuning",
    authors="Yuxiao Qu, Matthew Y. R. Yang, Amrith Setlur, Lewis Tunstall, Edward Beeching, Ruslan Salakhutdinov, Aviral "
    "Kumar",
    year=2025,
    arxiv="2503.07572",
    read="notes",
    topics=("reasoning", "credit", "horizon"),
    systems=(5,),
)
