"""IsoCompute: how many rollouts a problem, at a given amount of sampling. Cheng et al., 2026, arXiv 2603.12151.

Sampling compute is C = B n M: problems a batch, rollouts a problem, updates. Few rollouts leave more updates, and win
while compute is small. Problems that share parameters disturb each other, and a group of few rollouts shows nothing of
a hard problem, so the best n grows with C; it stops where groups show even the hardest problem. A problem that is
alone, or that shares nothing, comes to the same with every n.

| place | choice | report (Qwen2.5-7B-Instruct, Guru-Math) | here |
|---|---|---|---|
| problem | `Sharing` | 5,000 and 6,000 problems, easy and hard | 20 of chances 0.3 to 0.003, features of 16 numbers |
| plan | B problems, n rollouts | 32 to 1,024, 8 to 2,048 | 4; 8 to 1,024 |
| credit | group-relative | GRPO, zero-variance groups dropped | (r - mean) / deviation |
| update | rate | by the square root of B n | the same |
| compare | equal C | records, a sigmoid for each n (that of `scalerl`), their envelope | the same number of rollouts an iteration |

The envelope: `longstride sweep isocompute --grid method.rollouts=8,32,256 OUT`, then `longstride fit OUT --by
method.rollouts --x rollouts`.

Deviations: answers are enumerable, a problem's logits are its base policy's plus a linear map of its features, and
success is exact; no ratio, as there is one step a batch; B is not swept.
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
