"""Goedel-Prover-V2: what a verifier says is read. Lin et al., 2025, arXiv 2508.03613.

Of a failed proof the verifier says which step is wrong. The steps before it are right and are kept, so the next attempt
has only the rest to get right. Without the message an attempt may as well begin anew: no blind way of keeping some steps is
better than keeping none.

| place | choice | paper (8B and 32B, Lean) | here |
|---|---|---|---|
| tasks | `Corrected` | a whole proof, then 2 rounds with the compiler's messages and the earlier thoughts | chains modulo 7; the first wrong step as it was written |
| told | `Puzzle.complaint` | the code that is wrong, between tags, and Lean's message | the step, or the verdict of another puzzle |
| plan | `Corrections` | half of the inputs whole proofs, half first corrections of failed ones | the same |
| plan | `subgoals` | unsolved goals of failed proofs, and their negations, as new statements | what is left behind the right steps of a chain |
| score | a verifier | Lean | the puzzle's own |
| replay | `PassRate` | problems with a pass rate in (0, 0.75] | the same, of groups |
| credit | `GroupRelative` | GRPO without normalisation (Dr. GRPO) | the same |
| update | `PPO` | clip-higher, overlong penalty, no KL | 0.2 and 0.28; no penalty |
| average | `models.merge.merge_folders` | (1 - a) theta_0 + a theta, a = 0.8, after each stage | of the ends of a run |
| compared | `tasks.told=nothing` | without error messages | the same, in training and test |

On your own model and puzzles: `longstride train goedel_prover model=MODEL tasks.puzzles.type=SOURCE`; a puzzle of your own says in
`complaint` what is wrong, and in `rest` what is left to be done.

`exact.py` has two mechanisms in small, computed: steps that are right with a known chance, of which those before the one that is
said to be the first wrong one are kept, in one chain of attempts or several; and a linear policy that is trained on, whose average with its start is less sure of itself where it is wrong (`averaged`
against `trained`, both measured as pass@32).

Deviations: statements written by another model, their variants, negations and the rounds of expert iteration before RL are left out; RL
begins at the shipped start, which has never been told anything. A proof that is right ends the attempts in all arms.
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
