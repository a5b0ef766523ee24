"""RAO: agents that delegate to new instances of themselves, trained end to end. Gandhi et al., 2026, arXiv 2605.06639.

What a context holds limits what one agent can do. An agent that leaves parts of its task to new instances of itself reads what came of them and
nothing of how, so a tree of agents does what no context holds. One policy plays all of them, and every agent is credited with what came of its own
task, with a bonus where those that it delegated to succeeded.

| place | choice | paper, and the authors' code (Qwen3-4B, Qwen3-VL-30B) | here |
|---|---|---|---|
| tasks | `Delegating` | TextCraft-Synth, Oolong, DeepDive, ART-E; agents write Python | `Vaults`: keys in vaults that other keys open; any tasks |
| plan | `Delegated` | an agent may launch several at once, up to a depth and a number | one after the other; a part of an episode ends where it delegates |
| a sub-task | `SubTasks` | a goal in words, in an environment that is forked | a goal in words; a key is handed over |
| score | own task | by the environment or a model; or that of the root (`propagate_root_success`) | by the task's evaluator; `any_goal`: that of the root |
| credit | `NodeRelative`, `bonus` | own score and a bonus for the mean score of children | 0.4 |
| credit | `NodeRelative` | minus the mean reward of the other roots of the group | the same |
| credit | `by_depth` | depths weigh alike, by tokens | the same, in an update |
| update | `PPO` | not read | clipped, mean over tokens |
| test | `Recursive` | the same trees | the same; with `tasks.by.deepest=0` nobody delegates |

`longstride train rao` takes about a minute of one core. On your own model and tasks: what stands behind `delegate` is the goal of a sub-agent in the
same world, and what it answers is what its parent reads.

    longstride train rao model=Qwen/Qwen3-0.6B cloning= tasks.tasks.type=dataset tasks.tasks.path=tasks.jsonl actions=explained learner.lr=1e-6 \\
        'tasks.by={verb="delegate",tasks={type="any_goal"},deepest=2,agents=8}' budget.turn_tokens=1024 test_budget.turn_tokens=1024

`actions=explained` tells an agent how to delegate, as long as it may.

A world that can judge parts has a member of `SubTasks` (a task and a text to a task), and where a part that is done changes the world its
environment has `receive` (`Receiving`).

    longstride eval RUN 'tasks.tasks.depths=[3,4,5]'        # deeper than it was trained on

`metrics.jsonl` has successes of roots, of sub-agents and of parts that wait (`by_role`); evaluations measure `agents`, `depth` and `tree_turns`.
`rao/published` has the settings of the paper's own size.

The start matters. A look at one seed (1): after 1,500 demonstrations it did .12 of 60 tasks, and four iterations left .05 [.02, .14]; after 3,000
it did .36 [.26, .46] of 90, and eight iterations of 32 roots made .68 [.58, .77] of it. It takes a start that delegates rightly.

Deviations: the abstract, notes, and of the authors' code the credit, the weights and the launch of sub-agents were read. A parent waits for the one
that it delegated to, so no wall-clock time is saved. What limits an agent here is its turns, as a context does. A model of 0.2 million parameters is
first shown agents that delegate each key or find it themselves, at random.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Recursive Agent Optimization",
    authors="Apurva Gandhi, Satyaki Chakraborty, Xiangjun Wang, Aviral Kumar, Graham Neubig",
    year=2026,
    arxiv="2605.06639",
    read="notes",
    topics=("agents", "context", "credit"),
    systems=(47,),
)
