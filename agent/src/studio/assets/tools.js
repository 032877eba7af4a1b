// Tools: their schemas as a model sees them, and a workbench that checks arguments and calls tools.
import { get, post } from "./api.js";
import { callOutcome, coercions, faults } from "./calls.js";
import { chip, empty, escaped, h, pretty } from "./dom.js";
import { codeEditor } from "./editor.js";
import { argumentsForm, skeleton } from "./form.js";
import { parseJson, rangesOf } from "./json.js";

/** Time in milliseconds after the last key press before arguments are checked. */
const CHECK_AFTER = 400;
/** The arguments that were typed for each tool. */
const drafts = new Map();

export async function showTools(view, name) {
  const { tools, tokens } = await get("/api/tools");
  if (!tools.length) return view.replaceChildren(empty("No tools", "The assistant of this studio has none. Give it some with `.tools(tools![…])`."));
  const detail = h("section", { class: "detail", "aria-label": "Tool" });
  const findings = (tool) => tool.findings.length > 0 && h("span", { class: "warn", title: `${tool.findings.length} findings` }, `⚠ ${tool.findings.length}`);
  const rows = tools.map((tool) => h("a", { class: "row", href: `#tools/${encodeURIComponent(tool.name)}` },
    h("span", { class: "grow clip" }, tool.name), findings(tool), h("span", { class: "number dim", title: "tokens in each request" }, tool.tokens)));
  const filter = (event) => rows.forEach((row, at) => { row.hidden = !`${tools[at].name} ${tools[at].description}`.toLowerCase().includes(event.target.value.toLowerCase()); });
  view.replaceChildren(h("div", { class: "split" },
    h("div", { class: "side" },
      h("input", { type: "search", "aria-label": "Search tools", placeholder: "Search tools", "data-search": true, oninput: filter }),
      h("nav", { class: "list", "aria-label": "Tools" }, rows),
      h("p", { class: "dim small" }, `${tools.length} tools, ${tokens} tokens in each request`)),
    detail));
  let opened = null;
  const open = async (next) => {
    const tool = tools.find((one) => one.name === next) || tools[0];
    opened = tool;
    rows.forEach((row, at) => tools[at] === tool ? row.setAttribute("aria-current", "true") : row.removeAttribute("aria-current"));
    const shown = await get(`/api/tools/${encodeURIComponent(tool.name)}`).then((facts) => toolDetail(tool, facts), (error) => [empty("This cannot be shown", error.message)]);
    // Another tool may have been opened in the meantime.
    if (opened === tool) detail.replaceChildren(...shown);
  };
  open(name);
  return open;
}

function toolDetail(tool, facts) {
  const chips = [
    chip(tool.effect, tool.effect === "once" ? "warn" : ""), tool.read_only && chip("read only"), tool.destructive && chip("destructive", "bad"),
    tool.has_approval && chip("asks for approval", "warn"), tool.is_exclusive && chip("runs alone"), tool.timeout_ms && chip(`at most ${tool.timeout_ms / 1000} s`),
    chip(`${tool.tokens} tokens`),
  ];
  const findings = tool.findings.map((finding) => h("li", {}, finding.path && h("code", {}, finding.path), ` ${finding.message} `, h("span", { class: "dim" }, finding.lint)));
  return [
    h("h1", {}, tool.name), h("p", { class: "lead" }, tool.description || "It has no description."), h("div", { class: "chips" }, chips),
    findings.length > 0 && h("div", { class: "callout warn" }, h("strong", {}, findings.length === 1 ? "A finding" : `${findings.length} findings`), h("ul", {}, findings)),
    workbench(tool, facts), schemas(facts),
  ].filter(Boolean);
}

/** Makes the form and the text of the arguments, side by side, with the engine's report on them and the result of a call. */
function workbench(tool, { schema, examples, secrets }) {
  const path = `/api/tools/${encodeURIComponent(tool.name)}`;
  const checked = h("div", { "aria-live": "polite" });
  const result = h("div", { "aria-live": "polite" });
  let timer = 0;
  let asked = 0;
  const show = (answer) => {
    const parsed = parseJson(editor.area.value);
    const issues = (answer.report?.issues || []).map((issue) => ({ issue, ranges: rangesOf(issue, editor.area.value, parsed) }));
    checked.classList.remove("pending");
    editor.mark(issues.flatMap(({ issue, ranges }) => ranges.map(([start, end]) => ({ start, end, label: issue.message }))));
    const go = ([start, end]) => editor.select({ start, end });
    const take = () => setText(escaped(answer.corrected));
    checked.replaceChildren(answer.is_accepted ? accepted(answer) : refused(answer, issues, go, answer.corrected && take));
  };
  const check = async () => {
    clearTimeout(timer);
    const turn = asked += 1;
    const answer = await post(`${path}/check`, { text: editor.area.value }).catch(() => null);
    // If another text has been typed since, the answer is outdated.
    if (turn === asked && answer) show(answer);
  };
  const later = () => {
    drafts.set(tool.name, editor.area.value);
    result.classList.toggle("stale", result.hasChildNodes());
    checked.classList.add("pending");
    asked += 1;
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_AFTER);
  };
  const call = async (confirmed) => {
    await check();
    result.classList.remove("stale");
    result.replaceChildren(h("p", { class: "dim" }, "Running…"));
    try {
      const answer = await post(`${path}/call`, { text: editor.area.value, confirmed }, 0);
      result.replaceChildren(answer.result ? callOutcome(answer.result, answer.duration_ms) : h("p", { class: "dim" }, "Not called: the arguments are refused."));
    } catch (error) {
      if (error.code !== "needs_confirmation") return result.replaceChildren(h("p", { class: "bad" }, error.message));
      const confirm = h("button", { class: "main danger", onclick: () => call(true) }, "Call it");
      result.replaceChildren(h("div", { class: "card warn", role: "group", "aria-label": "Confirmation" }, h("p", {}, h("strong", {}, error.message), " It gets these arguments:"),
        h("pre", {}, pretty(error.data.arguments)), h("div", { class: "actions" }, confirm, h("button", { onclick: () => result.replaceChildren() }, "Keep it from running"))));
      confirm.focus();
    }
  };
  const keys = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (event.shiftKey) call(false);
    else check();
  };
  const editor = codeEditor("Arguments", { onchange: () => { form.read(editor.area.value); later(); }, onkeydown: keys });
  const form = argumentsForm(schema, (text) => { editor.area.value = text; editor.mark([]); later(); }, (at) => (secrets || []).includes(at.split("/").pop()));
  const setText = (text) => {
    editor.area.value = text;
    editor.mark([]);
    form.read(text);
    drafts.set(tool.name, text);
    check();
    editor.area.focus();
  };
  const first = () => pretty(examples.length ? examples[0] : skeleton(schema));
  editor.area.value = drafts.get(tool.name) ?? first();
  form.read(editor.area.value);
  check();
  return h("section", { "aria-label": "Arguments" }, h("h2", {}, "Arguments"),
    h("div", { class: "workbench" },
      h("div", { class: "pane" }, h("h3", {}, "Form"), form.element),
      h("div", { class: "pane" }, h("h3", {}, "Text, as a model would send it"), editor.element,
        h("div", { class: "actions" },
          h("button", { onclick: check, title: "Ctrl+Enter" }, "Check"), h("button", { class: "main", onclick: () => call(false), title: "Ctrl+Shift+Enter" }, "Call"),
          h("button", { class: "quiet", onclick: () => setText(first()) }, "Start again")),
        checked, result)));
}

function accepted(answer) {
  return h("div", { class: "card good", role: "group", "aria-label": "Check" }, h("p", {}, h("strong", { class: "good" }, "Accepted"), answer.coercions.length ? `, with ${answer.coercions.length === 1 ? "a coercion" : `${answer.coercions.length} coercions`}` : ""),
    coercions(answer.coercions), h("details", {}, h("summary", {}, "The arguments that the tool gets"), h("pre", {}, pretty(answer.arguments))));
}

function refused(answer, issues, go, take) {
  return h("div", { class: "card bad", role: "group", "aria-label": "Check" }, h("p", {}, h("strong", { class: "bad" }, "Refused"), ", and the tool does not run"),
    faults(issues.map(({ issue, ranges }) => ({ issue, onclick: ranges.length ? () => go(ranges[0]) : null }))),
    take && h("div", { class: "correction" }, h("p", {}, "The report offers this call:"), h("pre", {}, answer.corrected), h("button", { onclick: take }, "Use the corrected call")),
    h("details", { open: issues.length === 0 }, h("summary", {}, "What the model reads"), h("pre", {}, answer.text)));
}

/** Shows the schema in each dialect, with the changes to it and the rules that it loses. */
function schemas({ dialects }) {
  const shown = h("div", { class: "pane" });
  const choice = (dialect, at) => {
    const lost = dialect.changes.filter((change) => change.is_lost).length;
    const label = `${dialect.changes.length} ${dialect.changes.length === 1 ? "change" : "changes"}${lost ? `, ${lost} lost` : ""}`;
    return h("label", { class: "row" }, h("input", { type: "radio", name: "dialect", checked: at === 0, onchange: () => show(dialect) }),
      h("span", { class: "grow" }, dialect.dialect), dialect.over_budget && h("span", { class: "bad", title: dialect.over_budget }, "over budget"),
      h("span", { class: lost ? "warn" : "dim" }, dialect.changes.length ? label : "as written"));
  };
  const show = (dialect) => shown.replaceChildren(
    dialect.over_budget ? h("p", { class: "bad" }, dialect.over_budget) : "",
    dialect.changes.length ? h("ul", { class: "changes" }, dialect.changes.map((change) => h("li", { class: change.is_lost ? "bad" : "" }, change.text))) : h("p", { class: "dim" }, "Everything that the plan says is in the schema."),
    h("pre", { tabindex: "0", "aria-label": "Schema" }, pretty(dialect.schema)));
  show(dialects[0]);
  return h("section", { "aria-label": "Schemas" }, h("h2", {}, "Schema in each dialect"),
    h("div", { class: "dialects" }, h("div", { class: "list", role: "radiogroup", "aria-label": "Dialect" }, dialects.map(choice)), shown));
}

/** Opens a tool with these arguments in its editor. */
export function tryArguments(tool, text) {
  drafts.set(tool, text);
  location.hash = `#tools/${encodeURIComponent(tool)}`;
}
