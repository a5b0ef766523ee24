"""Verifier-based over verifier-free: what cloned traces cannot say. Setlur et al., 2025, arXiv 2502.12118.

A base model solves a problem in several styles, some of which take long. Cloning its right traces imitates all styles that
end in time: with a larger budget, slower ones too. A method that knows the reward of each trace can keep to fast styles. So
the gap in reward grows with the budget and with the data, if styles differ.

| place | choice | paper (section 7: Llama 3B and 8B on MATH, s1) | here |
|---|---|---|---|
| base | heterogeneity | deviation of the reward given the prompt | `base-thoughts`: traces of unequal patience |
| budget | H | tokens of a trace, in the data and at test time | `turn_tokens` of both budgets: 96; in the control 24 |
| verifier-free | `FilteredBC` | fine-tuning on n right traces | right ones of n traces of the base, four passes |
| verifier-based | `GroupRelative`, `PPO` | RL on 0/1 rewards, or the best of N by a learned verifier | RL on as many traces, rewards of the task or of a judge |
| measure | success | within H tokens | the same |

On your own model and tasks, both sides:

    longstride train vb_vf model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 budget.turn_tokens=2048 test_budget.turn_tokens=2048
    longstride train vb_vf model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048 iterations=1 episodes_per_iteration=1024 \\
        credit.type=filtered_bc loss.type=reinforce learner.epochs=4
    longstride compare runs/vb_vf-1 runs/vb_vf-2

The exact problem (`exact`) has the paper's bi-level reward, the steps that are left when the answer is there, for a
table over 8 kinds of prompts and styles of six speeds: `ClonedTraces` is the likeliest distribution of styles of n right
traces, sharpened as is best for it, `Verified` the best one at the worst reward that n rewards allow. A style makes one of `needed` steps towards
the answer at each token with its own probability, so the time to the answer is a sum of geometric ones, and every
reward is exact.

Deviations: with a language model the reward is 0 or 1 within the budget, the traces of the verifier-based side come
from the policy as it becomes, and nothing is pessimistic but the clip; a learned verifier is a setting
(`scored_reward`) and no arm of the claim. A control that first clones thoughts of 64 tokens was left out before the
claim was run: on a tuning seed RL came to 0.97 of the tasks there and cloning to 0.90, so thoughts that are all as
long still differ in what is right. In the exact problem the worst reward of a confidence set is the mean less `bound`
over the root of the number of traces. The theorems (a gap of the order of the root of H where data grow with it) are
not tested, only that the gap grows. It grows in steps, which is the paper's reward; as a share of the budget it is
largest at 64.

The language model's claim was run as frozen, on ten seeds: within 96 tokens RL ends .19 above cloning, 95 % between .14
and .23 (.05 was asked for), and within 24 tokens .01 above, -.03 to .05. The second is the control, which had to stay
below .05 for sure and misses that by .005; so the claim is open. RL's traces become longer: for as many of them it sampled
half as many tokens again as cloning. Where both had sampled equally many it is .075 ahead [.05, .10].
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling Test-Time Compute Without Verification or RL is Suboptimal",
    authors="Amrith Setlur, Nived Rajaraman, Sergey Levine, Aviral Kumar",
    year=2025,
    arxiv="2502.12118",
    read="notes",
    topics=("search", "scaling", "cloning"),
    systems=(6,),
)
