// The frame of the page: its views, and which one is shown.
import { get } from "./api.js";
import { empty, h } from "./dom.js";
import { showShortcuts, watchKeys } from "./keys.js";
import { showRun } from "./run.js";
import { showSessions } from "./sessions.js";
import { showTheme } from "./theme.js";
import { showTimeline } from "./timeline.js";
import { showTools } from "./tools.js";
import { showWindow } from "./window.js";

const views = { tools: showTools, run: showRun, timeline: showTimeline, sessions: showSessions, window: showWindow };
let shown = null;
/** The function that opens another object in the current view, or null if the view has to be shown anew. */
let reopen = null;
/** Whether the view could not be shown. */
let hasFailed = false;
/** The controller that is aborted when another view is shown, to end the background work of the current view. */
let leaving = new AbortController();

async function show(isForced) {
  const [first, ...rest] = location.hash.slice(1).split("/");
  const name = first in views ? first : "tools";
  const of = rest.length ? decodeURIComponent(rest.join("/")) : null;
  if (!isForced && name === shown && reopen) return reopen(of).catch(failed);
  shown = name;
  reopen = null;
  hasFailed = false;
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · Studio`;
  const view = h("main", { id: "view", tabindex: "-1", class: `view-${name}` });
  document.getElementById("view").replaceWith(view);
  try {
    const opened = await views[name](view, of, signal);
    if (!signal.aborted) reopen = opened;
  } catch (error) {
    if (!signal.aborted) failed(error);
  }
}

function failed(error) {
  hasFailed = true;
  document.getElementById("view").replaceChildren(empty("This cannot be shown", error.message), h("p", { class: "center" }, h("button", { onclick: () => show(true) }, "Try again")));
}

async function showModel() {
  const info = await get("/api/info");
  document.getElementById("model").replaceChildren(h("span", { title: "the model of the assistant" }, `${info.provider}/${info.model}`));
}

addEventListener("hashchange", () => show(false));
addEventListener("studio-back", ({ detail }) => {
  if (!detail.isSame || hasFailed) show(true);
  showModel().catch(() => {});
});
document.getElementById("help").addEventListener("click", showShortcuts);
showTheme();
watchKeys();
show(true);
showModel().catch(() => {});
