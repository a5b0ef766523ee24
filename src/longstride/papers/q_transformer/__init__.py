"""Q-Transformer: Q-learning with one coordinate of an action at a time. Chebotar et al., 2023, arXiv 2309.10150.

Q-learning needs the greatest value over all actions, and the number of binned actions grows exponentially with their
coordinates. Q-Transformer makes each coordinate a decision of its own, which knows those before it:

    Q(s, a_1..i) toward max over bins of Q'(s, a_1..i, a_i+1),   Q(s, a_1..A) toward r + gamma max over bins of Q'(s', a_1)

with no discount between coordinates, so the greatest value is exact. Offline, values of bins that the data did not take are
pulled to the least return that is possible, and a target is never below the return of the data, which carries a rare reward
back in one step.

| place | choice | paper | here |
|---|---|---|---|
| plan | data that reach a goal or not, 1 at success | robots: demonstrations and failures | `PointMaze`, 400 walks |
| value | `CoordinateQ` | 256 bins, a Transformer over images, words and coordinates | 11 bins, `BinNets`: two layers |
| value | outputs | between 0 and 1, by a sigmoid | as they are, from 0; a success earns 10 |
| value | pull to `least` | weight 1, least return 0 | weight 0.1 (values are ten times as large) |
| value | floor | Monte-Carlo return | the same |
| value | n-step returns | over the actions of a step | one step (`data.steps`) |
| policy | `GreedyByCoordinate` | greatest coordinate after coordinate | the same; online, any action with 0.1 |
| update | Adam | 600k steps and more | 1e-3, 128, 2,000 updates |

Deviations: the method is here and the Transformer is not: a network reads the state and the coordinates before as numbers, and
no history (a level's `memory` takes its place). The paper's body was not read: what is here is from its abstract and an
implementation of others, whose slip in the last coordinate's target (a squared error to a value before the sigmoid) is not
repeated. No run of the recipe was looked at: what is tested is the fixed point of a small problem. `q_transformer/recorded` takes
data of others; `least` is then the least return of that environment.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Q-Transformer: Scalable Offline Reinforcement Learning via Autoregressive Q-Functions",
    authors="Yevgen Chebotar, Quan Vuong, Alex Irpan, Karol Hausman, Fei Xia, Yao Lu, Aviral Kumar, Tianhe Yu, Alexander "
    "Herzog, Karl Pertsch, Keerthana Gopalakrishnan, Julian Ibarz, Ofir Nachum, Sumedh Sontakke, Grecia Salazar, Huong T Tran, "
    "Jodilyn Peralta, Clayton Tan, Deeksha Manjunath, Jaspiar Singht, Brianna Zitkovich, Tomas Jackson, Kanishka Rao, Chelsea "
    "Finn, Sergey Levine",
    year=2023,
    arxiv="2309.10150",
    read="notes",
    topics=("offline", "values", "robots"),
    systems=(32,),
)
