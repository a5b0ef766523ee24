"""RLAD: one role of a policy proposes how to begin, another one solves. Qu et al., 2025, arXiv 2510.02263.

A longer thought only goes deeper from where it began. An abstraction, a short text that says how to go about a task, makes a policy begin elsewhere:
solutions with one abstraction in view differ from those with another one. It is rewarded by what is solved with it, and its author and its reader are
trained together.

| place | choice | paper (Qwen3-1.7B) | here |
|---|---|---|---|
| tasks | | mathematics, easy ones first | Countdown of three and four numbers |
| start | `AbstractionsShown` | fine-tuned on abstractions of a stronger model | the first step of a solution, and the solution with it in view |
| plan | `Abstracted` | abstractions, and solutions with each | 4 of a task, and 4 solutions with each |
| score | solutions | right or wrong; 0 without an abstraction | right or wrong; always with one |
| score | abstractions | mean success of their solutions | the same |
| score | leaks | none of 16 answers from the abstraction alone is right | none of 4, asked where a solution was right; else it earns 0 |
| credit, update | `GroupRelative`, `PPO` | DAPO for solutions, offline preferences for abstractions | GRPO for both, a group each |
| test | `Abstracting` | m abstractions with k solutions each | the same, and which of them counts |

`longstride train rlad` takes about 2 minutes of one core. On your own model and tasks, which are asked in words of your own:

    longstride train rlad model=Qwen/Qwen3-0.6B cloning= tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        'sampler.form={ask="\\nPropose in one sentence how to begin.",words="\\nBegin like this: {abstraction}",tokens=64}' \\
        'evaluation.strategies=[]' budget.turn_tokens=1024 test_budget.turn_tokens=1024

Tasks may take many turns; an abstraction is one turn, whatever the environment makes of it. A start that follows no instructions is shown both
roles where the task source has `hint` and `demonstrate`. At the test, with the words that were trained:

    longstride eval RUN --strategy longstride.papers.rlad.method:Abstracting abstractions=8 attempts=2 by.type=verifier 'form={ask="...",words="..."}'

`metrics.jsonl` has reward and success of both roles (`by_role`); attempts at leaks are counted in `sampled_tokens` and never trained.
`rlad/published` has the settings of the paper's own size.

The claim is not frozen and has not been run. In the one run that was looked at (seed 0, four iterations, 30 held-out tasks, a third of them of
two numbers, which the recipe no longer has) both roles do what they are asked after 6,000 scripts; of sixteen solutions without abstractions one was
right in .57 of the tasks before RL and .50 after it, and with four abstractions in .40 and .43. That abstractions pay was not seen.

Deviations: the abstract, notes, and scripts of one of the authors were read. An abstraction of this size is a first step, for a model of half a
million parameters follows no advice; scripts show one a task, and what differs is sampled. Both roles are one policy and learn in the same updates.
Left out: prompts without an abstraction that earn nothing, the curriculum over lengths, and abstractions that summarise several solutions. How the
paper fine-tunes is not known; what an abstraction in words is worth takes a model that reads them.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="RLAD: Training LLMs to Discover Abstractions for Solving Reasoning Problems",
    authors="Yuxiao Qu, Anikait Singh, Yoonho Lee, Amrith Setlur, Ruslan Salakhutdinov, Chelsea Finn, Aviral Kumar",
    year=2025,
    arxiv="2510.02263",
    read="notes",
    topics=("reasoning",),
    systems=(19,),
)
