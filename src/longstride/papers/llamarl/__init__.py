"""LlamaRL: asynchronous RL with a one-sided importance weight (AIPO). Wu et al., 2025, arXiv 2505.24034.

Generation never waits for training, so what is trained on was sampled by a policy several updates old. AIPO weighs every
token by min(pi / mu, rho), mu the policy that sampled: large weights are cut, small ones are kept, and no token loses
its gradient.

| place | choice | paper (Llama 3, 8B to 405B) | here |
|---|---|---|---|
| roll out | asynchronous | as stale as the executors make it, a few versions | up to 8 iterations ahead |
| plan | groups of one task | several answers a prompt | 8 answers, 32 puzzles |
| score | right or wrong | rule-based, and reward models | right or wrong |
| credit | `GroupRelative` | r - mean of the group | the same |
| update | `CISPO` with no floor | min(pi / mu, rho) A grad log pi, rho from 2 to 10 | the same, rho 4 |

Deviations: model and tasks are those of `grpo`. What the paper is mostly about, throughput on hundreds of GPUs, is not
shown. Where environments are fast and the sampler is faster than the learner, tokens are as old as `pool.staleness`
allows (`staleness` in the rows says how old they were). Bias, as the tests measure it: for answers of one token the
expected update is the exact gradient of the policy as it is now while no ratio is above rho, whatever the staleness;
above, an answer weighs rho mu instead of pi; uncorrected it weighs mu.

On your own model and tasks, of many turns and slow environments too:

    longstride train llamarl model=base tasks.type=embedded_web budget.turns=24 test_budget.turns=24
    longstride train llamarl model=Qwen/Qwen3-0.6B engine.type=vllm tasks.type=dataset tasks.path=sums.jsonl \\
        learner.lr=1e-6 budget.turn_tokens=2048 test_budget.turn_tokens=2048

`pool.staleness=0` trains and rolls out in turn; `loss.type=reinforce` takes the correction away.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="LlamaRL: A Distributed Asynchronous Reinforcement Learning Framework for Efficient Large-scale LLM Training",
    authors="Bo Wu, Sid Wang, Yunhao Tang, Jia Ding, Eryk Helenowski, Liang Tan, Tengyu Xu, Tushar Gowda, Zhengxing Chen, "
    "Chen Zhu, Xiaocheng Tang, Yundi Qian, Beibei Zhu, Rui Hou",
    year=2025,
    arxiv="2505.24034",
    read="notes",
    topics=("systems", "credit"),
    systems=(144,),
)
