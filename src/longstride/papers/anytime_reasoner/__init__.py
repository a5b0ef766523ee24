"""AnytimeReasoner: budget relative policy optimisation (BRPO). Qi et al., 2025, arXiv 2505.13438.

What counts is the answer at every budget, not only at the largest. So a thought is cut at several budgets and an answer
is asked for at each of them. A token is credited with the answers at later budgets, less a baseline: the answers that the
same thought gave before, and the other thoughts of the group.

| place | choice | paper and released code (R1-Distill-Qwen-1.5B) | here |
|---|---|---|---|
| plan | groups of one task | 8 thoughts, 64 tasks | 8 thoughts, 8 puzzles |
| roll out | `AtBudgets`, budgets | 4, equally far apart, 8,000 tokens | 4, equally far apart, 160 tokens |
| roll out | `AtBudgets`, answers | 4 at each budget, after words that end the thought | the same, 16 tokens |
| score | verifier | right or wrong, and said in its form | right or wrong |
| credit | `BudgetRelative`, thoughts | the equation below, by the mean of the answers of a budget | the same, prior uniform |
| credit | `BudgetRelative`, answers | less the mean of those at the same place | the same |
| update | loss | GRPO's, no KL | `PPO`, mean over answers and thoughts, one step a batch |
| test | `Anytime` | accuracy at 4 budgets, their mean | mean height over all budgets, answers at every step |

With r_j the mean of the answers at budget j of S, P_j the prior, and segments counted from 0, a token of segment s has

    A = R_s - [s V1 + (S - s) V2] / S,   R_s = sum over j >= s of P_j r_j,
    V1 = (sum over j < s of 2^j r_j / sum over j < s of 2^j) (sum over j >= s of P_j),   V2 = mean of R_s in the group.

Deviations: model and tasks are a small model's (`base-thoughts`, which answers after a thought of any length). The answer
that a thought comes to by itself is sampled and not trained: all that are trained were asked for. Bias: V1 knows only
what came before the token, and is a baseline; V2 has the thought's own R_s in it, so that in groups of n the expected
gradient of segment s is 1 - (S - s) / (S n) of the exact one (tested). Returns are weighed by P_j, so where only the last
answer can be right BRPO's steps are a quarter of GRPO's. Each at its own best step, both are level there (the control of the
exact claim).

On your own model and tasks, of a single turn; say what ends a thought, and what asks for an answer:

    longstride train anytime_reasoner model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl tasks.match=number \\
        sampler.ends='</think>' sampler.closing='</think> The answer is' learner.lr=1e-6 \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048 \\
        'evaluation.strategies=[{type="anytime",marks=["\\n\\n","</think>"],closing="</think> The answer is",within=[512,1024]}]'

`sampler.budgets` and `credit.prior` (uniform, linear, base) say at which budgets answers count, and how much.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Optimizing Anytime Reasoning via Budget Relative Policy Optimization",
    authors="Penghui Qi, Zichen Liu, Tianyu Pang, Chao Du, Wee Sun Lee, Min Lin",
    year=2025,
    arxiv="2505.13438",
    read="notes",
    topics=("reasoning", "credit", "horizon"),
    systems=(139,),
)
