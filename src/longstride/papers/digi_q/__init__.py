"""Digi-Q: a Q-function on frozen features of a language model, from stored episodes. Bai et al., 2025, arXiv 2502.15760.

Trying things out is dear where an agent acts on devices or sites of others. So Q is learned by temporal differences from stored episodes, by small
networks on hidden states of a language model. These know little of actions, so the model is first taught what an action changes. Then the policy
proposes several actions in each stored turn, and the best of them by Q is imitated: no episode is played.

| place | choice | paper and released code (Android, 1.3B actor) | here |
|---|---|---|---|
| plan | episodes of a start, or `stored_run` | 1,296 and 1,008 stored ones, horizon 20 and 10 | 256, horizon 8 |
| score | `TaskReward` | a vision-language model's verdict | exact checks |
| critic | features | LLaVA, an intermediate layer of action and screen; RoBERTa beside it | a language model, its last layer, behind prompt and action |
| critic | before it is frozen | does the action change the screen | does it change the page: 100 steps of 8 episodes |
| critic | `FrozenQ` | two Q and two V of four layers; discount 0.95; tau 0.1; 1e-5 | of two layers; 1e-3, 1,000 steps |
| actions | `Candidates` | the logged one and 15 of 64 that were sampled beforehand | the logged one and 15 of the policy as it is |
| credit | `BestCandidate` | largest Q less V, if above 0.05 (web shop) or 0.1 | the same, 0.05 |
| update | `Reinforce` | 1e-4, 30 epochs | 3e-4, 2 passes |

On your own stored run, of your own model on your own tasks (a run folder has `run.toml`, which says how many episodes there are in all):

    longstride train digi_q stored_run=RUN episodes_per_iteration=2560 model=Qwen/Qwen3-0.6B critic.encoder=Qwen/Qwen3-0.6B \\
        tasks.type=my_module:MyTasks budget.turns=20 test_budget.turns=20 learner.lr=1e-6 critic.lr=1e-4

`RUN` may be a folder of exported episodes too (`longstride export`). `model` is whose actions are proposed and who learns: mostly the one that
played. The encoder may be another one of the same tokenizer. In several iterations (`iterations=5`) Q is learned from all that is stored by then,
and proposals are those of the policy after the iteration before.

The claim, of `digi_q/games`, is not frozen and has not been run. In the one run that was looked at (seed 950, 192 games, 150 steps of the critic and
six of the policy) .35 of 100 held-out games were won before and .34 after it: nothing was seen. On the sites it was seen to run, no more.

Deviations: the abstract, notes and the released code were read. Last hidden states in the place of an intermediate layer. Targets move after
each step, in the release after each pass. An episode that a budget cut goes on from its last state. Whether a proposal can be parsed is not
known before it is taken: the release gives those that cannot be an advantage of 0. Episodes of a start take the place of a data set.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Digi-Q: Learning Q-Value Functions for Training Device-Control Agents",
    authors="Hao Bai, Yifei Zhou, Li Erran Li, Sergey Levine, Aviral Kumar",
    year=2025,
    arxiv="2502.15760",
    read="notes",
    topics=("agents", "values", "offline"),
    systems=(44,),
)
