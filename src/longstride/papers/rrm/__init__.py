"""RRM: a reward model that no artefact of an answer can please. Liu et al., 2024, arXiv 2409.13156.

Preferred answers are often longer, or better laid out, whatever was asked. A reward model cannot tell such an artefact
from quality: both foretell the label. But an artefact is the answer's alone, so it stays when the answer is put under
another prompt, where it says nothing. Pairs made in this way teach that it is worth nothing.

| place | choice | paper | here |
|---|---|---|---|
| data | `Preferences` | prompts with a preferred and another answer | the same, as vectors; an artefact goes with the label |
| data | `augmented` | under prompt i also the answers of two other prompts: all pairs of the six | the same |
| label | own against foreign | own wins | the same |
| label | foreign against foreign | tie: 0.5 | the same |
| update | `RewardModel` | Bradley-Terry with soft labels: cross-entropy of sigmoid(r - r') | the same, by Newton's method |
| measure | `success` | RewardBench, policies trained on it | accuracy on pairs whose worse answer has the artefact |

With augmentation an original pair, whose artefact sides with the label in (1 + rho) / 2 of cases, stands beside ties of
answers that differ in it: their mixture is what the weight of the artefact has to fit.

Deviations: r is bilinear in prompt and answer, with one weight for the artefact. Which pairs are kept by how sure a
first model is of them is left out. That policies hack it less is measured as best of 16 (`quality`), and not by RL.
That the paper takes two other prompts for each could not be checked. Another paper of the name (Reward Reasoning
Models, arXiv 2505.14674) lets a judge think and plays tournaments, which is `rewards.scorers.Pairwise`.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="RRM: Robust Reward Model Training Mitigates Reward Hacking",
    authors="Tianqi Liu, Wei Xiong, Jie Ren, Lichang Chen, Junru Wu, Rishabh Joshi, Yang Gao, Jiaming Shen, Zhen Qin, "
    "Tianhe Yu, Daniel Sohn, Anastasia Makarova, Jeremiah Zhe Liu, Yuan Liu, Bilal Piot, Abe Ittycheriah, Aviral "
    "Kumar, Mohammad Saleh",
    year=2024,
    arxiv="2409.13156",
    read="abstract",
    topics=("judges", "preferences"),
    systems=(36,),
)
