// The log of a conversation: messages, and calls as cards that change with the events of a run.
import { get, post } from "./api.js";
import { coercions, faults, longText, outcomeKind, textOf } from "./calls.js";
import { chip, duration, h, pretty, usageText, visible } from "./dom.js";
import { codeEditor } from "./editor.js";
import { parseJson, rangesOf } from "./json.js";
import { questionForm } from "./question.js";

/** Approximate length of the blocks of a growing text, in characters. With blocks, a delta changes the layout of only one block. */
const BLOCK = 8_000;
/** Maximum length of the arguments that are shown in a card, in characters. */
const MAX_ARGS = 20_000;
/** Number of calls of a run whose cards are open at first. The cards of later calls are closed. */
const OPEN_CARDS = 20;

const argsText = (args) => typeof args === "string" ? args : pretty(args);

/** Makes a text that grows: `element`, `append(text)`, and `set(text)`. */
export function growingText(attributes) {
  const element = h("div", attributes);
  let block = null;
  const append = (text) => {
    let rest = visible(text);
    while (rest) {
      if (!block || block.data.length > 4 * BLOCK) {
        block = document.createTextNode("");
        element.append(h("div", { class: "block" }, block));
      }
      // A block ends at the end of a line, so that the blocks look like one text.
      const end = block.data.length + rest.length > BLOCK ? rest.indexOf("\n", Math.max(0, BLOCK - block.data.length)) : -1;
      block.appendData(end < 0 ? rest : rest.slice(0, end));
      rest = end < 0 ? "" : rest.slice(end + 1);
      if (end >= 0) block = null;
    }
  };
  const set = (text) => {
    element.replaceChildren();
    block = null;
    append(text);
  };
  return { element, append, set };
}

/** Shows arguments in which the faults of the report are marked. */
function markedArguments(text, issues) {
  const parsed = parseJson(text);
  const found = issues.map((issue) => ({ issue, ranges: rangesOf(issue, text, parsed) }));
  const shown = codeEditor("Arguments", { onchange: () => {} });
  shown.area.readOnly = true;
  shown.area.value = text;
  shown.mark(found.flatMap(({ issue, ranges }) => ranges.map(([start, end]) => ({ start, end, label: issue.message }))));
  return h("div", {}, shown.element, faults(found.map(({ issue, ranges }) => ({ issue, onclick: ranges.length ? () => shown.select({ start: ranges[0][0], end: ranges[0][1] }) : null }))));
}

/** Makes the card of a call. The events of the call fill its parts. */
function callCard(name, isOpen) {
  const status = h("span", { class: "inline" }, chip("arguments arrive", "pulse"));
  const args = growingText({ class: "args" });
  const inner = h("div", { class: "inner", hidden: true });
  const end = h("div", {});
  const element = h("article", { class: "call", "aria-label": `Call of ${name}` },
    h("details", { open: isOpen }, h("summary", {}, h("strong", { class: "name" }, name), status), args.element, inner, end));
  return { element, name, args, inner, end, raw: null, setStatus: (...parts) => status.replaceChildren(...parts) };
}

/**
 * Makes the log of a conversation: `element`; `event(event)`, which shows an event of a run; `message(message)`, which shows a stored
 * message; and `queued(text)`, which shows a message until the run takes it.
 * `run()` returns the id of the run. A run of a sub-agent has its own log, in the card of the call that began the run; `within` is the
 * name of the called tool.
 */
export function chatLog(run, within = null) {
  const element = within === null ? h("div", { class: "log", role: "log", "aria-label": "Conversation" })
    : h("div", { class: "log", role: "group", "aria-label": `Run of ${within}` });
  const logs = new Map();
  const calls = new Map();
  let parts = new Map();
  let turn = null;
  const waiting = [];
  const add = (child) => { element.append(child); return child; };
  const card = (id, name) => {
    if (!calls.has(id)) {
      calls.set(id, callCard(name, calls.size < OPEN_CARDS));
      add(calls.get(id).element);
    }
    return calls.get(id);
  };
  const textPart = (at, kind) => {
    if (!parts.has(at)) {
      const text = growingText({ class: "text" });
      add(kind === "thinking" ? h("details", { class: "thinking" }, h("summary", {}, "Thinking"), text.element) : text.element);
      parts.set(at, text);
    }
    return parts.get(at);
  };
  /** Returns the log of the run at a path: the calls that lead to it, of which the first `depth` calls lead to this log. */
  const logOf = (path = [], depth = 0) => {
    if (!path[depth]) return api;
    const { call_id: id, tool, run_id: key } = path[depth];
    if (!logs.has(key)) {
      const made = card(id, tool);
      logs.set(key, chatLog(run, tool));
      made.inner.append(logs.get(key).element);
      made.inner.hidden = false;
    }
    return logs.get(key).logOf(path, depth + 1);
  };
  const send = (id, decision) => post(`/api/runs/${run()}/decide`, { decisions: [{ id, ...decision }] });
  const decide = (made, id, decision) => send(id, decision).catch((error) => { made.end.append(h("p", { class: "bad" }, error.message)); });
  /** Opens a card, and the cards that contain it. */
  const open = (made) => { for (let at = made.element; at; at = at.parentElement?.closest(".call")) at.querySelector("details").open = true; };
  const grow = {
    text_start: (event) => textPart(event.content_index, "text"),
    text_delta: (event) => textPart(event.content_index, "text").append(event.delta),
    thinking_start: (event) => textPart(event.content_index, "thinking"),
    thinking_delta: (event) => textPart(event.content_index, "thinking").append(event.delta),
    tool_call_start: (event) => parts.set(event.content_index, card(event.id, event.name).args),
    tool_call_delta: (event) => parts.get(event.content_index)?.append(event.delta),
  };
  const finished = (made, event) => {
    const facts = [event.duration_ms != null && event.ran !== false && duration(event.duration_ms), event.attempt > 1 && `attempt ${event.attempt}`, event.cached && "from the cache", event.ran === false && "did not run"];
    made.setStatus(chip(event.code || event.outcome, outcomeKind(event.outcome)), h("span", { class: "dim small" }, facts.filter(Boolean).join(" · ")));
    const whole = within === null && run() && (async () => textOf((await get(`/api/runs/${run()}/calls/${encodeURIComponent(event.call_id)}`)).content));
    const text = textOf(event.content);
    const result = h("div", { class: "result" }, h("h3", {}, event.code === "invalid_arguments" ? "What the model reads" : "Result"), longText(text, whole));
    made.end.replaceChildren(...[coercions(event.coercions), event.code === "invalid_arguments" ? h("div", { class: "refusal" }) : "", result].filter(Boolean));
    if (event.code === "invalid_arguments" && made.raw !== null && made.raw.length < MAX_ARGS) showFaults(made, result);
  };
  /** Marks the faults in the arguments. The event has the report only as text, so the engine checks the arguments again. */
  const showFaults = async (made, result) => {
    const answer = await post(`/api/tools/${encodeURIComponent(made.name)}/check`, { text: made.raw }).catch(() => null);
    if (!answer?.report) return;
    made.args.element.hidden = true;
    made.end.querySelector(".refusal")?.append(h("h3", {}, "Arguments, with their faults"), markedArguments(made.raw, answer.report.issues));
    result.replaceWith(h("details", {}, h("summary", {}, "What the model reads"), result.querySelector("pre")));
  };
  const asked = ({ request_id: id, call }) => {
    const made = card(call.id, call.name);
    const fault = h("p", { class: "bad" });
    const edited = codeEditor("Changed arguments", { onchange: () => { fault.textContent = ""; } });
    edited.area.dataset.key = "e";
    edited.area.value = argsText(call.args);
    const change = async () => {
      const { fault: broken } = parseJson(edited.area.value);
      if (broken) return fault.replaceChildren(`not JSON: ${broken.message}`);
      const checked = await post(`/api/tools/${encodeURIComponent(call.name)}/check`, { text: edited.area.value }).catch(() => null);
      if (checked?.report) {
        const parsed = parseJson(edited.area.value);
        edited.mark(checked.report.issues.flatMap((issue) => rangesOf(issue, edited.area.value, parsed).map(([start, end]) => ({ start, end, label: issue.message }))));
        return fault.replaceChildren(h("span", {}, checked.report.issues.map((issue) => issue.message).join("; ")));
      }
      decide(made, id, { decision: "allow_with", arguments: JSON.parse(edited.area.value) });
    };
    made.setStatus(chip("waits for your decision", "warn"));
    made.args.element.hidden = true;
    made.end.replaceChildren(h("div", { "data-wait": id }, edited.element, fault, h("div", { class: "actions" },
      h("button", { class: "main", "data-key": "a", title: "a", onclick: () => decide(made, id, { decision: "allow" }) }, "Allow"),
      h("button", { onclick: change }, "Allow with these arguments"),
      h("button", { "data-key": "d", title: "d", onclick: () => decide(made, id, { decision: "deny", reason: "denied in the studio" }) }, "Deny"))));
    open(made);
  };
  /** Shows all questions of a call together, because the tool continues only when all of them are answered. */
  const questioned = (id, tool, questions) => {
    const made = card(id, tool);
    made.setStatus(chip("asks you", "warn"));
    made.end.replaceChildren(...questions.map((question) => h("div", { "data-wait": question.request_id }, questionForm(question, (decision) => send(question.request_id, decision)))));
    open(made);
  };
  const awaited = ({ id, call_id: call, tool, handle }) => {
    const made = card(call, tool);
    const text = h("textarea", { "aria-label": "Result to deliver", rows: "3", placeholder: "What the tool answers" });
    made.setStatus(chip("waits for its result", "warn"), h("span", { class: "dim small" }, handle));
    made.end.replaceChildren(h("div", { "data-wait": id }, text, h("div", { class: "actions" },
      h("button", { class: "main", onclick: () => decide(made, id, { decision: "deliver", text: text.value }) }, "Deliver this result"))));
    open(made);
  };
  const shownMessage = (message) => {
    if (message.role === "user") {
      waiting.find((one) => one.textContent === visible(textOf(message.content)))?.remove();
      const said = add(h("div", { class: "text user" }, textOf(message.content)));
      // The loop adds the user's message after the turn has begun, but a reader expects the message before the turn.
      if (said.previousSibling === turn) turn?.before(said);
    }
    else if (message.role === "assistant") message.content.forEach((part, at) => {
      // A page that connects after the reply gets the whole message without its deltas.
      if (part.type === "text" || part.type === "thinking") textPart(at, part.type).set(part.text);
      else if (part.type === "tool_call") {
        const made = card(part.id, part.name);
        made.raw = argsText(part.args);
        made.args.set(made.raw.slice(0, MAX_ARGS));
      }
    });
    else if (message.role !== "tool_result") add(h("div", { class: "text dim" }, `${message.role}: ${textOf(message.content)}`));
  };
  const show = {
    // Another run of the conversation may have calls with the same ids.
    agent_start: () => calls.clear(),
    turn_start: (event) => {
      const name = `Turn ${event.turn}`;
      const link = within === null ? h("a", { href: `#timeline/${run()}/${event.turn}`, title: "its request and reply" }, name) : h("span", {}, name);
      turn = add(h("div", { class: "turn" }, link, h("span", { class: "facts" })));
    },
    turn_end: (event) => turn?.lastChild.replaceChildren(usageText(event.usage)),
    message_start: () => { parts = new Map(); },
    message_update: (event) => grow[event.update]?.(event),
    message_end: ({ message }) => shownMessage(message),
    tool_execution_start: (event) => {
      const made = card(event.call_id, event.tool);
      made.raw = argsText(event.args);
      made.args.set(made.raw.slice(0, MAX_ARGS));
      made.setStatus(chip("running", "warn pulse"));
    },
    tool_execution_update: ({ call_id: id, tool, partial }) => {
      const share = partial.total ? h("progress", { value: partial.done || 0, max: partial.total, "aria-label": `Progress of ${tool}` }) : "";
      card(id, tool).setStatus(...[chip("running", "warn pulse"), share, h("span", { class: "dim small" }, partial.message)].filter(Boolean));
    },
    tool_execution_end: (event) => { if (event.outcome !== "deferred") finished(card(event.call_id, event.tool), event); },
    approval_resolved: (event) => {
      const made = calls.get(event.call_id);
      if (!made) return;
      made.args.element.hidden = false;
      made.setStatus(chip(event.decision === "allow" ? `allowed${event.edited ? " with changes" : ""}` : "denied", event.decision === "allow" ? "good" : "bad"));
      made.end.replaceChildren();
    },
    studio_waiting: ({ requests, pending }) => {
      requests.forEach((one) => logOf(one.path).asked(one));
      const asking = new Map();
      for (const one of pending) {
        if (one.wants === "deferred") logOf(one.path).awaited(one);
        if (one.wants !== "question") continue;
        const key = JSON.stringify([one.path, one.call_id]);
        asking.set(key, [...(asking.get(key) || []), one]);
      }
      for (const [first, ...more] of asking.values()) logOf(first.path).questioned(first.call_id, first.tool, [first, ...more].map((one) => one.question));
    },
    studio_answered: ({ ids }) => element.querySelectorAll("[data-wait]").forEach((one) => {
      if (ids.includes(one.dataset.wait)) one.replaceChildren(h("p", { class: "dim" }, "Answered. The run continues when everything is answered."));
    }),
    question_resolved: (event) => {
      const made = calls.get(event.call_id);
      if (!made) return;
      made.setStatus(chip(event.accepted ? "answered" : "not answered", event.accepted ? "good" : "bad"));
      made.end.replaceChildren();
    },
    run_resumed: () => element.querySelectorAll(".call .actions button").forEach((one) => { one.disabled = true; }),
    studio_error: (event) => add(h("p", { class: "callout bad" }, event.message)),
    studio_abandoned: (event) => add(h("p", { class: "dim" }, `The run was given up: ${event.reason}.`)),
    log_full: () => add(h("p", { class: "callout warn" }, "The log of this run is full. The run continues; its session has the rest.")),
    agent_end: (event) => event.stop !== "suspended" && (within === null || event.stop !== "completed") && add(h("p", { class: `end ${event.stop === "completed" ? "dim" : "bad"}` },
      `${event.stop}${event.detail ? `: ${event.detail}` : ""} · ${usageText(event.usage) || "no usage reported"} · ${duration(event.at)}`)),
  };
  const event = (one, depth = 0) => depth < (one.path || []).length ? logOf(one.path.slice(0, depth + 1), depth).event(one, depth + 1) : show[one.type]?.(one);
  /** Shows a message that was sent during a run, and that waits for the next request or for the next run. */
  const queued = (text) => waiting.push(add(h("div", { class: "text user queued", title: "waits for the next request" }, text)));
  const message = (one) => {
    parts = new Map();
    if (one.role === "assistant") one.content.forEach((part) => calls.delete(part.id));
    shownMessage(one);
    if (one.role === "tool_result") finished(card(one.call_id, one.tool), { ...one, coercions: [] });
  };
  const api = { element, event, message, queued, logOf, asked, questioned, awaited };
  return api;
}
