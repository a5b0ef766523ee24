"""T2MIR: experts that tokens choose beside experts that tell tasks apart. Wu et al., 2025, arXiv 2506.05426.

A policy that learns inside its context reads tokens of three kinds (what was seen, done and earned) of many tasks, whose gradients get in each
other's way. T2MIR puts two mixtures of experts side by side in the place of a feed-forward network, each of which gives one half of its output.
In one each token chooses its experts, and a balance keeps all of them in use. In the other the gate learns to say the same of two histories of one
task and different things of different tasks (InfoNCE against a gate that follows it slowly), so that tasks get experts of their own.

| place | choice | released code (dark rooms) | here |
|---|---|---|---|
| policy | `models.experts.Experts` | 6 and 12 experts of width 128, 2 of each a token, in the last of 4 layers of width 64 | 6 and 8 of width 48, in the last of 4 layers of width 64 |
| balance | `models.experts.balance`, .1 | CV(importance)^2 + CV(load)^2 of the tokens' gate, noise of learned size | the same |
| contrast | `models.experts.contrast`, .01 | two windows of each task in a batch, bilinear, keys by a gate with tau = .005 | the same, `windows=2` |
| data | `LearningHistories` | histories of reinforcement learning; of T2MIR-DPT labels | histories of Q-learning, labelled with the best action |
| tasks | `SeveralWorlds` | 80 goals of one dark room; one robot's speeds, goals or bodies | rules of bandits, dark rooms and corridors |
| update | cross-entropy, with both losses added | AdamW, batches of 128, rate 3e-4 | AdamW, batches of 16 |

`base-trials-experts` is `base-trials` with experts made of parts of its last network, and its active experts have as many weights as that:
`model=base-trials` is the dense policy of equal active size, `cloning.demonstrations.windows=1` leaves the contrast out, and has twice as many tasks
with one history each.

    longstride train t2mir
    longstride train t2mir tasks='{type="bandits"}' trial.episodes=6 episodes_per_iteration=48
    longstride train t2mir tasks='{type="dark_rooms",size=10,turns=100,begins="corner"}' trial.episodes=1 episodes_per_iteration=8

`longstride train t2mir` takes 10 to 20 minutes of one core. With your own: an environment that says its `choices` (docs/guides/in_context.md), or
histories that are there already, a run's (`stored_histories`) or in files (`file_histories`), with `windows=2`:

    longstride train t2mir tasks.type=... cloning.demonstrations='{type="file_histories",path="histories",windows=2}'

Experts of another number and size are made of the last networks of any Llama, and trained on traces of your own (docs/guides/traces.md) or hardly
at all; or a model begins with them (`make-base trials model.experts=...`). What comes of it saves and loads as any folder, and other recipes train it too:

    longstride make-base start=LLAMA model.experts='{tokens=4,tasks=4,ffn=512,layers=2}' tokens=1 --out start
    longstride train t2mir model=start tasks.type=... context.turn='reward: {reward:g}' cloning.learner.lr=1e-5

The claim is not frozen and has not been run. A look decides nothing (seed 0, 1,000 histories, which are 63 steps where the recipe has 1,250, 15 held-out
tasks of each kind): the policy had learned what can be said (.05 of its turns were invalid) and nothing inside its context: .91 an episode in the mean,
any choice 1.06, Q-learning 2.02; nor has the dense one been run beside it. Experts of tokens came to be used evenly (balance from .28 to .01). The
contrast stayed at chance, 2.07 where log 8 is 2.08: its weight and tau are those of runs of 100,000 steps and more, and whether it does anything in
500 is open.

Deviations: the abstract and the released code were read. Experts are gated (SiLU) and without biases, as the rest of the model; the released ones are not gated, with leaky ReLU. The load counts an
expert as chosen by its logit with noise, as Shazeer et al. have it; the released code compares the noise alone. The released settings of robots route a
whole history by the mean of its tokens, which reads what comes later; here each token is routed by itself, as their setting of dark rooms has
it. Of reinforcement learning on top, noise is left out, so that what is trained is what was sampled. Balance and contrast are of a whole
optimiser step, which has to be one pass in one process; more is refused.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Mixture-of-Experts Meets In-Context Reinforcement Learning",
    authors="Wenhao Wu, Fuhong Liu, Haoru Li, Zican Hu, Daoyi Dong, Chunlin Chen, Zhi Wang",
    year=2025,
    arxiv="2506.05426",
    read="notes",
    topics=("context", "cloning"),
    systems=(118,),
)
