"""RRM: a reward model that no artefact of an answer can please. Liu et al., 2024, arXiv 2409.13156.

Preferred answers are often longer, or better laid out, whatever was asked. A reward model cannot tell such an artefact
from quality: both predict the label. But an artefact is the answer's alone, so it stays when the answer is put under
another prompt, where it says nothing. Pairs made in this way teach that it is worth nothing.

| place | choice | paper | here |
|---|---|---|---|
| tasks | `CounterfactualPairs` | prompts with a preferred and another answer | solutions that `base-puzzles` wrote, or of any model or file; a filler goes with the label |
| data | `COMPARED` | 14 further pairs for each: under its prompt also the answers of two others | all pairs of the six; half of the training pairs are the ones that were labelled |
| label | own against foreign | own wins | the same |
| label | foreign against foreign | tie: 0.5 | a coin, whose expected loss is that of 0.5 |
| update | `cloning` | a pairwise judge (Gemma-2-9b) fine-tuned on which is preferred | the likelihood of the verdict, without reasons |
| measure | `Longer` | RewardBench; DPO policies trained on it | right where the worse answer is the longer one |

With augmentation an original pair, whose artefact sides with the label in (1 + rho) / 2 of cases, stands beside ties of
answers that differ in it: their mixture is what the weight of the artefact has to fit.

With your own: `longstride train rrm model=MODEL tasks.path=solutions.jsonl tasks.artefact=0`; the run is a judge of pairs, as any that
was trained with `tasks.asks=better` (docs/guides/judge.md).

`exact.py` has the mechanism in small: pairs are vectors, the reward is bilinear in prompt and answer with one weight for the
artefact, and Bradley-Terry with soft labels is solved by Newton's method.

Deviations: which pairs are kept by how sure a first model is of them is left out, and so a share (`tasks.original`) says how
many are as they were labelled. With every pair as often, so 1 in 15 of them, the recipe's judge stayed near chance: .53 right,
with half of them .74, with all of them .92 (a run each, with the recipe's artefact). That policies hack it less is measured as best of 16
in `exact.py` (`quality`), and not by RL. That foreign answers are those of two other prompts is as others wrote of the paper. Another
paper of the name (Reward Reasoning Models, arXiv 2505.14674) lets a judge think and plays tournaments, which is
`rewards.scorers.Pairwise`.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="RRM: Robust Reward Model Training Mitigates Reward Hacking",
    authors="Tianqi Liu, Wei Xiong, Jie Ren, Lichang Chen, Junru Wu, Rishabh Joshi, Yang Gao, Jiaming Shen, Zhen Qin, "
    "Tianhe Yu, Daniel Sohn, Anastasia Makarova, Jeremiah Zhe Liu, Yuan Liu, Bilal Piot, Abe Ittycheriah, Aviral "
    "Kumar, Mohammad Saleh",
    year=2024,
    arxiv="2409.13156",
    read="notes",
    topics=("judges", "preferences"),
    systems=(36,),
)
