"""WebGym: short horizons in training, longer ones at the test. Bai et al., 2026, arXiv 2601.02439.

With many real tasks the plainest method goes far: play, keep what succeeded, imitate it. What WebGym adds is what is kept.
Tasks get few turns, by difficulty: a success that took a detour is none, and is not imitated; the test allows more. Turns
that changed nothing on the page are left out. And what is imitated is recent, of the last four iterations.

| place | choice | paper and released code (Qwen3-VL-8B) | here |
|---|---|---|---|
| plan | tasks, uniform | 292,000 with rubrics; difficulty is the number of facts | embedded sites; 256 an iteration |
| plan | `PerDifficulty` | 10, 20, 30 turns; tests at 30, 50, 70 | 6, 10, 16; tests at 24 |
| roll out | context, sampling | 4 rounds of images and a memory; temperature 1, top-p 0.99, top-k 2 | all pages; temperature 1 |
| score | `TaskReward` | rubric, judged from screenshots, with a check of the answer's evidence | exact; the pages must have been seen |
| credit | `RecentSuccesses` | 1,800 turns of the last 4 iterations, p ~ (k + 1)^2 | 256 episodes of these |
| credit | `FilteredBC(drop_unchanged=True)` | turns whose screenshot equals the next are left out | turns after which the page looks the same |
| update | epochs, rate | 2, 1e-6, batch 12 a device | 2, 5e-4, 64 |

Deviations: episodes are drawn instead of turns, so that a trajectory is imitated whole; a model of half a million
parameters on embedded sites, so horizons, rate and batch are its. The asynchronous rollout is the pool (`rollout.pool`), in
no recipe. `webgym/exact` computes what the horizon does. On seed 0 short horizons gain 0.023 over long ones. Differences
of such runs scatter by some 0.05 between seeds (`asyncwebrl`), so it was expected that three seeds tell 0.08 from the
margin, and that to tell 0.023 from nothing takes some 40.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="WebGym: Scaling Training Environments for Visual Web Agents with Realistic Tasks",
    authors="Hao Bai, Alexey Taymanov, Tong Zhang, Aviral Kumar, Spencer Whitehead",
    year=2026,
    arxiv="2601.02439",
    read="notes",
    topics=("agents", "horizon", "cloning", "systems"),
    systems=(18,),
)
