// Elements and texts. Every text is data: it becomes a text node.

/** Marks: control characters, and characters that are invisible or change the direction of text. */
const MARKS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Replaces marks by visible symbols. */
export function visible(text) {
  return String(text).replace(MARKS,
    (mark) => mark < " " ? String.fromCharCode(0x2400 + mark.charCodeAt(0)) : `⟦U+${mark.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}⟧`);
}

/** Makes an element. Keys that begin with `on` are listeners, all other keys are attributes. A key whose value is false is left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) value && element.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child != null && child !== false && child !== "")
    .map((child) => child instanceof Node ? child : visible(child)));
  return element;
}

/** Writes marks in a JSON text as escapes: its value stays the same, and the text cannot look like another one. */
export const escaped = (json) => json.replace(MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Formats a value as JSON. */
export const pretty = (value) => escaped(JSON.stringify(value, null, 2));

/** Makes a short label of one or two words. */
export const chip = (text, kind = "") => h("span", { class: `chip ${kind}` }, text);

/** Makes the message of a view that has nothing else to show. */
export const empty = (title, ...more) => h("div", { class: "empty" }, h("p", { class: "title" }, title), h("p", {}, ...more));

/** Makes a part of the page that is closed at first. Its content is made when it is opened for the first time. */
export const later = (title, make) => h("details", { ontoggle: (event) => { if (event.target.children.length === 1) event.target.append(make()); } }, h("summary", {}, title));

/** Returns a number with a noun in the singular or plural. */
export const counted = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** Formats a time in milliseconds. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round(ms % 60_000 / 1000)} s`;
}

/** Formats the tokens and the cost of a usage. The cost is left out if it is unknown. */
export function usageText(usage) {
  if (!usage || (!usage.input && !usage.output)) return "";
  const count = (number) => number.toLocaleString("en");
  const money = usage.cost ? ` · $${usage.cost.total.toFixed(usage.cost.total < 0.01 ? 5 : 2)}` : "";
  const cached = usage.cache_read ? ` (${count(usage.cache_read)} cached)` : "";
  return `${count(usage.input)} in${cached} · ${count(usage.output)} out${money}`;
}

/** Shows a problem at the top of the page, with elements to solve it. An empty text removes the notice. */
export function notice(text, ...more) {
  const element = document.getElementById("notice");
  element.hidden = !text;
  element.replaceChildren(h("span", {}, text || ""), ...more);
}

/** Returns a function that calls `run` at most once per frame. */
export function perFrame(run) {
  let isPending = false;
  return () => {
    if (isPending) return;
    isPending = true;
    // A page in the background has no frames.
    const later = document.hidden ? (done) => setTimeout(done, 200) : requestAnimationFrame;
    later(() => { isPending = false; run(); });
  };
}
