"""BFS-Prover-V2: expert iteration on the steps in the middle. Xin et al., 2025, arXiv 2509.06493.

A prover that learns from the proofs of its own search learns most from what it did already, and learns what the
verifier accepted though it proved nothing. Both show in the perplexity of a step: lowest for what is trivial, highest
for what is noise. So both tails are left out. Where the share of theorems that are proved rises no more, the prover
proves them once more, and the first model is trained on these proofs.

| place | choice | paper (7B and 32B, Lean) | here |
|---|---|---|---|
| world | `GoalTheorems` | states of Lean's goals | kinds of goals; a theorem needs one tactic for each of its goals |
| search | `BestFirst` | score sum log p / L^alpha | the same, alpha = 1 |
| planner | `SubGoals` | sub-goals of another model, in turn | the same, for language models |
| data | `low`, `high` | both tails of a step's perplexity left out | the same, below 1.6 and above the best threshold of five |
| update | cloning | supervised fine-tuning | gradient steps on the mean log-probability, as many in all arms without a restart |
| restart | `patience`; `bfs_prover/restart` | from the base model, on curated new proofs | from the first table, with a longer training; likewise from the first model |

With step and threshold tuned the filter is a little ahead, and not because of the noise that it leaves out (the claim).
At one setting, a threshold of 40, it helped early and cost later: after 5 iterations the chance of a proof was 0.027
higher than with all steps (seeds 100 to 139), after 16 it was lower, and a restart did not make up for it. The reason, at
16 on seeds 0 to 9, which that setting was chosen with: idle tactics have a chance of 0.12 instead of 0.26, but in 78 % of the kinds of
goals (20 % with all steps) a right tactic has become rarer than the threshold, and what is left out is not learned
again; the share of training theorems that are proved is 0.36 instead of 0.80. With a threshold of 400 it makes no
difference (0.185 to 0.187). With three times as many gradient steps the filter costs at 5 iterations already; with more
trivial goals (0.7) it gains nothing there. Of 57 further settings that were tried, with two seeds and 8 iterations
each, it gained in about a quarter.

With a language model on chains of 2, 5 and 10 operations the filter gains .13 after six iterations (the claim), and the
upper end alone .28: an answer that comes too early is right by chance in one case of seven, and improbable. The claim
was changed before it was frozen, on tuning seeds: its first control stood at the ceiling, and a first dose, wrong steps
that a search lets through, was none, since they were rare whatever the search was told.

`longstride train bfs_prover model=MODEL tasks.type=SOURCE` is expert iteration of a language model: in every iteration
the policy searches training tasks by log p / L^alpha with a verifier of answers, over one cache, and clones those steps
of what it found that are new and inside a band of perplexity; a step ends at `mark`. The band is of `base-puzzles`: set
that of your model (`imitation.demonstrations.filters`); where no step passes, a warning says so. Chains stand for
theorems, since a step of them is checked by nobody. `longstride eval RUN --strategy best-first guide.type=checked
accepted=1` searches alone. A look at `base-puzzles` (seed 901, 40 chains): 0.93 for 86 tokens at alpha = 1, 0.90 for
143 at alpha of 0 and 0.5; 16 answers of which the verifier takes a right one: 0.93 for 266. Where a run rises no more,
`longstride train bfs_prover/restart cloning.demonstrations.model=RUN` begins with the first model again: it clones the
steps in the middle of what the policy of the run finds, and goes on. When that is, is yours to say.

`longstride eval MODEL tasks.type=SOURCE --strategy longstride.papers.bfs_prover.method:SubGoals planner=PLANNER` searches
by way of sub-goals: PLANNER (a run, a model, `planner.url=URL planner.name=NAME`, or the policy itself where left out)
says what is to be reached, one a line; the search goes from one to the next and then to the answer, and PLANNER is asked
again, `replans` times, where one is out of reach. `search`, `guide` and `mark` are those of every search (`'mark=""'`
where a step is a turn), `prompt` is what is asked. A sub-goal is reached where a step says it, or a page shows it, in the
same words; where a verifier may be asked, `guide.type=checked search.accepted=1`. Of six made-up locks of four dials it
opens all for 454 tokens, with a planner that knows the digits, and the same search without one none for 1,440 (the test);
no language model of any size has planned yet.

Deviations: in the exact problem a table of kinds of goals, so the chance of a proof is computed and not sampled. A
sub-goal is no lemma that a verifier accepts but words, and the policy is not told it: it says when a search has come far
enough. Tasks are searched side by side, each by one prover, so there is no cache that provers share. The paper's
thresholds are not known. Its released search, which was read, takes the mean log-probability of a tactic's tokens, where
here a step has their sum.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Scaling up Multi-Turn Off-Policy RL and Multi-Agent Tree Search for LLM Step-Provers",
    authors="Ran Xin, Zeyu Zheng, Yanchen Nie, Kun Yuan, Xia Xiao",
    year=2025,
    arxiv="2509.06493",
    read="notes",
    topics=("proofs", "search", "cloning"),
    systems=(85,),
)
