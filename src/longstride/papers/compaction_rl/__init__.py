"""CompactionRL: summaries are turns of the policy, trained with its actions. Li et al., 2026, arXiv 2607.05378.

When the context is full an agent has to sum up what it did and go on from that. Where only actions are trained, what the summary says is
left to chance. Here the policy writes it, in a turn like any other; what it wrote replaces what it sums up, it earns what the episode
earns, and its tokens are trained. An episode is then several segments that share no context, and credit goes across them.

| place | choice | paper, as others report and implement it | here |
|---|---|---|---|
| start | imitation of summaries | a model that writes them when it is asked | 1,400 solutions that sum up the codes they saw; `base-dial` before, which has never read a second turn |
| tasks | `Compacting` | when 10,240 tokens of 64k are left, at most 3 times | after 4 turns; or after so many tokens, `tasks.tokens` |
| roll out | `Compacted` | system prompt, summary, last 2 steps | goal, summary, no step before it; `context.keep` |
| credit | `AcrossSegments`, `TurnValue` | estimates within a segment, (discount lam)^(later tokens), lam = 1 - 1 / (1.5 n), discount 1; a critic of tokens | the same; a critic of turns |
| update | `PPO` | clipped, mean over tokens, no KL, one rollout a prompt | the same, clip 0.2 |
| test | | SWE-bench Verified, Terminal-Bench | goals 3, 6 and 16 actions away: no, one and three summaries |

`Compacting` goes around any tasks and `Compacted` with any model, `tasks={type="longstride.papers.compaction_rl.method:Compacting", tokens=55296,
tasks=...}`: of a model that follows instructions nothing need be demonstrated. `credit.summaries=false` leaves summaries out of what is trained. Any
credit of turns trains them; `AcrossSegments` is the paper's.

Deviations: the abstract, what others wrote of it, and a re-implementation were read; the authors released no code. The last segment of an episode
that its limit cut goes on from the critic's value, as everywhere here, while the critic itself learns what was earned until the cut; no number of summaries is too many; critic and policy take one step
each. The world is trails whose answer is several codes on the way (`DialCodes`), where all but memory is easy.

The claim is not frozen and has not been run. A look at one seed (900, three iterations, 120 tests), where an arm takes about a minute of one core:
what 1,400 solutions teach solves .77, by goals 3, 6 and 16 actions away .83, .80 and .68, and three iterations of 256 episodes leave it at
.75: within noise, training brings nothing so soon. 1,500 solutions that are read twice teach .96, where six iterations of 128 episodes at five
times the rate lower it to .90.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="CompactionRL: Reinforcement Learning with Context Compaction for Long-Horizon Agents",
    authors="Yujiang Li, Zhenyu Hou, Yi Jing, Jie Tang, Yuxiao Dong",
    year=2026,
    arxiv="2607.05378",
    read="notes",
    topics=("agents", "context", "horizon", "credit"),
)
