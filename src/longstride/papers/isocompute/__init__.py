"""IsoCompute: how many rollouts a problem, at a given amount of sampling. Cheng et al., 2026, arXiv 2603.12151.

Sampling compute is C = B n M: problems a batch, rollouts a problem, updates. Few rollouts leave more updates, and win
while compute is small. Problems that share parameters disturb each other, and a group of few rollouts shows nothing of
a hard problem, so the best n grows with C; it stops where groups show even the hardest problem. A problem that is
alone, or that shares nothing, comes to the same with every n.

| place | choice | report (Qwen2.5-7B-Instruct, Guru-Math) | here |
|---|---|---|---|
| problem | | 5,000 and 6,000 problems, easy and hard | puzzles; in the exact problem 10 to 40 of chances 0.3 to 0.003 that share features |
| plan | B problems, n rollouts | 32 to 1,024, 8 to 2,048; B fixed, or B n | `group_size`, B n fixed: 256; exact: B fixed |
| credit | group-relative | GRPO, zero-variance groups dropped on hard problems | `GroupRelative`, `MixedGroups` |
| update | rate | by the square root of B n, one step a batch | one step a batch, so B n and the rate stay |
| fit | `Sigmoid` for each n | records by compute, a monotonic sigmoid | all points; records in `scaling.frontier` |
| choose | the envelope of these | n*(C) is highest at C | `allocate`: which n from which budget on |
| rule | `LogSigmoid` | log n* a sigmoid in log C | the same, fitted to the envelope |

On your own model and tasks, a sweep, a curve for each n, and what n a larger budget asks for:

    longstride sweep isocompute runs/iso model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 budget.turn_tokens=1024 test_budget.turn_tokens=1024 --grid group_size=4,16,64
    longstride fit runs/iso --by group_size --x episodes --out fit.json
    longstride allocate fit.json --budget 100000

In runs (the claim) fewer rollouts were the better ones all along, so a curve that foretells the end had no turn to find.

Deviations: n is traded for problems of a batch of fixed size, which is one of the report's three questions; KL and
entropy terms are left out. In the exact problem answers are enumerable, a problem's logits are its base policy's plus a
linear map of its features, success is exact, and there is no ratio; B is not swept.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="IsoCompute Playbook: Optimally Scaling Sampling Compute for LLM RL",
    authors="Zhoujun Cheng, Yutao Xie, Yuxiao Qu, Amrith Setlur, Shibo Hao, Varad Pimpalkhute, Tongtong Liang, Feng Yao, "
    "Hector Liu, Eric Xing, Virginia Smith, Ruslan Salakhutdinov, Zhiting Hu, Taylor Killian, Aviral Kumar",
    year=2026,
    arxiv="2603.12151",
    read="notes",
    topics=("scaling", "reasoning"),
    systems=(11,),
)
