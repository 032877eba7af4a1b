// Requests to the studio. Each carries the token of the address with which the page was opened.
import { h, notice } from "./dom.js";

/** Time limit of a request, in milliseconds. Longer than the 15 s that the studio waits for a store. */
const LIMIT = 20_000;
/** Pause between two checks whether the studio answers, and the time limit of a check. */
const HEARTBEAT = 5_000;
/** Time limit between two events or keep-alive comments of a stream; there is one at least every 10 s. */
const SILENCE = 25_000;
/** Pause between two attempts to reach a studio that did not answer. */
const PAUSE = 1_000;

const tokenOf = (hash) => new URLSearchParams(hash.replace(/^#/, "")).get("token");
const given = tokenOf(location.hash);
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", "#tools");
}
const headers = (more) => ({ authorization: `Bearer ${sessionStorage.getItem("token") || ""}`, ...more });
const wait = (ms) => new Promise((resume) => setTimeout(resume, ms));

let isAway = false;
/** The id of the studio's process. Another process does not know the runs of this one. */
let instance = null;

/** Checks whether the studio answers. Returns null if it does not, for instance because its process hangs. */
async function isThere() {
  const response = await fetch("/api/info", { headers: headers(), signal: AbortSignal.timeout(HEARTBEAT) }).catch(() => null);
  return response && { status: response.status, info: response.ok ? await response.json().catch(() => null) : null };
}

/** Notifies the page that the studio answers again, and whether its process is the same. Asks for the address if the token is unknown. */
function back({ status, info }) {
  if (status === 401) return unknownToken();
  const isSame = info?.instance === instance;
  instance = info?.instance ?? null;
  dispatchEvent(new CustomEvent("studio-back", { detail: { isSame } }));
}

/** Detects that the studio ended, hangs or was restarted, also while the page sends no requests. */
async function watch() {
  for (;; await wait(HEARTBEAT)) {
    if (isAway || document.hidden) continue;
    const there = await isThere();
    if (!there) away();
    else if (!isAway && (there.status === 401 || (there.info && there.info.instance !== (instance ??= there.info.instance)))) back(there);
  }
}

/** Waits until the studio answers again, and then notifies the page. */
async function away() {
  if (isAway) return;
  isAway = true;
  document.body.dataset.connection = "lost";
  notice("The studio does not answer. Trying again until it does.");
  for (;;) {
    await wait(PAUSE);
    const there = await isThere();
    if (!there) continue;
    isAway = false;
    delete document.body.dataset.connection;
    notice("");
    return back(there);
  }
}

/** Asks the person for the address of the studio, because a restarted program has another token. */
function unknownToken() {
  if (document.querySelector("#notice form")) return;
  const address = h("input", { "aria-label": "Address of the studio", placeholder: "http://…/#token=…", type: "url" });
  const use = (event) => {
    event.preventDefault();
    const token = tokenOf(address.value.slice(address.value.indexOf("#")));
    if (!token) return;
    sessionStorage.setItem("token", token);
    notice("");
    dispatchEvent(new CustomEvent("studio-back", { detail: { isSame: false } }));
  };
  notice("The token is not the one of this studio. Open the address that the program printed when it started, or paste it here.",
    h("form", { onsubmit: use }, address, h("button", {}, "Use it")));
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch (error) {
    if (!options.signal?.aborted || options.signal.reason?.name === "TimeoutError") away();
    throw ["TypeError", "TimeoutError"].includes(error.name) ? new Error("The studio does not answer.") : error;
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: { code: "http", message: `HTTP ${response.status}`, data: null } }));
  if (response.status === 401) unknownToken();
  throw Object.assign(new Error(error.message), { code: error.code, data: error.data });
}

export const get = async (path) => (await ask(path, { signal: AbortSignal.timeout(LIMIT) })).json();
/** Sends a request with a JSON body. `limit` is its time limit in milliseconds, or 0 for none: a tool has a time limit of its own. */
export const post = async (path, body, limit = LIMIT) =>
  (await ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal: limit ? AbortSignal.timeout(limit) : null })).json();

/**
 * Follows the events of a run. If the connection breaks, it continues after the last event that arrived. Returns whether the run is over:
 * false if the studio does not know the run, or if `signal` was aborted.
 */
export async function follow(path, onEvent, signal) {
  let after = "0.0";
  while (!signal.aborted) {
    const connection = new AbortController();
    const stop = () => connection.abort(signal.reason);
    signal.addEventListener("abort", stop);
    let timer = 0;
    const isAlive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => connection.abort(new DOMException("silent", "TimeoutError")), SILENCE);
    };
    try {
      isAlive();
      const response = await ask(`${path}?after=${after}`, { signal: connection.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        isAlive();
        const frames = (rest + part.value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          const fields = Object.fromEntries(frame.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
          if (fields.event === "over") return true;
          if (fields.data && !signal.aborted) onEvent(JSON.parse(fields.data));
          if (fields.id) after = fields.id;
        }
      }
    } catch (error) {
      if (signal.aborted) return false;
      if (error.code === "not_found") return false;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
    await wait(PAUSE);
  }
  return false;
}

watch();
