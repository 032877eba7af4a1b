// Reads JSON with the position of each key and value, and writes it. Numbers and repeated keys stay as they were written.

/** Maximum depth of nested values. Deeper nesting counts as a fault. */
const MAX_DEPTH = 100;
const SCALAR = /(?:"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const SPACE = /[ \t\r\n]*/y;

/**
 * Reads a text. A node is `{kind, start, end}` with `entries` (`{key, keyStart, keyEnd, value}`) of an object, `items` of an array, or
 * `raw` of a scalar. Returns `{root, fault}`: `fault` is the first position at which the text is not JSON, and `root` has the values
 * before it.
 */
export function parseJson(text) {
  let at = 0;
  let root = null;
  const skip = () => { SPACE.lastIndex = at; SPACE.exec(text); at = SPACE.lastIndex; };
  const fail = (message) => { throw Object.assign(new SyntaxError(message), { at }); };
  const expect = (mark) => {
    skip();
    if (text[at] !== mark) fail(`expected \`${mark}\``);
    at += 1;
  };
  const scalar = () => {
    SCALAR.lastIndex = at;
    const [raw] = SCALAR.exec(text) || fail(at < text.length ? "expected a value" : "the text ends early");
    const kind = { '"': "string", t: "boolean", f: "boolean", n: "null" }[raw[0]] || "number";
    at += raw.length;
    return { kind, start: at - raw.length, end: at, raw };
  };
  // `place` adds a container to its parent before the content is read, so that a fault leaves the values before it.
  const value = (depth, place) => {
    skip();
    if (depth > MAX_DEPTH) fail("nested too deeply");
    const start = at;
    if (text[at] !== "{" && text[at] !== "[") return place(scalar());
    const isObject = text[at] === "{";
    const [open, close] = isObject ? ["entries", "}"] : ["items", "]"];
    const node = { kind: isObject ? "object" : "array", start, end: text.length, [open]: [] };
    place(node);
    at += 1;
    skip();
    for (let isFirst = true; text[at] !== close; isFirst = false) {
      if (!isFirst) expect(",");
      skip();
      if (isObject) {
        if (text[at] !== '"') fail("expected a key in quotes");
        const key = scalar();
        const entry = { key: JSON.parse(key.raw), keyStart: key.start, keyEnd: key.end, value: null };
        node.entries.push(entry);
        expect(":");
        value(depth + 1, (inner) => { entry.value = inner; });
      } else value(depth + 1, (inner) => node.items.push(inner));
      skip();
      if (at >= text.length) fail(`the text ends before \`${close}\``);
    }
    at += 1;
    node.end = at;
  };
  try {
    value(0, (node) => { root = node; });
    skip();
    if (at < text.length) fail("more text after the value");
    return { root, fault: null };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { root, fault: { at: error.at, message: error.message } };
  }
}

/** Returns the text of a node, over several lines. The positions of the node are not used and may be missing. */
export function writeJson(node, indent = "") {
  const inner = `${indent}  `;
  const lines = (all, open, close) => all.length ? `${open}\n${inner}${all.join(`,\n${inner}`)}\n${indent}${close}` : open + close;
  if (node.kind === "object") {
    return lines(node.entries.map(({ key, value }) => `${JSON.stringify(key)}: ${writeJson(value, inner)}`), "{", "}");
  }
  if (node.kind === "array") {
    const items = node.items.map((item) => writeJson(item, inner));
    const short = `[${items.join(", ")}]`;
    return short.length < 72 && !short.includes("\n") ? short : lines(items, "[", "]");
  }
  return node.raw;
}

/** Returns the node of a value. */
export const nodeOf = (value) => parseJson(JSON.stringify(value)).root;

/** Returns the tokens of a JSON Pointer. */
const tokens = (path) => path.split("/").slice(1).map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));

/**
 * Returns the ranges `[start, end]` of the text that an issue of a report is about: an unknown or repeated key, the first character of the
 * value that lacks a key or an item, the position at which the text is not JSON, and for all other issues the value.
 */
export function rangesOf(issue, text, { root, fault }) {
  if (issue.code === "json") {
    const at = fault ? Math.min(fault.at, Math.max(0, text.length - 1)) : 0;
    return [[at, fault ? at + 1 : text.length]];
  }
  let found = root ? [{ node: root }] : [];
  for (const token of tokens(issue.path)) {
    const inner = found.flatMap(({ node }) => {
      if (node?.kind === "array") return node.items[token] ? [{ node: node.items[token] }] : [];
      return (node?.entries || []).filter((entry) => entry.key === token)
        .map((entry) => ({ node: entry.value, key: [entry.keyStart, entry.keyEnd] }));
    });
    if (!inner.length) return found.filter(({ node }) => node).map(({ node }) => [node.start, node.start + 1]);
    found = inner;
  }
  const isOfKey = issue.code === "unknown" || issue.code === "duplicate";
  return found.map(({ node, key }) => (isOfKey || !node) && key ? key : [node.start, node.end]);
}
