"""Labels of a policy are learned from far fewer examples by RL than by fine-tuning. Liu et al., 2025, arXiv 2512.20061.

Whether a post breaks a policy takes reasoning, and labels by experts are few. Fine-tuning on labels has to find out from them
how a label comes about. A model that can read a policy, though badly, thinks before it answers, and reinforcement learning on
the same labels makes its reading reliable: it takes up to a hundred times fewer of them, and gets better along a sigmoid in data,
rollouts and steps.

| place | choice | paper (content moderation at Meta) | here |
|---|---|---|---|
| tasks | `Moderation` | three tasks of moderation, a policy in the prompt | posts and rules of features |
| start | `base-rules` | general language models | reads rules, slips, and gives up too early |
| RL | `GroupRelative`, `PPO` | GRPO, no KL term | the same, 8 a group |
| score | `TaskReward` | the label; format, length, and a judge with a rubric | the label |
| beside | `AnswersAlone`, `Cloning` | supervised fine-tuning on labels | the same, one label or ten for each of RL's |
| law | `longstride sweep`, `longstride fit` | sigmoids in data, rollouts, steps | the commands |

`longstride train moderation` takes about half a minute of one core. With labels of your own, rows of `prompt` (policy and post) and `answer` (the
label), both sides:

    longstride train moderation model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=labels.jsonl tasks.mark=Label: \\
        learner.lr=1e-6 budget.turn_tokens=512 test_budget.turn_tokens=512
    longstride train moderation/labels model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=labels.jsonl tasks.mark=Label: \\
        cloning.learner.lr=1e-5

`reward.type=scored_reward reward.judge=RUN` has a judge in the place of the label (docs/guides/judge.md).

Deviations: features are numbers, so nothing has to be understood but the form of a policy, and the start was shown that form. As its
readings are short, no reward is paid for format or length. Where policies are named and not written (`tasks.named=true`),
reasoning has nothing to go on, and fine-tuning on 1,920 labels remembers what a hundred names stand for (0.99). A hundred
times fewer labels rest on what a large model knows before, which no model of this size shows; ten times are looked for. Rates, batches and lengths of the paper are not known.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling Reinforcement Learning for Content Moderation with Large Language Models",
    authors="Rui Liu, Yuchen Lu, Zhenyu Hou, Fangzhou Xiong, Xiaoyang Zhang, Changshu Jian, Zhicheng Zhu, Jiayuan Ma, Jacob Tao, "
    "Chaitali Gupta, Xiaochang Peng, Shike Mei, Hang Cui, Yang Qin, Shuo Tang, Jason Gaedtke, Arpit Mittal, Hamed Firooz",
    year=2025,
    arxiv="2512.20061",
    read="notes",
    topics=("reasoning", "cloning", "scaling"),
    systems=(79,),
)
