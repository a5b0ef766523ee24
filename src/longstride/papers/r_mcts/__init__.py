"""R-MCTS and exploratory learning. Yu et al., 2024, arXiv 2410.02052.

A policy cloned from best paths has never seen where errors lead. The whole traversal of a search, with its returns from
dead ends, shows the way back. Between tasks the search reflects: where its value was furthest from what came of a step,
it remembers what came of it.

| place | choice | paper (VisualWebArena, GPT-4o) | here |
|---|---|---|---|
| world | `DeadEnds` | a browser that can go back | a way of right branches; any other leads into a dead end |
| search | `TreeSearch` | PUCT, c = 1, a debate of models for values | c = 0.1, progress with a lasting error a branch |
| search | reflection | the step with the largest difference of V and Q | the same; of the same branch it is remembered |
| data | `Cloning.data` | traversals written down, or best paths | the same |
| update | cloning | supervised fine-tuning | counts of actions in states |

A traversal teaches its own errors too: without reflection most searches go wrong on the way, and the policy that clones
them is worse than one that was shown best paths (`no_reflection`).

`longstride train r_mcts model=MODEL tasks.type=SOURCE` is the same with a language model, where a step can be taken
back by what `imitation.demonstrations.search.back` says: PUCT over what the policy samples, with a guide as its value
(how likely the policy finds what it does, or a trained judge), a line of reflection after the goal of the next search
of a task (`rounds`), and clones of whole traversals, played again as one episode; then it acts without a search
(`longstride eval RUN`). Trails (`base-dial`) have wrong links that lead away. A look (seed 901): the search solves 24
of 24 training tasks where the policy alone solves 16; at 12 expansions and exploration 1 it solves 11, and 5 in a
second round, told what surprised it: this policy has never read such a line, so the recipe has one round, and
`rounds=2` is for models that read. After three iterations of 32 searches it solves 0.70 of 100 held-out tasks alone,
after 0.50 of the training tasks before.

Deviations: values are of one model and not of a debate; a reflection is told in the next search of the same task, and
not retrieved for others. All continuations of a place are scored as they are made; in the released code a place is
scored when the search first comes there, Q is 0 until then, and has the place's own score in it. In the exact problem a table without history stands for a language model, so success is
computed and not sampled; a move slips with a known chance, which is where errors come from.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="ExACT: Teaching AI Agents to Explore with Reflective-MCTS and Exploratory Learning",
    authors="Xiao Yu, Baolin Peng, Vineeth Vajipey, Hao Cheng, Michel Galley, Jianfeng Gao, Zhou Yu",
    year=2024,
    arxiv="2410.02052",
    read="notes",
    topics=("agents", "search", "cloning"),
    systems=(111,),
)
