"""To backtrack or not: a search in one thought against many short attempts. Qin et al., 2025, arXiv 2504.07052.

A model that was shown searches with their dead ends tries, goes back and tries again within one thought. A model that was shown solutions alone
answers at once, and with as many tokens it answers many times. Which of the two solves more depends on the task: in the paper many attempts win on
Countdown and a search wins on Sudoku. Reinforcement learning then improves searches, and makes single answers better and sets of them less
various.

| place | choice | paper (models of 17M to 100M parameters, from nothing) | here |
|---|---|---|---|
| start | `SearchTraces`, `style` | depth-first search; or the way to the solution | the same tasks in both styles |
| start | `order`, `skips` | mix-backtrack: traces of several searches; think-backtrack: steps left unsaid | an order that is drawn; dead ends left unsaid |
| RL | `GroupRelative`, `PPO` | GRPO on each, groups of 8 | the same |
| test | `WithinTokens` | best of n, as much compute as one search | attempts until as many tokens are sampled |
| test | `Direct`, `tokens` | one search of rising length | the same |

    longstride train backtrack                                                     # Countdown, searches
    longstride train backtrack cloning.demonstrations.demonstrators.style=direct   # solutions alone
    longstride train backtrack/sudoku

`longstride train backtrack` takes about 2 minutes of one core. With tasks and traces of your own (docs/guides/traces.md) and how they are compared
within as many tokens:

    longstride train backtrack model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=tasks.jsonl learner.lr=1e-6 \\
        cloning.demonstrations='{type="file_successes",path="traces.jsonl",unjudged=true}' cloning.learner.lr=1e-5 \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048
    longstride eval RUN --strategy direct tokens=1024 --strategy longstride.papers.backtrack.method:WithinTokens tokens=1024

Starts of other sizes are made from nothing, as in the paper, or from another start; the recipe then takes them without cloning:

    longstride make-base demonstrators.type=longstride.papers.backtrack.method:SearchTraces demonstrators.style=direct model.width=64 model.layers=3 \\
        recitals=0 page_weight=0 tokens=3000000 --out direct_64
    longstride train backtrack model=direct_64 cloning=

The numbers of the released code (KempnerInstitute/Backtrack, commit 808c00a: `sft-dfs-4-cd-17M-qwen.conf`, `grpo_countdown_sft.yaml`), on a model of
its size that was hardly trained:

    longstride make-base demonstrators.type=longstride.papers.backtrack.method:SearchTraces model.width=512 model.layers=8 model.heads=4 \\
        model.kv_heads=1 model.ffn=1024 model.context=4224 model.rope_theta=1e6 recitals=0 page_weight=0 tokens=1 --out start_17M
    longstride train backtrack model=start_17M 'tasks.numbers=[4,4,4]' 'cloning.demonstrations.demonstrators.tasks.numbers=[4,4,4]' \\
        cloning.demonstrations.demonstrators.most=4096 budget.turn_tokens=4096 test_budget.turn_tokens=4096 episodes_per_iteration=2048 \\
        cloning.episodes=500000 'cloning.learner={lr=1e-5,weight_decay=0.01,epochs=20,batch_samples=32,warmup_steps=1,decay_steps=312500,min_lr_ratio=0}' \\
        replay.type=on_policy loss.entropy=0.001 'loss.kl={coefficient=0.001}' 'learner={lr=1e-6,warmup_steps=0,epochs=1,batch_samples=2048}'

For single answers it has 285,000 solutions in batches of 48 and turns of 512 tokens, for Sudoku a rate of 1e-4 and 2,800,000 traces, and other models
of 3M, 38M and 144M parameters.

The claims are not frozen and have not been run. A look at Countdown decides nothing (seed 0, 1,200 demonstrations in 19 steps where the recipe has
3,000, 60 held-out tasks, no reinforcement learning): shown solutions alone, .72 [.59, .81] were solved by attempts within 256 tokens and .37 [.26, .49] by
the first; shown searches, .15 [.08, .26] by one thought of at most 256 tokens, which took 94 and nearly always ended by itself, and .25 [.16, .37] by
several. In so few steps it copies how a search is written and errs within it. What more demonstrations or reinforcement learning make of that, and
Sudoku, was not looked at.

Deviations: the abstract, what its authors and others wrote of it, and the settings of the released code were read. Compute is counted in sampled
tokens, where the paper counts operations, so a long context costs no more here. Which attempt counts is said by a verifier that never errs, as in
best of n there. Puzzles are smaller (three numbers up to 10, there four up to 99; four by four cells, whose blanks are filled row by row), and the
start knows arithmetic. Their answers are sampled at temperature 0.7, and here at 1, which the ratios of GRPO take.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="To Backtrack or Not to Backtrack: When Sequential Search Limits Model Reasoning",
    authors="Tian Qin, David Alvarez-Melis, Samy Jelassi, Eran Malach",
    year=2025,
    arxiv="2504.07052",
    read="notes",
    topics=("reasoning", "search", "cloning"),
    systems=(78,),
)
