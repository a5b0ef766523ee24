"""Online difficulty filtering: only tasks that are solved about half the time. Bae et al., 2025, arXiv 2504.03380.

A task that the policy always or never solves teaches nothing, and one that it nearly always or nearly never solves
teaches little: what an update can gain is bounded below by the variance p (1 - p) of the reward. So groups are sampled
until the batch is full of groups whose share of right answers lies in a band around one half.

| place | choice | paper | here |
|---|---|---|---|
| plan | `DynamicSampling` | 16 answers a prompt; batch of constant size, filled asynchronously | 8, until 32 groups are in, 4 stages |
| plan | band | balanced: 0.3 to 0.7 and others, symmetric around 0.5 | 0.25 to 0.75 |
| roll out, score | setup | math, verified | `setups.puzzles` |
| credit | `InBand`, `GroupRelative` | GRPO's, of groups in the band | the same |
| update | `PPO` | GRPO's, KL to the start | clip 0.2, no KL |

For one skill w, right with probability p = sigmoid(w x - b), the whole group's gradient under GRPO is sqrt(m (1 - m)) x
per answer, where m is the share that was right, whatever p is. `Skills` is that model: it shows the effect without a
language model, and is what the claim is about. Only updates are saved: on seeds 0 to 7 the balanced band ends at 0.68
and all tasks at 0.39 after 100 updates, but the band sampled 6.3 times as many answers for them, and after as many
answers all tasks are at 0.84.

Deviations: the model of half a million parameters of `setups.puzzles`; the bounds are from secondary accounts. The
language model was only tried, for two iterations of 32 episodes: that its held-out success rises has not been shown.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Online Difficulty Filtering for Reasoning Oriented Reinforcement Learning",
    authors="Sanghwan Bae, Jiwoo Hong, Min Young Lee, Hanbyul Kim, JeongYeon Nam, Donghyun Kwak",
    year=2025,
    arxiv="2504.03380",
    read="abstract",
    topics=("reasoning",),
    systems=(141,),
)
