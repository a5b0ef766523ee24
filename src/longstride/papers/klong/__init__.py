"""KLong: a task longer than the context is overlapping pieces, and time-outs grow in stages. Liu et al., 2026, arXiv 2602.17547.

Of an episode that no context holds, every piece keeps the beginning (task, first findings), leaves out what came between, and begins
with the last turns of the piece before, so that each turn is learned from what it rested on. Then reinforcement learning runs in stages
with ever longer time-outs, since early on most of a long episode is lost time.

| place | choice | paper | here |
|---|---|---|---|
| start | fine-tuning on pieces of a larger model's episodes | thousands, of hours each | `base` |
| plan | `StepList` | time-outs of 2, 4 and 6 hours | 8, 16, 24 turns, from iterations 6 and 11; tests at 24 |
| roll out | `OverlappingPieces` | where the context is full | 512 tokens, 2 turns of overlap |
| score | `TaskReward` | rubrics, by a judge | programmatic |
| credit | `GroupRelative` | not known | (r - mean) / deviation |
| update | `PPO` | not known | clip 0.2 |

Deviations: the abstract was read; hours of the stages are from what others wrote of it. The paper splits stored episodes for fine-tuning;
here the policy itself reads pieces, and what is trained is what was read, turn by turn, so splitting is no approximation. Time-outs are
turns: `budget.seconds` would do too, and makes a run depend on the machine. The median of 150 demonstrations on the sites
has 170 tokens, so in the claim a prompt has 160, and its rival reads pieces that do not overlap. The paper's training tasks
(papers to reproduce) are not here.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="KLong: Training LLM Agent for Extremely Long-horizon Tasks",
    authors="Yue Liu, Zhiyuan Hu, Flood Sung, Jiaheng Zhang, Bryan Hooi",
    year=2026,
    arxiv="2602.17547",
    read="abstract",
    topics=("agents", "horizon", "context"),
)
