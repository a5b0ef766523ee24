// The episode viewer: one task, before and after training, step by step. Page texts and model output are untrusted: text nodes only.
const OUTCOMES = { gained: "solved only after", lost: "solved only before", solved: "solved", unsolved: "not solved" };

// Which lines of `now` are not in `old`: the longest common subsequence, after common ends are cut off. Pages are at most 160 lines.
function addedLines(old, now) {
  let start = 0, end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const a = old.slice(start, old.length - end), b = now.slice(start, now.length - end);
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const added = new Set();
  let i = 0, j = 0;
  while (j < b.length) {
    if (i < a.length && a[i] === b[j]) { i++; j++; }
    else if (i < a.length && best[i + 1][j] >= best[i][j + 1]) i++;
    else added.add(start + j++);
  }
  return { added, removed: a.length - (b.length - added.size) };
}

// A line with the element `[n]` marked: its name is what stands between the number before it and its own.
function lineParts(line, element) {
  const tag = `[${element}]`, at = line.indexOf(tag);
  if (element === null || at < 0) return [line];
  const before = line.slice(0, at), cut = before.match(/^.*\[\d+\]\s*/), from = cut ? cut[0].length : before.length - before.trimStart().length;
  return [line.slice(0, from), html("mark", {}, line.slice(from, at + tag.length)), line.slice(at + tag.length)];
}

function pageView(episode, index) {
  const turn = episode.turns[index], now = DATA.episodes.pages[turn.page].split("\n");
  const old = index ? DATA.episodes.pages[episode.turns[index - 1].page].split("\n") : null;
  const change = old ? addedLines(old, now) : { added: new Set(), removed: 0 };
  const node = html("div", { class: "page scroll", tabindex: 0, "aria-label": "What the agent sees" }, now.map((line, i) =>
    html("div", change.added.has(i) ? { class: "added", title: "new since the step before" } : {}, lineParts(line, turn.element))));
  if (turn.cut) node.append(html("div", { class: "quiet" }, "(the rest of the page is left out of this report)"));
  if (!now.join("").trim()) return html("p", { class: "label" }, "nothing is shown but the task");
  const told = !old ? "first page" : change.added.size || change.removed ? `${change.added.size} new, ${change.removed} gone since the step before` : "same page as before";
  return html("div", {}, html("p", { class: "label" }, turn.url ? `${turn.url}: ${told}` : told), node);
}

function paneView(side, episode, step, go) {
  const last = episode.turns.length - 1, index = Math.min(step, last), turn = episode.turns[index];
  const steps = `${episode.turns.length} step${last ? "s" : ""} of ${episode.horizon}`;
  const verdict = episode.failed ? ["grey", "infrastructure failure"] : episode.success ? ["green", "\u2713 success"] : ["vermilion", "\u2717 no success"];
  const head = html("header", {}, html("h3", {}, side === "before" ? "Before training" : "After training"),
    html("span", { class: `badge ${verdict[0]}` }, verdict[1]), html("span", { class: "quiet" }, `${episode.stop}, ${steps}`));
  const facts = [["expected", episode.expected ?? "not told"], ["given", episode.given ?? "no answer"], ["reward", short(episode.reward)], ...episode.evidence];
  const result = html("dl", { class: "result" }, facts.flatMap(([key, value]) => [html("dt", {}, key), html("dd", {}, value)]));
  if (!turn) return html("article", { class: "pane" }, head, html("p", { class: "quiet" }, "No step was taken."), result);
  const onPage = turn.element === null || DATA.episodes.pages[turn.page].includes(`[${turn.element}]`);
  const trail = html("ol", { class: "trail", "aria-label": "All actions" }, episode.turns.map((t, i) => html("li", {}, html("button", {
    type: "button", class: t.parsed ? null : "bad", "aria-current": i === index ? "step" : null, title: t.said, onclick: () => go(i),
  }, `${i + 1}  ${t.said || "(nothing)"}`))));
  const said = html("div", { class: "said" },
    html("div", {}, html("p", { class: "label" }, "thought"), html("p", {}, turn.thought || "(none)")),
    html("div", {}, html("p", { class: "label" }, "action"), html("code", {}, turn.said || "(nothing)"),
      turn.parsed ? null : html("p", { class: "warn" }, "could not be parsed"),
      turn.error ? html("p", { class: "warn" }, turn.error) : null,
      onPage ? null : html("p", { class: "warn" }, turn.cut ? "element is not in the part shown" : "no such element on this page")),
    html("div", {}, html("p", { class: "label" }, `step ${index + 1} of ${last + 1}`), trail));
  return html("article", { class: "pane" }, head, html("div", { class: "step" }, pageView(episode, index), said), result);
}

function showViewer(host) {
  const { tasks, of } = DATA.episodes;
  if (!tasks.length) { host.append(html("p", { class: "quiet" }, "Episodes appear after the first evaluation.")); return; }
  const state = { task: tasks.find((task) => task.outcome === "gained") || tasks[0], step: 0, show: matchMedia("(min-width: 860px)").matches ? "both" : "after" };
  const sides = (task) => ["before", "after"].filter((side) => task[side]);
  const shown = () => (state.show === "both" || !state.task[state.show] ? sides(state.task) : [state.show]);
  const length = () => Math.max(1, ...shown().map((side) => state.task[side].turns.length));

  function filter(name, key, labels) {
    const counts = {};
    for (const task of tasks) counts[task[key]] = (counts[task[key]] || 0) + 1;
    const options = Object.keys(labels).filter((k) => counts[k]).map((k) => html("option", { value: k }, `${labels[k]} (${counts[k]})`));
    const select = html("select", { onchange: refill }, html("option", { value: "" }, `all (${tasks.length})`), options);
    return { select, label: html("label", {}, name, select), fits: (task) => !select.value || task[key] === select.value };
  }
  const filters = [filter("outcome", "outcome", OUTCOMES), filter("difficulty", "difficulty", { easy: "easy", medium: "medium", hard: "hard" })];
  const chooser = html("select", { onchange: () => { state.task = tasks[+chooser.value]; state.step = 0; draw(); } });
  const back = html("button", { type: "button", onclick: () => go(state.step - 1) }, "\u2190 back");
  const next = html("button", { type: "button", onclick: () => go(state.step + 1) }, "next \u2192");
  const count = html("span", { class: "count", "aria-live": "polite" });
  const slider = html("input", { type: "range", min: 0, "aria-label": "Step", oninput: () => go(+slider.value) });
  const views = ["both", "before", "after"].map((name) => html("button", { type: "button", onclick: () => { state.show = name; go(state.step); } }, name));
  const choice = html("div", { class: "bar-row", role: "group", "aria-label": "Episodes shown" }, views);
  const goal = html("p", { class: "goal" }), facts = html("p", { class: "quiet" }), panes = html("div", { class: "panes" });

  function go(step) {
    state.step = Math.min(length() - 1, Math.max(0, step));
    draw();
  }
  function refill() {
    const kept = tasks.map((task, i) => [task, i]).filter(([task]) => filters.every((f) => f.fits(task)));
    chooser.replaceChildren(...kept.map(([task, i]) => html("option", { value: i }, `${i + 1}. ${task.goal.slice(0, 70)}`)));
    chooser.disabled = !kept.length;
    if (!kept.length) chooser.append(html("option", {}, "none fits both"));
    if (kept.length && !kept.some(([task]) => task === state.task)) [state.task, state.step] = [kept[0][0], 0];
    if (kept.length) chooser.value = tasks.indexOf(state.task);
    draw();
  }
  function draw() {
    const task = state.task;
    goal.replaceChildren(task.goal);
    const best = task.optimal ? `, ${task.optimal} steps at best` : "";
    facts.replaceChildren(`${task.difficulty}, ${task.source}${best}; ${OUTCOMES[task.outcome]}`);
    slider.max = length() - 1;
    slider.value = state.step;
    count.replaceChildren(`step ${state.step + 1} of ${length()}`);
    back.disabled = state.step === 0;
    next.disabled = state.step === length() - 1;
    choice.hidden = sides(task).length < 2;
    views.forEach((view, i) => view.setAttribute("aria-pressed", String(["both", "before", "after"][i] === state.show)));
    const held = [...panes.querySelectorAll(".trail")].findIndex((trail) => trail.contains(document.activeElement));
    panes.replaceChildren(...shown().map((side) => paneView(side, task[side], state.step, go)));
    for (const box of panes.querySelectorAll(".page, .trail")) {
      const target = box.querySelector("mark, [aria-current]");
      if (target) box.scrollTop = target.offsetTop - box.clientHeight / 2;
    }
    if (held >= 0) panes.querySelectorAll(".trail")[held]?.querySelector("[aria-current]")?.focus({ preventScroll: true });
  }
  const intro = tasks.length < of ? `${tasks.length} of ${of} evaluation tasks, spread over outcomes and difficulties (so not a sample to take rates from). ` : "";
  host.append(html("p", { class: "quiet" }, intro + "The element an action refers to is highlighted; lines marked + are new since the step before. Arrow keys step."),
    html("div", { class: "bar-row" }, filters.map((f) => f.label), html("label", {}, "task", chooser)),
    goal, facts, html("div", { class: "bar-row" }, back, count, next, slider, choice), panes);
  refill();
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input, svg, .page, table, pre")) return;
    const frame = host.getBoundingClientRect();
    if (frame.top > innerHeight * 0.75 || frame.bottom < innerHeight * 0.25) return;
    event.preventDefault();
    go(state.step + step);
  });
}
showViewer(document.getElementById("viewer"));
