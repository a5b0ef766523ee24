"""LaMer: several tries of one task in one context, paid for together. Jiang et al., 2025, arXiv 2512.16848.

An agent that is paid for each episode alone has no reason to explore: what it finds out is lost. LaMer plays several
episodes of a task one after the other, shows each what came before, and pays an episode also for what later ones
earned. So an early episode may look around, and a later one uses what was seen, without a change of weights.

| place | choice | paper | here |
|---|---|---|---|
| plan | trials of a task | several episodes (section on cross-episode training) | 3, over with the first success |
| roll out | `TrialHistory` | earlier episodes, and a reflection on them | earlier episodes with their outcomes |
| score | `TaskReward` | success | 1 for a right answer |
| credit | `TrialReturn` | own reward and, discounted, those of later episodes | discount 0.6 |
| credit | groups | of episodes at one place of their trials | 8 trials of a task |
| update | `PPO` | a policy gradient of groups | clip 0.2, no KL |

Deviations: only the abstract and the authors' page were read, so discount, groups and loss are chosen here. There is no
reflection: the model of half a million parameters writes none, and earlier attempts stand in the context as they were.
The puzzles are those of `setups.puzzles`, not Sokoban, MineSweeper and Webshop. Nothing is claimed and nothing was
measured: it was only tried, for two iterations. The shipped start does not know the words of outcomes (`episode`,
`reward`), so of these it reads the numbers alone; a model of your own reads all.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Meta-RL Induces Exploration in Language Agents",
    authors="Yulun Jiang, Liangze Jiang, Damien Teney, Michael Moor, Maria Brbić",
    year=2025,
    arxiv="2512.16848",
    read="abstract",
    topics=("agents", "context", "credit"),
)
