"""Scaling behaviours of RL post-training: what the data are repeated for. Tan et al., 2025, arXiv 2509.25300.

At a fixed number of updates the final success is decided by the updates, and not by how many different problems they
were made on: 25 passes over a set cost little, 100 cost much. The paper's other law, of test loss by model size and
amount, is `scaling.SizedPower`:

    log L(N, X) = -k(N) log X + E(N),    k(N) = K_max / (1 + N_0 / N)

| place | choice | paper (Qwen2.5, 0.5B to 72B, math) | here |
|---|---|---|---|
| draw | `FixedSet` | a set of some size again and again, updates equal: 1 to 100 passes | the same, of any tasks; fewer than asked for are refused |
| credit, update | | GRPO (verl) | `GroupRelative`, `PPO` |
| measure | held-out error | 1 - pass@1 on 500 problems | on 200 puzzles |
| fit, one model | `RisingPower` of `error` | k and E of each size | the exponent is -k |
| fit, all sizes | `SizedPower` | k(N); in the released code an E of each size | E a line in log N, so that a size that was not run has one |
| predict | | 72B from 0.5B to 32B; the rest from the first 25 of 105 points | `--sizes-until`; the rest from the first two fifths |

On your own model and tasks:

    longstride sweep scaling_behaviors runs/reuse model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 --grid curriculum.unique=51,1280
    longstride train scaling_behaviors/law model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 --out runs/law
    longstride fit runs/law --law rising_power --y error --until 16 --rival sigmoid

Models of several sizes, made and trained, and their law: docs/guides/scaling.md.

The exact problem (`exact`) has the reuse alone: the best of 8 answers is linear in 16 numbers, r - mean of 8 answers,
one step on 32 visits, 1, 25 and 100 passes at 12,800 visits.

Deviations: in the exact problem the policy is linear, so what it memorises it memorises in few parameters. The claim
about the law is of one size; that of all sizes is tested on planted parameters (`tests/scaling/test_scaling.py`), and
three small models did not settle it.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling Behaviors of LLM Reinforcement Learning Post-Training: An Empirical Study in Mathematical Reasoning",
    authors="Zelin Tan, Hejia Geng, Xiaohang Yu, Mulei Zhang, Guancheng Wan, Yifan Zhou, Qiang He, Xiangyuan Xue, Heng "
    "Zhou, Yutao Fan, Zhongzhi Li, Zaibin Zhang, Guibin Zhang, Chen Zhang, Zhenfei Yin, Philip Torr, Lei Bai",
    year=2025,
    arxiv="2509.25300",
    read="notes",
    topics=("scaling", "reasoning"),
    systems=(68,),
)
