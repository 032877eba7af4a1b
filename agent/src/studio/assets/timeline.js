// Timeline: the turns and calls of a run on a time axis, and what was sent and received.
import { follow, get } from "./api.js";
import { coercions, longText, outcomeKind, textOf } from "./calls.js";
import { chip, counted, duration, empty, escaped, h, later, perFrame, pretty, usageText } from "./dom.js";
import { parseJson, writeJson } from "./json.js";
import { tryArguments } from "./tools.js";

/** Number of labels on the time axis. */
const TICKS = 5;
/** Pause before the requests of a run are read again while it is active. */
const REFRESH = 500;

const ago = (ms) => ms < 60_000 ? "just now" : ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min ago` : `${Math.floor(ms / 3_600_000)} h ago`;

export async function showTimeline(view, of, leaving) {
  const [wanted, turn] = (of || "").split("/");
  const { runs } = await get("/api/runs");
  if (!runs.length) return view.replaceChildren(empty("No runs yet", "A run that is started under ", h("a", { href: "#run" }, "Run"), " is drawn here while it works."));
  const choice = h("select", { "aria-label": "Run", onchange: () => { location.hash = `#timeline/${choice.value}`; } },
    !runs.some((run) => run.id === wanted) && wanted && h("option", { value: wanted, selected: true }, wanted),
    runs.map((run) => h("option", { value: run.id, selected: run.id === wanted }, `${run.is_active ? "● " : ""}${run.title || run.id} · ${ago(run.ago_ms)}`)));
  const area = h("div", {});
  view.replaceChildren(h("div", { class: "run-head" }, choice, h("a", { class: "button", href: `#run/${encodeURIComponent(runs.find((run) => run.id === (wanted || runs[0].id))?.session || "")}` }, "Conversation")), area);
  draw(area, wanted || runs[0].id, Number(turn) || null, leaving);
  return null;
}

/** Makes a row of the chart: a label, bars on the time axis, and facts. Times are in milliseconds since the run began. */
function lane(label, kind, depth, name, onclick) {
  const track = h("span", { class: "track" });
  const facts = h("span", { class: "facts number dim" });
  const element = h("button", { class: `lane ${kind}${depth ? " inner" : ""}`, onclick: () => onclick(element) }, h("span", { class: "label clip", title: name }, label), track, facts);
  element.style.setProperty("--depth", depth);
  const bars = new Map();
  const set = (name, from, to, style, title) => {
    if (!bars.has(name)) {
      bars.set(name, h("span", {}));
      track.append(bars.get(name));
    }
    const bar = bars.get(name);
    bar.className = `bar ${style}`;
    bar.title = title || "";
    bar.style.setProperty("--from", from);
    // A bar without an end grows with the axis.
    if (to == null) bar.style.removeProperty("--to");
    else bar.style.setProperty("--to", to);
  };
  return { element, set, facts: (...text) => facts.replaceChildren(...text.filter(Boolean)) };
}

function draw(area, run, firstTurn, leaving) {
  const summary = h("div", { class: "chips", "aria-label": "Summary" });
  const axis = h("div", { class: "axis", "aria-hidden": "true" });
  const rows = h("div", { class: "lanes", "data-rows": true });
  const detail = h("section", { class: "inspector", "aria-label": "Details" }, h("p", { class: "dim" }, "Choose a turn or a call to see what was sent and received."));
  area.replaceChildren(summary, h("div", { class: "timeline" }, h("div", { class: "chart" }, axis, rows), detail));
  const lanes = new Map();
  const began = performance.now();
  let last = 0;
  let end = null;
  let steps = [];

  const choose = (element, show) => {
    rows.querySelector("[aria-current]")?.removeAttribute("aria-current");
    element.setAttribute("aria-current", "true");
    show().then((parts) => detail.replaceChildren(...parts.filter(Boolean)), (error) => detail.replaceChildren(h("p", { class: "bad" }, error.message)));
    // On a narrow page the details are below the chart.
    if (getComputedStyle(detail).position === "static") detail.scrollIntoView({ block: "nearest" });
  };
  /** Makes the lanes of one run: the drawn run, or the run of a sub-agent, at the path of calls that leads to it. */
  const runLanes = (id, path) => {
    const depth = path.length;
    const turns = new Map();
    const calls = new Map();
    /** Returns the element for the lanes. The lanes of a sub-agent's run are below the lane of the call that began the run. */
    const place = () => {
      const call = depth ? lanes.get(path.at(-2)?.run_id ?? run)?.calls.get(path[depth - 1].call_id) : null;
      if (!call) return rows;
      if (!call.inner) {
        call.inner = h("div", { role: "group", "aria-label": `Run of ${call.tool}` });
        call.row.element.after(call.inner);
      }
      return call.inner;
    };
    const turnOf = (number, at) => {
      if (!turns.has(number)) {
        const name = depth ? `${path[depth - 1].tool} · turn ${number}` : `Turn ${number}`;
        const row = lane(`Turn ${number}`, "model", depth, name, (element) => choose(element, () => turnDetail(run, id, name, number, turns.get(number))));
        turns.set(number, { at, row });
        place().append(row.element);
        if (!depth && number === firstTurn) row.element.click();
      }
      return turns.get(number);
    };
    const drawTurn = (number) => {
      const one = turns.get(number);
      const own = steps.filter((step) => step.run === id && step.turn === number);
      for (const step of own.filter((step) => step.error)) one.row.set(`failed ${step.attempt}`, step.at, step.end, "failed", step.error);
      const start = own.find((step) => !step.error)?.at ?? (own.length ? null : one.at);
      if (start != null) {
        one.row.set("wait", start, one.first ?? one.end, "wait", "until the reply began");
        if (one.first != null) one.row.set("reply", one.first, one.end, "reply", "the reply");
      }
      // Failed attempts of the transport are drawn within the time of the request.
      const failed = own.flatMap((step) => step.exchanges.filter(isFailed));
      failed.forEach((exchange, at) => one.row.set(`attempt ${at}`, exchange.at, exchange.end, "failed", exchangeText(exchange)));
      const count = own.reduce((sum, step) => sum + Math.max(1, step.exchanges.length), 0);
      one.row.facts(h("span", {}, one.end != null ? duration(one.end - (own[0]?.at ?? one.at)) : ""), h("span", { class: "tokens" }, usageText(one.usage)),
        count > 1 && h("span", { class: "bad" }, `${count} requests`));
    };
    return { turns, calls, drawTurn, events: {
      turn_start: (event) => { turnOf(event.turn, event.at); drawTurn(event.turn); },
      message_start: (event) => {
        if (event.message.role !== "assistant") return;
        turnOf(event.turn, event.at).first = event.at;
        drawTurn(event.turn);
      },
      message_end: (event) => {
        if (event.message.role !== "assistant") return;
        Object.assign(turnOf(event.turn, event.at), { end: event.at, message: event.message, usage: event.message.usage });
        drawTurn(event.turn);
        refresh();
      },
      tool_execution_start: (event) => {
        const one = { ...event };
        one.row = lane(event.tool, "tool", depth, event.tool, (element) => choose(element, () => callDetail(run, one, depth)));
        turnOf(event.turn, event.at);
        calls.set(event.call_id, one);
        place().append(one.row.element);
        drawCall(one);
      },
      tool_execution_update: (event) => { const one = calls.get(event.call_id); if (one) one.progress = event.partial.message; },
      approval_required: (event) => { const one = calls.get(event.call_id); if (one) { one.asked = event.at; drawCall(one); } },
      approval_resolved: (event) => { const one = calls.get(event.call_id); if (one) { Object.assign(one, { decided: event.at, decision: event.decision }); drawCall(one); } },
      tool_execution_end: (event) => {
        const one = calls.get(event.call_id);
        if (!one) return;
        const { at, args, row } = one;
        Object.assign(one, event, { at, args, row, end: event.outcome === "deferred" ? null : event.at });
        drawCall(one);
      },
      agent_end: (event) => {
        if (!depth) end = event;
        refresh();
      },
    } };
  };
  const drawCall = (one) => {
    // The run of a sub-agent works from the beginning of the call, even if the call was resumed later.
    const lasted = one.inner ? one.end - one.at : one.duration_ms || 0;
    const from = one.end == null || one.ran === false ? one.at : Math.max(one.at, one.end - lasted);
    if (one.asked != null || from - one.at > 5) one.row.set("wait", one.at, one.decided ?? from, "wait", one.asked != null ? "waited for a decision" : "waited for its turn");
    one.row.set("run", one.decided != null && one.end == null ? one.decided : from, one.end, one.outcome ? outcomeKind(one.outcome) : "running", one.outcome || "running");
    one.row.facts(h("span", {}, one.end != null ? duration(lasted) : ""), one.code ? h("span", { class: "bad" }, one.code) : one.outcome !== "completed" && h("span", { class: "warn" }, one.outcome || ""),
      one.attempt > 1 && h("span", { class: "bad" }, `attempt ${one.attempt}`), one.cached && h("span", {}, "cached"));
  };
  const lanesOf = (path) => {
    const id = path.at(-1)?.run_id ?? run;
    if (!lanes.has(id)) lanes.set(id, runLanes(id, path));
    return lanes.get(id);
  };
  const showSummary = () => {
    const all = [...lanes.values()].flatMap((one) => [...one.calls.values()]);
    const turns = [...lanes.values()].flatMap((one) => [...one.turns.values()]);
    const failed = all.filter((one) => one.outcome && outcomeKind(one.outcome) === "bad").length;
    const retried = steps.reduce((sum, step) => sum + (step.error ? 1 : 0) + Math.max(0, step.exchanges.length - 1), 0) + all.filter((one) => one.attempt > 1).length;
    const sum = turns.reduce((usage, { usage: one }) => ({ input: usage.input + (one?.input || 0), output: usage.output + (one?.output || 0), cache_read: usage.cache_read + (one?.cache_read || 0),
      cost: one?.cost ? { total: (usage.cost?.total || 0) + one.cost.total } : usage.cost }), { input: 0, output: 0, cache_read: 0, cost: null });
    const usage = usageText(end?.usage || sum);
    summary.replaceChildren(...[chip(end ? end.stop : "active", !end ? "warn" : end.stop === "completed" ? "good" : "bad"), chip(duration(end ? end.at : last)), chip(counted(turns.length, "turn")), chip(counted(all.length, "call")),
      usage && chip(usage), failed > 0 && chip(`${failed} failed`, "bad"), retried > 0 && chip(`${retried} retried`, "warn"), end?.detail && chip(end.detail, "bad")].filter(Boolean));
  };
  const redraw = perFrame(() => {
    const total = Math.max(1, end ? end.at : Math.max(last, 1));
    rows.style.setProperty("--total", total);
    axis.replaceChildren(...Array.from({ length: TICKS }, (_, at) => h("span", {}, duration(total * at / (TICKS - 1)))));
    showSummary();
  });
  let isReading = false;
  const refresh = () => {
    if (isReading) return;
    isReading = true;
    setTimeout(async () => {
      isReading = false;
      if (leaving.aborted) return;
      steps = await get(`/api/runs/${run}/steps`).catch(() => steps);
      for (const one of lanes.values()) [...one.turns.keys()].forEach(one.drawTurn);
      redraw();
    }, end ? 0 : REFRESH);
  };
  const clock = setInterval(() => {
    if (end || leaving.aborted) return clearInterval(clock);
    if (waits) return;
    last = Math.max(last, offset + performance.now() - began);
    redraw();
  }, 1_000);
  let offset = 0;
  let waits = false;
  follow(`/api/runs/${run}/events`, (event) => {
    lanesOf(event.path || []).events[event.type]?.(event);
    if (event.type === "studio_waiting") waits = true;
    if (event.at == null) return;
    waits = false;
    last = Math.max(last, event.at);
    offset = last - (performance.now() - began);
    redraw();
  }, leaving).then((isOver) => {
    if (leaving.aborted) return;
    if (!isOver) area.replaceChildren(empty("This run is gone", "The studio keeps the events of its latest runs until its program ends."));
    else if (!lanesOf([]).turns.size) area.replaceChildren(empty("Nothing to draw", "The run ended before its first turn."));
  });
  refresh();
}

const isFailed = ({ status, error }) => Boolean(error) || status >= 300;
const exchangeText = ({ server, status, error }) => `${server}: ${error || `status ${status ?? "unknown"}`}`;

/** Shows the requests and the reply of a turn. `run` is the drawn run, and `of` the run of the turn, maybe of a sub-agent. */
async function turnDetail(run, of, name, number, turn) {
  const own = (await get(`/api/runs/${run}/steps`)).filter((step) => step.run === of && step.turn === number);
  const requests = await Promise.all(own.map(async (step) => {
    const sent = await get(`/api/runs/${run}/steps/${number}/${step.attempt}?run=${encodeURIComponent(of)}`).catch(() => null);
    return h("details", { open: own.length === 1 }, h("summary", {}, `Request${own.length > 1 ? ` ${step.attempt}` : ""}, ${counted(step.messages, "message")}`),
      step.error && h("p", { class: "bad" }, step.error),
      step.exchanges.length > 0 && h("ol", { class: "exchanges", "aria-label": "Attempts" }, step.exchanges.map((one) => h("li", { class: isFailed(one) ? "bad" : "" }, exchangeText(one),
        one.end != null && h("span", { class: "dim" }, ` · ${duration(one.end - one.at)}`)))), sent ? requestDetail(sent) : h("p", { class: "dim" }, "It is not kept any more."));
  }));
  const reply = turn.message;
  return [
    h("h2", {}, name), h("p", { class: "dim" }, usageText(turn.usage) || "no usage reported"), ...requests,
    !own.length && h("p", { class: "dim" }, "The request of this turn is not kept any more."),
    reply ? h("details", { open: true }, h("summary", {}, `Reply of ${reply.model || "the model"}, ${reply.stop_reason || "unknown end"}`), reply.content.map(partDetail),
      later("As JSON", () => longText(pretty(reply)))) : h("p", { class: "dim" }, "The reply is not complete."),
  ];
}

const partDetail = (part) => h("div", { class: "part" }, h("h3", {}, part.type === "tool_call" ? `call of ${part.name}` : part.type),
  longText(part.type === "tool_call" ? (typeof part.args === "string" ? part.args : pretty(part.args)) : part.text ?? pretty(part)));

/** Returns a JSON text over several lines. A text that was cut is not JSON, and is returned unchanged. */
function indented(text) {
  const { root, fault } = parseJson(text);
  return fault ? text : escaped(writeJson(root));
}

const previewOf = (message) => (textOf(message.content.filter((part) => part.type === "text")) || message.content.map((part) => part.name || part.type).join(", ")).slice(0, 60);

function requestDetail(sent) {
  const options = ["tool_choice", "max_tokens", "temperature", "top_p", "stop"].filter((key) => sent[key] != null && sent[key].length !== 0);
  return h("div", {},
    sent.system && h("div", { class: "part" }, h("h3", {}, "system"), longText(typeof sent.system === "string" ? sent.system : pretty(sent.system))),
    sent.messages.map((message, at) => {
      const one = later(`${message.role === "tool_result" ? `result of ${message.tool}` : message.role}: ${previewOf(message)}`,
        () => h("div", { class: "part" }, message.role === "assistant" ? message.content.map(partDetail) : longText(textOf(message.content))));
      // The last message is open at first, because the previous request did not have it.
      one.open = at + 1 === sent.messages.length;
      return one;
    }),
    h("p", { class: "dim" }, `${counted(sent.tools.length, "tool")}: ${sent.tools.map((tool) => tool.name).join(", ") || "none"}`),
    options.length > 0 && h("p", { class: "dim" }, options.map((key) => `${key}: ${JSON.stringify(sent[key])}`).join(" · ")),
    sent.body && later("Body, as the provider gets it", () => longText(indented(sent.body))),
    sent.received && later("Response, as it was received", () => receivedText(sent.received)),
    later("As JSON", () => longText(pretty({ ...sent, body: undefined, received: undefined }))));
}

const receivedText = ({ length, kept, body }) => body == null
  ? h("p", { class: "dim" }, `${length.toLocaleString("en")} bytes, which may have secret arguments of a tool.`)
  : h("div", {}, longText(body), kept < length && h("p", { class: "dim" }, `The first ${kept.toLocaleString("en")} of ${length.toLocaleString("en")} bytes are kept.`));

async function callDetail(run, call, depth) {
  const args = typeof call.args === "string" ? call.args : pretty(call.args);
  // The studio keeps whole results only of the drawn run, not of its sub-agents.
  const whole = !depth && (async () => textOf((await get(`/api/runs/${run}/calls/${encodeURIComponent(call.call_id)}`)).content));
  return [
    h("h2", {}, call.tool), h("div", { class: "chips" }, chip(call.code || call.outcome || "running", outcomeKind(call.outcome || "running")), call.duration_ms != null && chip(duration(call.duration_ms)), chip(`attempt ${call.attempt || 1}`),
      call.cached && chip("from the cache"), call.ran === false && chip("did not run"), call.decision && chip(`decision: ${call.decision}`)),
    call.progress && h("p", { class: "dim" }, call.progress),
    h("h3", {}, "Arguments, as the model sent them"), longText(args), coercions(call.coercions),
    !depth && h("p", {}, h("button", { onclick: () => tryArguments(call.tool, args) }, "Try them under Tools")),
    call.content && h("div", {}, h("h3", {}, "Result"), longText(textOf(call.content), whole)),
  ];
}
