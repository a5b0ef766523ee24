"""Dr. GRPO: GRPO without its two biases. Liu et al., 2025, arXiv 2503.20783.

Dividing by the length of an answer makes a long wrong one cheap; dividing by the group's deviation gives more weight to
tasks that are almost always or almost never solved. Both divisions are left out, and nothing else is changed.

| place | choice | paper (section 3.2) and released script (Qwen2.5-Math-7B) | here |
|---|---|---|---|
| credit | `GroupRelative` | r - mean of the group | the same |
| update | `PPO`, `Constant` | sum over tokens, divided by the longest answer's length (a constant) and the number of answers | the same, 160 tokens |
| plan | groups | 8 answers a question, 128 questions | 8 answers a task, 32 tasks |
| roll out | sampling | temperature 1, top-p 1, at most 3,000 tokens | the same, 160 tokens |
| update | passes, KL, rate | one, none, 1e-6 constant | as in `grpo`: two, none, 3e-4 |

Deviations: model, tasks and rate are those of `grpo`. The constant length only scales the loss, and AdamW takes the
scale of a gradient out but for the clipping of its norm, so the rate needs no other number.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    authors="Zichen Liu, Changyu Chen, Wenjun Li, Penghui Qi, Tianyu Pang, Chao Du, Wee Sun Lee, Min Lin",
    year=2025,
    arxiv="2503.20783",
    read="notes",
    topics=("reasoning", "credit"),
)
