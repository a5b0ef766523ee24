"""DPT: predict the best action from what was done before, whoever did it. Lee et al., 2023, arXiv 2306.14892.

A transformer reads interactions of some policy with a task, and is trained to say what would have been best there. It is never
shown how to explore. Yet when it acts itself and reads what came of it, it samples actions as likely as they are best given what it
knows: posterior sampling, as Thompson's.

| place | choice | paper | released code | here |
|---|---|---|---|---|
| data | `FixedDraw` | actions of some policy, of tasks drawn from a prior | each task its own distribution over arms, at times a single arm | the same |
| labels | `Optimal` | the best action for a query state | after every prefix of the context | in every turn |
| update | cross-entropy | log-likelihood of the best action | summed over prefixes; AdamW, decay 1e-4, batches of 64 | mean over turns; batches of 16 |
| world | `Bandits` | 5 arms, Gaussian rewards, 500 pulls; linear bandits; dark rooms of 10 x 10, 100 turns | the same, 100,000 tasks; 10 arms of dimension 2, 200 pulls, 1,000,000 tasks | 5 arms, rewards 0 or 1, 6 episodes of 10 pulls |
| policy | a language model | GPT-2 of its own input layer | 4 layers, width 32 | a Llama of 0.2M parameters, which reads words |
| deployed | sampled, and what came of it read | online; offline, where a context is given | the same | online |

`longstride train dpt` takes about 5 minutes of one core. With your own: an environment that says its `choices` and, for the labels, what is `best`
(docs/guides/in_context.md); any learner or stored behaviour is `cloning.demonstrations.learner`. The paper's dark rooms, and its bandits with a model
that reads decimals:

    longstride train dpt tasks='{type="dark_rooms",size=10,turns=100,begins="corner"}' trial.episodes=1 cloning.demonstrations.learner.type=any_choice
    longstride train dpt model=MODEL tasks='{type="gaussian_bandits",pulls=500}' trial.episodes=1 budget.turns=500 test_budget.turns=500 \\
        context.turn='reward: {reward:g}' cloning.episodes=100000 cloning.learner.lr=1e-4 cloning.learner.batch_samples=64 \\
        evaluation.strategies='[{type="direct"},{type="played_by",learner={type="gaussian_thompson"}}]'

Its linear bandits are `tasks='{type="gaussian_linear_bandits",pulls=200}'` there, with 200 turns, `cloning.episodes=1000000` and trials of Thompson
sampling to learn from, `cloning.demonstrations.learner='{type="gaussian_thompson",mean=0,variance=1}'`.

The claim is shown: with the best arm as the label in both, an episode earns 3.15 after anyone's trials and 2.56 after the best player's (any arm
would earn 2.5, of 5 pulls with 3 arms). The gap opens inside the context: .11 in the first episode of a trial, .83 in the sixth. Where rewards are
left out of the context both earn what any arm would. Posterior sampling was not reached: Thompson sampling earns 3.25, .10 more [.05, .15], and a
policy that imitates Thompson's own trials 3.22, .07 more [.04, .11]. Each arm had the rate of six that was best for it on other seeds; a run of the
claim takes one and a half minutes of a core, the claim with its tuning somewhat over two hours of them.

Deviations: interactions are read in their order, and the code shuffles them. Rewards of bandits are 0 or 1 and not Gaussian, for `base-trials` reads
whole numbers alone. A query state is the state in which the policy acts.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Supervised Pretraining Can Learn In-Context Reinforcement Learning",
    authors="Jonathan N. Lee, Annie Xie, Aldo Pacchiano, Yash Chandak, Chelsea Finn, Ofir Nachum, Emma Brunskill",
    year=2023,
    arxiv="2306.14892",
    read="notes",
    topics=("context", "cloning"),
    systems=(114,),
)
