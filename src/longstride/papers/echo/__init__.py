"""ECHO: what the environment answers is predicted too. Shrivastava et al., 2026, arXiv 2605.24517.

Reinforcement learning of an agent trains on the tokens that it sampled, and where every episode fails it trains on nothing. But each
observation says what an action came to. ECHO adds the cross-entropy of the observations that its own actions led to, in the same forward
pass, and so learns from failures too.

| place | choice | paper | here |
|---|---|---|---|
| plan | groups of one task | 8 and more, in a terminal | 8, 32 tasks on the embedded sites |
| roll out | `FullHistory` | the terminal's output stays | pages stay |
| credit | `WithObservations` | GRPO's, and each observation with weight lambda, by its length | `GroupRelative`, 0.05 |
| update | `EchoPPO` | GRPO + lambda cross-entropy | the same, in one forward pass; KL and entropy are of sampled tokens alone |
| update | batch | not known | 768 samples, about half of them observations: as many episodes as 384 turns |

Deviations: the abstract and what others wrote of it were read; lambda is ours. Warnings are not left out, as the paper does. An
observation is trained together with the words that a chat template puts around it. **It trains tokens that no policy sampled**, which
nothing else here does: it is this credit that asks for it, each such sample has the stream `observed`, and no other loss takes them for
actions by mistake, since they have no log-probability of sampling.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="ECHO: Terminal Agents Learn World Models for Free",
    authors="Vaishnavi Shrivastava, Piero Kauffmann, Ahmed Awadallah, Dimitris Papailiopoulos",
    year=2026,
    arxiv="2605.24517",
    read="abstract",
    topics=("agents", "credit"),
)
