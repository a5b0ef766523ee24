"""LHF: learning histories that learned little are left out before they are imitated. Chen et al., 2025, arXiv 2505.15143.

In-context RL imitates whole learning histories, and so takes over the faults of the algorithm that made them. LHF weighs histories before
training, by how much they improved and how steadily, and draws by that weight: weighted empirical risk by a filter of the data, whatever is
trained on them.

| place | choice | paper | here |
|---|---|---|---|
| data | learning histories | PPO in dark rooms, key and door, Meta-World; noisy ones among them | Q-learning in corridors; a half of them by a player that learns nothing |
| filter | `ImprovingAndStable` | U = improvement + lambda stability, from least to most as chances from 0 to 1 | the same form |
| update | AD, DPT, DICP as they are | unchanged | AD: what was done |
| policy | a transformer | one for each method | a Llama of 0.2M parameters, which reads words |

`longstride train lhf` takes about 3 minutes of one core. With your own: `cloning.demonstrations.filter` of any recipe of `learning_histories`; a
filter of your own gets the returns of a history by episode (docs/guides/in_context.md).

Deviations: the abstract was read, and the form of U as others give it. How the paper measures improvement and stability is not known: here they
are the mean return of the second half of a history minus that of the first, and minus the mean drop from an episode to the
next. Draws are with replacement, so as many histories are trained on with the filter as without. The paper's own settings are not known.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Filtering Learning Histories Enhances In-Context Reinforcement Learning",
    authors="Weiqin Chen, Xinjie Zhang, Dharmashankar Subramanian, Santiago Paternain",
    year=2025,
    arxiv="2505.15143",
    read="notes",
    topics=("context", "cloning", "offline"),
    systems=(110,),
)
