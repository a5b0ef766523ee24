"""TTSPM: coverage by attempts in closed form, and where it saturates. Wang et al., 2025, arXiv 2505.20522.

N parallel samples, and N rounds of rethinking until the first success, cover F(N) = F_max (1 - (1 - p)^N). One more
attempt adds F_max p (1 - p)^N, so what it adds falls below eps at

    N* = ceil(ln(eps / (F_max p)) / ln(1 - p))

One p for all tasks is the assumption. Where tasks differ in difficulty, the easy ones are solved first and the curve
bends early: fitted at few attempts, it promises a plateau that is not there. Chances drawn from Beta(a, b) have the
coverage 1 - B(a, b + N) / B(a, b), which is as easy to fit.

| place | choice | paper (R1-Distill-Qwen 1.5B and 7B; AIME, MATH-500, GPQA) | here |
|---|---|---|---|
| tasks | | benchmarks, difficulty as it is | puzzles; in the claim chains of drawn lengths; in the exact problem chances of a Beta whose mean and concentration are drawn, or of the mean each |
| roll out | parallel | up to 64 samples | `evaluation.attempts`: 64 |
| roll out | sequential | rounds of rethinking | `trial.episodes`: each sees those before it |
| measure | F(N) | hit at N | pass@N without bias, from all attempts; within@N of trials |
| fit | `Geometric` | F_max, p by least squares, small N | the same; `MixedGeometric` beside it |
| predict | F beyond, N* | N* against the plateau seen | points held out; N* with an interval (`scaling.plateau`) |

On your own model and tasks, or on any run folder that was evaluated with several attempts:

    longstride train ttspm model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048 --out runs/attempts
    longstride fit runs/attempts --x attempts --y pass --law geometric --rival mixed_geometric --until 8 --gain 0.002

It trains nothing. With `trial.episodes=8 group_size=1 context.type=trial_history` the attempts follow one another, and `--y within` is what is fitted.

Deviations: whoever chooses among attempts does not err; the Beta form is not the paper's; eps is ours. In the exact
problem attempts are draws of a known chance.

An earlier form of the language model's claim, that one chance predicts chains of five steps more closely than a power law
does, was given up before it was run: on a tuning seed one chance was off by 0.11, the power law by 0.09 and the Beta by
0.03. Chains of one length are not solved with one chance.

An earlier form (`results/mixed_alike.json`) was run on eight seeds: on chains of lengths that differ the Beta is 0.096
[0.082, 0.108] closer than one chance, and the power law 0.056 [0.026, 0.085]. This shows nothing of the cause, for its
control could not fail: on chains of three steps one chance errs by 0.03 in all, less than the margin of 0.05, of which the
Beta gains 0.022; and on chains of five steps, which are of one length too, the Beta was 0.08 closer. Now a dose stands in
its place, how far lengths are apart, on seeds of its own: the gain does not rise with it.
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
