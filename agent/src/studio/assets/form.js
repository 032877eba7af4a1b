// A form for the arguments of a tool, rendered from the schema of its plan. The form edits the nodes of `json.js`, so that values that it
// does not show stay as they were written.
import { escaped, h, pretty } from "./dom.js";
import { nodeOf, parseJson, writeJson } from "./json.js";

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const textNode = (text) => ({ kind: "string", raw: escaped(JSON.stringify(text)) });
const hasType = (schema, type) => schema.type === type || (Array.isArray(schema.type) && schema.type.includes(type));

/** Follows references within the schema, and joins the parts of an `allOf`. */
function resolved(schema, root) {
  for (let hops = 0; schema && typeof schema.$ref === "string" && hops < 20; hops += 1) {
    const target = schema.$ref.split("/").slice(1).reduce((at, token) => at?.[decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~")], root);
    schema = target && { ...target, ...schema, $ref: target.$ref };
  }
  if (!schema || typeof schema !== "object") return {};
  if (!Array.isArray(schema.allOf)) return schema;
  const parts = schema.allOf.map((part) => resolved(part, root));
  const all = [schema, ...parts];
  return { ...Object.assign({}, ...parts), ...schema, allOf: undefined,
    properties: Object.assign({}, ...all.map((part) => part.properties)), required: all.flatMap((part) => part.required || []) };
}

/** Returns the only value that a schema accepts, such as the tag of an alternative, or undefined if it accepts several. */
const onlyValue = (schema) => "const" in schema ? schema.const : schema.enum?.length === 1 ? schema.enum[0] : undefined;

/** Returns the alternatives of a union, or undefined if the schema is not a union. */
function variantsOf(schema, root) {
  const list = schema.anyOf || schema.oneOf
    || (Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type, description: undefined })) : null);
  return list?.map((one) => resolved(one, root));
}

function variantName(variant, at) {
  const tag = Object.values(variant.properties || {}).map(onlyValue).find((value) => value !== undefined);
  const only = onlyValue(variant);
  const keys = Object.keys(variant.properties || {});
  const key = keys.length === 1 && variant.required?.includes(keys[0]) ? keys[0] : undefined;
  const name = variant.title || (only !== undefined ? pretty(only) : tag !== undefined ? String(tag) : key || variant.type) || `alternative ${at + 1}`;
  return variant.description ? `${name}: ${variant.description}` : String(name);
}

/** Returns whether a value has a type that the schema accepts, and its fixed values. Limits are not checked. */
function fits(schema, node, root) {
  const only = onlyValue(schema);
  if (only !== undefined) return node.raw === JSON.stringify(only);
  const variants = variantsOf(schema, root);
  if (variants) return variants.some((variant) => fits(variant, node, root));
  if (node.kind === "object") {
    if (!hasType(schema, "object") && !schema.properties) return false;
    return node.entries.every(({ key, value }) => {
      const inner = schema.properties?.[key] && resolved(schema.properties[key], root);
      return !inner || onlyValue(inner) === undefined || !value || value.raw === JSON.stringify(onlyValue(inner));
    });
  }
  const types = { array: "array", string: "string", boolean: "boolean", null: "null" };
  return node.kind === "number" ? hasType(schema, "number") || hasType(schema, "integer") : hasType(schema, types[node.kind]);
}

/** Returns an initial value for a schema, with the required fields only. */
export function skeleton(schema, root = schema, depth = 0) {
  schema = resolved(schema, root);
  const only = onlyValue(schema);
  if (only !== undefined) return only;
  if (schema.enum) return schema.enum[0];
  const variants = variantsOf(schema, root);
  if (variants) return depth < 8 ? skeleton(variants.find((variant) => !hasType(variant, "null")) || {}, root, depth + 1) : null;
  if (hasType(schema, "object") || schema.properties) {
    const required = depth < 8 ? schema.required || [] : [];
    return Object.fromEntries(required.map((key) => [key, skeleton(schema.properties?.[key] || {}, root, depth + 1)]));
  }
  if (hasType(schema, "array")) return (schema.prefixItems || []).map((item) => skeleton(item, root, depth + 1));
  if (hasType(schema, "integer") || hasType(schema, "number")) return Math.max(schema.minimum ?? 0, 0);
  if (hasType(schema, "boolean")) return false;
  return hasType(schema, "string") ? "" : null;
}

/** Describes the type and the limits of a field in a few words. */
function limits(schema) {
  const range = (from, to, unit) => from == null && to == null ? "" : from == null ? `at most ${to}${unit}` : to == null ? `at least ${from}${unit}` : `${from} to ${to}${unit}`;
  return [
    typeof schema.type === "string" && schema.type !== "object" && !schema.enum && schema.type,
    range(schema.minimum, schema.maximum, ""), schema.exclusiveMinimum != null && `more than ${schema.exclusiveMinimum}`,
    schema.exclusiveMaximum != null && `less than ${schema.exclusiveMaximum}`,
    range(schema.minLength, schema.maxLength, " characters"), range(schema.minItems, schema.maxItems, " items"),
    schema.format, schema.pattern && `pattern ${schema.pattern}`, schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean).join(" · ");
}

/**
 * Makes a form: `element`, and `read(text)`, which shows a text. `write(text)` is called with the text after each edit. `isSecret(path)`
 * returns whether a field hides its text. A text that is not one JSON object, or repeats a key, has no form. `nothing` is shown if the
 * schema has no fields.
 */
export function argumentsForm(schema, write, isSecret, nothing = "The tool has no arguments.") {
  const element = h("div", { class: "form", role: "group", "aria-label": "Form" });
  let tree = null;
  const changed = () => write(writeJson(tree));
  /** Edits the structure of the value: makes all fields anew, and moves the focus to the field at `path`. */
  const restructure = (edit, path) => {
    edit();
    changed();
    render();
    const field = [...element.querySelectorAll("[data-path]")].find((one) => one.dataset.path === path);
    (field?.querySelector("input, select, textarea") || field?.querySelector("button"))?.focus();
  };
  const context = { root: schema, changed, restructure, isSecret };
  const render = () => {
    const whole = resolved(schema, schema);
    const variants = variantsOf(whole, schema);
    element.replaceChildren(...(variants ? [union(variants, tree, (value) => { tree = value; }, "", "arguments", context)] : objectFields(whole, tree, "", context)));
    if (!element.firstChild) element.append(h("p", { class: "dim" }, nothing));
  };
  const read = (text) => {
    const { root, fault } = parseJson(text);
    const problem = fault ? `The text is not JSON: ${fault.message}.` : root.kind !== "object" ? "The text is not an object."
      : repeated(root) && `The key \`${repeated(root)}\` is repeated.`;
    if (problem) {
      tree = null;
      element.replaceChildren(h("p", { class: "dim" }, `${problem} The form returns when the text has one object.`));
      return;
    }
    tree = root;
    render();
  };
  return { element, read };
}

/** Returns the first key that an object in the node has twice, or undefined if there is none. */
function repeated(node) {
  if (node.kind === "array") return node.items.map(repeated).find(Boolean);
  const keys = (node.entries || []).map((entry) => entry.key);
  return keys.find((key, at) => keys.indexOf(key) !== at) || (node.entries || []).map((entry) => repeated(entry.value)).find(Boolean);
}

/** Makes the fields of an object: the properties of its schema, and the other keys of the text. */
function objectFields(schema, node, path, context) {
  const known = Object.entries(schema.properties || {});
  const others = node.entries.filter(({ key }) => !known.some(([name]) => name === key));
  const fields = known.map(([key, inner]) => property(key, resolved(inner, context.root), schema.required?.includes(key), node, path, context));
  const more = schema.additionalProperties && typeof schema.additionalProperties === "object" ? resolved(schema.additionalProperties, context.root) : null;
  fields.push(...others.map(({ key }) => property(key, more || {}, false, node, path, context, !more)));
  if (more) fields.push(adder(node, more, path, context));
  return fields;
}

/** Makes the control that adds an entry to an object whose schema describes the values of additional keys. */
function adder(node, schema, path, context) {
  const name = h("input", { "aria-label": "New key", placeholder: "key" });
  const add = () => {
    const key = name.value;
    if (!key || node.entries.some((entry) => entry.key === key)) return;
    context.restructure(() => node.entries.push({ key, value: nodeOf(skeleton(schema, context.root)) }), `${path}/${key}`);
  };
  return h("div", { class: "inline" }, name, h("button", { type: "button", onclick: add }, "Add key"));
}

function property(key, schema, isRequired, node, path, context, isUnknown = false) {
  const at = `${path}/${key}`;
  const entry = node.entries.find((one) => one.key === key);
  const remove = () => context.restructure(() => node.entries.splice(node.entries.indexOf(entry), 1), at);
  const set = () => context.restructure(() => node.entries.push({ key, value: nodeOf(schema.default ?? skeleton(schema, context.root)) }), at);
  const head = h("div", { class: "field-head" }, h("span", { class: "name" }, key), isRequired && h("span", { class: "required", title: "required" }, "required"),
    h("span", { class: "dim" }, isUnknown ? "unknown parameter" : limits(schema)),
    entry && !isRequired && h("button", { type: "button", class: "quiet", "aria-label": `Remove ${key}`, onclick: remove }, "Remove"));
  const control = entry
    ? valueControl(schema, entry.value, (value) => { entry.value = value; }, at, key, context)
    : h("button", { type: "button", class: "quiet set", "aria-label": `Set ${key}`, onclick: set }, isRequired ? "Missing: set it" : "Set");
  return h("div", { class: `field ${entry ? "" : "absent"}`, "data-path": at }, head, schema.description && h("p", { class: "hint" }, schema.description), control);
}

/** Makes the control of a value: the control for the schema if the value has its type, and otherwise a control for the JSON text. */
function valueControl(schema, node, replace, path, label, context) {
  const name = path.slice(1).replaceAll("/", " ");
  const edit = (value) => { replace(value); context.changed(); };
  const variants = variantsOf(schema, context.root);
  if (variants) return union(variants, node, replace, path, label, context);
  if (onlyValue(schema) !== undefined && node.raw === JSON.stringify(onlyValue(schema))) return h("output", { class: "fixed" }, node.raw);
  if (schema.enum && node.raw !== undefined) {
    const isKnown = schema.enum.some((one) => JSON.stringify(one) === node.raw);
    return h("select", { "aria-label": name, "data-path": path, onchange: (event) => event.target.value && edit(nodeOf(schema.enum[event.target.value])) },
      !isKnown && h("option", { value: "", selected: true }, `${node.raw}, as written`),
      schema.enum.map((one, at) => h("option", { value: at, selected: JSON.stringify(one) === node.raw }, typeof one === "string" ? one : JSON.stringify(one))));
  }
  if (!schema.enum && node.kind === "object" && fits(schema, node, context.root)) return h("div", { class: "nested" }, objectFields(schema, node, path, context));
  if (node.kind === "array" && hasType(schema, "array")) return list(schema, node, path, context);
  if (node.kind === "boolean" && hasType(schema, "boolean")) {
    return h("input", { type: "checkbox", "aria-label": name, "data-path": path, checked: node.raw === "true", onchange: (event) => edit(nodeOf(event.target.checked)) });
  }
  if (!schema.enum && node.kind === "string" && hasType(schema, "string")) {
    const text = JSON.parse(node.raw);
    const isLong = text.includes("\n") || schema.maxLength > 200;
    const control = h(isLong ? "textarea" : "input", { "aria-label": name, "data-path": path, type: context.isSecret(path) && "password", autocomplete: "off",
      oninput: (event) => edit(textNode(event.target.value)) });
    control.value = text;
    return control;
  }
  if ((hasType(schema, "integer") || hasType(schema, "number")) && (node.kind === "number" || node.raw === '""')) {
    const control = h("input", { inputmode: "decimal", "aria-label": name, "data-path": path, autocomplete: "off",
      // Text that is not a number reaches the check as a string.
      oninput: (event) => edit(NUMBER.test(event.target.value) ? { kind: "number", raw: event.target.value } : textNode(event.target.value)) });
    control.value = node.kind === "number" ? node.raw : "";
    return control;
  }
  return rawControl(node, replace, path, name, context);
}

function rawControl(node, replace, path, name, context) {
  const fault = h("span", { class: "bad" });
  const control = h("textarea", { class: "code raw", rows: "2", "aria-label": `${name} as JSON`, "data-path": path, spellcheck: "false", oninput: () => {
    const parsed = parseJson(control.value);
    fault.textContent = parsed.fault ? `not JSON: ${parsed.fault.message}` : "";
    if (parsed.fault) return;
    replace(parsed.root);
    context.changed();
  } });
  control.value = writeJson(node);
  return h("div", {}, control, fault);
}

/**
 * Returns the index of the alternative that a value fits, or -1. If an object fits several, each key that an alternative has counts for
 * it, and each required key that the object lacks counts against it.
 */
function closest(variants, node, root) {
  const keys = (node.entries || []).map((entry) => entry.key);
  const score = (variant) => keys.filter((key) => variant.properties?.[key]).length - (variant.required || []).filter((key) => !keys.includes(key)).length;
  const fitting = variants.filter((variant) => fits(variant, node, root));
  return variants.indexOf(fitting.sort((a, b) => score(b) - score(a))[0]);
}

/** Makes the control of a union: the choice of an alternative, and the control of its value. */
function union(variants, node, replace, path, label, context) {
  const chosen = closest(variants, node, context.root);
  const choice = h("select", { "aria-label": `${label}: alternative`, "data-path": path, onchange: () => context.restructure(() => {
    const next = nodeOf(skeleton(variants[choice.value], context.root));
    replace(next);
  }, path) }, chosen < 0 && h("option", { value: "", selected: true }, "as JSON"),
  variants.map((variant, at) => h("option", { value: at, selected: at === chosen }, variantName(variant, at))));
  if (chosen < 0) return h("div", { class: "union" }, choice, rawControl(node, replace, path, path.slice(1), context));
  const variant = variants[chosen];
  return h("div", { class: "union" }, choice, node.kind !== "null" && valueControl(variant, node, replace, path, label, context));
}

/** Makes the control of an array. */
function list(schema, node, path, context) {
  const itemSchema = (at) => resolved(schema.prefixItems?.[at] || (schema.items && typeof schema.items === "object" ? schema.items : {}), context.root);
  const rows = node.items.map((item, at) => h("li", { class: "item", "data-path": `${path}/${at}` },
    h("div", { class: "grow" }, valueControl(itemSchema(at), item, (value) => { node.items[at] = value; }, `${path}/${at}`, `${at + 1}`, context)),
    h("button", { type: "button", class: "quiet", "aria-label": `Remove item ${at + 1}`, onclick: () => context.restructure(() => node.items.splice(at, 1), path) }, "Remove")));
  const add = () => {
    const at = node.items.length;
    context.restructure(() => node.items.push(nodeOf(skeleton(itemSchema(at), context.root))), `${path}/${at}`);
  };
  return h("div", { class: "list-field", "data-path": path }, h("ol", {}, rows), h("button", { type: "button", class: "quiet", onclick: add }, "Add an item"));
}
