// Draws the figures of `figures.py` as SVG. Texts enter as text nodes and attributes only. Inline styles are forbidden by the
// page's content security policy, so that looks are classes; positions of tips are set through the style object.
"use strict";
const NS = document.querySelector("svg").namespaceURI;
const DATA = JSON.parse(document.getElementById("data").textContent);

function build(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const html = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => build(document.createElementNS(NS, tag), attributes, children);

function short(v) {
  const size = Math.abs(v);
  if (size >= 1e6) return +(v / 1e6).toPrecision(3) + "M";
  if (size >= 1e3) return +(v / 1e3).toPrecision(3) + "k";
  return String(+v.toPrecision(3));
}

// Round places between lo and hi, about `count` of them: steps of 1, 2 or 5 times a power of ten.
function ticks(lo, hi, count, whole) {
  const raw = (hi - lo) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const places = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i++) places.push(+(i * step).toPrecision(12));
  return places;
}

const SHAPES = {
  circle: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  square: (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  triangle: (x, y, r) => `M${x},${y - r * 1.2}l${r * 1.2},${r * 2.1}h${-2.4 * r}z`,
};

function swatch(series) {
  return svg("svg", { width: 26, height: 12, class: series.hue, "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 26, y1: 6, y2: 6, class: series.rule ? "baseline" : "line", "stroke-dasharray": series.dash || null }),
    series.mark ? svg("path", { d: SHAPES[series.mark](13, 6, 3.5), class: "dot" }) : null);
}

// Moves labels apart so that none covers another, keeping their order and staying above `floor`.
function spread(labels, gap, floor) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => { label.at = i ? Math.max(label.y, labels[i - 1].at + gap) : label.y; });
  for (let i = labels.length - 1; i >= 0; i--) {
    labels[i].at = Math.min(labels[i].at, i === labels.length - 1 ? floor : labels[i + 1].at - gap);
  }
}

function lineChart(figure, axis, width, tip) {
  const points = (s) => s.points.map((p) => ({ ...p, x: p.x[axis] })).filter((p) => p.x !== null);
  const all = figure.series.map((s) => ({ ...s, points: points(s) })).filter((s) => s.points.length);
  const flat = all.flatMap((s) => s.points);
  if (!flat.length) return null;
  const beside = width >= 440;
  const names = [...all.map((s) => s.name), ...figure.rules.map((r) => `${r.name} ${r.y.toFixed(2)}`)];
  const right = beside ? 20 + 7.5 * Math.max(...names.map((n) => Math.min(n.length, 26))) : 12;
  const height = Math.round(Math.min(figure.wide ? 380 : 270, Math.max(230, width * 0.6)));
  const box = { left: 50, right: width - right, top: 10, bottom: height - 42 };
  let [x0, x1] = [Math.min(...flat.map((p) => p.x)), Math.max(...flat.map((p) => p.x))];
  if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
  const ys = flat.flatMap((p) => [p.y, p.lo ?? p.y, p.hi ?? p.y]).concat(figure.rules.map((r) => r.y));
  let [y0, y1] = [figure.free ? Math.min(...ys) : Math.min(0, ...ys), Math.max(...ys)];
  if (y0 === y1) y1 = y0 + (figure.share ? 0.1 : 1);
  y1 += (y1 - y0) * 0.06;
  if (figure.free) y0 -= (y1 - y0) * 0.06;
  if (figure.share) y1 = Math.min(1, Math.max(y1, 0.05));
  if (!figure.free) {  // up to a number that is written, so that no line begins above them
    const places = ticks(y0, y1, 5), top = 2 * places.at(-1) - places.at(-2);
    if (places.at(-1) < Math.max(...ys)) y1 = figure.share ? Math.min(1, top) : top;
  }
  box.left = Math.max(50, 26 + 6.6 * Math.max(...ticks(y0, y1, 5).map((v) => short(v).length)));  // the name stands beside the numbers
  const X = (v) => box.left + ((v - x0) / (x1 - x0)) * (box.right - box.left);
  const Y = (v) => box.bottom - ((v - y0) / (y1 - y0)) * (box.bottom - box.top);

  const summary = all.map((s) => `${s.name} ${short(s.points[0].y)} to ${short(s.points.at(-1).y)}`).join("; ");
  const plot = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0,
    "aria-label": `${figure.title} against ${figure.axes[axis]}: ${summary}` });
  for (const v of ticks(y0, y1, 5)) {
    plot.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: Y(v), y2: Y(v) }),
      svg("text", { x: box.left - 7, y: Y(v) + 4, "text-anchor": "end" }, short(v)));
  }
  const counted = figure.axes[axis] !== "minutes";
  for (const v of ticks(x0, x1, Math.max(2, Math.floor((box.right - box.left) / 75)), counted)) {
    plot.append(svg("line", { class: "axis", x1: X(v), x2: X(v), y1: box.bottom, y2: box.bottom + 4 }),
      svg("text", { x: X(v), y: box.bottom + 18, "text-anchor": "middle" }, short(v)));
  }
  const middle = (box.top + box.bottom) / 2;
  plot.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg("text", { x: (box.left + box.right) / 2, y: height - 5, "text-anchor": "middle" }, figure.axes[axis]),
    svg("text", { x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, figure.y));

  const labels = [];
  for (const rule of figure.rules) {
    plot.append(svg("line", { class: "baseline", x1: box.left, x2: box.right, y1: Y(rule.y), y2: Y(rule.y) }));
    labels.push({ y: Y(rule.y), text: `${rule.name} ${rule.y.toFixed(2)}`, hue: null });
  }
  for (const s of all) {
    const group = svg("g", { class: s.hue });
    const banded = s.points.filter((p) => p.lo !== null);
    if (banded.length > 1) {
      const edge = (ps, key) => ps.map((p) => `${X(p.x)},${Y(p[key])}`).join("L");
      group.append(svg("path", { class: "band", d: `M${edge(banded, "lo")}L${edge([...banded].reverse(), "hi")}Z` }));
    }
    const half = s.points.length > 1 ? (s.points[1].x - s.points[0].x) / 2 : 0.5;
    const at = (v) => Math.min(box.right, Math.max(box.left, X(v)));
    const d = s.step
      ? s.points.map((p, i) => `${i ? "L" : "M"}${at(p.x - half)},${Y(p.y)}H${at(p.x + half)}`).join("")
      : "M" + s.points.map((p) => `${X(p.x)},${Y(p.y)}`).join("L");
    group.append(svg("path", { class: "line", d, "stroke-dasharray": s.dash || null }));
    if (s.mark) {
      const r = s.points.length > 40 ? 2 : 3.5;
      for (const p of s.points) group.append(svg("path", { class: "dot", d: SHAPES[s.mark](X(p.x), Y(p.y), r) }));
    }
    plot.append(group);
    labels.push({ y: Y(s.points.at(-1).y), text: s.name, hue: s.hue, bold: true });
  }
  if (beside) {
    spread(labels, 15, box.bottom);
    for (const label of labels) {
      plot.append(svg("line", { class: "leader", x1: box.right + 2, x2: box.right + 10, y1: label.y, y2: label.at }),
        svg("text", { class: label.bold ? `name ${label.hue}` : null, x: box.right + 13, y: label.at + 4 }, label.text.slice(0, 26)));
    }
  }
  const guide = svg("line", { class: "guide", y1: box.top, y2: box.bottom });
  plot.append(guide);
  const places = [...new Set(flat.map((p) => p.x))].sort((a, b) => a - b);
  let current = -1;
  function point(index) {
    current = Math.min(places.length - 1, Math.max(0, index));
    const x = places[current];
    guide.setAttribute("x1", X(x));
    guide.setAttribute("x2", X(x));
    guide.style.visibility = "visible";
    const rows = all.map((s) => [s, s.points.filter((p) => p.x === x).at(-1)]).filter(([, p]) => p);
    tip.show(plot, X(x), box.top + 6, [`${figure.axes[axis]} ${short(x)}`], rows.map(([s, p]) => [s.hue, s.name,
      short(p.y) + (p.lo === null ? "" : `  [${p.lo.toFixed(2)}, ${p.hi.toFixed(2)}]`)]));
  }
  function leave() { guide.style.visibility = "hidden"; tip.hide(); current = -1; }
  plot.addEventListener("pointermove", (event) => {
    const x = event.clientX - plot.getBoundingClientRect().left;
    let best = 0;
    places.forEach((v, i) => { if (Math.abs(X(v) - x) < Math.abs(X(places[best]) - x)) best = i; });
    point(best);
  });
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    point(current < 0 ? places.length - 1 : current + (event.key === "ArrowRight" ? 1 : -1));
  });
  const rules = figure.rules.map((r) => ({ name: `${r.name} ${r.y.toFixed(2)}`, hue: "grey", rule: true }));
  return [beside ? null : legend([...all, ...rules], swatch), plot];
}

function legend(series, sample) {
  return html("div", { class: "legend" }, series.map((s) => html("span", {}, sample(s), s.name)));
}

function barChart(figure, width, tip) {
  const thick = 13, gap = 11, rows = figure.categories.length, each = figure.series.length * thick + gap;
  const box = { left: 16 + 6.6 * Math.min(18, Math.max(...figure.categories.map((c) => c.length))), right: width - 46, bottom: rows * each + 4 };
  const height = box.bottom + 40, most = Math.max(...figure.series.flatMap((s) => s.values), 0.01);
  const X = (v) => box.left + (v / most) * (box.right - box.left);
  const summary = figure.categories.map((c, i) => `${c} ${figure.series.map((s) => `${s.values[i].toFixed(2)} ${s.name}`).join(", ")}`);
  const plot = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `${figure.title}: ${summary.join("; ")}` });
  for (const v of ticks(0, most, width < 420 ? 3 : 5)) {
    plot.append(svg("line", { class: "grid", x1: X(v), x2: X(v), y1: 0, y2: box.bottom }),
      svg("text", { x: X(v), y: box.bottom + 15, "text-anchor": "middle" }, short(v)));
  }
  figure.categories.forEach((category, i) => {
    const top = i * each + gap / 2;
    plot.append(svg("text", { x: box.left - 8, y: top + (figure.series.length * thick) / 2 + 4, "text-anchor": "end" }, category.slice(0, 18)));
    figure.series.forEach((s, j) => {
      const y = top + j * thick, value = s.values[i];
      plot.append(svg("g", { class: s.hue }, svg("rect", { class: "fill", x: box.left, y, height: thick - 2, width: Math.max(0.5, X(value) - box.left) }),
        svg("text", { class: "bar", x: X(value) + 5, y: y + thick - 4 }, value.toFixed(2))));
    });
    const area = svg("rect", { x: 0, y: i * each, width, height: each, fill: "transparent" });
    area.addEventListener("pointermove", () => tip.show(plot, box.right - 150, i * each + each, [category],
      figure.series.map((s) => [s.hue, s.name, `${s.values[i].toFixed(3)}  (${short(s.counts[i])})`])));
    area.addEventListener("pointerleave", () => tip.hide());
    plot.append(area);
  });
  plot.append(svg("line", { class: "axis", x1: box.left, x2: box.left, y1: 0, y2: box.bottom }),
    svg("text", { x: (box.left + box.right) / 2, y: height - 5, "text-anchor": "middle" }, figure.x));
  const sample = (s) => svg("svg", { width: 12, height: 12, class: s.hue, "aria-hidden": "true" }, svg("rect", { class: "fill", width: 12, height: 12 }));
  return [legend(figure.series, sample), plot];
}

// Ways in a plane: one scale for both directions, y upward.
function pathChart(figure, width) {
  const points = figure.paths.flatMap((p) => [...p.points, ...(p.goal ? [p.goal] : [])]);
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
  const [x0, y0] = [Math.min(...xs), Math.min(...ys)];
  const [wide, high] = [Math.max(...xs) - x0 || 1, Math.max(...ys) - y0 || 1];
  const margin = 14, scale = Math.min((width - 2 * margin) / wide, (380 - 2 * margin) / high), height = Math.round(high * scale + 2 * margin);
  const X = (v) => margin + (v - x0) * scale, Y = (v) => height - margin - (v - y0) * scale;
  const summary = figure.paths.map((p) => `${p.name} ${p.solved ? "reached" : "not reached"}`).join("; ");
  const plot = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${figure.title}: ${summary}` });
  for (const p of figure.paths) {
    const [x, y] = p.points[0], group = svg("g", { class: p.hue });
    group.append(svg("path", { class: "line", d: "M" + p.points.map((q) => `${X(q[0])},${Y(q[1])}`).join("L") }),
      svg("path", { class: "dot", d: SHAPES[p.mark](X(x), Y(y), 4) }));
    if (p.goal) {
      const ring = SHAPES.circle(X(p.goal[0]), Y(p.goal[1]), 7);
      group.append(svg("path", p.solved ? { class: "dot", d: ring } : { class: "line", fill: "none", d: ring }));
    }
    plot.append(group);
  }
  return [legend(figure.paths, swatch), plot];
}

// Shares of the cells of a plane, y upward: the darker the more, by the root, so that rare cells are seen too.
function mapChart(figure, width, tip) {
  const columns = figure.rows[0].length, most = Math.max(...figure.rows.flat());
  const margin = { left: 50, right: 14, bottom: 30, top: 8 }, side = Math.min(width - margin.left - margin.right, 340);
  const [wide, high] = [side / columns, side / figure.rows.length], height = side + margin.top + margin.bottom;
  const plot = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${figure.title}: ${figure.caption}` });
  const at = (axis, k, count) => short(figure.low[axis] + ((figure.high[axis] - figure.low[axis]) * k) / count);
  figure.rows.forEach((row, j) => row.forEach((share, i) => {
    const [x, y] = [margin.left + i * wide, margin.top + side - (j + 1) * high];
    const cell = svg("rect", { class: "fill", x, y, width: wide, height: high, "fill-opacity": Math.sqrt(share / most).toFixed(3) });
    cell.addEventListener("pointermove", () => tip.show(plot, x + wide, y, [`${at(0, i, columns)} to ${at(0, i + 1, columns)}, ${at(1, j, figure.rows.length)} to ${at(1, j + 1, figure.rows.length)}`],
      [["blue", "share", share.toPrecision(3)]]));
    cell.addEventListener("pointerleave", () => tip.hide());
    plot.append(svg("g", { class: "blue" }, cell));
  }));
  const [bottom, right] = [margin.top + side, margin.left + side];
  plot.append(svg("rect", { class: "axis", x: margin.left, y: margin.top, width: side, height: side, fill: "none", "pointer-events": "none" }),
    svg("text", { x: margin.left, y: bottom + 16, "text-anchor": "start" }, short(figure.low[0])),
    svg("text", { x: right, y: bottom + 16, "text-anchor": "end" }, short(figure.high[0])),
    svg("text", { x: margin.left - 6, y: bottom, "text-anchor": "end" }, short(figure.low[1])),
    svg("text", { x: margin.left - 6, y: margin.top + 10, "text-anchor": "end" }, short(figure.high[1])));
  return [plot];
}

function makeTip(host) {
  const node = html("div", { class: "tip", role: "status" });
  host.append(node);
  return {
    show(plot, x, y, head, rows) {
      node.replaceChildren(...head, ...rows.flatMap(([hue, name, value]) => ["\n", html("b", { class: hue }, name), "  " + value]));
      const offset = plot.getBoundingClientRect(), frame = host.getBoundingClientRect();
      const left = offset.left - frame.left + x, room = frame.width - node.offsetWidth;
      node.style.left = Math.max(0, Math.min(room, left + 14 > room ? left - node.offsetWidth - 14 : left + 14)) + "px";
      node.style.top = offset.top - frame.top + y + "px";
      node.style.visibility = "visible";
    },
    hide() { node.style.visibility = "hidden"; },
  };
}

function showFigure(figure) {
  const body = html("div");
  const node = html("figure", { class: figure.wide ? "wide" : null },
    html("figcaption", {}, html("h3", {}, figure.title), html("p", {}, figure.caption)));
  const tip = makeTip(node);
  let axis = 0, drawn = 0;
  function draw() {
    drawn = Math.round(node.clientWidth);
    if (!drawn) return;
    tip.hide();
    const charts = { bars: () => barChart(figure, drawn, tip), paths: () => pathChart(figure, drawn), map: () => mapChart(figure, drawn, tip), lines: () => lineChart(figure, axis, drawn, tip) };
    body.replaceChildren(...(charts[figure.kind]() || []).filter(Boolean));
  }
  if (figure.kind === "lines" && figure.axes.length > 1) {
    const buttons = figure.axes.map((name, i) => html("button", { type: "button", "aria-pressed": String(i === 0), onclick: () => {
      axis = i;
      buttons.forEach((b, j) => b.setAttribute("aria-pressed", String(j === i)));
      draw();
    } }, name));
    node.append(html("div", { class: "choice", role: "group", "aria-label": "Horizontal axis" }, buttons));
  }
  node.append(body);
  new ResizeObserver(() => requestAnimationFrame(() => { if (Math.round(node.clientWidth) !== drawn) draw(); })).observe(node);
  return node;
}

document.getElementById("figures").append(...(DATA.figures.length ? DATA.figures.map(showFigure)
  : [html("p", { class: "quiet" }, "Figures appear when the first rows have been measured.")]));
