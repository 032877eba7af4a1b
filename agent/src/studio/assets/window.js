// Window: what fills the context window of the next request.
import { get } from "./api.js";
import { h } from "./dom.js";

export async function showWindow(view) {
  const { open } = await get("/api/sessions");
  const bars = h("div", {});
  const choice = h("select", { "aria-label": "Conversation", onchange: () => show() },
    open.map((one) => h("option", { value: one.id }, one.title || one.id)), h("option", { value: "" }, "New conversation"));
  const show = async () => {
    const report = await get(choice.value ? `/api/sessions/${encodeURIComponent(choice.value)}/window` : "/api/window");
    const most = Math.max(1, ...report.parts.map((part) => part.tokens));
    bars.replaceChildren(h("p", { class: "dim" }, `${report.used} tokens, ± ${report.error}`), h("table", {}, report.parts.map((part) => {
      const [kind, tool] = typeof part.source === "string" ? [part.source, ""] : Object.entries(part.source)[0];
      const name = `${kind.replace("_", " ")} ${tool}`;
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, h("meter", { value: part.tokens, max: most, "aria-label": name })), h("td", { class: "number" }, part.tokens));
    })));
  };
  view.replaceChildren(h("h1", {}, "Next request"), choice, bars);
  await show();
}
