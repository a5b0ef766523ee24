"""Data scaling in imitation: many layouts, few walks in each. Lin et al., 2024, arXiv 2410.18647.

How well a cloned policy does in places that it has not seen is a power law in the number of places and objects in its
data; more demonstrations of the same place soon add nothing.

| place | choice | paper (robot arms, pouring and arranging) | here |
|---|---|---|---|
| problem | variation | environments and objects | layouts of a grid of 6 by 6 with random walls |
| data | demonstrations | people, up to 32 environments | right moves in 6 cells of a layout, as many as a walk has, drawn at random |
| method | cloning | diffusion policies on images | votes by what is seen around a cell |
| measure | new places | scores of people | share of cells of 40 new layouts in which the policy's action is right |
| fit | `Power` | of 1 - score, by environments | the same, by layouts; the largest number is held out |

Deviations: the cells of a walk do not follow each other; a policy is a table over views (the eight neighbours, and on which side the goal is), so
what it has not seen it answers at random, and nothing generalises between views; success is per cell. So 1 - success
falls faster from 256 to 512 layouts than the power law of smaller numbers says: `accuracy` has by how much.
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
