"""AVTD: the regulariser is chosen while it trains, by validation error. Li et al., 2023, arXiv 2304.10466.

With many updates to a step critics overfit what little was collected, and which regulariser helps depends on the task. The
paper finds that the temporal-difference error on transitions that are held out predicts who does well, whatever was done to
regularise, and so chooses by it, online: several agents learn from the same replay, each regularised in its own way, and the
one acts whose error on the held-out transitions is least.

| place | choice | paper | here |
|---|---|---|---|
| plan, roll out | one stream of steps, acted by whoever is least wrong | DeepMind control, Gym | Pendulum-v1, 12 episodes of 200 |
| data | what is held out | a validation set of transitions | each fourth of 12 episodes; before the fourth, the member that nothing regularises acts |
| value | `Panel`: agents and what regularises each | weight decay, dropout, norms of layers and features, resets | none, norms of layers, squares of weights |
| value | the error | of each agent's own values and targets | the same, a running mean over updates |
| policy | `LeastError`: `SAC` for each | SAC | the same |
| update | updates to a step | many | 2 |

Members may be any `TDCritic`, so also ensembles of which a part makes targets (REDQ) or other heads. `avtd/utd` has the claim.

Deviations: of the paper the abstract was read and its main finding as others tell it, and no code was found, so what is held out, how often the choice
is made and which regularisers are compared are ours. Members begin with equal policies. They learn alone: seeds of a panel are
not trained side by side.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Efficient Deep Reinforcement Learning Requires Regulating Overfitting",
    authors="Qiyang Li, Aviral Kumar, Ilya Kostrikov, Sergey Levine",
    year=2023,
    arxiv="2304.10466",
    read="abstract",
    topics=("values",),
    systems=(26,),
)
