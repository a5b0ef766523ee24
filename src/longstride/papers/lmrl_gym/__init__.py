"""LMRL-Gym: text games for reinforcement learning of many turns, and value methods on stored ones. Abdulhai et al., 2023, arXiv 2311.18232.

Most rewards of language models are given for one answer. These games take many turns, cost nothing to play, and ask for what only reinforcement
learning gives: to find out, to remember, and to put together the good parts of what others did badly. Some come as twins, fully and partly
observed.

| place | choice | paper and released code (GPT-2) | here |
|---|---|---|---|
| tasks | `TextMaze` | a maze of two T, with position and goal, or walls alone | the same, in a maze grown from a seed, or your own |
| tasks | `Wordle` | a list of words, six guesses | the same, three letters; a file of the user's |
| tasks | `TwentyQuestions` | 158 things, a language model answers | numbers, a rule answers |
| tasks | others | text navigation, chess, endgames, guess my city, car dealer | text navigation by `tasks.type=textworld`; the rest is left out |
| score | `TaskReward` | -1 a step, 0 at the goal | 1 at the goal, discounted |
| plan | what is stored | 1,000s of walks of scripted policies | 1,024 walks of a start that was shown 300, or `stored_run` |
| critic | `ExpectileQ` | ILQL: two Q, one V, of tokens; tau 0.95 to 0.99, discount 0.99, targets 0.005 | of turns; 0.8, 0.95, 0.1 |
| critic | `ReturnQ` (`lmrl_gym/returns`) | Q of returns to go | the same, of turns; V too |
| credit | `AdvantageWeighted` | tokens are drawn by pi exp(beta (Q - V)), beta 8 | that policy is imitated, of turns; 1 / beta 0.1 |
| credit | `FilteredBC` (`lmrl_gym/filtered`) | the best tenth is imitated | successes |
| credit | `GAE`, `PPO` (`lmrl_gym/ppo`) | online | the same |

On your own model and one of the games, or any tasks of your own; the second command learns from what the first one stored, or any run:

    longstride train lmrl_gym/filtered model=Qwen/Qwen3-0.6B cloning= tasks.type=wordle tasks.words=words.txt actions=explained \\
        budget.turn_tokens=64 test_budget.turn_tokens=64 learner.lr=1e-6 --out walks
    longstride train lmrl_gym model=Qwen/Qwen3-0.6B critic.encoder=Qwen/Qwen3-0.6B critic.frozen=true cloning= stored_run=walks \\
        tasks.type=wordle tasks.words=words.txt actions=explained budget.turn_tokens=64 test_budget.turn_tokens=64 learner.lr=1e-6

The claim is not frozen and has not been run. In one run that was looked at (seed 0, 128 walks of a start that was shown 500, 200 steps of the critic on
frozen features, 14 of the policy, three minutes of a busy machine) .30 of 60 held-out walks arrived before and after it: nothing was seen.

Deviations: the abstract, notes and the released code of mazes, Wordle and both value methods were read. Values are of turns, not of tokens, so the
penalty on tokens that the data lack (CQL) has no place; it is 0 in the released mazes. What is drawn there at the test is imitated here. Data are
played by a model that learned too little, in the place of scripted policies; data sets of the authors are not read.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="LMRL Gym: Benchmarks for Multi-Turn Reinforcement Learning with Language Models",
    authors="Marwa Abdulhai, Isadora White, Charlie Snell, Charles Sun, Joey Hong, Yuexiang Zhai, Kelvin Xu, Sergey Levine",
    year=2023,
    arxiv="2311.18232",
    read="notes",
    topics=("agents", "values", "offline"),
    systems=(112,),
)
