"""Models behind chat APIs, at a server on loopback: what they are told, what is kept of what they say, what goes wrong,
and what they can be beside a policy."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import Body, ChatServer, called, text_of
from guides import DOCS, follow
from judge_server import cut_off, response

import longstride as ls
from longstride.cli.main import main
from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.content import Media
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Observation, Step
from longstride.envs.text import said
from longstride.envs.tools import Manual, Tool
from longstride.models.chat import ChatConfig
from longstride.models.load import load_policy
from longstride.rewards import Verdict
from longstride.rewards.scorers import Score
from longstride.rollout.chat_player import Messages
from longstride.rollout.players import Player
from longstride.strategies import Strategy
from longstride.strategies.searched import Guide, Searched

KEY = "sk-test-0123456789abcdef"
NUMBER = {"type": "object", "properties": {"number": {"type": "integer", "minimum": 0}}, "required": ["number"]}
SWITCH = Tool("switch", NUMBER, "flips a switch", form="flip {number}")
PNG = Media(b"png", "image/png")


class Switches:
    """Three switches, all of which are to be on."""

    async def reset(self, task: ls.Task, seed: int) -> Observation:
        self.on: set[str] = set()
        return Observation("all off", manual=Manual((SWITCH,), about="A wall with switches 0 to 2; switch on all."))

    async def step(self, text: str) -> Step:
        verb, _, number = said(text).partition(" ")
        if verb == "answer":
            return Step(Observation("bye"), terminated=True, action=said(text), answer=number)
        if verb != "flip" or number not in ("0", "1", "2"):
            return Step(Observation("nothing happens"), error="say flip 0, flip 1 or flip 2")
        self.on ^= {number}
        on = len(self.on) == 3
        return Step(Observation(f"on: {' '.join(sorted(self.on))}"), float(on), on, action=said(text))

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


class Wall(ls.TaskSource):
    def sample(self, rng: random.Random, n: int) -> list[ls.Task]:
        return self.held_out(n)

    def held_out(self, n: int) -> list[ls.Task]:
        return [ls.Task(id=f"w{k}", source="wall", goal=f"wall {k}", start="", template_id="w") for k in range(n)]

    def env(self) -> Switches:
        return Switches()


class AllOn(ls.Reward):
    """What the wall itself gave."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        return Verdict(0.0, any(turn.reward for turn in trajectory.turns))


@pytest.fixture(scope="module")
def _server() -> Iterator[ChatServer]:
    server = ChatServer()
    yield server
    server.stop()


@pytest.fixture
def server(_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 0.001)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _server.reset()
    return _server


def recipe(**changes: Any) -> ls.Recipe:
    found = ls.load_recipe("grpo")
    assert isinstance(found, ls.Recipe)
    wall = {"tasks": Wall(), "reward": AllOn(), "evaluation": {"tasks": 1, "baselines": False}}
    turns = {"budget": {"turns": 4}, "test_budget": {"turns": 4}, "context": ls.FullHistory()}
    return found.replace(**(wall | turns | {"actions": "explained"})).replace(**changes)


def flips(body: Body) -> str:
    """Flips the switches one after the other."""
    return f"Action: flip {sum(m['role'] == 'assistant' for m in body['messages'])}"


def calls(body: Body) -> dict[str, Any]:
    return called("switch", number=sum(m["role"] == "assistant" for m in body["messages"]))


class TestConversation:
    def test_it_is_told_what_the_context_shows_and_plays_to_the_end(self, server: ChatServer) -> None:
        server.model = flips
        found = ls.evaluate(server.api(), recipe(chat={"system": "Be brief."}))
        assert found.summary["success"] == 1 and found.summary["length"] == 3
        assert server.bodies[2]["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": server.bodies[0]["messages"][1]["content"]},
            {"role": "assistant", "content": "Action: flip 0"},
            {"role": "user", "content": "on: 0"},
            {"role": "assistant", "content": "Action: flip 1"},
            {"role": "user", "content": "on: 0 1"},
        ]
        first = server.bodies[0]["messages"][1]["content"].splitlines()
        assert first[0] == "wall 0" and first[-1] == "all off" and any(line.startswith("flip NUMBER") for line in first)
        assert {body["model"] for body in server.bodies} == {"m"} and "tools" not in server.bodies[0]
        assert len({body["seed"] for body in server.bodies}) == 3 and server.bodies[0]["max_tokens"] == 160

    def test_older_pages_are_left_out_as_the_context_policy_says(self, server: ChatServer) -> None:
        server.model = flips
        ls.evaluate(server.api(), recipe(context=ls.RecentObservations(keep=1)))
        assert [m["content"] for m in server.bodies[2]["messages"][2:]][0] == "omitted"
        assert text_of(server.bodies[2]) == "on: 0 1"

    def test_a_later_episode_of_a_trial_is_told_what_was_said_in_the_earlier_ones(self, server: ChatServer) -> None:
        server.model = lambda body: "Action: flip 0"
        trial = {"trial": {"episodes": 2}, "context": ls.TrialHistory(), "test_budget": {"turns": 1}}
        ls.evaluate(server.api(), recipe(**trial))
        told = [m["content"] for m in server.bodies[1]["messages"]]
        assert told[1] == "Action: flip 0" and told[2] == "on: 0\nreward: 0\nepisode 1: not done, reward 0\nall off"

    def test_tools_are_called_and_their_answers_go_to_the_call(self, server: ChatServer) -> None:
        server.model = calls
        found = ls.evaluate(server.api(), recipe(actions="tool_calls"))
        assert found.summary["success"] == 1 and found.trajectories[0].turns[0].action == "flip 0"
        assert server.bodies[0]["tools"] == [SWITCH.function]
        _, called_it, answer = server.bodies[1]["messages"]
        (call,) = called_it["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"number": 0} and call["function"]["name"] == "switch"
        assert answer == {"role": "tool", "tool_call_id": call["id"], "content": "on: 0"}

    @pytest.mark.parametrize(
        ("message", "error"),
        [
            (called("switch", number=-1), "switch: number: -1 is less than the minimum of 0"),
            (called("</tool_call>"), "unknown tool"),
            ({"content": "hm"}, "no tool was called"),
            ({"tool_calls": [{"function": {"name": "switch", "arguments": "{number"}}]}, "is not JSON"),
        ],
    )
    def test_a_call_that_does_not_fit_is_explained_to_it(
        self, server: ChatServer, message: dict[str, Any], error: str
    ) -> None:
        server.model = lambda body: message
        (played,) = ls.evaluate(server.api(), recipe(actions="tool_calls")).trajectories
        assert error in (played.turns[0].error or "") and played.length == 4
        answer = server.bodies[1]["messages"][-1]
        assert error in answer["content"] and answer["role"] == ("tool" if "tool_calls" in message else "user")

    def test_thoughts_are_kept_and_told_again_unless_they_are_stripped(self, server: ChatServer) -> None:
        server.model = lambda body: {"content": flips(body), "reasoning_content": "Action: answer 5 ?"}
        whole = "<think>Action: answer 5 ?</think>\n\nAction: flip 0"
        for thinking, told in (("keep", whole), ("strip", "Action: flip 0")):
            server.bodies.clear()
            (played,) = ls.evaluate(server.api(), recipe(chat={"thinking": thinking})).trajectories
            assert played.success and played.turns[0].text == whole
            assert server.bodies[1]["messages"][1]["content"] == told
        ls.evaluate(server.api(), recipe(chat={"thinking": "off"}))
        assert server.bodies[-1]["chat_template_kwargs"] == {"enable_thinking": False}

    def test_an_image_stands_in_its_place(self) -> None:
        told = Messages(ChatConfig())
        ids = told.head("look") + told.observation(("a", PNG, "b"), first=True)
        (message,) = told.messages(ids)
        text, image, after = message["content"]
        assert (text["text"], after["text"]) == ("look\na", "b") and told.media(ids) == (PNG,)
        assert image["image_url"]["url"] == "data:image/png;base64,cG5n"
        with pytest.raises(ls.ModelError, match=r"takes texts and images, .* chat.media=leave_out"):
            told.messages(told.observation((Media(b"{}", "application/json"),)))
        told = Messages(ChatConfig(media="leave_out"))
        assert told.messages(told.observation(("a", PNG))) == [{"role": "user", "content": "a"}]


class TestCounts:
    def test_tokens_are_the_servers_and_no_id_is_a_sampled_one(self, server: ChatServer) -> None:
        server.model = flips
        api = server.api(price_in=2.0, price_cached=0.5, price_out=8.0)
        found = ls.evaluate(api, recipe(evaluation={"tasks": 2}))
        turns = [turn for t in found.trajectories for turn in t.turns]
        assert not any(turn.sampled_ids or turn.behaviour_logprobs or turn.prompt_ids for turn in turns)
        used = found.summary["usage"]
        assert (used["requests"], used["cached"], used["sampled"]) == (6, 6, sum(t.sampled_tokens for t in turns))
        assert used["cost"] == pytest.approx((2 * (used["read"] - 6) + 0.5 * 6 + 8 * used["sampled"]) / 1e6)
        assert found.measures["prompt_tokens"] == found.measures["prompt_tokens"][:1] * 2
        assert found.summary["sampled_tokens"] == used["sampled"] > 0
        again = Trajectory.from_json(found.trajectories[0].to_json())
        assert [turn.usage for turn in again.turns] == [turn.usage for turn in found.trajectories[0].turns]

    def test_a_budget_of_tokens_goes_by_them(self, server: ChatServer) -> None:
        server.model = flips
        (played,) = ls.evaluate(server.api(), recipe(test_budget={"tokens": 9})).trajectories
        assert played.stop is StopReason.TOKENS and played.length == 2
        server.usage = False
        with pytest.raises(ls.ConfigError, match=r"budget.tokens limits .* m at http://.* does not count tokens"):
            ls.evaluate(server.api(), recipe(test_budget={"tokens": 9}))
        assert ls.evaluate(server.api(), recipe()).summary["usage"]["read"] == 0

    def test_a_turn_that_its_limit_cut_counts_as_cut(self, server: ChatServer) -> None:
        server.finish = "length"
        found = ls.evaluate(server.api(limit_key="max_completion_tokens", seeded=False, body={"top_p": 0.5}), recipe())
        assert found.summary["cut"] == 1
        assert server.bodies[0]["max_completion_tokens"] == 160 and server.bodies[0]["top_p"] == 0.5
        assert not {"max_tokens", "seed"} & server.bodies[0].keys()


class TestTrouble:
    def test_a_busy_server_is_asked_again(self, server: ChatServer) -> None:
        server.model = flips
        server.script = [response("slow down", 429, retry_after="0"), response("oh", 503), cut_off]
        found = ls.evaluate(server.api(), recipe())
        assert found.summary["success"] == 1 and len(server.bodies) == 6

    def test_requests_that_wait_to_be_sent_again_hold_their_places(self, server: ChatServer) -> None:
        server.script = [response("slow down", 429)] * 20
        ls.evaluate(server.api(concurrency=2, retries=30), recipe(evaluation={"tasks": 12}, test_budget={"turns": 1}))
        assert len({json.dumps(body["messages"]) for body in server.bodies[:20]}) <= 3

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (response({"error": f"wrong key {KEY}"}, 401), r"status 401 with .*wrong key \[key\].*model.key_env"),
            (response("." * 290 + KEY, 401), r"status 401 with '\.+\[key\]"),
            (response({"error": "no model m"}, 404), "status 404 with .*no model m.*model.name"),
            (response({"error": {"code": "insufficient_quota"}}, 429), "status 429 with .*insufficient_quota"),
            (response({"error": "unknown field seed"}, 400), "status 400 with .*unknown field seed.*model.seeded"),
            (response("<html>"), "expected choices.0..message in JSON"),
            (response({"choices": [{"message": {"content": 7}}]}), "expected choices.0..message in JSON"),
        ],
    )
    def test_what_every_request_would_be_told_ends_the_evaluation_at_once(
        self, server: ChatServer, answer: Any, error: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("API_KEY", KEY)
        server.always = answer
        with pytest.raises(ls.ConfigError, match=error) as raised:
            ls.evaluate(server.api(key_env="API_KEY"), recipe())
        assert KEY not in str(raised.value) and len(server.bodies) == 1
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_a_server_that_is_not_there_is_said_soon(self) -> None:
        api = ls.ChatAPI(url="http://127.0.0.1:9/v1", name="m")
        with pytest.MonkeyPatch.context() as patched, pytest.raises(ls.ConfigError, match="is the server there"):
            patched.setattr("longstride.core.http.FIRST_WAIT", 0.001)
            ls.evaluate(api, recipe())

    def test_what_goes_wrong_later_fails_an_episode_and_is_no_answer(self, server: ChatServer) -> None:
        server.model = flips
        good = response(server.completion({"messages": []}))
        server.script = [good, response({"error": "filtered"}, 400), response({"error": "filtered"}, 400)]
        found = ls.evaluate(server.api(), recipe(evaluation={"tasks": 1}, pool={"retries": 0}))
        assert found.summary["failed"] == 1 and found.summary["episodes"] == 0
        assert found.summary["usage"]["requests"] == 1
        assert "filtered" in found.trajectories[0].evidence["failure"]

    def test_a_prompt_that_has_no_room_ends_the_episode_as_the_end_of_a_context_does(self, server: ChatServer) -> None:
        server.script = [response({"error": {"message": "This model's maximum context length is 4096 tokens"}}, 400)]
        (played,) = ls.evaluate(server.api(), recipe()).trajectories
        assert played.stop is StopReason.CONTEXT

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (400, {"error": {"message": "zu lang", "code": "context_length_exceeded"}}),
            (400, {"error": {"message": "no", "type": "exceed_context_size_error", "code": 400}}),
            (500, {"error": {"message": "no", "type": "exceed_context_size_error"}}),
            (422, {"message": "no", "code": "context_length_exceeded"}),
            (400, {"object": "error", "message": "The input token count (9) exceeds the maximum of 8"}),
            (413, "too large"),
        ],
    )
    def test_no_room_is_known_by_code_type_and_status_too(self, server: ChatServer, status: int, error: Any) -> None:
        server.script = [response(error, status)]
        (played,) = ls.evaluate(server.api(), recipe(evaluation={"tasks": 1})).trajectories
        assert played.stop is StopReason.CONTEXT and len(server.bodies) == 1

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (400, {"error": {"message": "max_tokens is too large", "code": "invalid_value"}}),
            (500, {"error": {"message": "cannot read the context length"}}),
        ],
    )
    def test_other_refusals_are_no_lack_of_room(self, server: ChatServer, status: int, error: Any) -> None:
        server.always = response(error, status)
        with pytest.raises(ls.ConfigError, match=f"status {status}"):
            ls.evaluate(server.api(retries=0), recipe(evaluation={"tasks": 1}))

    def test_no_more_is_read_than_an_answer_may_have(self, server: ChatServer) -> None:
        server.model = lambda body: "x" * (1 << 20)
        with pytest.raises(ls.ConfigError, match="a response of more than 303104 bytes"):
            ls.evaluate(server.api(), recipe())

    def test_a_key_that_is_not_set_is_named(self, server: ChatServer) -> None:
        with pytest.raises(ls.ConfigError, match="model.key_env: the environment variable 'NO_KEY' holds nothing"):
            ls.evaluate(server.api(key_env="NO_KEY"), recipe())

    def test_limits_of_thoughts_are_refused(self, server: ChatServer) -> None:
        with pytest.raises(ls.ConfigError, match=r"test_budget.thought_tokens .* asked for whole turns"):
            ls.evaluate(server.api(), recipe(test_budget={"thought_tokens": 5}))


class TestStrategies:
    def test_several_episodes_are_all_counted_and_the_majority_counts(self, server: ChatServer) -> None:
        answers = iter("red blue blue".split())
        server.model = lambda body: f"Action: answer {next(answers)}"
        strategy = ls.BestOf(attempts=3)
        found = ls.evaluate(server.api(concurrency=1), recipe(pool={"lockstep": True}), strategy)
        assert found.trajectories[0].answer == "blue" and found.summary["usage"]["requests"] == 3
        assert found.measures["spent_tokens"] == [3 * found.trajectories[0].sampled_tokens]

    def test_answers_are_asked_for_again(self, server: ChatServer) -> None:
        server.model = lambda body: "Action: answer red"
        (played,) = ls.evaluate(server.api(), recipe(), ls.CheckAgain(checks=3)).trajectories
        assert played.length == 3 and text_of(server.bodies[2]) == "all off\ncheck again"

    @pytest.mark.parametrize(
        "asked",
        [
            "best_of by.type=likelihood", "best_of by.type=scored by.scorer.type=generative", "think_on", "anytime",
            "searched", "searched mark=''", "delegate model=base",
        ],
    )  # fmt: skip
    def test_what_needs_log_probabilities_says_so_in_one_line(
        self, server: ChatServer, asked: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        server.model = lambda body: "Action: answer red"
        settings = [f"model.url={server.url}", "model.name=m", "evaluation.baselines=false", "--tasks", "1"]
        name, *rest = asked.split()
        assert main(["eval", "grpo", *settings, "--strategy", name, *rest]) == 2
        said = capsys.readouterr().err.strip()
        assert "it needs token ids and log-probabilities, and ChatPlayer gives text alone" in said
        assert "\n" not in said and server.bodies == []


class Dialogue:
    """The helper says a number; the policy is to say it again."""

    async def reset(self, task: ls.Task, seed: int) -> Observation:
        self.number: str | None = None
        return Observation("say 0 to 6", speaker="helper")

    async def step(self, text: str) -> Step:
        heard = said(text).removeprefix("answer ")
        if self.number is None:
            self.number = heard
            return Step(Observation("say it again"), action=heard)
        return Step(Observation("bye"), float(heard == self.number), True, action=heard, answer=heard)

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


class Dialogues(Wall):
    def env(self) -> Any:
        return Dialogue()


class TestBeside:
    def test_a_companion_is_told_texts_and_the_policy_reads_its_words(self, server: ChatServer, tmp_path: Path) -> None:
        server.model = lambda body: "Action: answer 5"
        helper = {"model": {"url": server.url, "name": "m"}, "context": ls.FullHistory()}
        few = {"iterations": 1, "episodes_per_iteration": 4, "group_size": 2, "actions": "text"}
        talks = recipe(tasks=Dialogues(), companions={"helper": helper}, **few)
        run = ls.train(talks, tmp_path / "run", ls.Silent())
        first, second = run.trajectory(0).turns
        words = run.policy.chat.encode("Action: answer 5")
        assert first.sampled_ids == [] and first.given_ids == [*words, *run.policy.chat.close]
        assert second.sampled_ids and str(words)[1:-1] in str(second.prompt_ids)
        assert text_of(server.bodies[0]) == "wall 0\nsay 0 to 6"
        trained = run.metrics.where(kind="train")[0]
        assert trained["summary"]["sampled_tokens"] == sum(
            len(run.trajectory(k).turns[1].sampled_ids) for k in range(4)
        )
        assert trained["summary"]["usage"]["requests"] == 4

    def test_a_companion_in_this_process_cannot_read_what_an_api_says(self, server: ChatServer) -> None:
        helper = {"model": "base-puzzles", "context": ls.FullHistory()}
        with pytest.raises(ls.ConfigError, match=r"companions.helper: 'base-puzzles' reads tokens, and m at http"):
            ls.evaluate(server.api(), recipe(tasks=Dialogues(), companions={"helper": helper}))

    @pytest.mark.parametrize("each", ["episode", "turn"])
    def test_what_a_policy_is_in_doubt_of_is_handed_over(self, server: ChatServer, each: str) -> None:
        server.model = flips
        strategy = build(
            Strategy, {"type": "delegate", "model": {"url": server.url, "name": "m"}, "below": 1.0, "each": each}
        )
        found = ls.evaluate("base-puzzles", recipe(actions="text"), strategy)
        (played,) = found.trajectories
        assert played.success and [turn.action for turn in played.turns] == ["flip 0", "flip 1", "flip 2"]
        assert found.measures["handed_over_tokens"] == [found.summary["usage"]["sampled"]]
        step = build(Strategy, {"type": "delegate", "model": {"url": server.url, "name": "m"}, "each": "step"})
        with pytest.raises(ls.ConfigError, match="a chat API takes whole turns"):
            ls.evaluate("base-puzzles", recipe(), step)

    def test_what_a_teacher_does_right_is_imitated_in_the_ids_of_the_policy(self, server: ChatServer) -> None:
        server.model = lambda body: flips(body) if "wall 1" in body["messages"][0]["content"] else "Action: flip 7"
        teacher = ls.ModelSuccesses(model=server.api())
        chat = load_policy("base-puzzles").chat
        samples = teacher.samples(recipe(), chat, 3, random.Random(0))
        said = [chat.decode(chat.encode(f"Action: flip {k}")) for k in range(3)]
        assert [chat.decode(s.sampled_ids) for s in samples] == said
        assert all(s.sampled_ids[-1] in chat.end_ids for s in samples)
        server.model = lambda body: "Action: flip 7"
        assert teacher.samples(recipe(), chat, 3, random.Random(0)) == []

    def test_a_search_over_turns_needs_a_guide_that_needs_text_alone(self, server: ChatServer) -> None:
        server.model = flips
        strategy = Searched(guide=Turns(), mark="")
        found = ls.evaluate(server.api(), recipe(), strategy)
        assert found.summary["success"] == 1


class Turns(Guide):
    """The more turns, the better."""

    def __call__(self, solutions: Sequence[Trajectory], player: Player) -> list[Score]:
        return [Score(t.length / 10) for t in solutions]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ls.Run:
    short = {"turns": 3, "turn_tokens": 4}
    few = {"iterations": 1, "episodes_per_iteration": 2, "group_size": 2, "evaluation": {"tasks": 4}}
    return ls.train(recipe(**few, budget=short, test_budget=short), tmp_path_factory.mktemp("run") / "r", ls.Silent())


class TestCommands:
    def test_a_recipe_is_evaluated_with_a_model_behind_an_api(
        self, server: ChatServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        puzzles = ls.load_recipe("grpo")
        assert isinstance(puzzles, ls.Recipe)
        tasks = puzzles.tasks.held_out(3)
        solved = {t.goal: puzzles.tasks.demonstrate(t)[0] for t in tasks}  # pyright: ignore
        server.model = lambda body: solved[text_of(body).splitlines()[0]]
        settings = [f"model.url={server.url}", "model.name=m", "model.price_out=1000000"]
        assert main(["eval", "grpo", *settings, "--tasks", "3"]) == 0
        out = capsys.readouterr().out
        assert "agent   direct    1.00" in out and "warm_start" not in out
        assert "agent direct: 3 requests, 45 tokens read (3 of them cached), 75 sampled; cost 75, 25 a task" in out

    def test_an_evaluation_that_is_kept_is_compared_with_a_run_and_says_its_cost(
        self, server: ChatServer, run: ls.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kept = tmp_path / "api"
        server.model = flips
        paid = [f"model.url={server.url}", "model.name=m", "model.price_out=1000000", "--out", str(kept)]
        assert main(["eval", str(run.folder), *paid]) == 0
        assert f"kept:   {kept}" in capsys.readouterr().out
        (difference,) = ls.compare(run, kept)["differences"]
        assert difference["success"]["mean"] == 1 and difference["success"]["tasks"] == 4
        assert main(["compare", str(run.folder), str(kept)]) == 0
        out = capsys.readouterr().out
        assert "cost" in out.splitlines()[0] and KEY not in out and "model.url" in out
        sampled = ls.load_run(kept).metrics.column("summary.usage.sampled")[0]
        page = (kept / "report.html").read_text(encoding="utf-8")
        assert "held-out success 1.00 of m" in page and "stands at iteration" not in page
        assert ">Cost</h2>" in page and f"<td>{sampled:.4g}</td>" in page and "flip 0" in page
        assert ">Cost</h2>" not in (run.folder / "report.html").read_text(encoding="utf-8")
        assert main(["eval", str(run.folder), *paid]) == 2

    def test_a_run_that_is_evaluated_again_and_kept_stands_at_its_iteration(self, run: ls.Run, tmp_path: Path) -> None:
        ls.evaluate(run, strategy=ls.CheckAgain(), folder=tmp_path / "kept")
        (row,) = ls.load_run(tmp_path / "kept").metrics
        assert (row["policy"], row["strategy"], row["iteration"]) == ("agent", "check_again_2", 1)
        assert ls.compare(run, tmp_path / "kept")["runs"][1]["after"] == row["summary"]["success"]
        assert isinstance(kept := ls.load_run(tmp_path / "kept").recipe, ls.Recipe) and "checkpoints" in kept.start

    def test_the_guide_does_what_it_says(
        self, server: ChatServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        server.model = lambda body: called("answer", text="red")
        few = ["evaluation.tasks=2", "evaluation.baselines=false"]
        follow("chat_api.md", tmp_path, f"model.url={server.url}", *few)
        assert "2 held-out tasks" in capsys.readouterr().out and server.bodies[0]["tools"]
        text = (DOCS / "guides" / "chat_api.md").read_text(encoding="utf-8")
        (tmp_path / "gpt.toml").write_text(text.split("```toml\n")[1].split("```")[0], encoding="utf-8")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert main(["eval", "gpt.toml", f"model.url={server.url}", *few]) == 0
        assert "a task" in capsys.readouterr().out and server.bodies[-1]["max_completion_tokens"] == 4096

    def test_turns_without_an_action_are_explained(
        self, server: ChatServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = [f"model.url={server.url}", "model.name=m", "evaluation.baselines=false", "--tasks", "1"]
        server.model = lambda body: ""
        assert main(["eval", "tti", *settings]) == 0
        assert "most turns had no action: actions=explained" in capsys.readouterr().out
        server.finish = "length"
        assert main(["eval", "tti", *settings]) == 0
        assert "most turns were cut at test_budget.turn_tokens" in capsys.readouterr().out

    def test_it_cannot_be_trained_and_nothing_is_made(
        self, server: ChatServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(["train", "grpo", f"model.url={server.url}", "model.name=m"]) == 2
        said = capsys.readouterr().err.strip()
        assert "is behind a chat API" in said and "cannot be trained" in said and "\n" not in said
        with pytest.raises(ls.ConfigError, match="cannot be trained"):
            ls.train(recipe(model={"url": server.url, "name": "m"}), tmp_path / "run", ls.Silent())
        assert not any(path for path in tmp_path.rglob("*") if path.is_file()) and server.bodies == []

    def test_an_address_in_place_of_a_model_is_told_the_way(self) -> None:
        with pytest.raises(ls.ModelError, match="is model.url=http://127.0.0.1:9/v1 model.name=NAME"):
            ls.evaluate("http://127.0.0.1:9/v1", "tti")
