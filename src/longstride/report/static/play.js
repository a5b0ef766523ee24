// The policy in the page: many episodes drawn as they run, and one that is stepped through, edited and forked. Text nodes only.
"use strict";

const percent = (v) => `${Math.round(100 * v)} %`;

// Wilson's 95 % interval of a share.
function wilson(done, n) {
  if (!n) return [0, 1];
  const z = 1.959964, p = done / n, middle = p + (z * z) / (2 * n), half = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n)), whole = 1 + (z * z) / n;
  return [Math.max(0, (middle - half) / whole), Math.min(1, (middle + half) / whole)];
}

function slider(label, attributes, told) {
  const input = html("input", { type: "range", ...attributes }), value = html("output", { class: "count" });
  const tell = () => value.replaceChildren(told(+input.value));
  input.addEventListener("input", tell);
  tell();
  return { input, node: html("label", { class: "dial" }, html("span", {}, label), input, value) };
}

// Many episodes of all tasks, of each policy in turn, a turn of one episode at a time so that the page stays awake.
function showMany(host, data, agents, tasks, sampling) {
  const most = data.horizon, results = agents.map(() => []), hues = [["orange", "square"], ["blue", "circle"]].slice(-agents.length);
  const chart = html("div"), told = html("p", { class: "quiet", role: "status" }), figure = html("figure", { class: "wide" }, chart), tip = makeTip(figure);
  const horizon = slider("horizon", { min: 1, max: most, value: most }, (v) => `${v} turn${v > 1 ? "s" : ""}`);
  const run = html("button", { type: "button", onclick: () => (timer ? stop() : start()) }, "Play episodes");
  let timer = 0, walk = null, count = 0;

  const share = (found, h) => found.filter((r) => r.success && r.length <= h).length;
  function draw() {
    const at = +horizon.input.value, width = Math.round(figure.clientWidth);
    const series = agents.map((agent, k) => ({
      name: agent.name, hue: hues[k][0], mark: "", dash: "", step: false,
      points: Array.from({ length: most }, (_, i) => i + 1).map((h) => {
        const done = share(results[k], h), [lo, hi] = wilson(done, results[k].length);
        return { x: [h], y: results[k].length ? done / results[k].length : 0, lo, hi };
      }),
    })).filter((_, k) => results[k].length);
    told.replaceChildren(series.length ? agents.map((agent, k) => {
      const n = results[k].length, done = share(results[k], at), [lo, hi] = wilson(done, n);
      return n ? `${agent.name}: ${percent(done / n)} [${percent(lo)}, ${percent(hi)}] of ${n} episodes within ${at} turn${at > 1 ? "s" : ""}` : "";
    }).filter(Boolean).join(". ") + "." : "Nothing was played yet.");
    tip.hide();
    if (!width) return;
    const plot = { title: "Success by horizon, played in this tab", axes: ["turns"], y: "success", series, rules: [], share: true, free: false, wide: true };
    const drawn = series.length ? lineChart(plot, 0, width, tip) : [];
    chart.replaceChildren(...drawn.filter(Boolean));
  }
  function next() {
    const k = count % agents.length, episode = Math.floor(count / agents.length), task = tasks[episode % tasks.length];
    count++;
    return Object.assign(new Walk(agents[k], task, most, sampling(), 1 + Math.floor(episode / tasks.length)), { place: k });
  }
  function work() {
    const end = performance.now() + 24;
    let ended = false;
    do {
      walk = walk || next();
      walk.step();
      if (walk.stop) {
        results[walk.place].push({ success: walk.success, length: walk.turns.length });
        walk = null;
        ended = true;
      }
    } while (performance.now() < end);
    if (ended) draw();
    timer = requestAnimationFrame(work);
  }
  function start() { run.replaceChildren("Pause"); timer = requestAnimationFrame(work); }
  function stop() { cancelAnimationFrame(timer); timer = 0; run.replaceChildren("Go on"); }
  function reset() {
    results.forEach((found) => found.splice(0));
    [walk, count] = [null, 0];
    draw();
  }
  horizon.input.addEventListener("input", draw);
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(figure);
  host.append(html("h3", {}, "Many episodes"), html("div", { class: "bar-row" }, run, horizon.node), told, figure);
  return { reset, results };
}

// What a turn said, a word a button; pressed, it shows what else could have been said there.
function saidView(turn, agent) {
  const others = html("p", { class: "quiet", role: "status" }, "Press a word to see what else it could have said there.");
  const words = turn.tokens.map((token) => {
    const chance = token.chances[token.id], word = agent.words.words[token.id];
    const chip = html("button", { type: "button", class: "chip", title: `probability ${chance.toFixed(3)}`, onclick: () => {
      const best = Array.from(token.chances.keys()).sort((a, b) => token.chances[b] - token.chances[a]).slice(0, 5);
      others.replaceChildren(best.map((id) => `${agent.words.words[id]} ${token.chances[id].toFixed(3)}`).join("   "));
    } }, word);
    chip.style.borderBottomWidth = `${1 + Math.round(5 * chance)}px`;
    return chip;
  });
  return html("div", {}, html("p", { class: "label" }, "says (a thicker line: a likelier word)"), html("div", { class: "chips" }, words), others);
}

function showOne(host, data, agents, tasks, sampling) {
  const panes = html("div", { class: "panes" });
  const chooser = html("select", { onchange: restart }, tasks.map((task, k) => html("option", { value: k }, `${k + 1}: ${task.distance ? `goal distance ${task.distance}` : task.goal}`)));
  const again = html("button", { type: "button", onclick: () => { seed++; restart(); } }, "Another sample");
  const both = html("button", { type: "button", onclick: () => { walks.forEach((w) => w.stop || w.step()); follow(); } }, "Step all");
  const end = html("button", { type: "button", onclick: () => { walks.forEach((w) => w.play()); follow(); } }, "All to the end");
  let walks = [], shown = [], names = [], seed = 1;

  function restart() {
    walks = agents.map((agent) => new Walk(agent, tasks[+chooser.value], data.horizon, sampling(), seed));
    names = agents.map((agent) => agent.name);
    follow();
  }
  function follow() { shown = walks.map((w) => w.turns.length); draw(); }
  function pane(w, i) {
    const k = shown[i], newest = k === w.turns.length && !w.stop, turn = w.turns[k - (k === w.turns.length && w.stop ? 1 : 0)];
    const at = newest ? k : w.turns.indexOf(turn);
    const badge = !w.stop ? ["grey", "under way"] : w.success ? ["green", "\u2713 success"] : ["vermilion", `\u2717 ${w.stop === "answered" ? "wrong answer" : "out of turns"}`];
    const page = html("textarea", { class: "page", rows: 9, spellcheck: "false", "aria-label": "What it sees", readonly: !newest });
    page.value = w.seen[at];
    page.addEventListener("input", () => w.see(page.value));
    const buttons = [
      html("button", { type: "button", disabled: Boolean(w.stop), onclick: () => { w.step(); shown[i] = w.turns.length; draw(); } }, "Step"),
      html("button", { type: "button", disabled: Boolean(w.stop), onclick: () => { w.play(); shown[i] = w.turns.length; draw(); } }, "To the end"),
      html("button", { type: "button", onclick: () => {
        walks.push(w.fork(at));
        names.push(`${names[i].replace(/ \(.*/, "")} (fork at turn ${at + 1})`);
        shown.push(at);
        draw();
      } }, "Fork here"),
    ];
    if (i >= agents.length) buttons.push(html("button", { type: "button", onclick: () => { for (const list of [walks, names, shown]) list.splice(i, 1); draw(); } }, "Remove"));
    const trail = html("ol", { class: "trail", "aria-label": "All actions" }, w.turns.map((t, n) => html("li", {}, html("button", {
      type: "button", class: t.action === null || t.error ? "bad" : null, "aria-current": n === at ? "step" : null, onclick: () => { shown[i] = n; draw(); },
    }, `${n + 1}  ${t.text.slice(t.text.lastIndexOf("Action:") + 7).trim() || "(nothing)"}`))),
      w.stop ? null : html("li", {}, html("button", { type: "button", "aria-current": newest ? "step" : null, onclick: () => { shown[i] = w.turns.length; draw(); } }, `${w.turns.length + 1}  \u2026`)));
    return html("article", { class: "pane" },
      html("header", {}, html("h4", {}, names[i]), html("span", { class: `badge ${badge[0]}` }, badge[1]), html("span", { class: "quiet" }, `${w.turns.length} of ${w.horizon} turns`)),
      html("p", { class: "label" }, newest ? "sees; change it and step to see what it does then" : "saw"), page,
      html("div", { class: "bar-row" }, buttons), newest ? null : saidView(turn, w.agent), trail);
  }
  function draw() {
    panes.replaceChildren(...walks.map(pane));
    for (const trail of panes.querySelectorAll(".trail")) {
      const current = trail.querySelector("[aria-current]");
      if (current) trail.scrollTop = current.offsetTop - trail.clientHeight / 2;
    }
  }
  host.append(html("h3", {}, "One episode"), html("div", { class: "bar-row" }, html("label", {}, "task", chooser), both, end, again), panes);
  restart();
  return { restart };
}

function showPlay(host) {
  const data = DATA.play;
  if (!data) { host.hidden = true; return null; }
  if (data.why) { host.append(html("p", { class: "quiet" }, data.why)); return null; }
  const agents = data.policies.map((policy) => agentOf(data, policy)), tasks = tasksOf(data);
  const temperature = slider("temperature", { min: 0, max: 2, step: 0.1, value: data.sampling.temperature }, (v) => (v ? v.toFixed(1) : "0 (greedy)"));
  const sampling = () => ({ ...data.sampling, temperature: +temperature.input.value });
  const rounding = data.rounding ? `which changes log-probabilities of likely words in first turns by ${data.rounding.toPrecision(1)} at most` : "exactly as they are";
  const left = data.left_out.length ? ` There was no room for: ${data.left_out.join(", ")}.` : "";
  host.append(html("p", { class: "quiet" }, `This page carries ${data.policies.length > 1 ? "the policies" : "the policy"} and ${tasks.length} held-out tasks; all is computed in this tab, and nothing leaves it. Weights are in half precision, ${rounding}.${left}`),
    html("div", { class: "bar-row" }, temperature.node));
  const parts = html("div"), single = html("div");
  host.append(parts, single);
  const many = showMany(parts, data, agents, tasks, sampling), one = showOne(single, data, agents, tasks, sampling);
  temperature.input.addEventListener("change", () => { many.reset(); one.restart(); });
  return { agents, tasks, many };
}
const PLAY = showPlay(document.getElementById("play"));
