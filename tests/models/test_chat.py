"""Real models talk properly: system prompts, tools, thoughts and templates of published families."""

import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import play, run, small
from chat_templates import LAST_TOOLS, MISTRAL, QWEN3, QWEN3_THINKING, tokenizer_of
from helpers import trajectories_of, word_chat
from tokenizers import Tokenizer
from tokenizers import models as cores
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from longstride.adapters.gymnasium import Gymnasium
from longstride.adapters.seeded import EnvironmentReward
from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.content import Media
from longstride.core.errors import ConfigError, EnvFailure, ModelError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Completion, Engine, Request, Sampling
from longstride.envs.acting import acting
from longstride.envs.base import Observation, Step
from longstride.envs.puzzles import Countdown
from longstride.envs.sites.actions import MANUAL, parse
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.envs.tools import Call, Manual, Tool, arguments, parse_calls
from longstride.models.chat import ChatConfig, ChatFormat
from longstride.models.load import load_policy, make_policy, save_policy
from longstride.models.thoughts import spoken
from longstride.models.tiny import TinyConfig, build_model
from longstride.rewards import Reward, TaskReward, Verdict
from longstride.rollout import FullHistory, Past, PastTurn
from longstride.rollout.branching import cuts
from longstride.rollout.episode import Episode, Plan
from longstride.rollout.players import LanguagePlayer
from longstride.rollout.pool import Pool
from longstride.run.evaluation import language_player
from longstride.run.imitation import Cloning, SolverDemonstrations

TOOLS = [tool.function for tool in MANUAL.tools]
THOUGHT = "<think>\nhm\n</think>\n\n"


def conversation(chat: ChatFormat, tokenizer: Any, said: list[str], context: Any = None) -> str:
    """The prompt after these turns, on the pages `page 0`, `page 1` and so on."""
    ids = [tokenizer.encode(f"{text}<|im_end|>", add_special_tokens=False) for text in said]
    pages = [f"page {k}" for k in range(len(said) + 1)]
    return tokenizer.decode((context or FullHistory()).render(chat, Past("go", pages, ids)))


def rendered(tokenizer: Any, said: list[str], system: str, role: str = "user", **options: Any) -> str:
    """The same by the template itself."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "go\npage 0"}]
    for k, text in enumerate(said, 1):
        messages += [{"role": "assistant", "content": text}, {"role": role, "content": f"page {k}"}]
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)


def test_sampled_ids_that_are_no_token_are_no_text() -> None:
    """A slow tokenizer fails on them, and a model's embeddings are often padded."""
    tokenizer = ByT5Tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}<extra_id_0>{% endfor %}"
    model = build_model(TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16), len(tokenizer) + 16, seed=0)
    policy = make_policy("bytes", model, tokenizer)
    padded = list(range(len(tokenizer), len(tokenizer) + 16))
    with pytest.raises(ValueError):
        tokenizer.decode(padded)
    assert policy.chat.decode([policy.chat.encode("a")[0], *padded, *policy.chat.encode("b")]) == "ab"


class TestFormats:
    @pytest.mark.parametrize("template", [QWEN3, QWEN3_THINKING], ids=["qwen", "thinking"])
    def test_thoughts_are_stripped_as_the_template_strips_them(self, template: str) -> None:
        tokenizer = tokenizer_of(template)
        chat = ChatFormat(tokenizer, ChatConfig(system="Be brief.", thinking="strip"))
        begun = THOUGHT.removeprefix("<think>\n") if template is QWEN3_THINKING else THOUGHT
        said = [f"{begun}Action: click [1]", f"{begun}Action: back"]
        whole = [f"{THOUGHT}Action: click [1]", f"{THOUGHT}Action: back"]
        assert conversation(chat, tokenizer, said) == rendered(tokenizer, whole, "Be brief.")

    @pytest.mark.parametrize("cut", ["<think>\nhm", "\nhm"], ids=["qwen", "thinking"])
    def test_nothing_is_left_of_a_thought_that_was_cut(self, cut: str) -> None:
        tokenizer = tokenizer_of(QWEN3 if "think" in cut else QWEN3_THINKING)
        chat = ChatFormat(tokenizer, ChatConfig(thinking="strip"))
        assert chat.spoken(tokenizer.encode(cut)) == chat.close
        assert spoken(chat.decode(tokenizer.encode(cut))) == ""

    def test_thoughts_that_are_kept_make_prompts_that_only_grow(self) -> None:
        tokenizer = tokenizer_of(QWEN3_THINKING)
        chat = ChatFormat(tokenizer)
        one, two = (conversation(chat, tokenizer, ["hm</think>a"] * n) for n in (1, 2))
        assert two.startswith(one) and two.count("<think>\n") == 3

    def test_a_model_is_told_not_to_think(self) -> None:
        tokenizer = tokenizer_of(QWEN3)
        chat = ChatFormat(tokenizer, ChatConfig(thinking="off"))
        assert tokenizer.decode(chat.observation("x")).endswith("assistant\n<think>\n\n</think>\n\n")
        assert chat.decode(tokenizer.encode("Action: back")) == "Action: back"

    def test_tools_and_their_answers_stand_where_the_template_puts_them(self) -> None:
        tokenizer = tokenizer_of(QWEN3)
        chat = ChatFormat(tokenizer, ChatConfig(system="Be brief.")).offering(TOOLS)
        said = ['<tool_call>\n{"name": "back", "arguments": {}}\n</tool_call>'] * 2
        expected = rendered(tokenizer, said, "Be brief.", role="tool", tools=TOOLS)
        assert conversation(chat, tokenizer, said) == expected and expected.count("<tool_response>") == 2

    def test_formats_with_the_same_tools_are_made_once(self) -> None:
        chat = ChatFormat(tokenizer_of(QWEN3))
        assert chat.offering(TOOLS) is chat.offering(list(TOOLS)) and chat.offering([]) is chat

    def test_a_system_text_and_tools_cannot_spell_special_tokens(self) -> None:
        tokenizer = tokenizer_of(QWEN3)
        end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        plain, hostile = (ChatFormat(tokenizer, ChatConfig(system=s)).head("x") for s in ("a", "<|im_end|>"))
        assert plain.count(end) == hostile.count(end)
        tool = Tool("look", arguments(), "looks <|im_end|>").function
        with pytest.raises(EnvFailure, match=r"the tool 'look' spells the special token '<\|im_end\|>'"):
            ChatFormat(tokenizer).offering([tool])

    def test_a_system_text_that_the_template_moves_stands_before_the_goal(self) -> None:
        tokenizer = tokenizer_of(MISTRAL)
        chat = ChatFormat(tokenizer, ChatConfig(system="Be brief."))
        prompt = FullHistory().render(chat, Past("go", ["x", "y"], [tokenizer.encode(" hi</s>")]))
        assert tokenizer.decode(prompt) == "<s>[INST] Be brief.\ngo\nx[/INST] hi</s>[INST] y[/INST]"

    @pytest.mark.parametrize(
        ("template", "message"),
        [
            (LAST_TOOLS, "does not only append.*set chat.template"),
            (MISTRAL, "presents no tools; set actions=explained, or chat.template"),
        ],
        ids=["reorders", "none"],
    )
    def test_a_template_that_cannot_present_tools_is_refused(self, template: str, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            ChatFormat(tokenizer_of(template)).offering(TOOLS)

    def test_a_template_of_ones_own_takes_the_place_of_the_models(self, tmp_path: Path) -> None:
        (tmp_path / "own.jinja").write_text(QWEN3)
        config = build(ChatConfig, {"template": str(tmp_path / "own.jinja")})
        assert config.template == QWEN3  # so that a run does not need the file again
        tokenizer = tokenizer_of(LAST_TOOLS)
        model = build_model(TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16), len(tokenizer), seed=0)
        policy = make_policy("own", model, tokenizer, config)
        save_policy(policy, tmp_path / "model")
        again = load_policy(str(tmp_path / "model")).chat.offering(TOOLS)
        assert again.head("x") == policy.chat.offering(TOOLS).head("x")
        with pytest.raises(ConfigError, match=r"template.*'none\.jinja' is neither a Jinja template nor a file"):
            build(ChatConfig, {"template": "none.jinja"})

    def test_stripping_needs_the_tags(self) -> None:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(cores.BPE()), eos_token="<|im_end|>")
        tokenizer.chat_template = QWEN3
        with pytest.raises(ModelError, match="chat.thinking=strip needs a model with the tokens <think> and </think>"):
            ChatFormat(tokenizer, ChatConfig(thinking="strip"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Action: back", "Action: back"),
        ("<think>Action: home</think>\n\nAction: back", "Action: back"),
        ("<think>Action: home", ""),
        ("a <think> b </think> c <think> d", "c"),
    ],
)
def test_an_environment_hears_what_was_said_and_not_what_was_thought(text: str, said: str) -> None:
    assert spoken(text) == said


ANSWER = {tool.name: tool for tool in MANUAL.tools}


@pytest.mark.parametrize(
    "text",
    [
        'I look.\n<tool_call>\n{"name": "click", "arguments": {"element": 3}}\n</tool_call>',
        '<tool_call>{"name": "click", "arguments": "{\\"element\\": 3}"}',
        '{"name": "click", "parameters": {"element": 3}}',
        ' [{"name": "click", "arguments": {"element": 3}}]',
        'I see [3] and {x}, so: {"name": "click", "parameters": {"element": 3}}',
    ],
    ids=["tags", "encoded", "llama", "mistral", "brackets"],
)
def test_a_call_is_read_in_the_forms_of_several_families(text: str) -> None:
    assert parse_calls(text, ANSWER) == Call("click", {"element": 3})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I click.", "no tool was called; call one of click, type"),
        ("<tool_call>{", "is not JSON"),
        ('{"name": "klick", "arguments": {}}', "unknown tool 'klick'"),
        ('{"name": "click", "arguments": {"element": "three"}}', "click: element: 'three' is not of type 'integer'"),
        ('{"name": "click"}', "click: 'element' is a required property"),
        ('{"name": "click", "arguments": [3]}', "click takes.*is not a JSON object"),
        ('[{"name": "back"}, {"name": "home"}]', "2 calls were made; make one in each turn"),
        ('<tool_call>{"name": "back"}</tool_call><tool_call>{"name": "back"}</tool_call>', "2 calls were made"),
        ('[1]', "1 is no call; expected"),
        ("[" * 50_000, "50000 characters are too many"),
        ('{"name": 3}', "is no call"),
    ],
)  # fmt: skip
def test_what_is_no_call_that_fits_is_explained(text: str, problem: str) -> None:
    found = parse_calls(text, ANSWER)
    assert isinstance(found, str)
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(found)


def test_every_action_of_a_site_is_spelled_in_its_grammar() -> None:
    values: dict[str, Any] = {"element": 3, "text": "two words", "option": "blue", "direction": "up", "address": "/a"}
    for tool in MANUAL.tools:
        call = {name: values[name] for name in tool.schema["properties"]}
        action = parse(tool.spelled(call))
        assert not isinstance(action, str) and str(action) == tool.spelled(call) and action.verb == tool.name


class TestActing:
    def test_calls_are_checked_and_done(self) -> None:
        site = EmbeddedWeb()
        first, steps, _ = play(
            acting(site.env(), "tool_calls"), site.held_out(1)[0],
            ['{"name": "back", "arguments": {"n": 1}}', '{"name": "answer", "arguments": {"text": "red"}}'],
        )  # fmt: skip
        assert {tool.name for tool in first.tools} >= {"click", "answer"} and "click" not in str(first.manual)
        assert steps[0].action is None and "Additional properties" in (steps[0].error or "")
        assert steps[0].observation.text == f"{first.text}\nerror: {steps[0].error}"
        assert steps[1].terminated and steps[1].answer == "red"

    def test_an_agent_that_does_not_know_the_grammar_reads_it_after_the_goal(self) -> None:
        site = EmbeddedWeb()
        task = site.held_out(1)[0]
        plain, _, _ = play(site.env(), task, [])
        told, _, _ = play(acting(site.env(), "explained"), task, [])
        assert plain.manual and not plain.manual.needed and told.manual and told.manual.needed
        assert "click [ELEMENT]: follows a link" in str(told.manual) and "number in brackets" in str(told.manual)

    def test_an_environment_that_names_no_actions_says_what_to_set(self) -> None:
        with pytest.raises(ConfigError, match="Bare does not name its actions .*set actions=text"):
            play(acting(Bare(), "tool_calls"), TASK, [])

    def test_tools_that_spell_special_tokens_fail_their_episode_and_nothing_else(self) -> None:
        class Hostile(Bare):
            async def reset(self, task: Task, seed: int) -> Observation:
                return Observation("page", manual=Manual((Tool("look", arguments(), "looks <|im_end|>"),)))

        class Unasked:
            parts = 1

            def release(self, session: int) -> None: ...

        chat: Any = ChatFormat(tokenizer_of(QWEN3))
        player = LanguagePlayer(Unasked(), chat, FullHistory(), Sampling())  # pyright: ignore[reportArgumentType]
        plans = [Plan(TASK, k, k, Budget(turns=2)) for k in range(3)]
        played = Pool(player, lambda: acting(Hostile(), "tool_calls"), TaskReward()).run(plans)
        assert all("'look' spells the special token '<|im_end|>'" in t.evidence["failure"] for t in played)


class Bare:
    """Takes anything, and remembers it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def reset(self, task: Task, seed: int) -> Observation:
        return Observation("page")

    async def step(self, text: str) -> Step:
        self.heard.append(text)
        return Step(Observation("page"), action="do")

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


TASK = Task(id="t", source="t", goal="go", start="", template_id="t")


class Says(Engine):
    """Says what it is told to, up to a stop or its limit."""

    def __init__(self, tokenizer: Any, texts: list[str]) -> None:
        super().__init__(0)
        self.words = deque(tokenizer.encode(text, add_special_tokens=False) for text in texts)
        self.asked: list[Request] = []
        self.end = tokenizer.eos_token_id

    def submit(self, request: Request) -> int:
        said, ids = self.words.popleft(), []
        while said and len(ids) < request.max_new and not request.stopped(ids):
            ids.append(said.pop(0))
        if said:
            self.words.appendleft(said)
        finish = "stop" if ids[-1] == self.end or request.stopped(ids) else "length"
        self._done[len(self.asked)] = Completion(ids, [-1.0] * len(ids), [0] * len(ids), finish)
        self.asked.append(request)
        return len(self.asked) - 1

    def poll(self) -> Any:
        return self._take_done()

    def cancel(self, ticket: int) -> None: ...
    def release(self, session: int) -> None: ...
    def update(self, weights: Any, version: int) -> None: ...


async def turn(template: str, texts: list[str], **budget: int) -> tuple[Any, Says, Bare, Callable[[str], list[int]]]:
    tokenizer, env = tokenizer_of(template), Bare()
    engine = Says(tokenizer, texts)
    player = LanguagePlayer(engine, ChatFormat(tokenizer), FullHistory(), Sampling())
    episode = Episode(Plan(TASK, 0, 0, Budget(turns=1, **budget)), env)
    await episode.start(TaskReward())
    player.ask(episode)
    done: list[Any] = []
    while not done:
        done = player.poll()
    await episode.take(done[0][1], TaskReward())
    return episode, engine, env, lambda text: tokenizer.encode(text, add_special_tokens=False)


class TestThoughtBudget:
    async def test_a_thought_that_is_cut_is_ended_read_and_not_trained(self) -> None:
        said = ["<think>12", "Action: back<|im_end|>"]
        episode, engine, env, ids = await turn(QWEN3, said, turn_tokens=40, thought_tokens=3)
        (taken,) = episode.trajectory.turns
        assert taken.sampled_ids == ids("Action: back<|im_end|>") and len(taken.behaviour_logprobs) == 13
        assert taken.given_ids == ids("<think>12</think>\n\n") and taken.prompt_ids == engine.asked[1].prompt
        assert env.heard == ["Action: back"] and taken.finish == "stop"
        assert [r.max_new for r in engine.asked] == [3, 40 - 3 - 3]
        assert episode._tokens == taken.sampled_tokens == 3 + 13  # the ids that end the thought were not sampled
        assert Trajectory.from_json(episode.trajectory.to_json()).sampled_tokens == 3 + 13
        again = Episode(Plan(TASK, 1, 0, episode.plan.budget, history=PastTurn.of([taken])), Bare())
        await again.start(TaskReward())
        assert again._tokens == 3 + 13 and again.trajectory.turns[0].ids == taken.ids
        assert again.trajectory.sampled_tokens == 0

    @pytest.mark.parametrize("template", [QWEN3, QWEN3_THINKING], ids=["qwen", "thinking"])
    async def test_a_thought_that_ends_in_time_is_trained_whole(self, template: str) -> None:
        thought = "<think>1</think>" if template == QWEN3 else "1</think>"
        said = [f"{thought}Action: back<|im_end|>"]
        episode, engine, env, ids = await turn(template, said, turn_tokens=40, thought_tokens=9)
        (taken,) = episode.trajectory.turns
        assert taken.sampled_ids == ids(said[0]) and taken.given == 0 and taken.prompt_ids == engine.asked[0].prompt
        assert len(taken.behaviour_logprobs) == len(taken.versions) == len(taken.sampled_ids)
        assert env.heard == ["Action: back"] and taken.text == "<think>1</think>Action: back"
        assert len(engine.asked) == 2 and engine.asked[0].seed != engine.asked[1].seed

    async def test_who_does_not_think_goes_on(self) -> None:
        said = ["Action: back<|im_end|>"]
        episode, _, env, ids = await turn(QWEN3, said, turn_tokens=40, thought_tokens=3)
        assert episode.trajectory.turns[0].sampled_ids == ids(said[0]) and env.heard == ["Action: back"]

    async def test_a_turn_that_its_own_limit_cuts_is_cut(self) -> None:
        episode, engine, env, _ = await turn(QWEN3, ["<think>1</think>x"], turn_tokens=3, thought_tokens=3)
        assert episode.trajectory.turns[0].finish == "length" and len(engine.asked) == 1 and env.heard == [""]


LAKE = Gymnasium(id="FrozenLake-v1", kwargs={"is_slippery": False})
CALL = '{{"name": "act", "arguments": {{"action": "{}"}}{}}}'
CALLS = [CALL.format(name, " " * n) for name in ("left", "right", "up", "down") for n in range(80)]
"""Tokens that are whole calls, so that chance makes one in every second token."""


class Moves(Reward):
    """A point for each call that fits, and one for each turn in which nothing was thought."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        return Verdict(sum((turn.action is not None) + (turn.given == 0) for turn in trajectory.turns), True)


@pytest.mark.parametrize("limits", [{"turn_tokens": 1}, {"turn_tokens": 8, "thought_tokens": 2}], ids=str)
def test_one_iteration_trains_on_calls_of_tools(tmp_path: Path, limits: dict[str, int]) -> None:
    tokenizer = tokenizer_of(QWEN3_THINKING if "thought_tokens" in limits else QWEN3, CALLS)
    shape = TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16, context=4096)
    save_policy(make_policy("calls", build_model(shape, len(tokenizer), seed=2), tokenizer), tmp_path / "model")
    budget = {"turns": 3, **limits}
    chat = {"system": "Play.", "thinking": "strip"}
    recipe = small(LAKE, str(tmp_path / "model"), Moves()).replace(
        actions="tool_calls", chat=chat, budget=budget, test_budget=budget
    )
    row = run(recipe, tmp_path)
    assert row["summary"]["failed"] == 0
    turns = [turn for t in trajectories_of(tmp_path / "run") for turn in t.turns]
    functions = [tool.function for tool in LAKE.acting.manual.tools]
    head = ChatFormat(tokenizer, recipe.chat).offering(functions).head("Play")
    assert all(turn.prompt_ids[: len(head)] == head for turn in turns)
    if "thought_tokens" in limits:
        cut = [turn for turn in turns if turn.given]
        assert len(cut) > len(turns) / 2 and all(len(turn.given_ids) == 2 + 3 for turn in cut)
    else:
        assert row["summary"]["actions"].keys() >= {"left", "right", "up", "down"} and row["trained_tokens"] > 0


def test_a_solver_does_not_demonstrate_calls_of_tools() -> None:
    recipe = small(Countdown(), "base-puzzles", TaskReward(), actions="tool_calls", cloning=Cloning(episodes=4))
    chat = load_policy("base-puzzles").chat
    with pytest.raises(ConfigError, match="no calls of tools: set actions=explained"):
        SolverDemonstrations().samples(recipe, chat, 4, random.Random(0))
    told = SolverDemonstrations().samples(recipe.replace(actions="explained"), chat, 4, random.Random(0))
    plain = SolverDemonstrations().samples(recipe.replace(actions="text"), chat, 4, random.Random(0))
    assert [s.sampled_ids for s in told] == [s.sampled_ids for s in plain]
    assert all(len(a.prompt_ids) > len(b.prompt_ids) for a, b in zip(told, plain, strict=True))


def test_a_budget_of_thoughts_needs_a_model_that_thinks() -> None:
    recipe = small(LAKE, "base", EnvironmentReward(), budget={"thought_tokens": 3})
    with pytest.raises(ConfigError, match="budget.thought_tokens limits what a reasoning model thinks"):
        language_player(load_policy("base"), recipe)


def test_media_stand_as_placeholders_where_they_were_seen_and_are_left_out_where_that_is_asked() -> None:
    chat, red, blue = word_chat("left right"), Media(b"red"), Media(b"blue")
    left, right = chat.encode("left right")
    for first in (True, False):
        text, seen = chat.observation("left right", first), chat.observation(("left", red, "right", blue), first)
        at = seen.index(left)
        assert seen[at : at + 4] == [left, red.placeholder, right, blue.placeholder]
        assert [i for i in seen if i >= 0] == text
        alone = chat.observation((red,), first)
        assert [i for i in alone if i >= 0] == [i for i in text if i not in (left, right)] and red.placeholder in alone
        without = ChatFormat(chat._tokenizer, ChatConfig(media="leave_out"))
        assert without.observation(("left ", red, "right", blue), first) == text


async def test_what_does_not_fit_a_tool_is_explained_behind_what_was_seen_pictures_too() -> None:
    picture = Media(b"lamp")

    class Lamp:
        async def reset(self, task: Task, seed: int) -> Observation:
            return Observation(("a lamp", picture), manual=MANUAL)

        async def step(self, text: str) -> Step:
            raise AssertionError("nothing fits")

        async def final_state(self) -> dict[str, Any]:
            return {}

        async def close(self) -> None:
            pass

    env = acting(Lamp(), "tool_calls")
    await env.reset(Task(id="t", source="s", goal="g", start=""), 0)
    step = await env.step("nonsense")
    assert step.observation.content == ("a lamp", picture, f"\nerror: {step.error}")


@pytest.mark.parametrize("template", [QWEN3, QWEN3_THINKING])
def test_words_are_found_wherever_a_vocabulary_has_them(template: str) -> None:
    chat = ChatFormat(tokenizer_of(template, (".\n\n", "\n\n", "Answer", " Answer")))
    inside, line, answer, spaced = (chat.vocabulary[token] for token in (".\n\n", "\n\n", "Answer", " Answer"))
    (colon,) = chat.encode(":")
    assert chat.endings("\n\n") == ((line,), (inside,))
    assert chat.endings("Answer:") == ((answer, colon), (spaced, colon))
    assert chat.endings(":") == ((colon,),)
    ids = chat.encode("ab.\n\nc\n\nd Answer: e")
    assert [ids[k] for k in cuts(chat, ids, ("\n\n", "Answer:"))] == [inside, line, spaced]
