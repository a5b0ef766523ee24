"""Scaling behaviours of RL post-training: what the data are repeated for. Tan et al., 2025, arXiv 2509.25300.

At a fixed number of updates the final success is decided by the updates, and not by how many different problems they
were made on: 25 passes over a set cost little, 100 cost much. The paper's other law, of test loss by model size and
amount, is `scaling.SizedPower`:

    log L(N, X) = -k(N) log X + E(N),    k(N) = K_max / (1 + N_0 / N)

| place | choice | paper (Qwen2.5, 0.5B to 72B, math) | here |
|---|---|---|---|
| problem | what generalises | mathematics | the best of 8 answers is linear in 16 numbers |
| plan | passes over the data | 1 to 100 at equal steps | 1, 25, 100 at 12,800 visits |
| credit | group-relative | GRPO | r - mean of 8 answers |
| update | policy gradient | verl, one step a batch | one step on 32 visits |
| measure | held-out success | 500 problems | 2,000 problems, exact |

Deviations: the policy is linear, so what it memorises it memorises in few parameters; sizes of models are not run: the
law in size is tested on planted parameters alone (`tests/scaling/test_scaling.py`).
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling Behaviors of LLM Reinforcement Learning Post-Training: An Empirical Study in Mathematical Reasoning",
    authors="Zelin Tan, Hejia Geng, Xiaohang Yu, Mulei Zhang, Guancheng Wan, Yifan Zhou, Qiang He, Xiangyuan Xue, Heng "
    "Zhou, Yutao Fan, Zhongzhi Li, Zaibin Zhang, Guibin Zhang, Chen Zhang, Zhenfei Yin, Philip Torr, Lei Bai",
    year=2025,
    arxiv="2509.25300",
    read="abstract",
    topics=("scaling", "reasoning"),
    systems=(68,),
)
