"""Context, batch and turns. Yu et al., 2025, arXiv 2511.15738.

Each axis has a bound of its own. A longer thought looks at its steps more often, but not at what it is blind to. More
thoughts vote, but for the likeliest answer, right or not. A further turn reads with fresh eyes, but doubts what is right
too. What bounds one axis another one moves, so the best mix has some of each.

| place | choice | paper | here |
|---|---|---|---|
| policy | steps | a thinking model on IOI, IMO and CPHO | 6 steps; a wrong one leads to one of three answers |
| context | `looks` | tokens of a thought | looks at each step, which may see that it is wrong |
| batch | `thoughts` | samples | thoughts of a turn, the answer most of which give counts |
| turn | `turns` | refinement of what came before | every thought reads one that gave this answer |
| mix | `THREE`, `TWO` | several | looks at a step, reading among them, about 320 in all |

Which two axes suffice depends on the numbers of the world, so the claim draws them, and each side enters with its best
mix.

Deviations: an exact world; feedback by people and embodied tasks are left out.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Extending Test-Time Scaling: A 3D Perspective with Context, Batch, and Turn",
    authors="Chao Yu, Qixin Tan, Jiaxuan Gao, Shi Yu, Hong Lu, Xinting Yang, Zelai Xu, Yu Wang, Yi Wu, Eugene Vinitsky",
    year=2025,
    arxiv="2511.15738",
    read="abstract",
    topics=("search", "scaling"),
    systems=(66,),
)
