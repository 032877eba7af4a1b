// Run: a conversation with the assistant.
import { follow, get, post } from "./api.js";
import { chatLog } from "./chat.js";
import { empty, h, perFrame } from "./dom.js";

/** Maximum number of stored messages that are shown of a conversation. The last ones are shown. */
const PAGE = 100;

/** The conversation that was shown last. */
let current = null;

export async function showRun(view, of, leaving) {
  const { open } = await get("/api/sessions");
  const known = of || open.find((one) => one.is_active)?.id || (open.some((one) => one.id === current) ? current : null);
  const choice = h("select", { "aria-label": "Conversation", onchange: () => { location.hash = choice.value ? `#run/${encodeURIComponent(choice.value)}` : "#run"; } },
    h("option", { value: "" }, "New conversation"),
    known && !open.some((one) => one.id === known) && h("option", { value: known, selected: true }, known),
    open.map((one) => h("option", { value: one.id, selected: one.id === known }, `${one.is_active ? "● " : ""}${one.title || one.id}`)));
  const area = h("div", { class: "chat" });
  const prompt = h("textarea", { id: "prompt", "aria-label": "Message", rows: "2", "data-search": true, placeholder: "Write a message. Ctrl+Enter sends it." });
  const sendButton = h("button", { class: "main" }, "Send");
  const cancel = h("button", { disabled: true }, "Cancel");
  const fault = h("p", { class: "bad" });
  view.replaceChildren(h("div", { class: "run-head" }, choice, h("button", { onclick: () => start(null) }, "New conversation")), area,
    h("div", { class: "composer" }, fault, prompt, h("div", { class: "actions" }, sendButton, cancel, h("span", { class: "dim small grow" }, "While a run is active, a message steers it."))));
  let run = null;
  /** The run that the log shows, or showed last. */
  let latest = null;
  let log = null;
  let following = new AbortController();
  leaving.addEventListener("abort", () => following.abort());

  /** Keeps the end of the log in view, if it was in view before. */
  const stayAtEnd = perFrame(() => { if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight }); });
  let isAtEnd = true;
  addEventListener("scroll", () => { isAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 120; }, { signal: leaving, passive: true });

  const watch = async (id) => {
    const mine = following;
    [run, latest] = [id, id];
    cancel.disabled = false;
    sendButton.textContent = "Steer";
    area.querySelector(".empty")?.remove();
    const isOver = await follow(`/api/runs/${id}/events`, (event) => { log.event(event); stayAtEnd(); }, mine.signal);
    if (mine.signal.aborted || run !== id) return;
    [run, cancel.disabled, sendButton.textContent] = [null, true, "Send"];
    if (!isOver) log.element.append(h("p", { class: "callout warn" }, "The studio does not know this run any more: its program was started again. Its session has what was stored."));
  };
  /** Shows a conversation: its stored messages and its latest run. Without an id, a new conversation. */
  const start = async (id) => {
    following.abort();
    following = new AbortController();
    [run, cancel.disabled, sendButton.textContent] = [null, true, "Send"];
    current = id;
    choice.value = id || "";
    fault.replaceChildren();
    latest = null;
    log = chatLog(() => latest);
    area.replaceChildren(log.element);
    isAtEnd = true;
    const { signal } = following;
    if (id) {
      area.replaceChildren(h("p", { class: "dim center" }, "Opening…"));
      const facts = await get(`/api/sessions/${encodeURIComponent(id)}?after=0`);
      const end = facts.run_from ?? facts.total;
      const from = Math.max(0, end - PAGE);
      const page = from ? await get(`/api/sessions/${encodeURIComponent(id)}?after=${from}`) : facts;
      if (signal.aborted) return;
      latest = facts.run;
      area.replaceChildren(...[from > 0 && h("p", { class: "dim center" }, `${from} earlier messages are not shown.`), log.element].filter(Boolean));
      page.messages.slice(0, end - from).forEach(log.message);
    }
    if (latest) watch(latest).catch(() => {});
    else if (!log.element.firstChild) area.append(empty("Nothing said yet", "The assistant runs as in your program, with your tools. Each call becomes a card."));
    stayAtEnd();
    prompt.focus({ preventScroll: true });
  };
  const send = async () => {
    const text = prompt.value;
    if (!text.trim()) return;
    fault.replaceChildren();
    isAtEnd = true;
    try {
      if (run) {
        await post(`/api/runs/${run}/steer`, { text });
        log.queued(text);
      }
      else {
        const begun = await post("/api/runs", current ? { text, session: current } : { text });
        if (!current) {
          choice.append(h("option", { value: begun.session }, text.slice(0, 60)));
          history.replaceState(null, "", `#run/${encodeURIComponent(begun.session)}`);
        }
        current = begun.session;
        choice.value = current;
        watch(begun.run).catch(() => {});
      }
      prompt.value = "";
    } catch (error) {
      fault.replaceChildren(h("span", {}, error.message));
    }
  };
  prompt.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    send();
  });
  sendButton.addEventListener("click", send);
  cancel.addEventListener("click", () => run && post(`/api/runs/${run}/cancel`, {}).catch(() => {}));
  await start(known);
  return start;
}
