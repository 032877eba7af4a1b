// A question of a tool: the form for its schema, and the faults of an answer.
import { faults } from "./calls.js";
import { h, pretty } from "./dom.js";
import { codeEditor } from "./editor.js";
import { argumentsForm, skeleton } from "./form.js";
import { parseJson, rangesOf } from "./json.js";

/** Returns the names of the fields that are secret, at any depth. */
function secretsOf(schema) {
  const names = [];
  const visit = (node) => {
    if (!node || typeof node !== "object") return;
    for (const [key, inner] of Object.entries(node.properties || {})) if (inner?.["x-secret"] === true) names.push(key);
    Object.values(node).forEach(visit);
  };
  visit(schema);
  return names;
}

/** Makes the form of a question. `send(decision)` sends the person's decision, and rejects with a report if the answer does not fit. */
export function questionForm({ tool, message, schema, report }, send) {
  const secrets = secretsOf(schema);
  const found = h("div", { "aria-live": "polite" });
  const clear = () => {
    found.replaceChildren();
    form.element.querySelectorAll(".invalid").forEach((one) => one.classList.remove("invalid"));
  };
  const editor = codeEditor("Answer as JSON", { onchange: () => { clear(); form.read(editor.area.value); } });
  const form = argumentsForm(schema, (text) => { editor.area.value = text; editor.mark([]); clear(); }, (at) => secrets.includes(at.split("/").pop()), "There is nothing to fill in.");
  editor.area.value = pretty(skeleton(schema));
  form.read(editor.area.value);
  // The text would show the secrets that the form hides.
  const asText = secrets.length === 0 && h("details", {}, h("summary", {}, "As text"), editor.element);
  const show = (issues) => {
    const parsed = parseJson(editor.area.value);
    const placed = issues.map((issue) => ({ issue, ranges: rangesOf(issue, editor.area.value, parsed) }));
    editor.mark(placed.flatMap(({ issue, ranges }) => ranges.map(([start, end]) => ({ start, end, label: issue.message }))));
    const fieldOf = (path) => [...form.element.querySelectorAll(".field[data-path]")].find((one) => one.dataset.path === path);
    placed.forEach(({ issue }) => fieldOf(issue.path)?.classList.add("invalid"));
    found.replaceChildren(faults(placed.map(({ issue }) => ({ issue, onclick: fieldOf(issue.path) && (() => fieldOf(issue.path).querySelector("input, select, textarea, button")?.focus()) }))) || "");
  };
  const say = (decision) => async () => {
    try {
      await send(decision());
    } catch (error) {
      if (error.data?.report) show(error.data.report.issues);
      else found.replaceChildren(h("p", { class: "bad" }, error.message));
    }
  };
  return h("form", { class: "question", "aria-label": `Question of ${tool}`, onsubmit: (event) => { event.preventDefault(); say(() => ({ decision: "answer", text: editor.area.value }))(); } },
    h("p", { class: "asks" }, message), report && h("p", { class: "callout bad" }, report), form.element, asText, found,
    h("div", { class: "actions" }, h("button", { class: "main" }, "Answer"),
      h("button", { type: "button", onclick: say(() => ({ decision: "decline" })) }, "Decline"),
      h("button", { type: "button", class: "quiet", onclick: say(() => ({ decision: "dismiss" })) }, "Dismiss")));
}
