// Sessions: the conversations of this studio, and those of the store.
import { get } from "./api.js";
import { chip, counted, empty, h } from "./dom.js";

/** Time in milliseconds after the last key press before the store is searched. */
const SEARCH_AFTER = 250;

const when = (at) => at > 0 ? new Date(at).toLocaleString() : "";

function row(id, title, ...facts) {
  return h("a", { class: "row session", href: `#run/${encodeURIComponent(id)}` },
    h("span", { class: "grow" }, h("span", { class: "title clip" }, title || "no message yet"), h("code", { class: "dim clip" }, id)), facts);
}

export async function showSessions(view, _, leaving) {
  const search = h("input", { type: "search", "aria-label": "Search sessions by name", placeholder: "Search by name", "data-search": true });
  const children = h("input", { type: "checkbox", onchange: () => load(true) });
  const name = h("input", { "aria-label": "Name of a session", placeholder: "name" });
  const goTo = (event) => {
    event.preventDefault();
    if (name.value) location.hash = `#run/${encodeURIComponent(name.value)}`;
  };
  const openList = h("div", { class: "list", "data-rows": true });
  const stored = h("div", { class: "list", "data-rows": true });
  const state = h("div", { "aria-live": "polite" });
  const more = h("button", { hidden: true }, "More");
  view.replaceChildren(
    h("div", { class: "run-head" }, h("h1", {}, "Sessions"), h("form", { class: "inline", onsubmit: goTo }, name, h("button", {}, "Open by name"))),
    h("h2", {}, "Open in this studio"), openList,
    h("div", { class: "run-head" }, h("h2", {}, "In the store"), h("div", { class: "inline" }, h("label", { class: "inline dim" }, children, "with those of sub-agents"), search)), state, stored, h("p", { class: "center" }, more));
  const { open } = await get("/api/sessions");
  openList.replaceChildren(...open.map((one) => row(one.id, one.title, h("span", { class: "number dim" }, counted(one.messages, "message")), one.is_active ? chip("active", "warn") : "")));
  if (!open.length) openList.append(h("p", { class: "dim" }, "None. A conversation is opened under ", h("a", { href: "#run" }, "Run"), ", or from the list below."));
  let turn = 0;
  let after = null;
  const load = async (isFirst) => {
    const mine = turn += 1;
    const query = new URLSearchParams({ query: search.value, ...(isFirst ? {} : { after }), ...(children.checked ? { children: 1 } : {}) }).toString().replaceAll("+", "%20");
    state.replaceChildren(h("p", { class: "dim" }, "Asking the store…"));
    more.hidden = true;
    try {
      const page = await get(`/api/stored?${query}`);
      // Another search has begun, or the view was left.
      if (mine !== turn || leaving.aborted) return;
      if (isFirst) stored.replaceChildren();
      stored.append(...page.sessions.map((one) => row(one.id, one.title, one.is_of_child ? chip("sub-agent") : "", h("span", { class: "number dim" }, counted(one.entries, "entry", "entries")), h("span", { class: "number dim time" }, when(one.at)))));
      after = page.next;
      more.hidden = !page.next;
      state.replaceChildren(page.cannot_list ? empty("No list", page.cannot_list) : stored.firstChild ? ""
        : search.value ? empty("Nothing found", `No session of the store has “${search.value}” in its name.`) : empty("The store is empty", "Sessions appear here once they have messages."));
    } catch (error) {
      if (mine !== turn || leaving.aborted) return;
      if (isFirst) stored.replaceChildren();
      state.replaceChildren(h("div", { class: "callout warn" }, h("p", {}, error.message), h("button", { onclick: () => load(isFirst) }, "Try again")));
    }
  };
  let timer = 0;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => load(true), SEARCH_AFTER); });
  more.addEventListener("click", () => load(false));
  load(true);
}
