"""The forms in which programs ask, and how what they ask becomes ids."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from adapter_runs import few_words, small
from chat_server import ChatServer
from chat_templates import MISTRAL, QWEN3, QWEN3_THINKING, tokenizer_of
from gateway_programs import Refused, chat, episodes, function, post

from longstride.adapters.gateway.agents import Job
from longstride.adapters.gateway.source import ChatGateway
from longstride.adapters.seeded import EnvironmentReward
from longstride.core.budget import StopReason
from longstride.core.errors import EnvFailure
from longstride.core.trajectory import Trajectory
from longstride.envs.tools import Tool, arguments, read_calls, read_words
from longstride.models.chat import ChatFormat
from longstride.models.load import load_policy
from longstride.rollout import AsRequested, BudgetInView, Episode, Generation
from longstride.rollout.context import ContextPolicy
from longstride.run.evaluation import evaluate_policy
from longstride.strategies import Strategy
from longstride.strategies.check_again import CheckAgain

CLICK = Tool("click", arguments(element="integer", text="string"), "clicks")
OFFERED = [CLICK.function]
CALL = '<tool_call>{"name": "click", "arguments": {"element": 3, "text": "a b"}}</tool_call>'
GO = [{"role": "user", "content": "go"}]


def one(play: Callable[[Job], Any], *says: str, **fields: Any) -> Trajectory:
    """An episode of a function, in which these texts are said."""
    (t,) = episodes(function(play, **fields), lambda e: says[min(e.turns, len(says) - 1)])
    assert t.stop is not StopReason.INFRA_FAILURE, t.evidence
    return t


def events(lines: Sequence[str]) -> list[tuple[str, Any]]:
    """Name and data of each event of a stream."""
    found = [re.match(r"(?:event: (\S+)\n)?data: (.*)", line, re.S) for line in lines if line.strip()]
    return [(m[1] or "", m[2] if m[2] == "[DONE]" else json.loads(m[2])) for m in found if m]


class TestForms:
    def test_chat_completions_have_words_calls_counts_and_log_probabilities(self) -> None:
        def play(job: Job) -> float:
            came = post(job, "/v1/chat/completions", {"messages": GO, "tools": OFFERED, "logprobs": True})
            (choice,) = came["choices"]
            (call,) = choice["message"]["tool_calls"]
            assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "I look."
            assert json.loads(call["function"]["arguments"]) == {"element": 3, "text": "a b"}
            assert came["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
            assert choice["logprobs"] == {"content": [], "refusal": None}
            answered = [*GO, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
            assert chat(job, answered, tools=OFFERED)["content"] == "fine"
            return 1

        t = one(play, f"I look. {CALL}", "fine")
        assert [turn.action for turn in t.turns] == ['click {"element": 3, "text": "a b"}', "answer fine"]
        assert [turn.fork for turn in t.turns] == ["", ""] and t.turns[1].observation == "done"

    def test_a_stream_has_the_pieces_of_the_whole_answer(self) -> None:
        def play(job: Job) -> float:
            body = {"messages": GO, "stream": True, "stream_options": {"include_usage": True}, "tools": OFFERED}
            *chunks, usage, (_, done) = events(post(job, "/v1/chat/completions", body))
            deltas = [chunk["choices"][0]["delta"] for _, chunk in chunks]
            assert "".join(d.get("content") or "" for d in deltas) == "word " * 30 + "word" and done == "[DONE]"
            assert [d["tool_calls"][0]["function"]["name"] for d in deltas if "tool_calls" in d] == ["click"]
            assert chunks[-1][1]["choices"][0]["finish_reason"] == "tool_calls" and usage[1]["usage"]
            return 1

        one(play, "word " * 31 + CALL)

    def test_responses_go_on_by_their_items_or_by_an_id(self) -> None:
        tool = {"type": "function", "name": "click", "parameters": CLICK.schema}

        def play(job: Job) -> float:
            body = {"instructions": "Be brief.", "input": "go", "tools": [tool]}
            came = post(job, "/v1/responses", body)
            message, call = came["output"]
            assert message["content"][0]["text"] == "I look." and json.loads(call["arguments"])["element"] == 3
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "done"}
            items = [{"role": "user", "content": "go"}, message, call, result]
            again = post(job, "/v1/responses", body | {"input": items})
            assert again["output"][0]["content"][0]["text"] == "one"
            stream = post(
                job,
                "/v1/responses",
                {"input": "more", "previous_response_id": again["id"], "stream": True, "tools": [tool]},
            )
            kinds = [kind for kind, _ in events(stream)]
            assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
            assert "".join(d["delta"] for k, d in events(stream) if k == "response.output_text.delta") == "two"
            with pytest.raises(Refused, match="there is no response 'resp_x'"):
                post(job, "/v1/responses", {"input": "more", "previous_response_id": "resp_x"})
            with pytest.raises(Refused, match="input: expected a message"):
                post(job, "/v1/responses", {"input": [{"type": "reasoning"}]})
            return 1

        t = one(play, f"I look. {CALL}", "one", "two")
        assert [turn.fork for turn in t.turns] == [""] * 3 and t.turns[2].observation == "more"

    def test_anthropic_messages_have_blocks_of_text_and_of_tools(self) -> None:
        tool = {"name": "click", "input_schema": CLICK.schema}

        def play(job: Job) -> float:
            body = {"system": "Be brief.", "max_tokens": 9, "messages": GO, "tools": [tool]}
            came = post(job, "/v1/messages", body)
            text, use = came["content"]
            assert (text["text"], came["stop_reason"]) == ("I look.", "tool_use")
            assert use["input"] == {"element": 3, "text": "a b"}
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": [{"type": "text", "text": "done"}]}
            more = [*GO, {"role": "assistant", "content": came["content"]}, {"role": "user", "content": [result]}]
            stream = events(post(job, "/v1/messages", body | {"messages": more, "stream": True}))
            assert [k for k, _ in stream] == [
                *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
                *("message_delta", "message_stop"),
            ]
            assert stream[2][1]["delta"]["text"] == "fine" and stream[4][1]["delta"]["stop_reason"] == "end_turn"
            with pytest.raises(Refused) as refused:
                post(job, "/v1/messages", {"messages": []})
            assert refused.value.body["type"] == "error" and "a list of 1 to" in str(refused.value)
            return 1

        t = one(play, f"I look. {CALL}", "fine")
        assert [turn.fork for turn in t.turns] == ["", ""] and t.turns[1].observation == "done"

    def test_the_client_of_openai_is_answered_in_both_of_its_forms_whole_and_in_pieces(self) -> None:
        openai = pytest.importorskip("openai")

        def play(job: Job) -> float:
            client = openai.OpenAI(base_url=job.url, api_key=job.key)
            assert client.chat.completions.create(model="m", messages=GO).choices[0].message.content == "one"
            pieces = client.chat.completions.create(model="m", messages=GO, stream=True)
            assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "two"
            assert client.responses.create(model="m", input="go").output_text == "three"
            with client.responses.stream(model="m", input="go") as stream:
                assert stream.get_final_response().output_text == "four"
            assert [model.id for model in client.models.list()] == ["policy"]
            with pytest.raises(openai.BadRequestError, match="n=1 is answered"):
                client.chat.completions.create(model="m", messages=GO, n=2)
            return 1

        one(play, "one", "two", "three", "four")

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            ({"messages": GO, "n": 3}, "every request is a turn, so n=1 is answered"),
            ({"messages": GO, "top_logprobs": 2}, "of the sampled tokens alone"),
            ({"messages": GO, "response_format": {"type": "json_object"}}, "is not forced into a form"),
            ({"messages": GO, "max_tokens": 0}, "a number of tokens of at least 1"),
            ({"messages": GO, "stop": 3}, "stop: expected a text or a list of texts"),
            ({"messages": GO, "tools": [{"function": {"name": "a b"}}]}, "functions with a name"),
            ({"messages": [{"role": "x"}]}, "expected a role of system, developer"),
            ({"messages": [{"role": ["user"]}]}, r"expected a role of system, .*, got \['user'\]"),
            ({"messages": [{"role": "user", "tool_calls": 5}]}, r"messages\[0\].tool_calls: expected a list .* got 5"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "images are not read"),
            ({"messages": [*GO, {"role": "assistant", "content": "a"}]}, "the last message is the assistant's"),
            ({}, "messages: expected a list"),
            (
                {"messages": GO, "tools": [{"function": {"name": "a", "parameters": {"properties": 5}}}]},
                "that are schemas",
            ),
        ],
    )
    def test_what_cannot_be_done_is_refused_in_a_sentence(self, body: dict[str, Any], why: str) -> None:
        def play(job: Job) -> float:
            with pytest.raises(Refused, match=why) as refused:
                post(job, "/v1/chat/completions", body)
            chat(job, GO)
            return float(refused.value.status == 400)

        assert one(play, "x").reward == 1

    def test_a_reply_ends_before_what_the_program_stops_at_and_all_of_it_is_kept(self) -> None:
        def play(job: Job) -> float:
            said = chat(job, GO, stop=["STOP"])
            assert said["content"] == "one"
            chat(job, [*GO, said, *GO])
            return 1

        t = one(play, "one STOP two", "x")
        assert t.turns[0].text == "one STOP two" and t.turns[1].fork == ""


class TestCalls:
    def test_calls_are_read_in_the_forms_of_templates(self) -> None:
        expected = [("click", {"element": 3, "text": "a b"})]
        assert read_calls(f"hm {CALL}") == ("hm", expected)
        assert read_calls(f"{CALL}\n{CALL}") == ("", expected * 2)
        assert read_calls('[{"name": "back", "arguments": {}}]') == ("", [("back", {})])
        assert read_calls('a [3] {"name": "back"}') == ("a [3]", [("back", {})])
        for text in ("just words", "a {3}", "<tool_call>{broken", '{"reward": 1}'):
            assert read_calls(text) == (text, [])

    def test_calls_are_read_in_words(self) -> None:
        tools = {"click": CLICK}
        assert read_words("Thought: x Action: click [3] a b", tools) == (
            "Thought: x",
            [("click", {"element": 3, "text": "a b"})],
        )
        assert read_words('Action: click {"element": 4}', tools) == ("", [("click", {"element": 4})])
        assert read_words("Action: click red lamp [3] a b", tools) == read_words("Action: click [3] a b", tools)
        assert read_words("Action: click here", tools) == ("", [("click", {"element": "here"})])
        assert read_words("Action: fly", tools) == ("Action: fly", [])

    def test_tools_are_explained_in_the_first_message_where_the_template_has_none(self) -> None:
        def play(job: Job) -> float:
            said = chat(job, [{"role": "system", "content": "Be brief."}, *GO], tools=OFFERED)
            return said["tool_calls"][0]["function"]["name"] == "click" and 1.0

        seen: list[str] = []

        def says(e: Episode) -> str:
            request = e.requests[-1]
            assert request is not None
            seen.extend(str(m.content) for m in request.before)
            return "Action: click 3 x"

        (t,) = episodes(function(play, calls="explained"), says)
        assert t.reward == 1 and 'click {"element": integer, "text": string}: clicks' in seen[0]


# conversations as ids


class TestPrompts:
    @pytest.mark.parametrize("template", [QWEN3, QWEN3_THINKING], ids=["qwen", "thinking"])
    def test_a_conversation_is_what_the_template_renders(self, template: str) -> None:
        tokenizer = tokenizer_of(template)
        form = ChatFormat(tokenizer).offering(OFFERED)
        roles = ["system", "user", "assistant", "tool", "tool", "user"]
        said = ["s", "u <|im_end|>", "a", "t1", "t2", "v"]
        told = [{"role": r, "content": c} for r, c in zip(roles, said, strict=True)]
        told[3] |= {"name": "click", "tool_call_id": "call00000"}
        told[4] |= {"name": "click", "tool_call_id": "call00000"}
        rendered = tokenizer.apply_chat_template(told, tokenize=False, add_generation_prompt=True, tools=OFFERED)

        def ids(k: int) -> list[int]:
            found = form.encode(said[k])
            return form.spoken(found) if roles[k] == "assistant" else found

        whole = form.conversation(roles, [ids(k) for k in range(6)], later=False)
        assert tokenizer.decode(whole) == rendered
        assert whole.count(form.close[0]) < rendered.count("<|im_end|>")  # a program's words are no markup
        if template is QWEN3:
            begun = form.conversation(roles[:2], [ids(0), ids(1)], later=False)
            goes_on = form.conversation(roles[3:], [ids(k) for k in (3, 4, 5)], later=True)
            assert begun + ids(2) + goes_on == whole

    def test_a_template_that_refuses_roles_fails_the_episode_and_says_which(self) -> None:
        tokenizer = tokenizer_of(MISTRAL)
        form = ChatFormat(tokenizer)
        one = form.encode("x")
        whole = form.conversation(["system", "user"], [one, one], later=False)
        assert tokenizer.decode(whole) == "<s>[INST] x\n\nx[/INST]"
        with pytest.raises(EnvFailure, match="refuses a plain conversation.*the roles were user, user"):
            form.conversation(["user", "user"], [one, one], later=False)


def evaluated(
    play: Callable[[Job], Any],
    folder: Any,
    context: ContextPolicy | None = None,
    strategy: Strategy | None = None,
    **fields: Any,
) -> Trajectory:
    """An episode with a model of few words, which says two tokens a turn."""
    recipe = small(
        function(play, **fields), few_words(folder, "go one two three again left"), EnvironmentReward()
    ).replace(context=context or AsRequested(), test_budget={"turns": 12, "turn_tokens": 3}, evaluation={"tasks": 1})
    (t,) = evaluate_policy(load_policy(str(recipe.model)), recipe, strategy=strategy).trajectories
    assert t.stop is not StopReason.INFRA_FAILURE, t.evidence
    return t


class TestBranches:
    def test_what_continues_keeps_its_ids_and_what_is_rewritten_opens_a_named_branch(self, tmp_path) -> None:
        def play(job: Job) -> float:
            def user(text: str) -> dict[str, str]:
                return {"role": "user", "content": text}

            first = [{"role": "system", "content": "two"}, user("go one")]
            a = chat(job, first)  # 0
            second = [*first, a, user("two")]
            b = chat(job, second)  # 1, goes on
            chat(job, second)  # 2, asked again
            helper = chat(job, [user("three go")])  # 3, a conversation beside
            chat(job, [*second, b, user("one")])  # 4, goes on after turn 1
            chat(job, [user("three go"), helper, user("two")])  # 5, goes on after turn 3
            chat(job, [*first, user("three"), b, user("again")])  # 6, rewritten: turn 1's words behind others
            return 1

        t = evaluated(play, tmp_path)
        assert [turn.fork for turn in t.turns] == ["", "", "again", "separate", "", "", "rewritten"]
        close = load_policy(str(tmp_path)).chat.spoken
        ids = [turn.prompt_ids + close(turn.sampled_ids) for turn in t.turns]
        prompts = [turn.prompt_ids for turn in t.turns]
        assert prompts[1][: len(ids[0])] == ids[0] and prompts[2] == prompts[1]
        assert prompts[4][: len(ids[1])] == ids[1] and prompts[5][: len(ids[3])] == ids[3]
        said = close(t.turns[1].sampled_ids)
        assert any(prompts[6][k : k + len(said)] == said for k in range(len(prompts[6])))
        assert [turn.fork for turn in Trajectory.from_json(t.to_json()).turns] == [turn.fork for turn in t.turns]

    def test_what_is_left_is_written_into_the_newest_message(self, tmp_path) -> None:
        def play(job: Job) -> float:
            said = chat(job, GO)
            chat(job, [*GO, said, {"role": "user", "content": "two"}])
            return 1

        words = BudgetInView(within=AsRequested(), words="{left} left")
        t = evaluated(play, tmp_path, words)
        format_ = load_policy(str(tmp_path)).chat
        assert "left" in format_.decode(t.turns[0].prompt_ids)
        assert t.turns[1].prompt_ids[: len(t.turns[0].prompt_ids)] == t.turns[0].prompt_ids

    def test_an_answer_is_asked_for_again_before_the_program_has_it(self, tmp_path) -> None:
        told: list[str] = []

        def play(job: Job) -> float:
            said = chat(job, GO, tools=OFFERED)
            told.append(said["content"])
            chat(job, [*GO, said, {"role": "user", "content": "two"}], tools=OFFERED)
            return 1

        strategy = CheckAgain(checks=3, paragraph="again")
        t = evaluated(play, tmp_path, strategy=strategy, calls="text")
        assert [turn.observation for turn in t.turns] == ["go", "again", "again", "two"]
        assert told == [t.turns[2].text] and not any(turn.fork for turn in t.turns)
        for before, after in zip(t.turns, t.turns[1:], strict=False):
            assert after.prompt_ids[: len(before.prompt_ids)] == before.prompt_ids


def test_the_newest_turn_of_a_budget_may_be_a_last_message() -> None:
    def play(job: Job) -> float:
        chat(job, GO)
        assert chat(job, GO)["content"] == "hurry"
        with pytest.raises(Refused) as refused:
            chat(job, GO)
        return float(refused.value.body["error"]["type"] == "budget_exhausted")

    source: ChatGateway = function(play, when_over="last_message", last_message="hurry", grace=30.0)
    (t,) = episodes(source, lambda e: "x", turns=1)
    assert (t.stop, t.reward, t.length) == (StopReason.TURNS, 1.0, 1)


@pytest.mark.parametrize(("told", "cut"), [("length", True), ("stop", False)])
def test_that_a_reply_was_cut_is_said_as_each_api_says_it_or_not_at_all(told: str, cut: bool) -> None:
    def play(job: Job) -> float:
        completion = post(job, "/v1/chat/completions", {"messages": GO})["choices"][0]
        response = post(job, "/v1/responses", {"input": "go"})
        message = post(job, "/v1/messages", {"messages": GO, "max_tokens": 9})
        said = (completion["finish_reason"], response["status"], response["incomplete_details"], message["stop_reason"])
        if cut:
            return float(said == ("length", "incomplete", {"reason": "max_output_tokens"}, "max_tokens"))
        return float(said == ("stop", "completed", None, "end_turn"))

    (t,) = episodes(function(play, when_cut=told), lambda e: Generation([1], [2], [0.0], [0], "half a", "length"))
    assert t.reward == 1 and [turn.finish for turn in t.turns] == ["length"] * 3


def test_a_model_behind_a_chat_api_is_told_what_the_program_asks(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def play(job: Job) -> float:
        first = [{"role": "system", "content": "be brief"}, *GO]
        said = chat(job, first, tools=OFFERED)
        answered = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "done"}
        return float(chat(job, [*first, said, answered], tools=OFFERED)["content"] == "fine")

    server = ChatServer()
    server.reset()
    try:
        call = {
            "type": "function",
            "id": "c",
            "function": {"name": "click", "arguments": '{"element": 3, "text": "a"}'},
        }
        server.model = lambda body: {"content": "fine"} if len(body["messages"]) > 2 else {"tool_calls": [call]}
        recipe = small(function(play), few_words(tmp_path, "go"), EnvironmentReward(), context=AsRequested())
        (t,) = evaluate_policy(server.api(), recipe.replace(evaluation={"tasks": 1})).trajectories
    finally:
        server.stop()
    assert t.reward == 1, t.evidence
    system, user, said, answer = server.bodies[-1]["messages"]
    assert (system["content"], user["content"], answer["content"]) == ("be brief", "go", "done")
    assert said["tool_calls"][0]["function"]["name"] == "click" and answer["role"] == "tool"
    assert server.bodies[-1]["tools"] == OFFERED
