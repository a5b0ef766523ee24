"""Agent-RLVR: tasks that nobody solves by chance are attempted again with a hint. Da et al., 2025, arXiv 2506.11425.

Where one attempt in a thousand succeeds, groups have no success and RL nothing to learn from. With a hint the same policy succeeds. What it
said then is trained as if it had said it without: the hint leaves the prompts of the update, and after some updates none is needed.

| place | choice | paper (Qwen2.5-72B-Instruct) | here |
|---|---|---|---|
| tasks | | 817 repositories with faults and tests; 9.4 % of SWE-bench Verified at first | corridors of five rooms in one house: 0.1 % by chance |
| plan | `Guided` | what failed is attempted again with guidance | the same, in the group of the failed attempts |
| plan | hints | plans, feedback on errors and on the environment, by a teacher | which door leads on in each room, by the task source |
| roll out | `FullHistory` | guidance in the context | behind the goal |
| credit, update | `GroupRelative`, `PPO` | DPO (by what others wrote) | GRPO |
| update | `WithoutHints` | not known whether the hint stays | it is dropped, and the ratio begins at 1 |

On your own model and tasks, hints in a column of a file:

    longstride train agent_rlvr model=Qwen/Qwen3-0.6B cloning= tasks.type=dataset tasks.path=sums.jsonl 'tasks.keep=["hint"]' \\
        sampler.hints.type=column_hints 'sampler.words="\\nHint: {hint}"' learner.lr=1e-6 learner.epochs=1 \\
        budget.turns=1 budget.turn_tokens=1024 test_budget.turns=1 test_budget.turn_tokens=1024

Tasks of many turns go by the same settings. A task source of your own may have a method `hint` (a task to a text), which the default asks.
Hints of your own see the failed attempts, and may ask any model (`sampler.hints.type=my_module:Teacher`):

    class Teacher(Hints):
        def of(self, source, tasks, attempts):
            return [my_model(task.goal, [turn.text for turn in tried[0].turns]) for task, tried in zip(tasks, attempts)]

`replay.type=mixed_groups` keeps hints in the update, and `replay.old=hinted` divides by the probability that a token had with the hint, as Hints
does (arXiv 2506.13923, abstract). `metrics.jsonl` has success with and without hints (`by_role`).

The claim is not frozen and has not been run. On two tuning seeds, each with a house of its own, attempts without a hint came from 0 to .92 and .47 in
twelve iterations and to .99 in twenty, and never above 0 where nobody had hints. In a first pilot the side without hints had forty iterations, and
both were compared where that side had sampled too little (.52, and two seeds that differed by .66). It has eighty now, and seeds of which none
was begun. Looks before `dual_clip` was set:
with hints kept in the update, attempts without a hint still solved 0 after sixteen iterations, where those with a hint always succeed; in corridors of
two rooms they came to .67 in eight iterations, and to .40 in twenty without guidance.

Deviations: of the paper the abstract and what others wrote were read. A model of 0.2 million parameters reads no hints, so it is first shown
2,000 corridors whose ways are drawn anew for each, with hints that are followed: they teach nothing of the house. The reward model for the
test is left out.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards",
    authors="Jeff Da, Clinton Wang, Xiang Deng, Yuntao Ma, Nikhil Barhate, Sean Hendryx",
    year=2025,
    arxiv="2506.11425",
    read="notes",
    topics=("agents",),
    systems=(127,),
)
