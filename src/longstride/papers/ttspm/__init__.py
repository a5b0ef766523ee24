"""TTSPM: coverage by attempts in closed form, and where it saturates. Wang et al., 2025, arXiv 2505.20522.

N parallel samples, and N rounds of rethinking until the first success, cover F(N) = F_max (1 - (1 - p)^N). One more
attempt adds F_max p (1 - p)^N, so what it adds falls below eps at

    N* = ceil(ln(eps / (F_max p)) / ln(1 - p))

One p for all tasks is the assumption. Where tasks differ in difficulty, the easy ones are solved first and the curve
bends early: fitted at few attempts, it promises a plateau that is not there. Chances drawn from Beta(a, b) have the
coverage 1 - B(a, b + N) / B(a, b), which is as easy to fit.

| place | choice | paper (R1-Distill-Qwen 1.5B and 7B; AIME, MATH-500, GPQA) | here |
|---|---|---|---|
| problem | tasks | benchmarks, difficulty as it is | 300 tasks of chances Beta(0.15, 0.85), or of 0.15 each |
| roll out | attempts | up to 64 | 8 a task and iteration |
| measure | F(N), N <= 8 | hit at N | pass@N without bias, from all attempts so far |
| fit | `Geometric` | F_max, p by least squares | the same; `MixedGeometric` beside it |
| predict | F(64), N* at eps = 0.002 | N* against the plateau seen | both against the exact ones |

Deviations: attempts are draws of a known chance, and the best of them is chosen without error, so the answers of no
model are looked at; the Beta form is not the paper's; eps is ours.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling over Scaling: Exploring Test-Time Scaling Pareto in Large Reasoning Models",
    authors="Jian Wang, Boyan Zhu, Chak Tou Leong, Yongqi Li, Wenjie Li",
    year=2025,
    arxiv="2505.20522",
    read="notes",
    topics=("scaling", "search"),
    systems=(117,),
)
