"""Other people's benchmarks in Chromium: evaluators get what they read, logins are used, hosts are kept to."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

import uvicorn
from helpers import SLOW
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError, TaskError
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.web.benchmarks.env import SHOP_ADMIN, post_url
from longstride.web.benchmarks.source import WebBenchmark

SHOP = "<h1>shop</h1><p>for {user}</p><p id=total>12.50</p><a href=/next>next</a><input id=name value=old>"


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """A site on loopback that stands for somebody's WebArena; its address."""

    async def page(request: Request) -> Response:
        status = 404 if request.url.path == "/gone" else 200
        return HTMLResponse(SHOP.format(user=request.cookies.get("user", "nobody")), status)

    async def token(request: Request) -> Response:
        given = await request.json()
        right = given == {"username": "admin", "password": "pw"}
        return JSONResponse("secret" if right else {"message": "wrong"}, 200 if right else 401)

    async def orders(request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer secret"
        return JSONResponse({"items": [{"increment_id": "000000041"}]})

    async def reviews(request: Request) -> Response:
        return JSONResponse([{"nickname": "a"}, {"nickname": "zoe", "ratings": [{"percent": 80}]}])

    app = Starlette(
        routes=[
            Route("/rest/default/V1/integration/admin/token", token, methods=["POST"]),
            Route("/rest/V1/orders", orders),
            Route("/rest/V1/products/{sku}/reviews", reviews),
            Route("/{any:path}", page),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(SLOW)


def config(shop: str, number: int, **evaluation: object) -> dict[str, object]:
    checks = {"eval_types": ["program_html"], "reference_answers": None, "reference_url": "", "program_html": []}
    return {
        "sites": ["shopping"], "task_id": number, "require_login": False, "storage_state": None, "start_url": shop,
        "geolocation": None, "intent_template": "t", "instantiation_dict": {}, "intent": "look", "require_reset": False,
        "intent_template_id": number, "eval": checks | evaluation,
    }  # fmt: skip


def program(url: str, locator: str, *required: str) -> dict[str, object]:
    return {"url": url, "locator": locator, "required_contents": {"must_include": list(required)}}


def play(folder: Path, configs: list[dict[str, object]], *said: str, **settings: object) -> list[tuple[float, object]]:
    path = folder / f"{len(list(folder.iterdir()))}.tasks.json"
    path.write_text(json.dumps(configs))
    source = WebBenchmark(path=path, format="webarena", **settings)  # type: ignore[arg-type]
    tasks = source.held_out(99)
    plans = [Plan(task, i, i, Budget(turns=len(said))) for i, task in enumerate(tasks)]
    done = Pool(ScriptedPlayer(lambda e: f"Action: {said[e.turns]}"), source.env, TaskReward()).run(plans)
    return [(t.reward, t.stop) for t in done]


def test_programs_read_the_page_in_front_and_others(shop: str, tmp_path: Path) -> None:
    right = [
        program("last", "document.querySelector('#total').outerText", "12.50"),
        program(f"{shop}/other", "", "for nobody"),
        program("last", "document.querySelector('#none').outerText |OR|", "x")
        | {"required_contents": {"exact_match": ""}},
    ]
    wrong = [program("last", "document.querySelector('#total').outerText", "13")]
    gone = [program("http://127.0.0.1:9/", "", "shop")]
    configs = [config(shop, n, program_html=p) for n, p in enumerate((right, wrong, gone))]
    (*rewards, (_, stop)) = play(tmp_path, configs, "click [1]", "answer done")
    assert [r for r, _ in rewards] == [1.0, 0.0]
    assert stop is StopReason.INFRA_FAILURE  # nobody knows what it was worth


def test_what_was_typed_and_not_sent_counts_where_the_page_in_front_is_read_and_not_where_its_address_is(
    shop: str, tmp_path: Path
) -> None:
    field = "document.querySelector('#name').value"
    configs = [config(shop, n, program_html=[program(url, field, "new")]) for n, url in enumerate(("last", f"{shop}/"))]
    assert [r for r, _ in play(tmp_path, configs, "fill [2] new", "answer done")] == [1.0, 0.0]


def test_the_address_and_the_answer_are_checked_together(shop: str, tmp_path: Path) -> None:
    both = config(
        shop, 1, eval_types=["string_match", "url_match"], reference_answers={"exact_match": "12.50"},
        reference_url=f"{shop}/next", url_note="GOLD in PRED",
    )  # fmt: skip
    assert play(tmp_path, [both], "click [1]", "answer 12.50") == [(1.0, StopReason.ANSWERED)]
    assert play(tmp_path, [both], "wait", "answer 12.50") == [(0.0, StopReason.ANSWERED)]


def test_a_login_is_taken_from_its_folder_and_from_nowhere_else(shop: str, tmp_path: Path) -> None:
    host = shop.removeprefix("http://").partition(":")[0]
    cookie = {
        "name": "user",
        "value": "ann",
        "domain": host,
        "path": "/",
        "expires": -1,
        "httpOnly": False,
        "secure": False,
        "sameSite": "Lax",
    }
    (tmp_path / "ann.json").write_text(json.dumps({"cookies": [cookie], "origins": []}))
    seen = config(shop, 1, program_html=[program("last", "document.body.outerText", "for ann")])
    seen["storage_state"] = "./.auth/ann.json"
    assert play(tmp_path, [seen], "answer x", logins=tmp_path)[0][0] == 1.0
    with pytest.raises(TaskError, match="tasks.logins"):
        play(tmp_path, [seen], "answer x")
    with pytest.raises(ConfigError, match="is no file"):
        play(tmp_path, [seen | {"storage_state": "../../etc/passwd"}], "answer x", logins=tmp_path)


def test_several_addresses_are_tabs(shop: str, tmp_path: Path) -> None:
    two = config(shop, 1, program_html=[program("last", "document.location.href", "/second")])
    two["start_url"] = f"{shop} |AND| {shop}/second"
    assert play(tmp_path, [two], "tab 2", "answer x")[0][0] == 1.0
    assert play(tmp_path, [two], "wait", "answer x")[0][0] == 0.0
    two["start_url"] = f"{shop} |AND| {shop}/gone"
    assert play(tmp_path, [two], "tab 2", "answer x")[0][1] is StopReason.INFRA_FAILURE


def test_the_shop_is_asked_as_its_administrator(shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = config(
        shop, 1,
        program_html=[
            program("func:shopping_get_latest_order_url()", "document.location.href", "/order_id/41/"),
            program("last", "func:shopping_get_sku_latest_review_author('B0')", "zoe"),
            program("last", "func:shopping_get_sku_latest_review_rating('B0')", "80"),
        ],
    )  # fmt: skip
    with pytest.raises(ConfigError, match=SHOP_ADMIN):
        play(tmp_path, [asked], "answer x")
    monkeypatch.setenv(SHOP_ADMIN, "admin:wrong")
    assert play(tmp_path, [asked], "answer x")[0][1] is StopReason.INFRA_FAILURE
    monkeypatch.setenv(SHOP_ADMIN, "admin:pw")
    assert play(tmp_path, [asked], "answer x")[0][0] == 1.0


def test_the_post_of_an_address() -> None:
    assert post_url("http://h:1/f/books/12/title/-/comment/3") == "http://h:1/f/books/12/"
    assert post_url("http://h:1/user/ann") == "http://h:1/user/ann"


def test_a_file_without_a_training_split_says_how_to_make_one(shop: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(
        json.dumps([config(shop, n, program_html=[program("last", "", "x")]) for n in range(40)])
    )
    source = WebBenchmark(path=tmp_path / "tasks.json", format="webarena")
    import random

    with pytest.raises(TaskError, match="test_share"):
        source.sample(random.Random(0), 1)
    source = WebBenchmark(path=tmp_path / "tasks.json", format="webarena", test_share=0.25)
    train, test = (
        {t.template_id for t in source.sample(random.Random(0), 200)},
        {t.template_id for t in source.held_out(99)},
    )
    assert train and test and not train & test
