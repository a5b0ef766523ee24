"""Provable ICRL: what a transformer learns from offline trajectories is the algorithm that labelled them. Lin et al., 2023, arXiv 2310.08566.

Trained on what an expert algorithm says to trajectories that another algorithm made, a transformer comes to be that expert in its context,
LinUCB or Thompson sampling, up to an error that grows with model class over samples and with how far the two algorithms' trajectories
are apart (the distribution ratio). Algorithm distillation is the case of one algorithm, DPT that of an expert who knows the answer.

| place | choice | paper | released code | here |
|---|---|---|---|---|
| world | `LinearBandits` | linear bandits; Bernoulli bandits | 10 arms, features of dimension 5, noise of deviation 1.5, 200 pulls | 10 arms, dimension 2, rewards 0 or 1, 6 episodes of 10 pulls |
| expert | `LinUCB`, the labels | LinUCB, Thompson sampling | the same | LinUCB; any learner |
| context | `OneOf` | another algorithm | uniform in a half or in nine tenths of the tasks, else the expert | the same |
| update | cross-entropy of all turns | equation of the pretraining loss, over the whole trajectory | AdamW, 1e-3, 100,000 tasks, 2,000 passes | 4e-3 falling to a tenth, 5,000 trials, 4 passes |
| policy | a language model | GPT-2 with ReLU | 8 layers, width 32 | a Llama of 0.2M parameters, which reads words |

`longstride train provable_icrl` takes 5 to 10 minutes of one core. With your own: `cloning.demonstrations.labels` is any learner that has seen the
same turns, of the package or of a module of your own; the environment says its `choices`, and for LinUCB their `features`
(docs/guides/in_context.md). The numbers of the released code, but for its noise:

    longstride train provable_icrl tasks.dimensions=5 tasks.pulls=200 trial.episodes=1 budget.turns=200 test_budget.turns=200 cloning.episodes=100000 \\
        cloning.learner='{lr=1e-3,weight_decay=1e-4,epochs=2000,batch_samples=128,warmup_steps=0}'

Its noise takes a model that reads decimals: `model=MODEL context.turn='reward: {reward:g}'` and, beside these,
`tasks='{type="gaussian_linear_bandits",dimensions=5,pulls=200,deviation=1.5}'`, whose features are the same in all tasks; there they are drawn for
each.

The claim is not frozen and has not been run. In the one pair of runs that was looked at (seed 900, 100 held-out bandits of the claim's
size: 6 arms, 5 pulls an episode, 3,000 trials to learn from) an episode earned 3.84 after LinUCB's own trajectories and 4.06 after those of a player that
learns nothing, both with LinUCB's labels; LinUCB itself earned 4.50 and Thompson sampling 3.87. In that one seed the order is not the paper's.

Deviations: rewards are 0 or 1, with chance 1/2 + <x, theta> / 2. The abstract, the beginnings of sections and the released code were read,
not the proofs: constructions and rates are not here, and the distribution ratio is turned and not computed.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Transformers as Decision Makers: Provable In-Context Reinforcement Learning via Supervised Pretraining",
    authors="Licong Lin, Yu Bai, Song Mei",
    year=2023,
    arxiv="2310.08566",
    read="notes",
    topics=("context", "cloning"),
    systems=(106,),
)
