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

`longstride train agent_rlvr` takes about a minute of one core. On your own model and tasks, hints in a column of a file:

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

The claim, frozen before its ten seeds ran, is open. By equal sampled tokens attempts without a hint come to .80 [.51, 1.02] with guidance and to
.00 without it (+.80 [.51, 1.03], margin .2): in twenty iterations to .87 and more in eight of ten houses, to .23 in one and to .01 in one. Whether
a hint helps the more, the rarer success is, is not decided: +.64, +.59 and +.80 in corridors of two, three and five rooms, a rise of
+.16 [-.13, .39]. Where hints stay in the update, attempts without one solve nothing, and those with one nearly always succeed.

Deviations: of the paper the abstract and what others wrote were read. A model of 0.2 million parameters reads no hints, so it is first shown
2,000 corridors whose ways are drawn anew for each, with hints that are followed: they teach nothing of the house. The reward model for the
test is left out. Rates, batches and lengths of the paper are not known; guidance in words, by a teacher, takes a model that reads it.
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
