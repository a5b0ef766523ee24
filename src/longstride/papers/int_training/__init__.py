"""InT: an error is corrected where it was made, and what follows is left to RL. Yang et al., 2026, arXiv 2601.14209.

An answer that failed was mostly right for a while. RL blames all of it; a reference solution is another way of saying it all. So the first
error is found, one step is put in its place, and what stood before it is cloned with that step; what came behind is dropped, and RL goes on.

| place | choice | paper, and the authors' code (Qwen3-4B) | here |
|---|---|---|---|
| plan | first error, intervention | named and written by the same model, which is shown a reference solution | `Interventions`: found by the model's own continuations, by halving; the first step of one that succeeds |
| plan | filter | 1 of 32 continuations succeeds; no step that has the result | 1 of 4; the same |
| credit | `Spliced` | cloning of prefix and step, without what came behind | the same |
| after | `GroupRelative`, `PPO` | GRPO, about 400 steps | GRPO, from iteration 4 on |
| tasks | | no success in 64 to 128 rollouts | chains of 3, 4 and 5 operations, of which the start solves 0.40, 0.30 and 0.21; one failed answer of each group |

`longstride train int_training` takes about 2 minutes of one core. On your own model and tasks of a single turn, whose answers have a token that
divides their steps and is nothing else:

    longstride train int_training model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        budget.turn_tokens=1024 test_budget.turn_tokens=1024 'sampler.mark="\\n\\n"'

All that a search samples is counted in `sampled_tokens`. In its place a judge may name the first error, with one probe of each failed answer: a run that
was trained with `tasks.asks=line` (docs/guides/judge.md), or a model behind a chat API (`sampler.judge.type=http_judge`):

    longstride train genrm tasks.asks=line --out runs/lines
    longstride train int_training sampler.type=longstride.papers.int_training.method:JudgedInterventions \\
        sampler.judge=runs/lines sampler.iterations=3

What it samples and reads is counted in `judge_usage`. How well it has to find errors for this to pay was not measured. `int_training/published` has
the settings of the paper's own size.

Deviations: nothing but the verdict of whole answers is read, no reference solution, for a model of half a million parameters follows no instructions;
so a failed answer is left alone where no continuation of it succeeds. What is cloned was sampled by the policy in the same iteration, and each search
is cloned once. Chains of 12 operations, the former tasks, teach nothing here: a guess is right one time in seven, and neither RL nor interventions ended
above that. Keeping what came behind an intervention is left out. That answers of thousands of tokens are mended by a step cannot be shown here.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning",
    authors="Matthew Y. R. Yang, Hao Bai, Ian Wu, Gene Yang, Amrith Setlur, Aviral Kumar",
    year=2026,
    arxiv="2601.14209",
    read="notes",
    topics=("reasoning", "credit", "cloning"),
    systems=(16,),
)
