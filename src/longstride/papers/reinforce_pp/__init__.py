"""REINFORCE++: no groups, advantages whitened over the batch. Hu et al., 2025, arXiv 2501.03262.

The advantage of a token is its return to go, brought to mean 0 and deviation 1 over all tokens of the batch: the
baseline is the batch's, not a task's. With it PPO's clipped loss.

| place | choice | paper (version 9) | here |
|---|---|---|---|
| plan | groups | none needed: one answer a task | tasks as in `grpo`, 8 answers each |
| credit | `GAE` | return to go, discount 1, whitened over the batch's tokens | the same |
| update | `PPO`, `Mean` over tokens | clipped ratio, mean over each answer's tokens | clipped at 0.2, mean over all tokens |
| update | KL to the reference | in the reward, token by token | none |
| the rest | | | as in `grpo` |

Deviations: model, tasks, rate and the groups in which tasks are drawn are those of `grpo`, so that all papers on
puzzles train on the same tasks; whitening goes over the iteration's 256 episodes, and its baseline knows no task's
difficulty.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage Normalization",
    authors="Jian Hu, Jason Klein Liu, Haotian Xu, Wei Shen",
    year=2025,
    arxiv="2501.03262",
    read="notes",
    topics=("reasoning", "credit"),
)
