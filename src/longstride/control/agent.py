"""Agents as data: levels of (data, critics, memory, policy, extraction), and the numbers of the optimisers.

What always holds: all levels of an agent learn from the same rows; the action of a level is the goal of the level below
it, and the last level acts in the environment.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from longstride.control.batches import Given, Goals, NStep, Relabelled
from longstride.control.codes import ActionCodes
from longstride.control.critics import ControlCritic, TDCritic
from longstride.control.extraction import SAC, BehaviourCloning, Extraction
from longstride.control.memory import Memory
from longstride.control.policies import ControlPolicy, FlowPolicy, GaussianPolicy
from longstride.control.weights import EpisodeWeights, RowWeights
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive


class FurtherCritic(Component):
    """A further critic of a level."""

    critic: ControlCritic
    """How its values are learned."""
    data: NStep | None = None
    """What it learns from: other rewards, another discount or number of steps; None: as the level's critic."""
    weight: float = 0.0
    """Factor of its scores, which are added to those of the level's critic; 0: actions are not chosen by it."""


class Level(Component):
    """One decision: the data it is learned from, its values, and the policy that makes it."""

    data: NStep = NStep()
    """What a transition is."""
    policy_goals: Goals | None = None
    """Goals that the policy is trained for; None: those of `data`."""
    policy_steps: Count | None = None
    """Steps of the transitions that the policy is trained on, where its actions are subgoals; None: those of `data`."""
    critic: ControlCritic | None = None
    """How values are learned; None: not at all."""
    further: dict[str, FurtherCritic] = {}
    """Further critics, by name."""
    memory: Memory | None = None
    """What policy and critics know of the past of an episode; None: nothing but the state."""
    rows: RowWeights | None = None
    """How much each row of a batch counts; None: all alike."""
    codes: ActionCodes | None = None
    """How real-valued actions become discrete ones for policy and critics, and discrete ones real-valued where they are
    taken; None: they do not."""
    policy: ControlPolicy = FlowPolicy()
    """What acts."""
    extraction: Extraction = BehaviourCloning()
    """How values become actions."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        name = self.extraction.type_name()
        if self.extraction.needs_critic and self.critic is None:
            raise ValueError(f"extraction {name} needs a critic, and there is none")
        if self.critic is None and self.further:
            raise ValueError("further critics stand beside a first one: set critic")
        if wrong := [name for name in self.further if name in ("critic", "policy") or not name.isidentifier()]:
            raise ValueError(f"a further critic's name is a word other than `critic` and `policy`, not {wrong[0]!r}")
        critics = self.critics
        terms = [c.conservative for c, _ in critics.values() if isinstance(c, TDCritic)]
        fitting: dict[str, tuple[type[ControlPolicy], ...]] = {f"extraction {name}": self.extraction.trains}
        fitting |= {f"critic {critic.type_name()}": critic.values for critic, _ in critics.values()}
        if any(term is not None and term.importance for term in terms):
            fitting["a conservative critic needs densities, unless conservative.importance=false"] = (GaussianPolicy,)
        for what, policies in fitting.items():
            if not isinstance(self.policy, policies):
                names = " or ".join(of.type_name() for of in policies)
                raise ValueError(f"{what}: policy must be {names}, not {self.policy.type_name()}")
        discrete = [c.type_name() for c, _ in critics.values() if c.discrete]
        discrete += [f"extraction {name}"] if self.extraction.needs_discrete else []
        if discrete and not self.policy.discrete:
            raise ValueError(
                f"{discrete[0]} needs discrete actions: policy must be uniform_policy or categorical_policy, not "
                f"{self.policy.type_name()}"
            )
        if self.extraction.needs_real and self.policy.discrete:
            raise ValueError(
                f"extraction {name} needs real-valued actions, and those of {self.policy.type_name()} are discrete"
            )
        scoring = [of for name, (of, _) in critics.items() if name not in self.further or self.further[name].weight]
        flat = [critic.type_name() for critic in scoring if not critic.slopes]
        if flat and self.extraction.needs_slopes:
            raise ValueError(f"extraction {name} follows slopes, which {flat[0]} has not; set another critic")
        plain = self.data.action == "action" and self.memory is None and self.codes is None
        if self.extraction.draws_rows and (self.data.goals is None or not plain):
            raise ValueError(
                f"extraction {name} draws rows of its own: it takes goals, single actions and no memory or codes"
            )
        if self.extraction.adapts and (self.data.action != "action" or self.codes is not None):
            raise ValueError(
                f"extraction {name} learns from single steps while it acts: data.action must be action, without codes"
            )
        reads = self.extraction.reads
        if reads != (ControlCritic,) and (self.further or not isinstance(self.critic, reads)):
            found = ", ".join(critic.type_name() for critic, _ in critics.values())
            raise ValueError(
                f"extraction {name} reads one critic, which must be {' or '.join(of.type_name() for of in reads)}, not "
                f"{found}"
            )
        if isinstance(self.extraction, SAC) and self.extraction.soft:
            hard = [c for c, _ in critics.values() if not vars(type(c)).get("values_entropy", False)]
            if hard:
                raise ValueError(
                    f"extraction {name} is soft, and {hard[0].type_name()} does not value entropy: set "
                    "critic.type=td_critic, or soft=false"
                )
        blind = [critic.type_name() for critic in scoring if not critic.scores]
        if blind and self.extraction.needs_scores:
            raise ValueError(f"extraction {name} needs scores of any action, which {blind[0]} has not; set another")
        if self.extraction.on_policy and (other := [c.type_name() for c, _ in critics.values() if not c.on_policy]):
            known = [of for of in ControlCritic.members().values() if issubclass(of, ControlCritic) and of.on_policy]
            raise ValueError(
                f"extraction {name} needs advantages of what the policy has just done, which {other[0]} does not learn "
                f"from alone: critic must be {' or '.join(of.reference() for of in known)}"
            )
        if self.memory is not None and (plainly := [c.type_name() for c, _ in critics.values() if c.reads_store]):
            raise ValueError(f"{plainly[0]} reads the states of the data as they are: leave out memory")
        if self.rows is not None and (self.memory is not None or not isinstance(self.data.goals, Given | None)):
            raise ValueError(
                "weights of rows go by the rewards of single steps of the data: leave out memory, and data.goals must "
                "be given, or left out"
            )
        if self.extraction.on_policy or any(critic.on_policy for critic, _ in critics.values()):
            wrong = {
                "memory": self.memory is not None,
                "rows": self.rows is not None,
                "policy_goals": self.policy_goals is not None,
                "policy_steps": self.policy_steps is not None,
                "data.steps above 1": any(data.steps > 1 for data in (self.data, *(d for _, d in critics.values()))),
            }
            if any(wrong.values()):
                raise ValueError(
                    "what learns on-policy learns from single steps as they were taken: leave out "
                    + " and ".join(what for what, is_set in wrong.items() if is_set)
                )
        if several := [c.type_name() for c, data in critics.values() if c.single_steps and data.steps > 1]:
            raise ValueError(f"{several[0]} learns from single steps: data.steps must be 1")
        solved = [c.type_name() for c, _ in critics.values() if c.solved]
        if solved and (self.memory is not None or self.rows is not None or self.codes is not None):
            raise ValueError(f"{solved[0]} is computed from all steps as they are: leave out memory, rows and codes")
        if self.critic is None and self.policy_goals is not None:
            raise ValueError("policy_goals are for a policy beside a critic; without a critic, set data.goals")
        if self.policy_steps is not None and (self.critic is None or self.data.action != "subgoal"):
            raise ValueError("policy_steps are for a policy of subgoals beside a critic; otherwise set data.steps")
        if self.policy_goals is not None and self.data.goals is None:
            raise ValueError("policy_goals are set, but data.goals are not: a state has no goal")
        if self.codes is not None and (self.memory is not None or self.rows is not None):
            raise ValueError(
                "codes are learned before anything is remembered or weighed: leave out memory and rows, or codes"
            )
        if self.policy.discrete and self.codes is None and self.data.action != "action":
            raise ValueError(
                f"discrete actions are taken one at a time: data.action must be action, not {self.data.action!r}"
            )
        for critic, data in critics.values():
            if critic.needs_returns and not isinstance(data.goals, Given | None):
                raise ValueError(
                    f"{critic.type_name()} reads the returns of the data, and toward goals that are "
                    f"{data.goals.type_name()} there are none: data.goals must be given, or left out"
                )
            if (data.goals is None, data.action) != (self.data.goals is None, self.data.action) or (
                data.action == "chunk" and data.steps != self.data.steps
            ):
                raise ValueError("all critics of a level value the same actions in the same kind of state")
        if self.memory is not None and (
            self.data.action != "action"
            or self.policy_goals is not None
            or not all(isinstance(data.goals, Given | None) for data in (self.data, *(d for _, d in critics.values())))
        ):
            raise ValueError("a memory goes with single actions, and with goals of the episodes (given) or none")
        hindsight = [d.goals for _, d in critics.values() if d.steps == 1 and isinstance(d.goals, Relabelled)]
        if any(goals.current == 0 for goals in hindsight):
            raise ValueError(
                "a critic of single steps earns at goals that are reached already, and data.goals has none: set "
                "data.goals.current above 0, such as 0.2, or data.steps above 1"
            )
        return self

    @property
    def policy_data(self) -> NStep | None:
        """What the policy learns from; None: the same as the critic."""
        changes = {"goals": self.policy_goals, "steps": self.policy_steps}
        changes = {name: value for name, value in changes.items() if value is not None}
        return self.data.replace(**changes) if changes else None

    @property
    def critics(self) -> dict[str, tuple[ControlCritic, NStep]]:
        """All critics by name, with what they learn from; `critic` is the first."""
        if self.critic is None:
            return {}
        others = {name: (part.critic, part.data or self.data) for name, part in self.further.items()}
        return {"critic": (self.critic, self.data)} | others


class ControlAgent(Component):
    """What is trained, and the numbers of the optimisers."""

    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    """From the top down."""
    batch: Count = 256
    """Rows of an update; where a level has a memory, a window is a row."""
    slices: Count = 1
    """Equal parts of a batch. The critics take one step on each part, then the policies take one step on the entire
    batch (WSRL, arXiv 2412.07762: 4). A divisor of `batch`."""
    weights: EpisodeWeights | None = None
    """How likely the episodes of a store are drawn; None: all steps alike."""
    critic_lr: Positive = 3e-4
    """Learning rate of Adam for critics."""
    critic_decay: Positive | None = None
    """Share of a critic's weights that a step takes from them, in units of the learning rate (AdamW, arXiv 1711.05101);
    None: nothing."""
    policy_lr: Positive = 3e-4
    """Learning rate of Adam for policies and temperatures."""

    @property
    def alone(self) -> tuple[str, ...]:
        """The parts that cannot learn side by side with those of other runs."""
        parts = [
            part
            for level in self.levels
            for part in (
                level.memory,
                level.rows,
                level.codes,
                level.policy,
                level.extraction,
                *(critic for critic, _ in level.critics.values()),
            )
            if part is not None and not vars(type(part)).get("side_by_side", False)
        ]
        return tuple(dict.fromkeys(part.type_name() for part in parts))

    @property
    def on_policy(self) -> bool:
        """Whether it learns from what its policies have just done, and from nothing else."""
        parts = [part for level in self.levels for part in (level.extraction, *(c for c, _ in level.critics.values()))]
        return any(part.on_policy for part in parts)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch % self.slices:
            raise ValueError(f"batch ({self.batch}) must be a multiple of slices ({self.slices})")
        if self.on_policy and self.batch < 2:
            raise ValueError("what learns on-policy compares the advantages of a batch: set batch to 2 or more")
        for above in self.levels[:-1]:
            if above.data.action != "subgoal":
                raise ValueError(f"a level above another decides subgoals, not {above.data.action!r}")
        for below in self.levels[1:]:
            if below.data.goals is None:
                raise ValueError("a level below another needs goals: what the level above decides")
        if self.levels[-1].data.action == "subgoal":
            raise ValueError("the last level acts: its data.action must be action or chunk")
        return self
