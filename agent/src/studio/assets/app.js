// The frame of the page: its views, and which one is shown.
import { get } from "./api.js";
import { h } from "./dom.js";
import { showRun } from "./run.js";
import { showTools } from "./tools.js";
import { showWindow } from "./window.js";

const views = { tools: showTools, run: showRun, window: showWindow };
let shown = null;

function show() {
  const name = location.hash.slice(1) in views ? location.hash.slice(1) : "tools";
  if (name === shown) return;
  shown = name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const view = h("main", { id: "view" });
  document.getElementById("view").replaceWith(view);
  views[name](view).catch((error) => view.replaceChildren(h("p", { class: "bad" }, error.message)));
}

addEventListener("hashchange", show);
show();
get("/api/info").then((info) => { document.getElementById("model").append(h("span", {}, `${info.provider}/${info.model}`)); }, () => {});
