// Window: what fills the context window of the next request.
import { get } from "./api.js";
import { empty, h } from "./dom.js";

const KINDS = { system: 0, tool: 1, user: 2, replies: 3, tool_results: 4 };
const count = (number) => number.toLocaleString("en");

export async function showWindow(view, of) {
  const { open } = await get("/api/sessions");
  const shown = h("div", {});
  const choice = h("select", { "aria-label": "Conversation", onchange: () => show() },
    open.map((one) => h("option", { value: one.id, selected: one.id === of }, one.title || one.id)), h("option", { value: "" }, "New conversation"));
  const show = async () => {
    const report = await get(choice.value ? `/api/sessions/${encodeURIComponent(choice.value)}/window` : "/api/window");
    const parts = report.parts.filter((part) => part.tokens > 0).sort((a, b) => b.tokens - a.tokens);
    if (!parts.length) return shown.replaceChildren(empty("Nothing yet", "The next request would be empty."));
    const total = report.usable || report.used;
    const most = parts[0].tokens;
    const bar = (part, of) => {
      const element = h("span", { class: `bar kind-${KINDS[kindOf(part)] ?? 5}`, title: `${nameOf(part)}: ${count(part.tokens)}` });
      element.style.width = `${100 * part.tokens / of}%`;
      return element;
    };
    const share = report.usable ? ` of ${count(report.usable)} usable, ${Math.round(100 * report.used / report.usable)} %` : "; the size of the window is not known";
    shown.replaceChildren(
      h("p", { class: "lead" }, h("strong", {}, `${count(report.used)} tokens`), h("span", { class: "dim" }, `${share} (± ${count(report.error)})`)),
      h("div", { class: "stack", role: "img", "aria-label": `${count(report.used)} of ${count(total)} tokens` }, parts.map((part) => bar(part, total))),
      h("table", { class: "parts" }, parts.map((part) => h("tr", {}, h("th", { scope: "row" }, nameOf(part)), h("td", { class: "wide" }, bar(part, most)),
        h("td", { class: "number" }, count(part.tokens)), h("td", { class: "number dim" }, `${(100 * part.tokens / report.used).toFixed(1)} %`)))));
  };
  view.replaceChildren(h("div", { class: "run-head" }, h("h1", {}, "What fills the next request"), choice), shown);
  await show();
}

const kindOf = (part) => typeof part.source === "string" ? part.source : Object.keys(part.source)[0];
function nameOf(part) {
  const of = typeof part.source === "string" ? "" : Object.values(part.source)[0];
  return `${kindOf(part).replaceAll("_", " ")} ${of}`.trim();
}
