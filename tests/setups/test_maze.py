"""Recipes of control: arms of claims differ in what their claim is about."""

from longstride.claims.claim import Claim
from longstride.control import SAC, BestOfN, ControlRecipe, PointMaze, TDCritic
from longstride.curriculum import Fixed
from longstride.papers.cal_ql import recipe as cal_ql
from longstride.papers.cql import narrow
from longstride.papers.sharsa import recipe as sharsa
from longstride.papers.wsrl import recipe as wsrl


def arm(claim: Claim, name: str) -> ControlRecipe:
    experiment = claim.arms[name]
    assert isinstance(experiment, ControlRecipe)
    return experiment


def critic_of(recipe: ControlRecipe) -> TDCritic:
    critic = recipe.agent.levels[0].critic
    assert isinstance(critic, TDCritic)
    return critic


def test_arms_of_cql_differ_in_conservatism_and_in_the_noise_of_the_data() -> None:
    for name in narrow.CLAIM.arms:
        of, _, critic = name.partition("_")
        assert {phase.conservative for phase in arm(narrow.CLAIM, name).phases} == {critic == "cql"}
        changes = {key: value for key, value in narrow.CLAIM.changes(name).items() if key != "phases"}
        assert changes == {"narrow": {}, "wide": {"tasks.noise": 1.0}, "covering": {"tasks.noise": 3.0}}[of]


def test_arms_of_cal_ql_differ_in_calibration_and_weight_alone() -> None:
    terms = {name: critic_of(arm(cal_ql.CLAIM, name)).conservative for name in cal_ql.CLAIM.arms}
    found = {name: (term.calibrated, term.weight) for name, term in terms.items() if term}
    assert found == {"cal_ql": (True, 1), "cql": (False, 1), "slight_cal_ql": (True, 0.01), "slight_cql": (False, 0.01)}
    for name in cal_ql.CLAIM.arms:
        level = arm(cal_ql.CLAIM, name).agent.levels[0]
        same = level.replace(critic=critic_of(cal_ql.RECIPE))
        assert arm(cal_ql.CLAIM, name).replace(agent={"levels": (same,)}) == cal_ql.RECIPE


def test_arms_of_wsrl_collect_and_update_equally_often() -> None:
    for name, warmup, retained in (
        ("warm", 2, 0.0), ("cold", 0, 0.0), ("retaining", 0, 0.5), ("retaining_warm", 2, 0.5),
    ):  # fmt: skip
        phases = arm(wsrl.CLAIM, name).phases
        assert sum(p.iterations * p.episodes for p in phases) == 100
        assert sum(p.iterations * p.updates for p in phases) == 4 * 60 + 2000
        assert sum(p.iterations for p in phases if not p.updates) == warmup
        assert (phases[-1].retained, phases[-1].conservative) == (retained, retained > 0)


def test_arms_of_sharsa_differ_in_the_agent_and_in_the_maze() -> None:
    for prefix, maze, horizon in (("", "large", 400), ("short_", "umaze", 150)):
        arms = {name: arm(sharsa.CLAIM, prefix + name) for name in ("sharsa", "n_step", "one_step")}
        for recipe in arms.values():
            assert isinstance(recipe.tasks, PointMaze) and recipe.tasks.maze == maze
            assert recipe.horizon == recipe.test_horizon == Fixed(limit=horizon)
            assert (recipe.agent.batch, recipe.agent.critic_lr, recipe.agent.policy_lr) == (128, 1e-3, 1e-3)
        above, below = arms["sharsa"].agent.levels
        assert isinstance(above.critic, sharsa.Sarsa) and above.extraction == BestOfN(samples=32)
        assert above.data.steps == 25 and below.data.goals == sharsa.SubgoalAhead(steps=25)
        for name, steps in (("n_step", 25), ("one_step", 1)):
            (level,) = arms[name].agent.levels
            assert level.data.steps == steps and isinstance(level.extraction, SAC) and level.extraction.alpha == 1
