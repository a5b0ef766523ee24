"""VL-DAC: PPO whose clip is a token's and whose value is a turn's. Bredis et al., 2025, arXiv 2508.04280.

A value for every token of a thought has to be learned and weighed; a value of the state before each turn is what an environment knows.
So a critic of turns gives each turn its advantage, all of its tokens share it, and each token has its own clipped ratio.

| place | choice | paper and released configuration (WebShop) | here |
|---|---|---|---|
| plan | `Fixed` | at most 50 turns, 128 turns collected for each update | 24 turns, 256 episodes |
| roll out | sampling, context | temperature 0.2, 256 tokens a turn; the newest 2 screenshots | temperature 1; all pages stay |
| score | `TaskReward` | the environment's reward of each step | programmatic, at the end |
| credit | `GAE` over turns | discount 0.99 (MiniWorld 0.9), lam 0.95 | 0.95, 0.95 |
| credit | whitening | advantages of an update's turns | the same, over their tokens |
| credit | `TurnValue` | 3 layers (3072, 2048) on the last hidden state of the prompt, no gradient to the policy | 3 layers (256, 256), the same |
| credit | `TurnCritic.fit` | squared error, clipped like the ratio, weight 0.5 in the policy's loss | squared error, an optimiser of its own |
| credit | `TurnValue.warmup` | the first 2 updates train the value alone | the same |
| update | `PPO` | clip 0.1; a minibatch with a ratio above 10 keeps the clipped branch alone | clip 0.1; a ratio above 10 where A < 0 is out |
| update | `KL` | k3 for each token, 0.04, to the start | the same |
| update | `Mean` over sequences | mean over a turn's tokens, then over turns | the same |
| update | passes, rate | 4 (MiniWorld 2); Adam, 1e-6 to 1e-8 along a cosine, norm 0.01 | 2 in steps of 384 turns; 3e-4, norm 1 |

Deviations: a model of half a million parameters on embedded sites stands for Qwen2-VL-7B under LoRA (rank 16), so rate, passes, batch and
the critic's width are a small model's; text, no screenshots; a state that a budget cut short goes on from its own value, where the
release takes that value for the return of the last turn; no entropy bonus (the release sets a coefficient and never reads it).
The claim holds it against the ratio of whole turns that `loop` has, within the same bounds.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Enhancing Vision-Language Model Training with Reinforcement Learning in Synthetic Worlds for Real-World "
    "Success",
    authors="George Bredis, Stanislav Dereka, Viacheslav Sinii, Ruslan Rakhimov, Daniil Gavrilov",
    year=2025,
    arxiv="2508.04280",
    read="notes",
    topics=("agents", "credit", "values", "vision"),
    systems=(146,),
)
