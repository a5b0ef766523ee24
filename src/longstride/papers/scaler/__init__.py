"""SCALER: environments of many levels, each held where the policy succeeds about half the time. Xu et al., 2026, arXiv 2601.04809.

Tasks that are always or never done teach nothing, and what was hard is easy after some updates. So each environment makes tasks at any level,
and its level follows the policy; environments that teach no more make room for others.

| place | choice | paper | here |
|---|---|---|---|
| tasks | `Environments` | 2,739 environments made from programming problems, by scale parameters | chains of 1 to 16 operations, Countdown of 2 to 4 numbers, and two environments that are out of reach |
| plan | `Controlled` | level moves by beta (accuracy - tau), in the code 2 and 0.5, by 1 at most | the same |
| plan | retirement | the level did not rise in 10 visits; 5 visits without success, or at the highest level; another takes its place | the same |
| roll out | groups | 64 environments, a prompt each, 8 rollouts | 16 groups of 8, over all that are active |
| score, credit, update | `TaskReward`, `GroupRelative`, `PPO` | GRPO | the same |

`longstride train scaler` takes about 3 minutes of one core. On your own model and tasks, a file a level, in `own.toml`:

    base = "scaler"
    model = "Qwen/Qwen3-0.6B"
    learner = { lr = 1e-6 }
    [tasks]
    type = "environments"
    [[tasks.environments]]
    name = "sums"
    levels = [{ type = "dataset", path = "sums-easy.jsonl" }, { type = "dataset", path = "sums-hard.jsonl" }]
    [[tasks.environments]]
    name = "chains"
    levels = [{ type = "modular_chain", lengths = [2, 2, 2] }, { type = "modular_chain", lengths = [4, 4, 4] }]

A level is any task source, also of many turns. Of its environment `reset`, `step` and the final state are passed on, and nothing else that one may
offer (choices, how an action goes on). `metrics.jsonl` has success by environment and level. `scaler/published` has the settings of the paper's own
size.

Deviations: notes of the paper were read, and the authors' code (molumolua/SCALER). Environments are not made from programs, but named in the recipe. The level has to rise within the paper's 10 visits, as in the data that the released scripts train on; the script that makes
such data has 20. What retires makes room for the next that waits, in the code for any other one. Where no other environment waits, those that are
left are visited more often, and once all have retired, all come back. An environment of one level is always at its highest. Left out: the window of
levels of RLVE, which the paper compares with.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="SCALER: Synthetic Scalable Adaptive Learning Environment for Reasoning",
    authors="Caijun Xu, Changyi Xiao, Zhongyuan Peng, Xinrun Wang, Yixin Cao",
    year=2026,
    arxiv="2601.04809",
    read="notes",
    topics=("reasoning",),
    systems=(75,),
)
