"""Goedel-Prover-V2: what a verifier says is read. Lin et al., 2025, arXiv 2508.03613.

Of a failed proof the verifier says which step is wrong. What stands before it is right and is kept, so the next attempt
has only the rest to get right. Without that the whole is as good a place to begin as any: of the blind ways to keep
some steps none is better than to keep none.

| place | choice | paper (8B and 32B, Lean) | here |
|---|---|---|---|
| policy | steps | a whole proof | 6 steps, right with a known chance |
| attempt | `Proving` | one, then 2 with the compiler's messages | the same; each writes the whole proof again |
| told | `told` | messages of the compiler | the number of the first wrong step |
| update | `Sharpening` | Dr. GRPO on proofs that the verifier judges | the exact gradient on training tasks |
| average | `share` | (1 - a) theta_0 + a theta, a = 0.8 | the same; a linear policy, tested on further tasks |

A model that is trained on becomes surer of itself, where it is wrong too, and k attempts are then hardly more than one;
the average of start and end is less sure (`averaged` against `trained`, both measured as pass@32).

Deviations: an exact world; the data (subgoals, variants of tasks, expert iteration) is left out. A proof that is right
ends the attempts in all arms.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Goedel-Prover-V2: Scaling Formal Theorem Proving with Scaffolded Data Synthesis and Self-Correction",
    authors="Yong Lin, Shange Tang, Bohan Lyu, Ziran Yang, Jui-Hui Chung, Haoyu Zhao, Lai Jiang, Yihan Geng, Jiawei Ge, "
    "Jingruo Sun, Jiayun Wu, Jiri Gesi, Ximing Lu, David Acuna, Kaiyu Yang, Hongzhou Lin, Yejin Choi, Danqi Chen, "
    "Sanjeev Arora, Chi Jin",
    year=2025,
    arxiv="2508.03613",
    read="notes",
    topics=("proofs", "search"),
    systems=(60,),
)
