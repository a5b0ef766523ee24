"""IterResearch: the workspace is rebuilt in every turn from question, own report and last result. Chen et al., 2025, arXiv 2511.07327.

A context that keeps all that was seen is full after some turns. Here each turn reads the question, the report that the turn before
wrote, its action, and what came of it, and writes the next report: what is to be remembered is the policy's to say, and a prompt is as
long in turn 2,000 as in turn 2. Rewards are discounted by the turns that were still to come (EAPO), so that of two successes the shorter
one counts more.

| place | choice | paper, and a reproduction that its authors link | here |
|---|---|---|---|
| start | imitation of reports | rejection sampling from a larger model | `ReportedSolutions`: 1,600 solutions that report the codes they saw; `base-dial` before, which reports nothing |
| roll out | `Workspace` | question, report, last call, last answer; 40k tokens, up to 2,048 turns | the same; some 70 tokens |
| a turn | report, then action | `<report>`, then `<tool_call>` or `<answer>` | `Thought: code 42 17 Action: click amber castle [3]` |
| score | `TaskReward` | right or not, by a judge | right or not |
| credit | `EfficiencyAware` | discount^(T - t) R, normed over all turns of a group; discount not known | the same, 0.95 |
| update | `GSPO` | the same | clips 3e-4 and 4e-4, by turn |
| test | turns | 2 to 2,048 | goals 3, 6 and 16 actions away, 48 turns |

`longstride train iterresearch` takes about 2 minutes of one core. `Workspace` takes whatever a model says beside its action for its report, in its
own ids, so it is a context of any recipe and any model: `context={type="longstride.papers.iterresearch.method:Workspace"}`. Of a large model ask for
a report in `chat.system`; thoughts in `<think>` are cut out as in the paper. Demonstrations of a larger model are `model_successes`.

    longstride train iterresearch model=Qwen/Qwen3-0.6B cloning= tasks.type=my_module:MyTasks learner.lr=1e-6 \\
        chat.system="Before you act, write what is to be remembered." budget.turn_tokens=1024 test_budget.turn_tokens=1024

Deviations: the abstract, what others wrote of it, and the prompts and the loop of a reproduction were read; the training was not released. Adaptive
downsampling, which makes the number of turns divide by the number of GPUs, is left out: here no turn has to be dropped for that. The world is
trails whose answer is several codes on the way (`DialCodes`), where all but memory is easy.

A look at one seed (900, one iteration of 64 episodes, 90 tests) before the claim was run: what 1,600 solutions teach is a policy that solves .82
with its report and, of four turns without one, .45. So nearly all of the difference is there before reinforcement learning begins. 600
solutions with three codes at distances up to 13 are too few: the policy carries its report, acts badly, and solves none.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="IterResearch: Rethinking Long-Horizon Agents via Markovian State Reconstruction",
    authors="Guoxin Chen, Zile Qiao, Xuanzhong Chen, Donglei Yu, Haotian Xu, Wayne Xin Zhao, Ruihua Song, Wenbiao Yin, "
    "Huifeng Yin, Liwen Zhang, Kuan Li, Minpeng Liao, Yong Jiang, Pengjun Xie, Fei Huang, Jingren Zhou",
    year=2025,
    arxiv="2511.07327",
    read="notes",
    topics=("agents", "context", "horizon", "credit"),
    systems=(76,),
)
