"""Preference fine-tuning: what on-policy pairs and negative gradients are worth. Tajwar et al., 2024, arXiv 2404.14367.

Methods that learn from preferences differ in two choices. Pairs come from the reference, once and for all, or from the
policy as it is (on-policy). The loss raises the likelihood of the preferred answer alone, or also lowers that of the
other (a negative gradient). Both choices move mass quickly away from what was sampled; likelihood on the reference's own
answers can only sharpen the reference. So they matter where the best answers are unlikely under the reference, and not
where they are its mode.

The gradient of a pair's loss in the logits is

    likelihood:  policy - [y = y_w]                                        (Pref-FT, on-policy: expert iteration)
    DPO:        -beta sigmoid(-beta h) ([y = y_w] - [y = y_l])             (`methods.preferences.DPO`, h against the reference)

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | tasks | bandits over tokens, length of summaries, 7B models | puzzles, whose verifier prefers what is right |
| roll out | pairs | two answers of the reference or the policy | siblings, two by two, of the policy or, `OFFLINE`, of the start |
| score | `Duels` | a reward labels; too near a difference is no pair | a verifier labels; equals are no pair |
| credit | `SiblingPairs` | the better one, and the worse | the same |
| update | loss | Pref-FT, best-of-N, RWR, DPO, IPO, PPO | `DPO` with beta 0.1, or `Reinforce`: likelihood of the better one |
| update | reuse of a batch | 1 to 200 epochs | 1 |

Deviations: four corners of the paper's comparison, no RWR (PPO is `ppo`). The abstract and the released code were read,
not the paper.

On your own model and tasks; who prefers is a setting, a verifier that may err, or a judge behind an API:

    longstride train preference_tuning model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048
    longstride train preference_tuning reward.preference.noise=0.1 loss.type=ipo
    longstride train preference_tuning reward.preference.type=asked_pair reward.preference.judge.type=http_judge \\
        reward.preference.judge.judge.url=http://127.0.0.1:8000/v1 reward.preference.judge.judge.model=judge

`loss.type=reinforce loss.aggregation.type=mean` is the likelihood of what is preferred; `iterations=1` with many episodes
is offline.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Preference Fine-Tuning of LLMs Should Leverage Suboptimal, On-Policy Data",
    authors="Fahim Tajwar, Anikait Singh, Archit Sharma, Rafael Rafailov, Jeff Schneider, Tengyang Xie, Stefano Ermon, "
    "Chelsea Finn, Aviral Kumar",
    year=2024,
    arxiv="2404.14367",
    read="notes",
    topics=("preferences",),
    systems=(45,),
)
