// An editor of JSON whose faults are marked in its text.
import { h, visible } from "./dom.js";

/** Maximum length of a text in which marks are drawn, in characters. */
const MAX_MARKED = 100_000;

/**
 * Makes an editor: `element`, `area` (the text), `mark(ranges)`, and `select(range)`. A range is `{start, end, label}`. The marks are in an
 * element of the same shape behind the text. They are removed when the text changes.
 */
export function codeEditor(label, { onchange, onkeydown }) {
  const behind = h("pre", { class: "marks", "aria-hidden": "true" });
  const area = h("textarea", {
    class: "code", "aria-label": label, spellcheck: "false", autocomplete: "off", autocapitalize: "off", rows: "1",
    oninput: () => { mark([]); onchange(); },
    onscroll: () => { behind.scrollTop = area.scrollTop; },
    onkeydown,
  });
  const mark = (ranges) => {
    const text = area.value;
    const sorted = text.length > MAX_MARKED ? [] : [...ranges].sort((a, b) => a.start - b.start || b.end - a.end);
    const parts = [];
    let at = 0;
    for (const { start, end, label: title } of sorted) {
      // A range that begins within the previous range gets no mark of its own.
      if (start < at) continue;
      parts.push(text.slice(at, start), h("mark", { title: visible(title) }, raw(text.slice(start, end) || " ")));
      at = Math.max(end, start);
    }
    behind.replaceChildren(...parts, text.slice(at), "\n");
    behind.scrollTop = area.scrollTop;
  };
  const select = ({ start, end }) => {
    area.focus();
    area.setSelectionRange(start, end);
  };
  return { element: h("div", { class: "editor" }, behind, area), area, mark, select };
}

/** Makes a text node without `visible`, because the marks must have the same characters as the text in front of them. */
const raw = (text) => document.createTextNode(text);
