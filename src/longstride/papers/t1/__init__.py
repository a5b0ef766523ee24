"""T1: RL with many samples of a prompt, an entropy bonus and a moving anchor. Hou et al., 2025, arXiv 2501.11651.

A long run of RL stalls when the policy no longer explores. So each prompt is sampled far more often than a baseline
needs, at a high temperature; entropy is rewarded; and the policy is held to an average of its recent self, so that it
may go far but not fast. Such sampling also brings up repetition, endless thought and gibberish, which are punished.

| place | choice | paper (GLM-4-9B, Qwen2.5-14B and 32B) | here |
|---|---|---|---|
| plan | groups of one prompt | 64 answers, 32 prompts an update | 64 answers, 16 prompts |
| roll out | sampling | temperature 1.2, the best of 0.9 to 1.3 | temperature 1.2; tests at 1 |
| score | `Penalised` | 1 for a right answer, 0 for a wrong one, -1 for one with an unwanted pattern | the same |
| credit | `GroupRelative` | r - mean of the group's others (RLOO) | the same |
| update | `AnchoredReinforce` | KL to the anchor in the reward, less its mean; coefficient 2e-4 | the same, 0.05 |
| update | `MovingAverage` | exponential moving average of the policy | the same, decay 0.9 an update |
| update | entropy | bonus for the entropy of each token | the same, 0.001 |
| update | steps, rate | on-policy, 1.5e-6 | one step an iteration, 1e-3 |

Deviations: model and puzzles are those of `grpo`; the shipped base, which was trained on thoughts with trial and error,
stands for the paper's fine-tuned start. An answer has about 40 tokens here and not thousands, so the KL of an answer
needs a larger coefficient. The paper's decay and entropy coefficient were not found. Samples at temperature 1.2 are not
weighed anew for the policy at 1. The paper leaves out prompts that its start solves more than 3 times in 10; what it
says of success by length of a thought can be measured with `strategies.anytime`.

On your own model and tasks, which need a verifier alone:

    longstride train t1 model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        loss.kl.coefficient=2e-4 budget.turn_tokens=1024 test_budget.turn_tokens=1024

`reward.ngram` and `reward.times` say what is repetition. An iteration is one step, whatever its size.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Advancing Language Model Reasoning through Reinforcement Learning and Inference Scaling",
    authors="Zhenyu Hou, Xin Lv, Rui Lu, Jiajie Zhang, Yujiang Li, Zijun Yao, Juanzi Li, Jie Tang, Yuxiao Dong",
    year=2025,
    arxiv="2501.11651",
    read="abstract",
    topics=("reasoning",),
    systems=(64,),
)
