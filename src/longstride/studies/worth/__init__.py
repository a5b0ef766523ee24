"""The worth of one more turn: a limit that goes by what further turns bring, as episodes that went on show it.

A horizon that is too short cuts what would have succeeded; one that is too long spends steps on episodes that are lost, and
lets wasteful successes through, which are cloned with the rest. Which is which depends on the policy, the task and the
moment, so schedules are chosen by sweeps. But an episode can be played again exactly, so one that its turns cut can go on:
a share of them shows what a longer limit would have brought, without a bias, while the limit stays what it is.

| place | choice | here |
|---|---|---|
| plan | `Onward` | a second round: 1 in 8 of the episodes that their turns cut goes on for 8 turns more; it only measures |
| estimate | `gains`, `curves` | success that 1, 2, 4, 8 turns more bring, with its error; success and steps by limit, up to the longest that was watched |
| budget | `Worth` | by difficulty the limit with the most signal a step: f (1 - f) / c |

What is known of it:

| question | answer |
|---|---|
| is the gain unbiased? | yes, given how many went on; tested by enumeration |
| do limits find their optimum? | at the end of a run of that form they have .99 of the largest worth of a step, under habits that are still learned; where a band has one success in fifty and habits stand still they are stuck at .6 to .8 |
| what does it cost? | .08 of all environment steps there, those included that are taken again; no sampled token counts twice |
| does it pay? | in an earlier form of `worth/worlds`, with no arm tuned, .89 beside .77 for the best fixed horizon of a sweep in each world, by equal steps, and .87 for the best choice by difficulty, which nobody knows beforehand; `worth/worlds` says whether it stays when all arms are tuned |
| where does it lose? | by .04 where the start hardly wastes a step and quits early: a limit that keeps outcomes open cuts long tasks, and there is nothing to be gained by it |
| on trails of pages? | no: at distances of 10 to 40 and a test of 44 turns `Worth` does .91 of the tasks, a fixed horizon of 12 turns .99 with two thirds of the steps; it is ahead of a long and of a multiplicative horizon, and not decidedly of slow growth (eight seeds, all arms tuned) |

Deviations: none, no paper has this. The exact world is that of `tti_map`; what acts is `tti` on trails of
pages, under another schedule. The idea of spending effort where outcomes are open is old (f (1 - f) chooses tasks by
learnability in arXiv 2408.15099); the rule of when to stop is the marginal value theorem (Charnov, 1976).
"""

from longstride.papers.card import Study

CARD = Study(title="The worth of one more turn", topics=("horizon",))
