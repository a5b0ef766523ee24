// The policy as an agent: words as tokens, a past as a prompt, a turn sampled, and pages as a machine of states that turns move.
"use strict";

// As `models.tiny.TOKEN` cuts text: an element number, one of two marks, a word, or any other character that is no space.
const TOKEN = /\[\d+\]|Thought:|Action:|[\p{L}\p{M}\p{N}\p{Pc}]+|[^\s]/gu;

class Words {
  constructor(words, unknown, special) {
    this.words = words;
    this.unknown = unknown;
    this.special = new Set(special);
    this.ids = new Map(words.map((word, id) => [word, id]));
  }
  encode(text) { return (text.match(TOKEN) || []).map((word) => (this.special.has(this.ids.get(word)) ? this.unknown : this.ids.get(word) ?? this.unknown)); }
  decode(ids) { return ids.filter((id) => !this.special.has(id)).map((id) => this.words[id]).join(" "); }
}

// chat: the pieces of a chat format (`models.chat.ChatFormat`); context: a context policy as data.
class Prompts {
  constructor(words, chat, context) { Object.assign(this, { words, chat, context }); }
  observation(text, first) {
    const { next, opening } = this.chat;
    return [...(first ? [] : next), ...this.words.encode(first ? "\n" + text : text), ...opening[first ? 0 : 1]];
  }
  spoken(ids) { return this.chat.end.includes(ids.at(-1)) ? ids : [...ids, this.chat.close]; }
  // seen: observations, one more than said; said: the sampled ids of each turn.
  render(goal, seen, said) {
    const head = [...this.chat.head, ...this.words.encode(goal)];
    if (this.context.type === "latest_observation") return [...head, ...this.observation(seen.at(-1), true)];
    const old = this.context.type === "recent_observations" ? Math.max(0, seen.length - this.context.keep) : 0;
    const shown = seen.map((text, k) => (k < old ? this.context.placeholder : text));
    return [...head, ...shown.flatMap((text, k) => [...this.observation(text, k === 0), ...(k < said.length ? this.spoken(said[k]) : [])])];
  }
}

// The action in a turn's text: { verb, element, text }, or a sentence that says what is wrong with it (`envs.sites.actions.parse`).
const ELEMENT = { click: false, hover: false, type: true, fill: true, select: true };
const VERBS = [...Object.keys(ELEMENT), "scroll", "back", "home", "wait", "goto", "tab", "answer", "infeasible"];
function parse(text) {
  const at = text.lastIndexOf("Action:"), line = (at < 0 ? text : text.slice(at + 7)).trim().split(/\s+/).join(" ");
  const space = line.indexOf(" "), verb = (space < 0 ? line : line.slice(0, space)).toLowerCase(), rest = space < 0 ? "" : line.slice(space + 1);
  if (verb in ELEMENT) {
    const number = /\[(\d{1,6})\]/.exec(rest), words = number ? rest.slice(number.index + number[0].length).trim() : "";
    if (!number) return `${verb} needs the number of an element, such as ${verb} [1]`;
    if (ELEMENT[verb] && !words) return `${verb} needs words after the number`;
    return { verb, element: Number(number[1]), text: ELEMENT[verb] ? words : "" };
  }
  if (["back", "home", "wait"].includes(verb)) return { verb, text: "" };
  if (verb === "scroll") return ["up", "down"].includes(rest) ? { verb, text: rest } : "scroll goes up or down";
  if (verb === "tab") return /^(new|[0-9]{1,3})$/.test(rest) ? { verb, text: rest } : "tab needs a number, or new";
  if (verb === "answer" || verb === "goto") return rest ? { verb, text: rest } : `${verb} needs ${verb === "answer" ? "words" : "an address"}`;
  if (verb === "infeasible") return { verb, text: rest };
  return verb ? `unknown action '${verb.slice(0, 20)}'; use one of ${VERBS.join(", ")}` : "no action was given";
}
const spelled = ({ verb, element, text }) => [verb, ...(element === undefined ? [] : [`[${element}]`]), ...(text ? [text] : [])].join(" ");

// A task's pages and where a visitor is (`envs.chart`). `after` says what is seen next, and keeps the pages that were open.
class Visit {
  constructor(task, at = 0, before = []) { Object.assign(this, { task, at, before, answer: null }); }
  get page() { return this.task.pages[this.at].text; }
  copy() { return new Visit(this.task, this.at, [...this.before]); }
  // Acts; returns { action, error } with what it means and why it had no effect.
  act(text) {
    const action = parse(text);
    if (typeof action === "string") return { action: null, error: action };
    let error = null;
    if (action.verb === "answer" || action.verb === "infeasible") this.answer = action.verb === "answer" ? action.text : "n/a";
    else if (action.verb === "back") {
      if (this.before.length) this.at = this.before.pop();
      else error = "there is no page before this one";
    } else if (action.verb === "home") error = this.go(0);
    else if (action.verb === "click") {
      const { links } = this.task.pages[this.at], to = links[action.element - 1];
      error = to === undefined ? `there is no element [${action.element}]; this page has ${links.length ? `1 to ${links.length}` : "none"}` : this.go(to);
    } else error = action.verb === "wait" ? "nothing moved" : `${action.verb} does nothing here`;
    return { action: spelled(action), error };
  }
  go(to) {
    if (to === this.at) return "nothing moved";
    this.before.push(this.at);
    this.at = to;
    return null;
  }
  observation(error) { return error ? `${this.page}\nerror: ${error}` : this.page; }
}

// One episode of an agent. What it sees next may be edited (`see`), and another way may be gone from any turn (`fork`).
class Walk {
  constructor(agent, task, horizon, sampling, seed) {
    Object.assign(this, { agent, task, horizon, sampling, seed });
    this.cache = agent.model.cache();
    this.visit = new Visit(task);
    this.seen = [this.visit.page];
    this.turns = [];
    this.stop = "";
    this.success = false;
  }
  get prompt() { return this.agent.prompts.render(this.task.goal, this.seen, this.turns.map((turn) => turn.ids)); }
  see(text) { this.seen[this.seen.length - 1] = text; }

  // A turn: sampled, and taken by the environment.
  step() {
    const { agent, sampling } = this, prompt = this.prompt, ids = [], tokens = [];
    const room = Math.min(agent.turnTokens, agent.model.shape.context - prompt.length);
    if (room <= 0) { this.stop = "context"; return; }
    while (ids.length < room) {
      const drawn = draw(agent.model.read([...prompt, ...ids], this.cache), sampling, turnSeed(this.seed, this.turns.length), ids.length);
      ids.push(drawn.id);
      tokens.push(drawn);
      if (agent.prompts.chat.end.includes(drawn.id)) break;
    }
    const text = agent.words.decode(ids), before = this.visit.copy(), { action, error } = this.visit.act(text);
    this.turns.push({ ids, tokens, text, action, error, before });
    if (this.visit.answer !== null) {
      this.stop = "answered";
      this.success = this.visit.answer.trim().toLowerCase() === this.task.answer.toLowerCase();
      return;
    }
    this.seen.push(this.visit.observation(error));
    if (this.turns.length >= this.horizon) this.stop = "turns";
  }
  play() { while (!this.stop) this.step(); return this; }

  // A copy that stands before turn k.
  fork(k) {
    const other = new Walk(this.agent, this.task, this.horizon, this.sampling, this.seed);
    other.turns = this.turns.slice(0, k);
    other.seen = this.seen.slice(0, k + 1);
    other.visit = (k < this.turns.length ? this.turns[k].before : this.visit).copy();
    return other;
  }
}
const turnSeed = (seed, turn) => mixed((BigInt(seed) * 1000003n + BigInt(turn)) & MASK);

// What a page carries of a policy, made ready to act.
function tasksOf({ tasks, lines }) {
  return tasks.map((task) => ({ ...task, pages: task.pages.map(([text, links]) => ({ text: text.map((k) => lines[k]).join("\n"), links })) }));
}
function agentOf(data, policy) {
  const words = new Words(data.words, data.unknown, data.special);
  return { name: policy.name, words, prompts: new Prompts(words, data.chat, data.context), model: new Llama(data.shape, policy.weights), turnTokens: data.turn_tokens };
}
