"""Episodes as files of other people's tools, and back."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import make_task, make_trajectory, make_turn
from hypothesis import given, settings
from hypothesis import strategies as st

from longstride.core.budget import Budget, StopReason
from longstride.core.content import Content, Media, joined
from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory, Turn, Usage
from longstride.envs.acting import acting
from longstride.envs.sites.actions import MANUAL
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.rewards import TaskReward
from longstride.rollout import Generation, Plan, Pool, ScriptedPlayer
from longstride.rollout.formats import FORMATS, Format, Origin, read_episodes, reading, write_episodes, writing
from longstride.rollout.formats.conversation import SpokenTurn

ORIGIN = Origin("run", "tti", "base", "name = 'tti'\n")
IMAGE, OTHER, DATA = Media(b"\x89PNG one"), Media(b"GIF8 two", "image/gif"), Media(b'{"a": 1}', "application/json")
CALL = '<tool_call>\n{"name": "click", "arguments": {"element": 3}}\n</tool_call>'
METRICS = {"completion_token_ids": 5, "logprobs": [0.0]}
SFT_ROW = {"input_ids": [1], "assistant_masks": [1], "longstride": {"turns": [5], "turns_of_rows": [[0]]}}
IMAGE_ELSEWHERE = {"type": "image_url", "image_url": {"url": "http://h/a"}}

texts = st.text(st.characters(codec="utf-8"), max_size=12)
said = st.one_of(
    texts, st.sampled_from([CALL, f"I see.\n{CALL}", f"<think>hm</think>\n\n{CALL}", f"{CALL}{CALL}", "<think>never",
                            "<think></think>",
                            '<tool_call>{"name":"x","arguments":{}}</tool_call>', "Thought: a Action: click [3]"]),
)  # fmt: skip
reals = st.floats(-1e6, 1e6)
counts = st.integers(0, 2**40)


def contents(media: tuple[Media, ...]) -> st.SearchStrategy[Content]:
    chunks = st.lists(st.one_of(texts, st.sampled_from(media)) if media else texts, max_size=3)
    return chunks.map(joined)


@st.composite
def turns(draw: st.DrawFn, media: tuple[Media, ...], ids: bool) -> Turn:
    sampled = draw(st.lists(st.integers(0, 2**31 - 1), max_size=4)) if ids else []
    prompt = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)) if ids else []
    seen = draw(contents(media))
    shown = [m for m in media if draw(st.booleans())] if ids else []
    n = len(sampled)
    return Turn(
        [*prompt, *(m.placeholder for m in shown)],
        sampled,
        draw(st.lists(st.floats(-50, 0), min_size=n, max_size=n)),
        draw(st.lists(st.integers(0, 99), min_size=n, max_size=n)),
        seen,
        draw(said),
        action=draw(st.none() | texts),
        error=draw(st.none() | texts),
        url=draw(texts),
        changed=draw(st.booleans()),
        reward=draw(reals),
        seconds=draw(reals),
        finish=draw(st.sampled_from(["stop", "length", "context", "mark"])),
        given=draw(st.integers(0, len(prompt))),
        speaker=draw(texts),
        media=tuple(shown),
        usage=None if ids else Usage(draw(counts), draw(counts), draw(counts), draw(counts), draw(counts), draw(reals)),
    )


@st.composite
def trajectories(draw: st.DrawFn, media: tuple[Media, ...] = (), ids: bool = True) -> Trajectory:
    played = draw(st.lists(turns(media, ids), max_size=4))
    if draw(st.booleans()):  # turns that continue one another
        for before, turn in zip(played, played[1:], strict=False):
            turn.prompt_ids = [*before.prompt_ids, *before.sampled_ids, *turn.prompt_ids]
            turn.media = tuple(dict.fromkeys([*before.media, *turn.media]))
    task = make_task(
        draw(texts),
        goal=draw(texts),
        evaluator={"type": "answer", "reference": draw(texts)},
        meta={"k": [1, None, draw(texts)]},
    )
    return Trajectory(
        task,
        draw(st.integers(0, 10**6)),
        draw(st.integers(0, 2**63)),
        Budget(turns=draw(st.integers(1, 99)), tokens=draw(st.none() | st.integers(1, 99)),
               seconds=draw(st.none() | st.floats(0.1, 99))),
        played,
        stop=draw(st.sampled_from(StopReason)),
        answer=draw(st.none() | texts),
        reward=draw(reals),
        success=draw(st.booleans()),
        terms=draw(st.dictionaries(texts, reals, max_size=2)),
        evidence=draw(st.dictionaries(texts, st.one_of(st.none(), texts, st.lists(texts, max_size=2)), max_size=2)),
        group=draw(counts),
        iteration=draw(counts),
        seconds=draw(reals),
        role=draw(texts),
        history=draw(st.integers(0, len(played))),
        after=tuple(draw(st.lists(counts, max_size=2))),
        final=draw(contents(media)) if played else "",
        tools=tuple({"type": "function", "function": {"name": name, "parameters": {"properties": {name: {}}}}}
                    for name in draw(st.lists(texts, max_size=2))),
    )  # fmt: skip


def back(episodes: list[Trajectory], form: Any, folder: Path) -> list[Trajectory]:
    """What is read of episodes after they were written."""
    assert write_episodes(episodes, folder / "out", form, ORIGIN) == len(episodes)
    found = list(read_episodes(folder / "out"))
    assert all(each.judged for each in found)
    return [each.trajectory for each in found]


WITH_MEDIA = (IMAGE, OTHER)
HELD = {
    "atif": st.one_of(trajectories(WITH_MEDIA), trajectories(ids=False)),
    "messages": st.one_of(trajectories((IMAGE, DATA)), trajectories(ids=False)),
    "sft": trajectories(),
    "parquet": st.one_of(trajectories(), trajectories(ids=False)),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_round_trip_loses_nothing(form: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=25)
    @given(HELD[form])
    def holds(t: Trajectory) -> None:
        assert back([t], form, tmp_path_factory.mktemp("formats")) == [t]

    holds()


@pytest.mark.parametrize("form", FORMATS)
def test_tools_that_were_called_are_named(form: Format, tmp_path: Path) -> None:
    source = EmbeddedWeb(errands=("find",))
    plan = Plan(source.held_out(1)[0], 0, 0, Budget(turns=2))
    player = ScriptedPlayer(lambda e: Generation([1], [2], [0.0], [0], CALL))
    (t,) = Pool(player, lambda: acting(source.env(), "tool_calls"), TaskReward(), 1).run([plan])
    assert [tool["function"]["name"] for tool in t.tools] == [tool.name for tool in MANUAL.tools]
    assert Trajectory.from_json(t.to_json()).tools == t.tools
    assert back([t], form, tmp_path) == [t]
    told = "".join(p.read_text() for p in tmp_path.rglob("*.json*"))
    assert form == "parquet" or ("tool_definitions" in told) == (form == "atif")


@pytest.mark.parametrize("form", FORMATS)
def test_episodes_keep_their_order_and_number(form: str, tmp_path: Path) -> None:
    episodes = [make_trajectory(k % 3 + 1, float(k), ordinal=k, iteration=k // 2, answer=str(k)) for k in range(12)]
    assert back(episodes, form, tmp_path) == episodes


def lines(folder: Path, name: str, *rows: Any) -> Path:
    """A file of JSON lines."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def one(path: Path) -> Trajectory:
    (found,) = read_episodes(path)
    assert not found.judged
    return found.trajectory


class TestWritten:
    def test_a_conversation_is_what_was_asked_said_and_seen(self, tmp_path: Path) -> None:
        turns = [
            make_turn(observation="home", text=f"<think>ok</think>{CALL}"),
            make_turn(observation="shop", text="Action: back"),
        ]
        t = make_trajectory(turns, 1.0, task=make_task(goal="buy"), final="end")
        write_episodes([t], tmp_path / "out", "messages", ORIGIN)
        row = json.loads((tmp_path / "out" / "messages.jsonl").read_text())
        call = {"id": "call_0", "type": "function", "function": {"name": "click", "arguments": '{"element": 3}'}}
        assert row["messages"] == [
            {"role": "user", "content": "buy\nhome"},
            {"role": "assistant", "content": "", "reasoning_content": "ok", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0", "content": "shop"},
            {"role": "assistant", "content": "Action: back"},
            {"role": "user", "content": "end"},
        ]
        assert (row["task"], row["success"], row["stop"], row["reward"]) == ("t", True, "env_ended", 1.0)
        assert row["completion_ids"] == [[1], [1]] and row["logprobs"] == [[-1.0], [-1.0]]

    def test_turns_that_continue_one_another_are_one_row_with_a_mask(self, tmp_path: Path) -> None:
        turns = [make_turn([7, 8], [1, 2]), make_turn([9], [1, 2, 7, 8, 3]), make_turn([5], [4])]
        write_episodes([make_trajectory(turns)], tmp_path / "out", "sft", ORIGIN)
        rows = [json.loads(line) for line in (tmp_path / "out" / "sft.jsonl").read_text().splitlines()]
        assert [(row["input_ids"], row["assistant_masks"]) for row in rows] == [
            ([1, 2, 7, 8, 3, 9], [0, 0, 1, 1, 0, 1]), ([4, 5], [0, 1]),
        ]  # fmt: skip
        assert [len(row["logprobs"]) for row in rows] == [3, 1]

    def test_what_a_format_has_no_place_for_is_refused_by_name(self, tmp_path: Path) -> None:
        seen = make_trajectory([make_turn(observation=("x", DATA))])
        words = make_trajectory([make_turn([], [], usage=Usage(1, 2, 0, 3))])
        cases: list[tuple[Format, Trajectory, str]] = [
            ("sft", seen, "sft holds none"), ("parquet", seen, "parquet holds none"),
            ("atif", seen, "application/json, which ATIF has not"), ("sft", words, "no ids"),
        ]  # fmt: skip
        for form, t, why in cases:
            with pytest.raises(RunError, match=why):
                write_episodes([t], tmp_path / "out", form, ORIGIN)
            assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("form", FORMATS)
    def test_nothing_is_written_that_is_too_large_to_be_read(
        self, form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writing, "MOST", 2000)
        with pytest.raises(RunError, match="episode 3 has .* at most 2000 are read"):
            write_episodes([make_trajectory([make_turn(range(1000))], ordinal=3)], tmp_path / "out", form, ORIGIN)
        assert not list(tmp_path.iterdir())

    def test_a_folder_with_something_in_it_stays_as_it_is(self, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("x")
        with pytest.raises(RunError, match="not empty"):
            write_episodes([make_trajectory()], tmp_path, "atif", ORIGIN)

    def test_the_models_of_atif_take_every_document(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        models = pytest.importorskip("atif")

        @settings(max_examples=25)
        @given(HELD["atif"])
        def holds(t: Trajectory) -> None:
            folder = tmp_path_factory.mktemp("atif") / "out"
            write_episodes([t], folder, "atif", ORIGIN)
            (path,) = folder.glob("*.json")
            found = models.Trajectory.model_validate_json(path.read_text())
            assert [s.metrics.completion_token_ids for s in found.steps if s.metrics and t.turns[0].prompt_ids] == [
                turn.sampled_ids for turn in t.turns if turn.prompt_ids
            ]
            assert sum(bool(s.is_copied_context) for s in found.steps) == t.history

        holds()


class TestOfOthers:
    def test_a_document_of_another_agent(self, tmp_path: Path) -> None:
        calls = [{"tool_call_id": "c1", "function_name": "now", "arguments": {"zone": "UTC"}}]
        document = {
            "schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "their-agent", "version": "1"},
            "steps": [
                {"step_id": 1, "source": "system", "message": "Be brief."},
                {"step_id": 2, "source": "user", "message": "What time is it?"},
                {"step_id": 3, "source": "agent", "message": "Let me see.\n", "tool_calls": calls,
                 "observation": {"results": [{"source_call_id": "c1", "content": "12:00"}]}},
                {"step_id": 4, "source": "agent", "message": "Noon.", "reasoning_content": "12 is noon"},
            ],
        }  # fmt: skip
        path = tmp_path / "trajectory.json"
        path.write_text(json.dumps(document))
        (tmp_path / "result.json").write_text('{"reward": 1}')
        t = one(tmp_path)
        assert t.task.goal == "Be brief.\nWhat time is it?" and not t.success
        assert [(turn.observation, turn.text) for turn in t.turns] == [
            ("", 'Let me see.\n<tool_call>\n{"name": "now", "arguments": {"zone": "UTC"}}\n</tool_call>'),
            ("12:00", "<think>12 is noon</think>Noon."),
        ]

    def test_messages_and_prompts_with_completions(self, tmp_path: Path) -> None:
        spoken = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
        more = [*spoken, {"role": "user", "content": "+1?"}]
        rows = [
            {"messages": spoken},
            {"prompt": "2+2?", "completion": "4"},
            {"prompt": more, "completion": [{"role": "assistant", "content": "5"}]},
        ]
        found = [each.trajectory for each in read_episodes(lines(tmp_path, "a.jsonl", *rows))]
        assert [[turn.text for turn in t.turns] for t in found] == [["4"], ["4"], ["4", "5"]]
        assert [t.history for t in found] == [0, 0, 1] and [t.task.id for t in found] == ["a/0", "a/1", "a/2"]
        assert found[2].turns[1].observation == "+1?" and found[0].task.goal == "2+2?"

    def test_images_beside_a_document_are_read_and_nothing_else_is(self, tmp_path: Path) -> None:
        t = make_trajectory([make_turn(observation=("see ", IMAGE))])
        write_episodes([t], tmp_path / "out", "atif", ORIGIN)
        path = tmp_path / "out" / "000000.json"
        (tmp_path / "secret.png").write_bytes(b"secret")
        text = path.read_text()
        for place in ("../secret.png", str(tmp_path / "secret.png"), "nowhere.png", "media"):
            path.write_text(text.replace(f"media/{IMAGE.name}.png", place))
            with pytest.raises(RunError, match="000000.json: .*expected an image of at most"):
                list(read_episodes(path))
        (tmp_path / "out" / "link.png").symlink_to(tmp_path / "secret.png")
        path.write_text(text.replace(f"media/{IMAGE.name}.png", "link.png"))
        with pytest.raises(RunError, match="expected an image"):
            list(read_episodes(path))

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ([1], "expected a JSON object"),
            ({"a": 1}, "it has a"),
            ({"messages": []}, "expected a list of them"),
            ({"messages": [{"role": "king", "content": "x"}]}, "message 1: expected a role"),
            ({"messages": [{"role": "assistant", "content": "x"}]}, "what the agent was asked"),
            ({"messages": [{"role": "user", "content": [IMAGE_ELSEWHERE]}]}, "data: URL"),
            ({"input_ids": [1], "assistant_masks": [1]}, "ids alone cannot be read"),
            ({"schema_version": "ATIF-v9", "steps": []}, "schema_version ATIF-v1"),
            ({"schema_version": "ATIF-v1.7", "steps": 3}, "steps: expected a list"),
            ({"schema_version": "ATIF-v1.7", "steps": [{"source": "assistant"}]}, "source: expected system"),
            ({"schema_version": "ATIF-v1.7", "steps": [{"source": "agent", "metrics": METRICS}]}, "a list, got 5"),
            (SFT_ROW, "turns: expected a list of them"),
        ],
    )  # fmt: skip
    def test_what_is_no_episode_is_named_with_its_line(self, row: Any, why: str, tmp_path: Path) -> None:
        good = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
        with pytest.raises(RunError, match=rf"a\.jsonl, line 2: .*{why}"):
            list(read_episodes(lines(tmp_path, "a.jsonl", good, row)))

    @pytest.mark.parametrize(
        "text", ["{", "[" * 10**5, '{"a": NaN}', '{"a": 1e999}', '{"a": ' + "1" * 5000 + "}", "\x80"]
    )
    def test_what_is_no_json_is_named_with_its_line(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_bytes(b"\n" + text.encode("latin-1") + b"\n")
        with pytest.raises(RunError, match=r"a\.jsonl, line 2: "):
            list(read_episodes(tmp_path))

    def test_a_line_without_end_is_not_read_into_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "MOST", 1000)
        (tmp_path / "a.jsonl").write_bytes(b"[" + b"1," * 1000)
        (tmp_path / "b.json").write_bytes(b"[" + b"1," * 1000)
        for name in ("a.jsonl", "b.json"):
            with pytest.raises(RunError, match=f"{name}.* more than 1000 bytes"):
                list(read_episodes(tmp_path / name))

    def test_changed_numbers_are_refused(self, tmp_path: Path) -> None:
        write_episodes([make_trajectory()], tmp_path / "out", "messages", ORIGIN)
        path = tmp_path / "out" / "messages.jsonl"
        row = json.loads(path.read_text())
        for change, why in (
            ({"logprobs": [[-1.0, -1.0]]}, "as many ids"), ({"completion_ids": [[-5]]}, "id of no token"),
            ({"prompt_ids": [[2**40]]}, "id of no token"), ({"prompt_ids": [[-7]]}, "stands for nothing"),
            ({"completion_ids": [["x"]]}, "turns.0.sampled_ids.0"), ({"versions": []}, "versions: expected a list"),
            ({"stop": "bored"}, "stop"), ({"messages": row["messages"][:1]}, "0 messages of the assistant"),
        ):  # fmt: skip
            lines(tmp_path / "out", "messages.jsonl", row | change)
            with pytest.raises(RunError, match=f"line 1: .*{why}"):
                list(read_episodes(path))

    def test_half_a_character_is_read_as_a_question_mark(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"prompt": "a\\ud83d", "completion": "b"}\n')
        assert one(tmp_path).task.goal == "a?"

    def test_a_folder_without_episodes_is_refused(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing"):
            with pytest.raises(RunError, match=r"\.json"):
                list(read_episodes(path))


def test_a_turn_is_spelled_by_its_parts() -> None:
    assert SpokenTurn.of(f"<think>a</think>b{CALL}") == ("b", "a", (("click", '{"element": 3}'),))
    assert SpokenTurn.of(f"<think>a</think>b{CALL}").text == f"<think>a</think>b{CALL}"
    assert SpokenTurn.of(f"{CALL}{CALL}") == (f"{CALL}{CALL}", None, ())
