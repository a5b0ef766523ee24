"""WebRL: a self-evolving curriculum, new tasks made from failed ones. Qi et al., 2024, arXiv 2411.02337.

Most tasks are solved already, or hopeless. So each phase plays new tasks, made from those that failed in the phase
before, if a critic finds them neither. Against forgetting, a KL term keeps the policy near that of the phase before, and
turns of earlier successes are trained on again where the policy is not yet sure of them.

| place | choice | paper and released code (WebArena, Llama-3.1-8B) | here |
|---|---|---|---|
| plan | `FailedTasks` | 500 tasks, which GPT-4o writes like failed ones | 256 of templates of failed ones, or of similar ones |
| plan | its band | critic's value of the first page, 0.05 to 0.75 | the same |
| roll out, score | context, `TaskReward` | older pages left out; a trained judge, right in 80 % | all pages; exact checks |
| credit | `PerplexityReplay` | successes; turns of perplexity 1/0.95 to 1/0.5; at most twice the new data | the same |
| credit | `NextAndFinal` | equation 9, lambda 0.5 | the same |
| credit | `TurnValue` | equation 8; a language model of its own, the smaller of two heads | a head on the policy's hidden state |
| update | `KL` of actions, to `Latest` | equation 6, to the policy of the phase before; beta 1 in the release | the same |
| update | rate, batch, passes | AdamW, 1e-6, 128, 1 | 4e-4, 384, 2 |

The loss of equation 6, (beta log(pi(a|s) / ref(a|s)) - A)^2, has 2 beta times the gradient of -A log pi(a|s) + beta
log(pi / ref)^2 / 2: it is `Reinforce` under the `k2` estimate of the KL divergence of whole actions. The release does
otherwise: A becomes 1 or -0.6, only positive ones are trained, beta is 5 where the reference is sure.

On your own model and tasks, whose source makes a task like one that failed, or None; a new task has its own evaluator,
or an environment that rewards it. The first two parts of a `template_id`, such as `billing/refund/7`, are a kind of task:

    class MyTasks(TaskSource):
        def vary(self, task, rng):
            return self.make(task.template_id, rng)  # as `sample` makes tasks

    longstride train webrl model=Qwen/Qwen3-0.6B tasks.type=my_module:MyTasks learner.lr=1e-6

Deviations: a model of half a million parameters on embedded sites, so rate, batch and critic are a small model's.
Templates write the tasks and know the answers. Failed tasks are drawn from all errands alike, not from sites alone:
comparisons, which fail most, were 191 of 256 tasks after ten iterations otherwise. The critic learns after the policy,
so the first iteration trains it alone. In one run, tasks drawn uniformly did no worse.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="WebRL: Training LLM Web Agents via Self-Evolving Online Curriculum Reinforcement Learning",
    authors="Zehan Qi, Xiao Liu, Iat Long Iong, Hanyu Lai, Xueqiao Sun, Jiadai Sun, Xinyue Yang, Yu Yang, Shuntian Yao, "
    "Wei Xu, Jie Tang, Yuxiao Dong",
    year=2024,
    arxiv="2411.02337",
    read="notes",
    topics=("agents", "values", "judges"),
    systems=(135,),
)
