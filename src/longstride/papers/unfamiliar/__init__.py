"""What a model says of what it never learned is set by its unfamiliar examples. Kang et al., 2024, arXiv 2403.05612.

Fine-tuning data ask for things that the model was never told. Such an example cannot teach the fact; what it teaches is a reply to
whatever the model does not know. So on an unfamiliar question the model says what its unfamiliar examples say on average:
something that sounds right, if their labels are right, and that it does not know, if they say so.

| place | choice | paper (Llama 2 7B; MMLU, TriviaQA) | here |
|---|---|---|---|
| what is known | `Facts`, `ToldFacts` | whatever was in pretraining | 800 of 1,200 facts, told as often as 1 / rank |
| familiar | `RelabelledUnfamiliar` | the model's own answers before fine-tuning | log-probability of the label before it |
| labels | `reply`, `share` | "I don't know" for the least familiar | the same, for a third |
| update | `Cloning` | supervised fine-tuning | the same |
| measure | `Unknown`, `Apt` | what is answered, by familiarity | by how often a fact was told |

`longstride train unfamiliar` takes a quarter of a minute of one core. With a model and questions of your own (rows of `prompt` and `answer`):

    longstride train unfamiliar model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=questions.jsonl \\
        cloning.demonstrations.reply="I do not know" cloning.demonstrations.share=0.3 cloning.learner.lr=1e-5 \\
        budget.turn_tokens=64 test_budget.turn_tokens=64 evaluation.measures='[{type="longstride.papers.unfamiliar.method:Unknown",reply="I do not know"}]'

`cloning.demonstrations.share=0` is fine-tuning as usual, and `cloning.demonstrations.demonstrations` relabels demonstrations of
another kind. `unfamiliar/published` has the settings of the paper's own size.

The claim, frozen before its ten seeds ran, is shown: .88 of what is said is apt with relabelled examples, .67 with true labels and .66 with as
many such labels by chance. It has a price: of questions that were told, .64 are answered right with them and .70 with true labels.

Deviations: the model has 0.2M parameters and knows a table of facts; the form of its knowledge is that of the questions. The share
that is relabelled is the share that was never told, which nobody knows of a real model. The paper's second part, a reward model
that is made to think little of unfamiliar claims, and reinforcement learning on it, is not here: no world here has claims that
only a reward model can judge.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Unfamiliar Finetuning Examples Control How Language Models Hallucinate",
    authors="Katie Kang, Eric Wallace, Claire Tomlin, Aviral Kumar, Sergey Levine",
    year=2024,
    arxiv="2403.05612",
    read="notes",
    topics=("reasoning", "cloning"),
    systems=(52,),
)
