"""AnytimeReasoner: budget relative policy optimisation (BRPO). Qi et al., 2025, arXiv 2505.13438.

What counts is the answer at every budget, not only at the largest. So a thought is cut at several budgets and an answer
is asked for at each of them; a token is paid for the answers at budgets behind it, less what could be expected: from the
answers that the same thought gave before, and from the other thoughts of the group.

| place | choice | paper and released code (R1-Distill-Qwen-1.5B) | here |
|---|---|---|---|
| plan | groups of one task | 8 thoughts, 64 tasks | 8 thoughts, 16 tasks |
| roll out | budgets | 4, equally far apart, 8,000 tokens | 4 segments of one token |
| roll out | summaries | 4 answers at each budget, from a policy trained apart | 4 answers, right with chance 0.9 where found, else 0.1 |
| score | verifier | mean of the answers of a budget | the same |
| credit | `BudgetRelative` | the equation below | the same, prior uniform |
| update | loss | GRPO's, no KL, one step a batch | `Reinforce`, one step |

With r_j the mean of the answers at budget j of S, P_j the prior, and segments counted from 0, a token of segment s has

    A = R_s - [s V1 + (S - s) V2] / S,   R_s = sum over j >= s of P_j r_j,
    V1 = (sum over j < s of 2^j r_j / sum over j < s of 2^j) (sum over j >= s of P_j),   V2 = mean of R_s in the group.

Deviations: tasks are enumerable (`exact.answers`). A segment finds the answer by one token of the vocabulary, which stays
found; the summary's policy is fixed and not trained. Bias: V1 knows only what came before the token, and is a baseline;
V2 has the thought's own R_s in it, so that in groups of n the expected gradient of segment s is 1 - (S - s) / (S n) of
the exact one (tested). Returns are weighed by P_j, so where only the last answer can be right BRPO's steps are a quarter
of GRPO's, and it is slower: the claim's control shows that.
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
