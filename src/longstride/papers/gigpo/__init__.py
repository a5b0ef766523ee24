"""GiGPO: groups in groups, of episodes and of turns in one state. Feng et al., 2025, arXiv 2505.10978.

Episodes of one task begin in one state and come through the same states again. So what GRPO does with episodes can be
done with turns too, without a critic and without further rollouts: a turn is compared, by its discounted return to go,
with all turns of the group that were taken in the same state (the anchor state).

| place | choice | paper and released code (WebShop, Qwen2.5-1.5B-Instruct) | here |
|---|---|---|---|
| roll out | groups | 16 tasks of 8 episodes, 15 turns | 32 tasks of 8, 24 turns |
| roll out | context | this page and the last two turns | all pages |
| score | `TaskReward` | 10 or 0, less 0.1 for an action that is none | 1 or 0 |
| credit | `StepRelative`, episodes | R - mean of the group (equation 3); on ALFWorld, over the deviation | the same, no deviation |
| credit | `StepRelative`, states | equal observations of a group (equation 6) | equal addresses and pages, without error lines |
| credit | `StepRelative`, turns | return to go, discount 0.95 (equation 5), less its mean (equation 7) | the same |
| credit | `StepRelative`, sum | weight omega = 1 (equation 8) | the same |
| update | `PPO`, `Mean` over tokens, `KL` | clip 0.2, dual 3, KL 0.01 to the start, entropy 0.001 | the same, without dual clip and entropy |
| update | rate, steps | 1e-6, steps of 64 turns, one pass | 3e-4, 384 turns, two |

Deviations: the setup is `setups.sites`, with a model of half a million parameters. The released deviation has the
divisor n - 1, ours n. The release takes the mean over the turns of a group unless told otherwise, so that long episodes
count more often; here it is over episodes, as in equation 3. An episode alone in its group has its whole reward there
and 0 here. Groups of *similar* states, a later addition for searches, are left out. Nothing is claimed and nothing was
measured: it was only tried, for three iterations of 32 short episodes.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Group-in-Group Policy Optimization for LLM Agent Training",
    authors="Lang Feng, Zhenghai Xue, Tingcong Liu, Bo An",
    year=2025,
    arxiv="2505.10978",
    read="notes",
    topics=("agents", "credit"),
)
