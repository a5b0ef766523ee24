"""Preference fine-tuning: what on-policy pairs and negative gradients are worth. Tajwar et al., 2024, arXiv 2404.14367.

Methods that learn from preferences differ in two choices. Pairs come from the reference, once and for all, or from the
policy as it is (on-policy). The loss raises the likelihood of the preferred answer alone, or also lowers that of the
other (a negative gradient). Both choices move mass quickly away from what was sampled; likelihood on the reference's own
answers can only sharpen the reference. So they matter where the best answers are unlikely under the reference, and not
where they are its mode.

The gradient of a pair's loss in the logits is

    likelihood:  policy - [y = y_w]                                        (Pref-FT, on-policy: expert iteration)
    DPO:        -beta sigmoid(-beta h) ([y = y_w] - [y = y_l])             (`methods.preferences.DPO`, h against the reference)

| place | choice | paper | here |
|---|---|---|---|
| problem | `Line` | bandits over tokens, length of summaries, 7B models | 60 answers on a line, reward a bump |
| problem | peak | in, or out of, the reference's mass | at 0.75 or at 0.25; the reference around 0.25 |
| roll out | pairs | from the reference or the policy, labelled by the reward | 64 an iteration, Bradley-Terry labels |
| update | loss | Pref-FT, best-of-N, RWR, DPO, IPO, PPO | likelihood of the preferred, DPO with beta 0.1 |
| update | reuse of a batch | 1 to 200 epochs | 4 gradient steps |

On this line pairs from the policy make most of the difference: with them the likelihood alone gets as far as DPO
(`on_policy` and `both` in the claim), and a negative gradient alone gets half-way (`negative`).

Deviations: four corners of the paper's comparison, no PPO and no RWR. The policy has features that neighbours share, so
it generalises along the line; offline pairs are drawn anew in each iteration, which favours the offline arms.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Preference Fine-Tuning of LLMs Should Leverage Suboptimal, On-Policy Data",
    authors="Fahim Tajwar, Anikait Singh, Archit Sharma, Rafael Rafailov, Jeff Schneider, Tengyang Xie, Stefano Ermon, "
    "Chelsea Finn, Aviral Kumar",
    year=2024,
    arxiv="2404.14367",
    read="abstract",
    topics=("preferences",),
    systems=(45,),
)
