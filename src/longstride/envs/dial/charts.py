"""Trails as charts."""

from longstride.core.task import Task
from longstride.envs.chart import Chart, ChartPage
from longstride.envs.dial.trail import Place, Trail


def chart_of(task: Task) -> Chart:
    """All places of a task's trail, nearest first. Raises: TaskError where it is none."""
    trail = Trail.of(task)
    places: dict[Place, int] = {(0,): 0}
    pages = []
    waiting: list[Place] = [(0,)]
    for place in waiting:
        shown, links = trail.page(place), [places[place]] * trail.help
        for number in range(1, len(shown.links) + 1):
            after = trail.after(place, number)
            if after not in places:
                places[after] = len(places)
                waiting.append(after)
            links.append(places[after])
        pages.append(ChartPage(shown.text(), tuple(links)))
    return Chart(task.goal, tuple(pages), trail.answer, trail.distance)
