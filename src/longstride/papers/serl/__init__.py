"""SERL: online RL that draws half of each batch from demonstrations. Luo et al., 2024, arXiv 2401.16013.

A robot learns a task within an hour from twenty demonstrations if every update sees them: SERL's learner is RLPD (arXiv
2302.02948), off-policy actor-critic with no offline phase, half of each batch from the demonstrations and half from what
is collected, layer normalisation in the critics so that values stay bounded where there is no data, and many critics of
which two random ones make a target.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | demonstrations | 20 to 30, by teleoperation | 20 walks along shortest paths, with noise |
| plan | online from the start | actor and learner side by side | 10 episodes, then 250 updates, 10 times |
| update | half demonstrations, half collected | 128 and 128 | 64 and 64 |
| value | ensemble, the least of two at random | 10 critics (state), layer normalisation | 10 critics, layer normalisation |
| value | reward | a classifier of images, 0 or 1 | the maze's own, 10 at success |
| policy | `GaussianPolicy`, `SAC` | temperature from 0.01, gamma 0.97 | the same |
| update | Adam 3e-4, critic steps | 2 or more a policy step | 1e-3 for critics, 4 a policy step |

Deviations: a point in a maze from numbers stands for an arm with cameras, so there is no image encoder, no impedance
controller and no reset policy; HIL-SERL's interventions are left out. Twenty walks say all of so small a maze (cloning
them: 0.90 and 1.00 on seeds 0 and 1), so the claim has five: 0.87 against 0.45 on seeds 0 to 2, with a deviation of 0.22
between seeds, for which six seeds seemed enough. These runs and the kept result are from when each step of a critic saw
demonstrations alone or what was collected alone; now each has its share of both.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="SERL: A Software Suite for Sample-Efficient Robotic Reinforcement Learning",
    authors="Jianlan Luo, Zheyuan Hu, Charles Xu, You Liang Tan, Jacob Berg, Archit Sharma, Stefan Schaal, Chelsea Finn, "
    "Abhishek Gupta, Sergey Levine",
    year=2024,
    arxiv="2401.16013",
    read="notes",
    topics=("robots", "values"),
    systems=(142,),
)
