// Runs in an isolated world of every document: sees the same elements as the page's scripts and cannot be seen or changed by
// them. Its text is that of `longstride.envs.sites.page` (same lines, same numbers), made from the live document; what is not
// rendered is left out. `longstride.look()` answers once the document stands still. What always holds: reading ends within
// `MAX_TIME` and the browser's own layout, nothing that a page names hides what is read, and an element that cannot be read
// is left out; what is left out is said in the last line.
(() => {
  if (globalThis.longstride) return;
  const MAX_ELEMENTS = 2000, MAX_NODES = 50000, MAX_TEXT = 1e6, MAX_TIME = 2000, MAX_NAME = 200, MAX_LINE = 1000;
  const MAX_RAW = 20000, MAX_ADDRESS = 8000, SHOWN_OPTIONS = 50, MAX_DEPTH = 400;
  const NUMBER = /\[(\s*\d+\s*)\]/g;
  const INVISIBLE = /[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu;
  const clean = text => {
    text = text.replace(/\s+/g, " ").trim();
    if (!/^[\x20-\x7e]*$/.test(text)) text = text.replace(INVISIBLE, "").replace(/\s+/g, " ").trim();
    return text.includes("[") ? text.replace(NUMBER, "($1)") : text;
  };
  const short = text => { text = clean((text || "").slice(0, MAX_RAW)); return text.length <= MAX_NAME ? text : text.slice(0, MAX_NAME - 3) + "..."; };
  const words = list => new Set(list.split(" "));
  const BLOCKS = words("ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY CAPTION CENTER DETAILS DIALOG DIV DL FIELDSET FIGCAPTION FIGURE FOOTER HEADER LEGEND LI MAIN MENU NAV OL P PRE SEARCH SECTION SUMMARY TBODY TFOOT THEAD TR UL");
  const NOT_SHOWN = words("SCRIPT STYLE TEMPLATE NOSCRIPT HEAD TITLE IFRAME NOEMBED NOFRAMES DATALIST OBJECT FRAME FRAMESET");
  const BUTTONS = words("submit image button reset");
  const PLACED = words("checkbox radio");
  const SET = words("date time month week datetime-local color range");

  // A form and a document show a field called `tagName` or `body` in place of their own: here they do not.
  const own = (object, kind) => new Proxy(object, {get(target, name) {
    const value = Reflect.get(kind.prototype, name, target);
    return typeof value === "function" ? value.bind(target) : value;
  }});
  const plain = e => e instanceof HTMLFormElement ? own(e, HTMLFormElement) : e;
  const page = own(document, Document);

  let elements = [];   // number n is at n - 1
  let unnamed, labels, lines, parts, inLine, inLink, nodes, letters, until, over, cut;

  class Item {
    constructor(element, role, name, kind = "") { Object.assign(this, {element, role, name, kind, number: 0}); }
    get note() {
      const e = plain(this.element);
      return e.matches?.(":disabled") ? "disabled" : e.hasAttribute?.("readonly") ? "read only" : "";
    }
    show() {
      const e = plain(this.element), out = this.role === "link" ? [this.name] : [this.role, this.name];
      out.push(`[${this.number}]`);
      if (PLACED.has(this.role)) { if (e.checked || e.getAttribute("aria-checked") === "true") out.push("= on"); }
      else if (this.role === "select") {
        const chosen = e.selectedIndex < 0 ? "" : short(e.options[e.selectedIndex].label);
        if (chosen) out.push("= " + chosen);
        out.push("( " + choices(e) + " )");
      } else if (this.role === "textbox") {
        const value = short("value" in e ? e.value : e.textContent);
        if (value) out.push("= " + value);
      }
      if (this.note) out.push(this.note);
      return out.filter(Boolean).join(" ");
    }
  }

  const choices = e => {
    const out = [], all = e.options.length;
    for (let i = 0; i < all && i < SHOWN_OPTIONS; i++) out.push(short(e.options[i].label));
    if (all > SHOWN_OPTIONS) out.push(`${all - SHOWN_OPTIONS} more`);
    return out.join(" | ");
  };

  const number = item => {
    if (elements.length >= MAX_ELEMENTS) { cut.add(`more than ${MAX_ELEMENTS} elements`); return; }
    elements.push(item);
    item.number = elements.length;
    parts.push(item);
  };
  const breakLine = () => {
    if (inLine || inLink) parts.push(" ");
    else if (parts.length) { lines.push(parts); parts = []; }
  };
  const children = (node, depth) => {
    if (depth > MAX_DEPTH) { cut.add("nested too deeply"); return; }
    const root = node.shadowRoot || node;
    const list = root.localName === "slot" && root.assignedNodes().length ? root.assignedNodes() : root.childNodes;
    for (const child of list) {
      if (!over && ++nodes > MAX_NODES) over = cut.add(`more than ${MAX_NODES} nodes`);
      if (!over && nodes % 64 === 0 && performance.now() > until) over = cut.add(`not read within ${MAX_TIME / 1000} s`);
      if (over) return;
      if (child.nodeType === 3) {
        const text = child.length > MAX_TEXT - letters ? child.substringData(0, MAX_TEXT - letters) : child.data;
        if (text.length < child.length) cut.add(`more than ${MAX_TEXT} characters`);
        if ((parts.length || /\S/.test(text)) && seen(child.parentElement)) { parts.push(text); letters += text.length; }
      } else if (child.nodeType === 1) {
        const before = [parts, inLine, inLink];
        try { element(child, depth); } catch { [parts, inLine, inLink] = before; cut.add("an element that cannot be read"); }
      }
    }
  };
  const seen = e => !e || getComputedStyle(e).visibility === "visible";
  const block = (e, depth) => { breakLine(); children(e, depth); breakLine(); };
  const cell = (e, depth) => {
    const outer = inLine;
    inLine = true; parts.push(" ");
    children(e, depth);
    parts.push(" "); inLine = outer;
  };
  const split = list => [clean(list.filter(p => typeof p === "string").join("")), list.filter(p => typeof p !== "string")];

  const element = (given, depth) => {
    const e = plain(given), tag = e.tagName.toUpperCase();
    if (NOT_SHOWN.has(tag) || e.hidden || e.getAttribute("aria-hidden")?.trim().toLowerCase() === "true") return;
    const style = getComputedStyle(given);
    if (style.display === "none") return;
    depth += 1;
    const visible = style.visibility === "visible", role = (e.getAttribute("role") || "").trim().toLowerCase();
    if ((tag === "A" || tag === "AREA") && e.hasAttribute("href") && visible || tag === "BUTTON" && visible) return linkOrButton(given, depth);
    if (visible && (tag === "INPUT" || tag === "TEXTAREA")) return input(e);
    if (visible && tag === "SELECT") return select(e);
    if (visible && e.isContentEditable && !plain(e.parentElement)?.isContentEditable) return control(given, "textbox", "editable");
    if (visible && !inLink && (acts(e, style) || role === "button" || role === "link" || role === "tab" || role === "menuitem" || role === "option"))
      return linkOrButton(given, depth);
    if (visible && PLACED.has(role)) { control(given, role, role); return children(e, depth); }
    if (tag === "LABEL") return label(e, depth);
    if (tag === "IMG") { if (visible) parts.push(" ", e.getAttribute("alt") || "", " "); return; }
    if (tag === "FORM") { children(e, depth); return breakLine(); }   // begins no line: a search field stands beside the links
    if (tag === "TABLE") { const outer = inLine; inLine = false; block(e, depth); inLine = outer; return; }
    if (tag === "TD" || tag === "TH" || tag === "DD") return cell(e, depth);
    if (tag === "DT" || tag === "BR" || tag === "HR") { breakLine(); return cell(e, depth); }
    if (tag === "DETAILS" && !e.open) { for (const c of e.children) if (c.tagName === "SUMMARY") element(c, depth); return; }
    if (/^H[1-6]$/.test(tag)) return heading(e, tag, depth);
    if (BLOCKS.has(tag)) return block(e, depth);
    children(e, depth);
  };
  // Something that only a script makes clickable: a handler, or a hand as the cursor that it sets itself; the innermost of such.
  const USABLE = "a[href],button,input,select,textarea,[onclick],[data-clickable]";
  const acts = (e, style) => e.tagName !== "LABEL" && (
    e.hasAttribute("onclick") || e.hasAttribute("data-clickable") || e.tagName === "SUMMARY" ||
    style.cursor === "pointer" && e.parentElement && getComputedStyle(e.parentElement).cursor !== "pointer") &&
    !e.querySelector(USABLE);
  const heading = (e, tag, depth) => {
    breakLine();
    cell(e, depth);
    if (!inLine && !inLink && parts.some(p => typeof p !== "string" || /\S/.test(p))) parts.unshift("#".repeat(+tag[1]) + " ");
    breakLine();
  };
  const label = (e, depth) => {
    if (inLink) return children(e, depth);
    const outer = parts, before = elements.length;
    parts = [];
    cell(e, depth);
    const [text, rest] = split(parts);
    const inside = elements.slice(before).find(i => unnamed.has(i)), box = [text];
    labels.push([box, e.htmlFor, inside]);
    parts = outer;
    parts.push(box, ...rest);
  };
  const linkOrButton = (given, depth) => {
    const e = plain(given);
    if (inLink) return children(e, depth);
    const item = new Item(given, e.tagName === "A" || e.tagName === "AREA" || e.getAttribute("role") === "link" ? "link" : "button", "");
    if (item.role === "button") item.kind = e.tagName === "BUTTON" ? e.type : "button";
    number(item);
    const outer = parts;
    parts = []; inLink = true;
    children(e, depth);
    const [text, rest] = split(parts);
    parts = outer; inLink = false;
    item.name = short(e.getAttribute("aria-label")) || short(text) || short(e.getAttribute("title") || e.querySelector("img")?.alt || drawn(e) || item.role);
    if (item.number) parts.push(...rest); else parts.push(` ${text} `, ...rest);
  };
  const drawn = e => e.namespaceURI.endsWith("svg") ? `${e.getAttribute("fill") || e.style.fill || ""} ${e.localName}` : e.id || e.getAttribute("class") || "";
  const input = e => {
    let kind = e.tagName === "TEXTAREA" ? "textarea" : e.type;
    if (kind === "hidden") return;
    if (BUTTONS.has(kind)) {
      const item = new Item(e, "button", short(e.getAttribute("aria-label") || e.value || e.alt || (kind === "image" ? "submit" : kind)), kind);
      return number(item);
    }
    control(e, PLACED.has(kind) ? kind : kind === "file" ? "file" : "textbox", kind);
  };
  const select = e => control(e, "select", "");
  const control = (given, role, kind) => {
    const e = plain(given);
    const item = new Item(given, role, short(e.getAttribute("aria-label")), kind);
    if (!item.name) {
      item.name = short(e.getAttribute("placeholder") || e.getAttribute("name") || "");
      unnamed.add(item);
    }
    number(item);
  };
  const wrap = line => {
    const out = [];
    let current = [], length = 0, run = "";
    for (const part of [...line, null]) {
      if (typeof part === "string") { run += part; continue; }
      if (Array.isArray(part)) { run += ` ${part[0]} `; continue; }
      const text = clean(run), pieces = [];
      run = "";
      for (let i = 0; i < text.length; i += MAX_LINE) pieces.push(text.slice(i, i + MAX_LINE));
      if (part) pieces.push(part.show());
      for (const piece of pieces) {
        if (current.length && length + piece.length > MAX_LINE) { out.push(current.join(" ")); current = []; length = 0; }
        current.push(piece);
        length += piece.length + 1;
      }
    }
    if (current.length) out.push(current.join(" "));
    return out;
  };
  const read = () => {
    elements = []; unnamed = new Set(); labels = []; lines = []; parts = []; inLine = inLink = false; cut = new Set();
    nodes = letters = 0; over = false; until = performance.now() + MAX_TIME;
    if (page.body) element(page.body, 0);
    breakLine();
    const byId = new Map();
    if (labels.length) for (const item of elements) {
      const id = plain(item.element).id;
      if (!byId.has(id)) byId.set(id, item);
    }
    for (const [box, target, inside] of labels) {
      const item = target ? byId.get(target) : inside;
      if (item && unnamed.has(item) && box[0]) { unnamed.delete(item); item.name = short(box[0]); box[0] = ""; }
    }
    const text = lines.flatMap(wrap);
    if (!text.length) text.push("this page is empty");
    if (cut.size) text.push(`the page was cut here: ${[...cut].join(", ")}`);
    return text;
  };

  // What happened since the last look: a navigation that leaves the document, one that was refused, any change.
  let leaving = false, refused = "", changes = 0, moves = 0, seenMoves = 0, allowed = null;
  const watch = () => new MutationObserver(records => {
    changes += 1;
    if (records.some(r => r.attributeName === "style" && placed(r.oldValue) !== placed(r.target.getAttribute("style")))) moves += 1;
  }).observe(document, {subtree: true, childList: true, attributes: true, attributeOldValue: true, characterData: true});
  const placed = style => (style || "").split(";").filter(d => /height|width|top|left|right|bottom|opacity|margin|padding|transform/.test(d)).join();
  if (page.documentElement) watch(); else page.addEventListener("readystatechange", watch, {once: true});
  globalThis.navigation?.addEventListener("navigate", event => {
    const to = new URL(event.destination.url), site = `${to.hostname}:${to.port || (to.protocol === "https:" ? 443 : 80)}`;
    if (allowed && /^https?:$/.test(to.protocol) && !allowed.includes(site)) { refused = site; event.preventDefault(); return; }
    if (!event.destination.sameDocument && !event.hashChange && !event.defaultPrevented && event.downloadRequest === null && /^https?:$/.test(to.protocol)) leaving = true;
  });
  const tick = () => new Promise(done => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); });
  const loaded = () => new Promise(done => page.addEventListener("DOMContentLoaded", done, {once: true}));
  const frame = () => Promise.race([new Promise(requestAnimationFrame), new Promise(done => setTimeout(done, 50))]);
  // Two turns of the event loop without a change; where a script moved something, a frame without more of it; the end of
  // style sheets' own animations, unless they are endless.
  const still = async limit => {
    const end = performance.now() + limit, more = () => performance.now() < end && !leaving;
    for (let calm = 0, before = changes; calm < 2 && more();) {
      await tick();
      calm = changes === before ? calm + 1 : 0;
      before = changes;
    }
    while (moves !== seenMoves && more()) { seenMoves = moves; await frame(); await tick(); }
    const running = page.getAnimations().filter(a => a.playState === "running" && a.effect?.getComputedTiming().endTime < limit);
    if (running.length && more()) await Promise.race([Promise.allSettled(running.map(a => a.finished)), new Promise(d => setTimeout(d, end - performance.now()))]);
  };

  const hit = (e, x, y) => {
    const top = page.elementFromPoint(x, y);
    for (let n = top; n; n = plain(n).parentNode || n.host) if (n === e) return true;
    return top && e.labels && [...e.labels].some(l => l.contains(top)) || top === null;
  };
  const middle = e => {   // of its first box, or a place nearer to a corner, where a click would reach it
    const box = plain(e), r = [...box.getClientRects()].find(r => r.width && r.height) || box.getBoundingClientRect();
    for (const [u, v] of [[0.5, 0.5], [0.2, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.8]]) {
      const x = r.left + u * r.width, y = r.top + v * r.height;
      if (x >= 0 && y >= 0 && x < innerWidth && y < innerHeight && hit(e, x, y)) return {x, y};
    }
    return null;
  };
  const where = item => {
    let at = middle(item.element);
    if (!at) {   // outside of the screen or of a box that scrolls
      plain(item.element).scrollIntoView({block: "center", inline: "center", behavior: "instant"});
      at = middle(item.element);
    }
    return at ? {...at, takes_words: item.role === "textbox"} : `${item.role} [${item.number}] is covered by something else`;
  };
  const find = n => {
    const count = elements.length;
    if (!(n >= 1 && n <= count)) return `there is no element [${n}]; this page has ${count ? `1 to ${count}` : "none"}`;
    const item = elements[n - 1];
    if (!plain(item.element).isConnected) return `element [${n}] is not on the page any more`;
    return item.note === "disabled" ? `${item.role} [${n}] is disabled` : item;
  };

  globalThis.longstride = {
    // What is known of the document; `note` is what a page that is trusted adds. With `settle` a frame is waited for first:
    // what was fetched reaches the page's script some turns of the event loop after it arrived.
    async look(sites, limit, settle) {
      allowed = sites;
      if (page.readyState === "loading") await Promise.race([loaded(), new Promise(d => setTimeout(d, limit))]);
      if (settle) await frame();
      await still(limit);
      return longstride.read(sites, leaving);
    },
    // The same at once, wherever the document stands; without its lines where it is on the way out.
    read(sites, out) {
      allowed = sites;
      const timing = performance.getEntriesByType("navigation")[0];
      const answer = {leaving, refused, title: page.title.slice(0, MAX_LINE), url: location.href.slice(0, MAX_ADDRESS),
        status: timing?.responseStatus || 0, entry: globalThis.navigation?.currentEntry?.key || "", lines: out ? [] : read(),
        changes, nodes, note: (page.documentElement?.getAttribute("data-note") || "").slice(0, MAX_RAW)};
      refused = "";
      return answer;
    },
    stay() { leaving = false; },
    click(n) {
      const item = find(n);
      if (typeof item === "string") return item;
      if (item.role === "select") return `select [${n}] is set with: select [${n}] option`;
      if (item.role === "file") return `file [${n}] does nothing when clicked`;
      return where(item);
    },
    hover(n) { const item = find(n); return typeof item === "string" ? item : where(item); },
    fill(n, text) {
      const item = find(n);
      if (typeof item === "string") return item;
      if (item.role !== "textbox") return `[${n}] is a ${item.role}, not a textbox`;
      if (item.note) return `textbox [${n}] is ${item.note}`;
      const e = item.element;
      if (SET.has(item.kind)) {   // these have no text that keys could be typed into
        e.value = text;
        for (const kind of ["input", "change"]) e.dispatchEvent(new Event(kind, {bubbles: true}));
        return e.value ? "" : `textbox [${n}] does not take ${JSON.stringify(text.slice(0, 50))}; it is of the kind ${item.kind}`;
      }
      const at = where(item);
      return typeof at === "object" && e.matches(":focus") ? {...at, full: longstride.clear(n)} : at;
    },
    // Selects what is in a text field, so that the first key replaces it; whether there is anything.
    clear(n) {
      const e = elements[n - 1].element;
      if (page.activeElement !== e) e.focus();
      if (e.select) e.select(); else getSelection().selectAllChildren(e);
      return !!(e.value ?? e.textContent);
    },
    // Why Enter in a text field submits nothing, by HTML's implicit submission; "" where it does, null where it breaks a line.
    enter(n) {
      const {element: e, kind} = elements[n - 1];
      if (kind === "textarea" || kind === "editable") return null;
      if (!e.form) return `textbox [${n}] was filled, but Enter does nothing there`;
      const controls = [...plain(e.form).elements], button = controls.find(c => (c.type === "submit" || c.type === "image"));
      const fields = controls.filter(c => c.tagName === "INPUT" && !BUTTONS.has(c.type) && !PLACED.has(c.type) && c.type !== "hidden" && c.type !== "file");
      if (!button && fields.length > 1) return `textbox [${n}] was filled, but Enter does not submit this form`;
      return button?.matches(":disabled") ? `textbox [${n}] was filled, but the form's button is disabled` : "";
    },
    select(n, option) {
      const item = find(n);
      if (typeof item === "string") return item;
      if (item.role !== "select") return `[${n}] is a ${item.role}, not a select`;
      const e = item.element, wanted = clean(option).toLowerCase(), open = [...e.options].filter(o => !o.disabled);
      const found = open.find(o => short(o.label).toLowerCase() === wanted) || open.find(o => o.value.toLowerCase() === wanted);
      if (!found) {
        return `select [${n}] has no option '${wanted.slice(0, 50)}'; it has ${choices(e)}`;
      }
      found.selected = true;
      for (const kind of ["input", "change"]) e.dispatchEvent(new Event(kind, {bubbles: true}));
      return "";
    },
    adopt(n, given) {
      const e = plain(given), kind = e.tagName === "TEXTAREA" ? "textarea" : e.isContentEditable ? "editable" : e.type || "";
      const role = e.tagName === "SELECT" ? "select" : PLACED.has(kind) ? kind : kind === "file" ? "file" :
        e.tagName === "TEXTAREA" || e.isContentEditable || e.tagName === "INPUT" && !BUTTONS.has(kind) ? "textbox" : e.tagName === "A" ? "link" : "button";
      elements.length = Math.max(elements.length, n);
      elements[n - 1] = Object.assign(new Item(given, role, "", kind), {number: n});
    },
    // Draws the numbers over their elements, for a screenshot; `unmark` takes them off again.
    mark() {
      const layer = page.createElement("longstride-marks");
      layer.style.cssText = "all:initial;position:fixed;inset:0;pointer-events:none;z-index:2147483647";
      const root = layer.attachShadow({mode: "closed"});
      for (const item of elements) {
        const r = plain(item.element).getBoundingClientRect();
        if (!r.width || !r.height || r.bottom < 0 || r.top > innerHeight || r.right < 0 || r.left > innerWidth) continue;
        const box = page.createElement("div"), tag = page.createElement("div");
        box.style.cssText = `position:fixed;box-sizing:border-box;left:${r.left}px;top:${r.top}px;width:${r.width}px;height:${r.height}px;border:2px solid #d0021b`;
        tag.style.cssText = `position:fixed;left:${Math.max(r.left, 0)}px;top:${Math.max(r.top - 14, 0)}px;padding:0 3px;background:#d0021b;color:#fff;font:bold 11px/14px sans-serif`;
        tag.textContent = item.number;
        root.append(box, tag);
      }
      page.documentElement.append(layer);
      layer.getBoundingClientRect();
    },
    unmark() { page.querySelector("longstride-marks")?.remove(); },
  };
})();
