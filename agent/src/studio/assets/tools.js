// Tools: what a model sees of them, and what becomes of arguments.
import { get, post } from "./api.js";
import { h, pretty } from "./dom.js";

export async function showTools(view) {
  const { tools, tokens } = await get("/api/tools");
  if (!tools.length) return view.replaceChildren(h("p", { class: "dim" }, "The assistant has no tools."));
  const detail = h("section", { "aria-label": "Tool" });
  const rows = tools.map((tool) => h("button", { class: "row", onclick: () => open(tool) },
    h("span", {}, tool.name), h("span", { class: "dim" }, `${tool.tokens} tokens${tool.findings.length ? ` · ${tool.findings.length} ⚠` : ""}`)));
  const open = async (tool) => {
    rows.forEach((row, at) => tools[at] === tool ? row.setAttribute("aria-current", "true") : row.removeAttribute("aria-current"));
    detail.replaceChildren(await toolDetail(tool));
  };
  view.replaceChildren(h("div", { class: "split" },
    h("div", {}, h("p", { class: "dim" }, `${tools.length} tools · ${tokens} tokens per request`), h("div", { class: "list" }, rows)), detail));
  await open(tools[0]);
}

async function toolDetail(tool) {
  const { dialects, examples } = await get(`/api/tools/${encodeURIComponent(tool.name)}`);
  const facts = [tool.effect, tool.has_approval && "asks for approval", tool.destructive && "destructive", tool.is_exclusive && "exclusive"];
  const schema = h("div", {});
  const choice = h("select", { "aria-label": "Dialect", onchange: () => showDialect() }, dialects.map((dialect, at) => h("option", { value: at }, dialect.dialect)));
  const showDialect = () => {
    const dialect = dialects[choice.value];
    schema.replaceChildren(
      h("ul", {}, dialect.changes.map((change) => h("li", { class: change.is_lost && "bad" }, change.text)), dialect.over_budget && h("li", { class: "bad" }, dialect.over_budget)),
      h("pre", {}, pretty(dialect.schema)));
  };
  showDialect();
  return h("div", {}, h("h1", {}, tool.name), h("p", {}, tool.description), h("p", { class: "dim" }, facts.filter(Boolean).join(" · ")),
    tool.findings.map((finding) => h("p", { class: "bad" }, `${finding.path} ${finding.message} (${finding.lint})`)),
    h("h2", {}, "Arguments"), editor(tool, examples), h("h2", {}, "Schema"), choice, schema);
}

function editor(tool, examples) {
  const text = h("textarea", { class: "code", "aria-label": "Arguments", spellcheck: "false", onkeydown: (event) => { if (event.ctrlKey && event.key === "Enter") send("check"); } });
  text.value = examples.length ? pretty(examples[0]) : "{}";
  const out = h("div", { "aria-live": "polite" });
  const path = `/api/tools/${encodeURIComponent(tool.name)}`;
  const send = async (what, confirmed = false) => {
    out.replaceChildren(h("p", { class: "dim" }, "Waiting…"));
    try {
      const body = what === "call" ? { text: text.value, confirmed } : { text: text.value };
      out.replaceChildren(outcome(await post(`${path}/${what}`, body), text));
    } catch (error) {
      if (error.code !== "needs_confirmation") return out.replaceChildren(h("p", { class: "bad" }, error.message));
      const confirm = h("button", { class: "main", onclick: () => send("call", true) }, "Call it");
      out.replaceChildren(h("div", { class: "card" }, h("p", {}, error.message), h("pre", {}, pretty(error.data.arguments)),
        h("div", { class: "actions" }, confirm, h("button", { onclick: () => out.replaceChildren() }, "Cancel"))));
      confirm.focus();
    }
  };
  return h("div", {}, text, h("div", { class: "actions" },
    h("button", { onclick: () => send("check") }, "Check"), h("button", { class: "main", onclick: () => send("call") }, "Call")), out);
}

export function coercions(list) {
  return h("ul", {}, (list || []).map((one) => h("li", {}, `${one.path || "(arguments)"}: ${JSON.stringify(one.from)} → ${JSON.stringify(one.to)} (${one.rule})`)));
}

function outcome(answer, text) {
  if (!answer.is_accepted) {
    const fix = answer.corrected && h("button", { onclick: () => { text.value = answer.corrected; text.focus(); } }, "Use the corrected call");
    return h("div", { class: "card" }, h("p", { class: "bad" }, "Refused. The model would read:"), h("pre", {}, answer.text), fix);
  }
  const result = answer.result && [h("p", {}, `${answer.result.outcome} in ${answer.duration_ms} ms`), h("pre", {}, pretty(answer.result.content))];
  return h("div", { class: "card" }, h("p", { class: "good" }, "Accepted"), coercions(answer.coercions), h("pre", {}, pretty(answer.arguments)), result);
}
