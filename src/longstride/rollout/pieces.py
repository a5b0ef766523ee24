"""Answers in pieces (`PartialRollouts`).

What always holds: what an answer was cut from is read and not trained, and was sampled by the policies of earlier
iterations; a piece that goes on has the role `PIECE`.
"""

from longstride.core.numbers import Count
from longstride.core.trajectory import PIECE
from longstride.rollout.branching import check_single_turn
from longstride.rollout.planning import Planner, Sampler, Stages


class PartialRollouts(Sampler):
    """An iteration samples `tokens` of an answer at most; what is cut goes on in the next one, from where it was cut
    and under the policy as it is then, and new groups are begun for those that are done. So no iteration waits for its
    longest answer (Kimi k1.5, arXiv 2501.12599, section 2.6.2; T-PPO, arXiv 2506.15050). For tasks of a single turn;
    the whole answer has `budget.turn_tokens`."""

    tokens: Count = 64
    """Of an answer in an iteration."""

    def plan(self, planner: Planner) -> Stages:
        memory, records = planner.experience.memory(self), planner.experience.records
        waiting = set(memory.get("waiting", []))
        cut = planner.experience.read([record for record in records if record.ordinal in waiting])
        plans = [planner.carry_on(t, self.tokens) for t in cut]
        begun = len({t.group for t in cut})
        for task in planner.tasks(max(0, planner.groups - begun)):
            plans += [planner.at_most(plan, self.tokens) for plan in planner.group(task)]
        check_single_turn(plans, "partial_rollouts cuts answers")
        played = yield plans
        for t in played:
            if planner.is_cut(t):
                t.role = PIECE
        memory["waiting"] = [t.ordinal for t in played if t.role == PIECE]
        return played
