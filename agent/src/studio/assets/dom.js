// Elements and texts. Every text is data: it becomes a text node.

/** Control characters and marks that change the direction of text are shown as symbols. */
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => mark < " " ? String.fromCharCode(0x2400 + mark.charCodeAt(0)) : `⟦U+${mark.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}⟧`);
}

/** Makes an element. Keys that begin with `on` are listeners, all others are attributes; false leaves one out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false)
    .map((child) => child instanceof Node ? child : visible(child)));
  return element;
}

/** Formats a value as JSON. */
export const pretty = (value) => JSON.stringify(value, null, 2);

/** Shows what went wrong at the top of the page, or nothing. */
export function notice(text) {
  const element = document.getElementById("notice");
  element.hidden = !text;
  element.textContent = visible(text || "");
}
