"""Where to find what is not there yet when a recipe of the core is read: members of families that stand in a wing of
the package; strategies, which the command line names without loading them; the kinds of experiments, and what does the
work of data (`core.implementation`), mostly with torch.

What always holds: a name here is found without importing its module, and the module registers it when it is imported
(a test compares this table with what the modules hold).
"""

from longstride.core.locations import LOCATIONS

LOCATIONS |= {
    "experiment": {
        "recipe": "longstride.run.recipe",
        "control_recipe": "longstride.control.recipe",
        "exact_recipe": "longstride.exact.experiment",
        "extrapolation": "longstride.run.extrapolation",
    },
    "implementation": {
        "recipe": "longstride.run.loop",
        "control_recipe": "longstride.control.loop",
        "control_recipe.beside": "longstride.control.loop",
        "exact_recipe": "longstride.exact.loop",
        "extrapolation": "longstride.report.extrapolation",
        "cluster_config": "longstride.cluster.cluster",
        "http": "longstride.engines.servers",
        "judgements": "longstride.run.solutions",
        "model_successes": "longstride.run.teachers",
        "run_judge": "longstride.run.judges",
        "strategy_successes": "longstride.run.teachers",
        "vllm": "longstride.engines.vllm_engine",
        "turn_value": "longstride.learner.turn_critic",
        "token_value": "longstride.learner.token_critic",
    },
    "task_source": {
        "chat_gateway": "longstride.adapters.gateway.source",
        "dataset": "longstride.adapters.dataset",
        "gymnasium": "longstride.adapters.gymnasium",
        "browser_gym": "longstride.web.browsergym",
        "harbor": "longstride.adapters.harbor",
        "mcp": "longstride.adapters.mcp",
        "miniwob": "longstride.web.miniwob",
        "openenv": "longstride.adapters.openenv",
        "textarena": "longstride.adapters.textarena",
        "textworld": "longstride.adapters.textworld",
        "verifiers": "longstride.adapters.verifiers",
        "web_benchmark": "longstride.web.benchmarks.source",
    },
    "reward": {
        "environment_reward": "longstride.adapters.seeded",
        "judged_reward": "longstride.web.judging.judged",
    },
    "strategy": {
        "anytime": "longstride.strategies.anytime",
        "best_of": "longstride.strategies.best_of",
        "check_again": "longstride.strategies.check_again",
        "chosen": "longstride.strategies.chosen",
        "delegate": "longstride.strategies.delegate",
        "duelled": "longstride.strategies.duelled",
        "played_by": "longstride.strategies.learners",
        "revise": "longstride.strategies.revise",
        "searched": "longstride.strategies.searched",
        "think_on": "longstride.strategies.think_on",
    },
    "choice": {"scored": "longstride.strategies.scored"},
    "judge": {"http_judge": "longstride.web.judging.scoring"},
    "exact_problem": {
        "answers": "longstride.exact.answers",
        "designs": "longstride.exact.designs",
        "duel": "longstride.exact.games",
        "goal_theorems": "longstride.exact.proofs",
        "logged_world": "longstride.exact.logged",
        "search_walk": "longstride.exact.walks",
        "sharing": "longstride.exact.sharing",
        "step_tasks": "longstride.exact.steps",
    },
    "exact_method": {
        "ascent": "longstride.exact.designs",
        "chosen_by_level": "longstride.exact.steps",
        "com": "longstride.exact.designs",
        "grouped": "longstride.exact.answers",
        "logged_q": "longstride.exact.logged",
        "planned": "longstride.exact.planned",
        "shared": "longstride.exact.sharing",
        "solve": "longstride.exact.steps",
        "walked": "longstride.exact.walks",
    },
    "demonstrations": {"scripted_demonstrations": "longstride.starts.scripted"},
    "browser": {"chromium": "longstride.web.chromium.env"},
    "evaluator": {
        "number": "longstride.adapters.matching",
        "regex": "longstride.adapters.matching",
        "judged": "longstride.web.judging.rubric",
        "program_html": "longstride.web.judging.webarena",
        "rubric": "longstride.web.judging.rubric",
        "string_match": "longstride.web.judging.webarena",
        "url_match": "longstride.web.judging.webarena",
    },
}
