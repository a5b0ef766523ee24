"""Data scaling in imitation: many layouts, few walks in each. Lin et al., 2024, arXiv 2410.18647.

How well a cloned policy does in places that it has not seen is a power law in the number of places and objects in its
data; more demonstrations of the same place soon add nothing.

`longstride train imitation_scaling` clones from some walks in each of some generated layouts and tests in new ones;
`imitation_scaling/recorded tasks.data='places/*.hdf5'` clones from demonstrations of the user's own, a file for each place,
and tests in his environment. The law is fitted to a sweep of either, where each run ended:

    longstride sweep imitation_scaling runs/places --grid tasks.environments=8,32,128,512 --grid tasks.demonstrations=1,4
    longstride fit runs/places --x tasks.environments --y error --law power --by tasks.demonstrations

| place | choice | paper (robot arms, pouring and arranging) | `imitation_scaling` | `imitation_scaling/exact` |
|---|---|---|---|---|
| problem | variation | environments and objects | layouts of a grid of 8 by 8 with random walls, or files | of 6 by 6 |
| data | demonstrations | people, up to 32 environments | shortest walks | right moves in 6 cells of a layout, as many as a walk has, drawn at random |
| method | cloning | diffusion policies on images | a network of 2 by 64 on what is around and where the goal is | votes by what is seen around a cell; in the claim they count, by less, where few neighbours differ (`reach`) |
| measure | new places | scores of people | share of 200 walks in new layouts that get to the goal in 32 steps | share of cells of 40 new layouts in which the policy's action is right |
| fit | `Power` | of 1 - score, by environments | the same, by `longstride fit` | the same, by layouts; the largest number is held out |

Deviations: no images, arms or people; objects are not told from environments (files of either are places). Of `exact`:
the cells of a walk do not follow each other; a policy is a table over views (the eight neighbours, and on which side the goal is),
so without a `reach` what it has not seen it answers at random, and nothing generalises between views; success is per cell. So 1 - success
falls faster from 256 to 512 layouts than the power law of smaller numbers says: `accuracy` has by how much.

A look at seed 0, which decides nothing: with one walk in each of 8, 32, 128 and 512 layouts 0.22, 0.44, 0.67 and 0.73 of
the new walks get to their goals, with four in each 0.37, 0.49, 0.65 and 0.80. So of 32, 128 and 512 walks those in four
times as many layouts do better by 0.07, 0.18 and 0.08. The power of all eight errors is 0.26 [0.18, 0.80], with the limit
at 0 [0, 0.37]. Four minutes on a busy machine.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Data Scaling Laws in Imitation Learning for Robotic Manipulation",
    authors="Fanqi Lin, Yingdong Hu, Pingyue Sheng, Chuan Wen, Jiacheng You, Yang Gao",
    year=2024,
    arxiv="2410.18647",
    read="abstract",
    topics=("robots", "cloning", "scaling"),
    systems=(74,),
)
