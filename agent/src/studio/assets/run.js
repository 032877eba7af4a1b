// Run: a conversation, with its calls as cards.
import { follow, get, post } from "./api.js";
import { h, pretty, visible } from "./dom.js";
import { coercions } from "./tools.js";

let session = null;
let following = null;

export async function showRun(view) {
  following?.abort();
  const log = h("div", { "aria-live": "polite" });
  const prompt = h("textarea", { id: "prompt", "aria-label": "Message", onkeydown: (event) => { if (event.ctrlKey && event.key === "Enter") send(); } });
  const cancel = h("button", { disabled: true, onclick: () => run && post(`/api/runs/${run}/cancel`, {}) }, "Cancel");
  let run = null;
  const watch = async (id) => {
    run = id;
    cancel.disabled = false;
    following = new AbortController();
    await follow(`/api/runs/${id}/events`, reader(log, id), following.signal);
    if (run === id) [run, cancel.disabled] = [null, true];
  };
  const send = async () => {
    const text = prompt.value;
    if (!text.trim()) return;
    if (run) await post(`/api/runs/${run}/steer`, { text });
    else {
      const begun = await post("/api/runs", session ? { text, session } : { text });
      session = begun.session;
      watch(begun.run);
    }
    prompt.value = "";
  };
  const sendSafely = () => send().catch(() => {});
  view.replaceChildren(log, prompt, h("div", { class: "actions" }, h("button", { class: "main", onclick: sendSafely }, "Send"), cancel,
    h("button", { onclick: () => { session = null; showRun(view); } }, "New conversation")));
  const { open } = await get("/api/sessions");
  const known = open.find((one) => one.id === session) || open.find((one) => one.is_active);
  if (known?.run) {
    session = known.id;
    watch(known.run);
  }
  prompt.focus();
}

/** Returns a function that shows the events of one run. */
function reader(log, run) {
  const calls = new Map();
  let parts = new Map();
  const card = (id, name) => {
    if (!calls.has(id)) {
      const made = { status: h("span", { class: "dim" }), args: h("pre", {}), end: h("div", {}) };
      calls.set(id, made);
      log.append(h("article", { class: "card", "aria-label": `Call of ${name}` }, h("strong", {}, name), " ", made.status, made.args, made.end));
    }
    return calls.get(id);
  };
  const request = (turn) => {
    const body = h("pre", {});
    const load = async () => {
      const steps = (await get(`/api/runs/${run}/steps`)).filter((step) => step.turn === turn);
      const sent = await Promise.all(steps.map((step) => get(`/api/runs/${run}/steps/${turn}/${step.attempt}`)));
      body.textContent = visible(sent.map(pretty).join("\n"));
    };
    return h("details", { ontoggle: (event) => event.target.open && load().catch(() => {}) }, h("summary", {}, `Request of turn ${turn}`), body);
  };
  const decide = (id, decision) => post(`/api/runs/${run}/decide`, { decisions: [{ call_id: id, ...decision }] }).catch(() => {});
  const textPart = (index) => {
    if (!parts.has(index)) {
      parts.set(index, h("p", { class: "text" }));
      log.append(parts.get(index));
    }
    return parts.get(index);
  };
  const grow = {
    text_start: (event) => textPart(event.content_index),
    text_delta: (event) => textPart(event.content_index).append(visible(event.delta)),
    tool_call_start: (event) => parts.set(event.content_index, card(event.id, event.name).args),
    tool_call_delta: (event) => parts.get(event.content_index)?.append(visible(event.delta)),
  };
  const show = {
    message_start: () => { parts = new Map(); },
    message_update: (event) => grow[event.update]?.(event),
    message_end: ({ message }) => {
      if (message.role === "user") log.append(h("p", { class: "text user" }, message.content.map((part) => part.text || `[${part.type}]`).join("\n")));
      // A page that comes late gets the whole message without its deltas.
      else if (message.role === "assistant") message.content.forEach((part, at) => {
        if (part.type === "text") textPart(at).textContent = visible(part.text);
      });
    },
    tool_execution_start: (event) => {
      const made = card(event.call_id, event.tool);
      made.args.textContent = visible(typeof event.args === "string" ? event.args : pretty(event.args));
      made.status.textContent = "running";
    },
    tool_execution_end: (event) => {
      const made = card(event.call_id, event.tool);
      made.status.textContent = `${event.outcome} · ${event.duration_ms} ms${event.attempt > 1 ? ` · attempt ${event.attempt}` : ""}`;
      made.status.className = event.outcome === "completed" ? "good" : "bad";
      const text = (content) => (content || []).map((part) => part.text || `[${part.type}]`).join("\n");
      const result = h("pre", {}, text(event.content));
      const whole = text(event.content).includes("… [cut: ") && h("button", { onclick: async () => {
        result.textContent = visible(text((await get(`/api/runs/${run}/calls/${encodeURIComponent(event.call_id)}`)).content));
      } }, "Show the whole result");
      made.end.replaceChildren(coercions(event.coercions), result, whole);
    },
    approval_resolved: (event) => { const made = calls.get(event.call_id); if (made) { made.status.textContent = event.decision; made.end.replaceChildren(); } },
    studio_waiting: ({ requests }) => requests.forEach(({ call }) => {
      const made = card(call.id, call.name);
      const edited = h("textarea", { class: "code", "aria-label": "Changed arguments" });
      edited.value = typeof call.args === "string" ? call.args : pretty(call.args);
      const change = () => {
        try { decide(call.id, { decision: "allow_with", arguments: JSON.parse(edited.value) }); } catch (error) { fault.textContent = error.message; }
      };
      const fault = h("p", { class: "bad" });
      made.status.textContent = "waits for your decision";
      made.end.replaceChildren(edited, fault, h("div", { class: "actions" },
        h("button", { class: "main", onclick: () => decide(call.id, { decision: "allow" }) }, "Allow"),
        h("button", { onclick: change }, "Allow with these arguments"),
        h("button", { onclick: () => decide(call.id, { decision: "deny", reason: "denied in the studio" }) }, "Deny")));
    }),
    turn_start: (event) => log.append(request(event.turn)),
    studio_error: (event) => log.append(h("p", { class: "bad" }, event.message)),
    agent_end: (event) => event.stop !== "suspended" && log.append(h("p", { class: event.stop === "completed" ? "dim" : "bad" },
      `${event.stop}${event.detail ? `: ${event.detail}` : ""} · ${event.usage.input} tokens in, ${event.usage.output} out`)),
  };
  return (event) => show[event.type]?.(event);
}
