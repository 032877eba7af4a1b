// Keyboard shortcuts, and the list of them.
import { h } from "./dom.js";

const views = { 1: "tools", 2: "run", 3: "timeline", 4: "sessions", 5: "window" };
const SHORTCUTS = [
  ["1 … 5", "Tools, Run, Timeline, Sessions, Window"],
  ["/", "Search, or write a message"],
  ["j, k", "Next or previous row of a list"],
  ["Ctrl+Enter", "Send a message; check arguments"],
  ["Ctrl+Shift+Enter", "Call the tool"],
  ["a, d, e", "Allow, deny or edit the first call that waits"],
  ["Esc", "Leave a field; close this list"],
  ["?", "This list"],
];

export function showShortcuts() {
  const dialog = document.getElementById("shortcuts");
  dialog.replaceChildren(h("h2", { id: "shortcuts-title" }, "Keyboard shortcuts"),
    h("dl", {}, SHORTCUTS.map(([keys, does]) => [h("dt", {}, keys.split(", ").map((key) => h("kbd", {}, key))), h("dd", {}, does)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  dialog.showModal();
}

/** Moves the focus by `step` rows in the list of the view. */
function move(step) {
  const rows = [...document.querySelectorAll("main [data-rows] :is(.row, .lane), main nav.list > .row")].filter((row) => !row.hidden && row.tabIndex >= 0);
  const at = rows.indexOf(document.activeElement);
  const from = at < 0 ? rows.findIndex((row) => row.hasAttribute("aria-current")) : at;
  rows[Math.min(rows.length - 1, Math.max(0, from + step))]?.focus();
}

const press = (name) => document.querySelector(`main [data-key="${name}"]`)?.click();
const actions = {
  "?": showShortcuts,
  "/": () => document.querySelector("main [data-search]")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  a: () => press("a"),
  d: () => press("d"),
  e: () => document.querySelector('main [data-key="e"]')?.focus(),
};

export function watchKeys() {
  addEventListener("keydown", (event) => {
    const isWriting = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (event.key === "Escape" && isWriting) return event.target.blur();
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (views[event.key]) location.hash = `#${views[event.key]}`;
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  });
}
