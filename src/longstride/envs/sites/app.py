"""The embedded sites as one web application: `/{kind}/{seed}/...`.

What always holds: pages are rendered on the server from the world of (kind, seed) and the session of a visitor. A
session is known by the cookie `sid`, belongs to one site, and is not seen by other visitors; only a POST changes it.
Forms and addresses are untrusted. The text browser calls the application in process; for a real browser it is served
on loopback.
"""

import html
import itertools
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from longstride.core.errors import TaskError
from longstride.envs.dial.pages import ROUTE as TRAILS
from longstride.envs.sites.world import KINDS, PAGE, World, make_world

SESSIONS = 20_000
"""Sessions kept; the oldest go first. More than any rollout holds at once."""
_templates = Environment(loader=PackageLoader("longstride.envs.sites"), autoescape=True, auto_reload=False)
T = {name: _templates.get_template(f"{name}.html") for name in "home sheet list item facts login done".split()}


class _Number(Convertor[int]):
    """A number in an address, of so few digits that Python reads it; what is longer is no address."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())


@dataclass
class VisitorSession:
    """What one visitor has done on one site."""

    user: str = ""
    cart: list[dict[str, Any]] = field(default_factory=list)
    orders: list[list[dict[str, Any]]] = field(default_factory=list)
    bookings: list[dict[str, Any]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)


class Visit:
    """One request: its world, its session, and the responses to it."""

    def __init__(self, request: Request, sessions: OrderedDict[tuple[str, str], VisitorSession], ids: Any) -> None:
        kind, seed = request.path_params["kind"], request.path_params["seed"]
        self.request, self.root = request, f"/{kind}/{seed}/"
        self.world: World = make_world(kind, seed)
        sid = request.cookies.get("sid", "")
        self.new_sid = ""
        if (sid, self.root) not in sessions:
            sid = self.new_sid = f"{next(ids):x}-{secrets.token_hex(8)}"
            sessions[sid, self.root] = VisitorSession()
            if len(sessions) > SESSIONS:
                sessions.popitem(last=False)
        self.session = sessions[sid, self.root]

    def page(self, template: str, title: str, status: int = 200, **values: Any) -> Response:
        cart = self.session.cart if self.world.spec.verb == "put" else None
        body = T[template].render(root=self.root, title=title, cart=cart, **values)
        return self._with_cookie(HTMLResponse(body, status))

    def redirect(self, path: str) -> Response:
        return self._with_cookie(RedirectResponse(self.root + path, 303))

    def missing(self) -> Response:
        return self.page("list", "not found", 404, items=[])

    def _with_cookie(self, response: Response) -> Response:
        if self.new_sid:
            response.set_cookie("sid", self.new_sid, path=self.root, httponly=True, samesite="lax")
        return response

    async def form(self) -> dict[str, str]:
        """The posted fields; at most 10 kB are looked at."""
        body = (await self.request.body())[:10_000]
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))

    def item(self) -> Any:
        i = self.request.path_params["id"]
        return self.world.items[i] if 0 <= i < len(self.world.items) else None


async def home(v: Visit) -> Response:
    if v.world.kind == "sheet":
        return v.page("sheet", "table", items=v.world.items)
    return v.page("home", v.world.spec.title, categories=v.world.categories)


async def category(v: Visit) -> Response:
    name, query = v.request.path_params["name"], v.request.query_params
    items, flag = v.world.in_category(name), v.world.spec.flag
    if not items:
        return v.missing()
    flagged = bool(flag and query.get(flag))
    if flagged:
        items = [i for i in items if i.flag]
    page = int(query["page"]) if query.get("page", "").isdecimal() and len(query["page"]) < 4 else 1
    here = f"{v.root}c/{name}"

    def at(p: int) -> str:
        return f"{here}?" + urlencode({"page": p} | ({flag: "on"} if flagged else {}))

    return v.page(
        "list",
        name,
        items=items[PAGE * (page - 1) : PAGE * page],
        flag=flag,
        flagged=flagged,
        here=here,
        previous=at(page - 1) if page > 1 else "",
        next=at(page + 1) if len(items) > PAGE * page else "",
    )


async def search(v: Visit) -> Response:
    query = v.request.query_params.get("q", "")[:100]
    return v.page("list", "results", items=v.world.search(query))


async def item(v: Visit) -> Response:
    i = v.item()
    if i is None:
        return v.missing()
    replies = [r for r in v.session.replies if r["item"] == i.name]
    spec = v.world.spec
    return v.page(
        "item",
        i.name,
        item=i,
        relation=spec.reference.relation,
        verb=spec.verb,
        user=v.session.user,
        replies=replies,
        here=quote(f"i/{i.id}"),
    )


async def reference(v: Visit) -> Response:
    name = v.request.path_params["name"]
    facts = v.world.references.get(name)
    return v.page("facts", name, facts=facts) if facts else v.missing()


async def place(v: Visit) -> Response:
    name = v.request.path_params["name"]
    country = v.world.places.get(name)
    return v.page("facts", name, facts={"country": country}) if country else v.missing()


async def login_page(v: Visit) -> Response:
    return v.page("login", "login", next=v.request.query_params.get("next", ""))


async def login(v: Visit) -> Response:
    form = await v.form()
    v.session.user = form.get("name", "").strip().lower()[:40]
    target = form.get("next", "")
    known = target.startswith("i/") and target[2:].isdecimal()  # an address from a form is never followed as it is
    return v.redirect(target if known else "")


async def put(v: Visit) -> Response:
    i, quantity = v.item(), _count((await v.form()).get("quantity", ""))
    if i is None:
        return v.missing()
    line = next((x for x in v.session.cart if x["item"] == i.name), None)
    if line:
        line["count"] += quantity
    else:
        v.session.cart.append({"item": i.name, "count": quantity})
    return v.redirect("cart")


async def cart(v: Visit) -> Response:
    return v.page("done", "cart", lines=v.session.cart, can_order=bool(v.session.cart))


async def order(v: Visit) -> Response:
    if v.session.cart:
        v.session.orders.append(v.session.cart)
        v.session.cart = []
    return v.redirect("orders")


async def orders(v: Visit) -> Response:
    return v.page("done", "orders", lines=[line for o in v.session.orders for line in o])


async def book(v: Visit) -> Response:
    i, nights = v.item(), _count((await v.form()).get("nights", ""))
    if i is None:
        return v.missing()
    v.session.bookings.append({"item": i.name, "count": nights})
    return v.redirect("bookings")


async def bookings(v: Visit) -> Response:
    return v.page("done", "bookings", lines=v.session.bookings)


async def reply(v: Visit) -> Response:
    i, text = v.item(), (await v.form()).get("text", "").strip().lower()[:200]
    if i is None:
        return v.missing()
    if v.session.user and text:
        v.session.replies.append({"item": i.name, "by": v.session.user, "text": text})
    return v.redirect(f"i/{i.id}")


async def state(v: Visit) -> Response:
    s = v.session
    return JSONResponse(
        {"user": s.user, "cart": s.cart, "orders": s.orders, "bookings": s.bookings, "replies": s.replies}
    )


def _count(text: str) -> int:
    """A posted number between 1 and 99; 1 where there is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 3 and int(text) > 0 else 1


PAGES = {
    "": home,
    "c/{name}": category,
    "search": search,
    "i/{id:number}": item,
    "r/{name}": reference,
    "l/{name}": place,
    "login": login_page,
    "cart": cart,
    "orders": orders,
    "bookings": bookings,
    "__state__": state,
}
POSTS = {"login": login, "put/{id:number}": put, "order": order, "book/{id:number}": book, "reply/{id:number}": reply}


def build_application() -> Starlette:
    """A new application with sessions of its own."""
    sessions: OrderedDict[tuple[str, str], VisitorSession] = OrderedDict()
    ids = itertools.count()

    def visit(handler: Any) -> Any:
        async def endpoint(request: Request) -> Response:
            try:
                v = Visit(request, sessions, ids)
            except TaskError as e:
                return HTMLResponse(f"<h1>no such site</h1><p>{html.escape(str(e))}</p>", 404)
            return await handler(v)

        return endpoint

    async def index(request: Request) -> Response:
        links = "".join(f'<li><a href="/{kind}/1/">{kind}</a></li>' for kind in KINDS)
        return HTMLResponse(f"<h1>sites</h1><p>Every seed makes a site: /shop/1/, /shop/2/ ...</p><ul>{links}</ul>")

    base = "/{kind}/{seed:number}/"
    routes = [Route(base + path, visit(h), methods=["GET"]) for path, h in PAGES.items()]
    routes += [Route(base + path, visit(h), methods=["POST"]) for path, h in POSTS.items()]
    return Starlette(routes=[Route("/", index), TRAILS, *routes])
