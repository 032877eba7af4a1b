// Requests to the studio. Each carries the token of the address with which the page was opened.
import { notice } from "./dom.js";

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", "#tools");
}

async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem("token") || ""}`, ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name !== "AbortError") notice("The studio does not answer. Is the program still running?");
    throw error;
  }
  if (response.ok) {
    notice("");
    return response;
  }
  const { error } = await response.json().catch(() => ({ error: { code: "http", message: `HTTP ${response.status}`, data: null } }));
  if (error.code !== "needs_confirmation") notice(error.message);
  throw Object.assign(new Error(error.message), { code: error.code, data: error.data });
}

export const get = async (path) => (await ask(path)).json();
export const post = async (path, body) =>
  (await ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).json();

/** Follows the events of a run, from where it was left if the connection breaks. */
export async function follow(path, onEvent, signal) {
  let after = "0.0";
  while (!signal.aborted) {
    try {
      const response = await ask(`${path}?after=${after}`, { signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const frames = (rest + part.value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          const fields = Object.fromEntries(frame.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
          if (fields.event === "over") return;
          if (fields.data) onEvent(JSON.parse(fields.data));
          if (fields.id) after = fields.id;
        }
      }
    } catch (error) {
      if (signal.aborted || error.code) return;
    }
    await new Promise((resume) => setTimeout(resume, 1000));
  }
}
