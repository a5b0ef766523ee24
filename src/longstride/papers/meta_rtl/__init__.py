"""Meta-RTL: sources of tasks weighed by what they do for a target. Fu et al., 2024, arXiv 2409.19075.

Of a target there are few tasks, of other sources many, and some of these are of no use for it. So after a source was trained on, the loss on
the few target tasks says what it was worth, and a policy learns which sources to take; the steps between them are Reptile's.

| place | choice | paper (BERT, ALBERT) | here |
|---|---|---|---|
| plan | `WeightedSources` | weights of sources by an LSTM, trained by REINFORCE | one preference a source, by REINFORCE; one source an iteration |
| plan | its reward | loss of the meta model less that of the model after a source, on target data | the same, on 16 solved tasks, in deviations of earlier ones |
| tasks | sources, target | 4 sets of questions of common sense, and a fifth | chains of 3 and 5 operations and four unrelated puzzles; chains of 10 |
| inner loop | | fine-tuning on labelled data of a source | GRPO on its tasks |
| outer step | `learner.outer` | from the weights before towards those after | the same, half of the way |
| after | | fine-tuning on the target | none |

`longstride train meta_rtl` takes about 2 minutes of one core. On your own model and tasks, in `own.toml`; the target demonstrates (a data set its
references, an environment of your own by `demonstrate`):

    base = "meta_rtl"
    model = "Qwen/Qwen3-0.6B"
    sampler = { target = "mine" }
    learner = { lr = 2e-6 }
    [tasks]
    type = "environments"
    tested = ["mine"]
    [[tasks.environments]]
    name = "mine"
    levels = [{ type = "dataset", path = "mine.jsonl" }]
    [[tasks.environments]]
    name = "sums"
    levels = [{ type = "dataset", path = "sums.jsonl" }]

`metrics.jsonl` has, by source, what each iteration was trained on.

Deviations: the abstract and notes were read. The paper's weights depend on those before (an LSTM), and several sources are tried from the same
weights in an iteration; here one is, and what it did is what is compared. The target is not trained on at the end, so what is measured is
transfer alone. A gain is the fall of the loss after the outer step, which is what is kept. Rates and batches of the paper are not known, and its models
of masked words generate nothing.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Meta-RTL: Reinforcement-Based Meta-Transfer Learning for Low-Resource Commonsense Reasoning",
    authors="Yu Fu, Jie He, Yifan Yang, Qun Liu, Deyi Xiong",
    year=2024,
    arxiv="2409.19075",
    read="notes",
    topics=("reasoning",),
    systems=(132,),
)
