"""TTI: test-time interaction scaling. Shen et al., 2025, arXiv 2506.07976.

Online filtered behaviour cloning in which the turns an episode may take grow with the iteration. A short horizon teaches to be right quickly
and cannot explore; a long one from the start clones successes full of arbitrary actions; growing it gives both.

| place | choice | paper and released code (WebVoyager) | `RELEASED` | `RECIPE` |
|---|---|---|---|---|
| start | a base model | prompted to act | `base`: impatient | `base-wander`: it slips, loops and makes detours |
| plan | tasks uniform with replacement | 15 iterations of 512 episodes | 10 of 256 | 20 of 512 |
| plan | `Multiplicative` | h = clip(10 i, 30), released as 10, 20, 20, 30; tests at 30 | clip(8 i, 24); tests at 24 | the same |
| roll out | `FullHistory` | placeholder for older pages, 3 screenshots kept | all pages stay: 24 of them fit | the same |
| roll out | sampling | temperature 1.0, top-p 0.95 | the same | the same |
| score | `TaskReward` | judge that asks for evidence, 88.9 % agreement with people | programmatic, exact | pages that the answer rests on were seen |
| credit | `TTIReplay` | 512 successes, half recency, half site balance | 256 | 1,024 |
| credit | `FilteredBC` | 1 over the length of a turn, per token | the same | equal weights; turns that moved nothing are left out |
| update | AdamW, warm-up 20, cosine, weight decay 0.01 | one epoch, to 2000 steps | the same | to 3200 steps: it takes 2400 |
| update | rate, betas, clip, batch | 4e-6, (0.9, 0.999), 0.01, 32 | 5e-4, (0.9, 0.95), 1.0, 64 | the same |
| test | held-out tasks | of WebVoyager's own sites | new templates, sites and names | new sites and names; new templates beside |

Equal weights are a deviation. TTI's turns all carry a long thought; here `home` has 3 tokens and `type search ...` 7, and 1/|a| pays for
the short one: cloned with its own successes, the policy says `home` for ever. Without evidence a third of the early successes are guesses.
Tasks that act on six items are left out, for the model cannot reach them (`longstride train ceiling`).

Deviations: a model of half a million parameters on embedded sites stands for Gemma-3-12B on the web, so learning rate, clipping and batch
are a small model's; turns that could not be parsed are not cloned; replay's recency goes by time, and is drawn once (the release groups by
task and draws on every rank); an environment failure is never a reward of 0.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Thinking vs. Doing: Agents that Reason by Scaling Test-Time Interaction",
    authors="Junhong Shen, Hao Bai, Lunjun Zhang, Yifei Zhou, Amrith Setlur, Shengbang Tong, Diego Caples, Nan Jiang, "
    "Tong Zhang, Ameet Talwalkar, Aviral Kumar",
    year=2025,
    arxiv="2506.07976",
    read="notes",
    topics=("agents", "horizon", "cloning", "search"),
    systems=(1,),
)
