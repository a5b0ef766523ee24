"""Context, batch and turns. Yu et al., 2025, arXiv 2511.15738.

Each axis has a bound of its own. A longer thought looks at its steps more often, but not at what it is blind to. More
thoughts vote, but for the likeliest answer, right or not. A further turn reads with fresh eyes, but doubts what is right
too. What bounds one axis another one moves, so the best mix has some of each.

| place | choice | paper (Gemini 2.5 Pro; IOI, IMO and CPHO) | here |
|---|---|---|---|
| context | `ThreeAxes.context` | tokens of a thought, cut at a budget | tokens of an answer, cut likewise |
| batch | `ThreeAxes.batch` | samples, one chosen by a vote, a judge or people | `by`: a vote, a scorer, a judge |
| turn | `ThreeAxes.turns` | a summary of what was chosen stands in the next prompt | a summary by rule (`Iterated`), or what was chosen itself (`asks`) |
| spend | | the largest number of tokens that a mix may take | all tokens that were sampled, or read by a judge |

On your own model and tasks of a single turn:

    longstride eval scaling_3d model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl context.type=full_history \\
        evaluation.strategies='[{type="longstride.papers.scaling_3d.method:ThreeAxes", context=512, batch=4, turns=2}]'

`exact.py` is a world in which the bounds are computed: 6 steps, of which a wrong one leads to one of three answers; a
look at a step may see that it is wrong; which two axes suffice depends on its numbers, so its claim draws them, and
each side enters with its best mix of about 320 looks.

The claim is in its third form. In the first, with forced thoughts of `base-thoughts` on tasks of one turn, three axes reached .38 and two .63 of a
tuning seed; model, tasks and the axis of context were changed after that. The second had one temperature for all ways, chosen by single answers,
and chains of one kind as its control, which stood at the ceiling; on tuning seeds three axes were .16 above answers alone.

Deviations: feedback by people and embodied tasks are left out; the summary of a puzzle is made by rule.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Extending Test-Time Scaling: A 3D Perspective with Context, Batch, and Turn",
    authors="Chao Yu, Qixin Tan, Jiaxuan Gao, Shi Yu, Hong Lu, Xinting Yang, Zelai Xu, Yu Wang, Yi Wu, Eugene Vinitsky",
    year=2025,
    arxiv="2511.15738",
    read="notes",
    topics=("search", "scaling"),
    systems=(66,),
)
