"""FTPedel: online exploration of what offline data lack. Wagenmaker and Pacchiano, 2022, arXiv 2211.04974.

How many online episodes does a learner need that has offline data? As many as it takes to see the directions that the
data lack, of those that matter for telling policies apart. FTPedel keeps the policies that may still be the best. In
epoch l it explores until the features of all of them are well covered by offline and online data together,

    max over pi of |phi_pi|^2 in the norm of (offline + online covariance)^-1   <=   eps_l^2 / beta,   eps_l = 2^-l

and drops the policies whose estimated value is more than 2 eps_l below the best. What is explored follows from the
condition, as an experiment design: the policy that lowers the left side fastest is played (Frank-Wolfe). In a table the
features are the chances of visiting a state and taking an action, the covariance counts, and the norm sum w^2 / n.

| place | choice | paper | `ftpedel` | `ftpedel/exact` |
|---|---|---|---|---|
| problem | | linear MDPs | a task in a maze with discrete actions; any environment with such (`/recorded`) | a start that leads to 4 regions with 3 actions each |
| data | offline | any | walks that stop before a part of the maze; files (`/recorded`) | 20,000 walks over all regions but the best ones, which it meets by slips |
| value | features | given, linear | random Fourier features of the state, for each action | visits of a table |
| plan | policies that may be best | a cover, of which each epoch drops some | 8 in each iteration: best for weights drawn around the estimate, by what is not known | all 324, of which each epoch drops some |
| plan | what is lacking | the largest norm of their expected features under the inverse covariance | the same, of features by least squares (`DesignedQ`) | the same, of visits |
| roll out | exploration | a regret minimiser on the design's gradient, step by step | fitted Q on the design's gradient, one action in ten any (`Designed`) | Frank-Wolfe over the same policies, 20 walks a step; in the claim on a smooth maximum, as sharp as suits each arm |
| update | value | least squares, step by step | fitted Q-iteration, 60 backups, offline and online steps alike | means |
| plan | when it ends | log(1 / eps) epochs | explores while more than `tolerance` is lacking | four epochs: to 1/16 |

`ftpedel` acts: in each iteration it fits values and design to all steps so far, and its episodes of training go where the data lack what a policy that may
be best would meet. `lacking` and `explored`, the number of iterations in which too much was lacking, are measures of every evaluation.

One look that decides nothing (seed 900, lacking 0.4): of the steps of 7 iterations of 5 online episodes each 5, 0, 36, 0, 51, 83 and 0 % were in the
part of the maze that the data lack, and 67 % of the 13th. Number and width of the features, `unknown` and `noise` were chosen on that seed, so that
exploration went there at all. The claim, in which the width is tuned for each arm, is null, and says why.

Deviations: equations from the abstract and from Pedel, which it extends; no code of the authors was found. Steps of an episode share one condition (their
norms are added) and, in `ftpedel`, one covariance under a discount, where the paper has one for each step of the horizon. Drawn weights stand for the cover and its
elimination, so nothing is promised of when the best policy is found. In the exact problem beta is the logarithm of a union bound over policies,
without the paper's constants.
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
