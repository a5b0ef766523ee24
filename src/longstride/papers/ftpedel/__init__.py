"""FTPedel: online exploration of what offline data lack. Wagenmaker and Pacchiano, 2022, arXiv 2211.04974.

How many online episodes does a learner need that has offline data? As many as it takes to see the directions that the
data lack, of those that matter for telling policies apart. FTPedel keeps the policies that may still be the best. In
epoch l it explores until the features of all of them are well covered by offline and online data together,

    max over pi of |phi_pi|^2 in the norm of (offline + online covariance)^-1   <=   eps_l^2 / beta,   eps_l = 2^-l

and drops the policies whose estimated value is more than 2 eps_l below the best. What is explored follows from the
condition, as an experiment design: the policy that lowers the left side fastest is played (Frank-Wolfe). In a table the
features are the chances of visiting a state and taking an action, the covariance counts, and the norm sum w^2 / n.

| place | choice | paper | here |
|---|---|---|---|
| problem | `Regions` | linear MDPs | a start that leads to 4 regions with 3 actions each |
| data | offline | any | 20,000 walks over all regions but the best ones, which it meets by slips |
| plan | policies | a cover of the optimal ones | all 324 that choose a region, and an action in each |
| roll out | exploration | regret minimiser on the design's gradient, step by step | Frank-Wolfe over the same policies, 20 walks a step |
| update | elimination | 2 eps_l, log(1 / eps) epochs | four epochs: to 1/16 |

Deviations: equations from the abstract and from Pedel, which it extends; steps of an episode share one condition (their
norms are added); beta is the logarithm of a union bound over policies, without the paper's constants.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Leveraging Offline Data in Online Reinforcement Learning",
    authors="Andrew Wagenmaker, Aldo Pacchiano",
    year=2022,
    arxiv="2211.04974",
    read="abstract",
    topics=("offline",),
    systems=(143,),
)
