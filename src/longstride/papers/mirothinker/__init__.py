"""MiroThinker: more interaction, with the newest results alone in view. MiroMind Team, 2025, arXiv 2511.11793.

What an agent can do grows with how often it may look something up, if its context does not overflow: every thought and
action stays, of the results of tools only the newest five. Then success goes on rising with the calls that are allowed,
up to 600, and reinforcement learning is what makes the policy use them.

| place | choice | paper and released code (MiroRL) | here |
|---|---|---|---|
| start | fine-tuning, preferences | on trajectories of agents | `base-keep-last`, which imitates a scripted agent |
| plan | groups of one task | 8, at most 40 turns, 64 tasks | 8, 24 turns, 32 tasks |
| roll out | `RecentObservations(keep=5)` | results of the newest 5 calls | pages of the newest 5 turns |
| score | `Formatted` | 1 if right, plus 0.1 for well-formed calls | the same, for the share of turns that parse |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO`, no KL | GRPO, asynchronous and partial rollouts | clip 0.2, synchronous |
| test | `Direct(turns=n)` | 256k tokens, up to 600 calls | 6, 12 and 24 turns |

Deviations: a model of half a million parameters on embedded sites, whose start was made with all pages in view, not five.
The preference stage is left out. In an earlier form of the claim, over five seeds, from a start that took no more than 12
turns, the turns were worth 0.022 before training and 0.028 after it: that they pay is shown, that training makes the policy
use them is not. Now it begins with one that wanders, and has not been run.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="MiroThinker: Pushing the Performance Boundaries of Open-Source Research Agents via Model, Context, and "
    "Interactive Scaling",
    authors="MiroMind Team",
    year=2025,
    arxiv="2511.11793",
    read="notes",
    topics=("agents", "context", "tools", "horizon"),
    systems=(59,),
)
