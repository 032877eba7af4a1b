// The parts of the page that show a call: its coercions, its faults, and its result.
import { chip, duration, h } from "./dom.js";

/** Number of characters of a text that are shown at first. The rest is shown on demand. */
const MAX_SHOWN = 4_000;

export function coercions(list) {
  const value = (one) => h("code", {}, JSON.stringify(one));
  return (list || []).length > 0 && h("ul", { class: "coercions", "aria-label": "Coercions" }, list.map((one) =>
    h("li", {}, h("code", { class: "path" }, one.path || "(arguments)"), h("span", {}, ": "), value(one.from), " → ", value(one.to), " ", h("span", { class: "dim" }, one.rule))));
}

/** Makes a list of faults. A click on a fault shows its position in the text, if the fault has one. */
export const faults = (list) => list.length > 0 && h("ol", { class: "faults", "aria-label": "Faults" }, list.map(({ issue, onclick }) => {
  const line = [h("code", { class: "path" }, issue.path || "(arguments)"), chip(issue.code, "bad"), h("span", {}, issue.message.replace(/^[^:]*: /, ""))];
  return h("li", {}, onclick ? h("button", { class: "quiet line", title: "Show it in the text", onclick }, line) : h("span", { class: "line" }, line));
}));

/** Shows a text, and a button for the rest of a long text. `whole` fetches the whole text if the server has cut it. */
export function longText(text, whole) {
  const shown = h("pre", { tabindex: "0" }, text.slice(0, MAX_SHOWN));
  const isCut = text.includes("… [cut: ");
  if (text.length <= MAX_SHOWN && !isCut) return shown;
  const show = (all) => { shown.replaceChildren(h("span", {}, all)); more.remove(); };
  const more = h("button", { class: "quiet", onclick: async () => {
    if (!isCut || !whole) return show(text);
    more.disabled = true;
    await whole().then(show, () => { more.disabled = false; });
  } }, isCut ? "Show the whole result" : `Show all ${text.length.toLocaleString("en")} characters`);
  return h("div", {}, shown, more);
}

/** Returns the texts of a message's content, with the type of each other part in brackets. */
export const textOf = (content) => (content || []).map((part) => part.text ?? `[${part.type}]`).join("\n");

/** Returns the CSS class for an outcome. */
export const outcomeKind = (outcome) => outcome === "completed" ? "good" : outcome === "deferred" || outcome === "running" ? "warn" : "bad";

export const callOutcome = (result, ms) => h("div", { class: "card", role: "group", "aria-label": "Result" },
  h("p", {}, chip(result.outcome || "result", outcomeKind(result.outcome)), " ", h("span", { class: "dim" }, `in ${duration(ms)}`)),
  longText(textOf(result.content)));
