// Shows the OpenAPI document and sends requests, with a token or with the session.
// Text from outside only ever becomes text: nodes are created, never parsed.

const base = document.querySelector('meta[name="rota-base"]').content;
const state = { token: "", csrf: proof(), document: null };

/** What the dashboard kept when it signed in: the cookie alone is not enough. */
function proof() {
  try {
    return localStorage.getItem(`rota-session:${base.replace(/\/+$/, "")}`) ?? "";
  } catch {
    return "";
  }
}

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

async function call(method, path, body) {
  const headers = {};
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  else if (state.csrf) headers["X-CSRF-Token"] = state.csrf;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return fetch(base + path, { method, headers, body, credentials: state.token ? "omit" : "same-origin" });
}

function resolve(schema) {
  const name = schema?.$ref?.split("/").pop();
  return name ? state.document.components.schemas[name] : (schema ?? {});
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.format ?? schema.type ?? "anything";
}

function bounds(schema) {
  const names = {
    minimum: "≥",
    maximum: "≤",
    exclusiveMinimum: ">",
    minLength: "at least",
    maxLength: "at most",
    minItems: "at least",
    maxItems: "at most",
  };
  const limits = Object.entries(names)
    .filter(([name]) => name in schema)
    .map(([name, word]) => `${word} ${schema[name]}`);
  if ("default" in schema && schema.default !== null) limits.push(`default ${JSON.stringify(schema.default)}`);
  return limits.join(", ");
}

function fields(schema) {
  const found = resolve(schema);
  const rows = Object.entries(found.properties ?? {}).map(([name, one]) =>
    make(
      "tr",
      {},
      make("td", {}, make("code", {}, name), found.required?.includes(name) ? " *" : ""),
      make("td", {}, typeOf(one)),
      make("td", {}, bounds(one)),
    ),
  );
  return rows.length ? make("table", {}, ...rows) : make("p", {}, typeOf(schema));
}

function example(schema) {
  const found = resolve(schema);
  const wanted = found.required ?? [];
  return JSON.stringify(Object.fromEntries(wanted.map((name) => [name, ""])), null, 2);
}

function tryOut(method, path, operation) {
  const result = make("pre", { "aria-live": "polite", hidden: true });
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  const inputs = (operation.parameters ?? []).map((one) => ({ one, input: make("input", { name: one.name }) }));
  const text = schema && make("textarea", { "aria-label": "Body", spellcheck: "false" }, example(schema));
  const send = async (event) => {
    event.preventDefault();
    let target = path;
    const query = new URLSearchParams();
    for (const { one, input } of inputs) {
      if (one.in === "path") target = target.replace(`{${one.name}}`, encodeURIComponent(input.value));
      else if (one.in === "query" && input.value) query.set(one.name, input.value);
    }
    result.hidden = false;
    result.textContent = "…";
    const response = await call(method.toUpperCase(), query.size ? `${target}?${query}` : target, text?.value);
    const received = await response.text();
    let shown = received;
    try {
      shown = JSON.stringify(JSON.parse(received), null, 2);
    } catch {
      /* it is not JSON */
    }
    result.textContent = `${response.status} ${response.statusText}\n${shown}`;
  };
  const rows = inputs.map(({ one, input }) =>
    make(
      "tr",
      {},
      make("td", {}, make("label", {}, `${one.name}${one.required ? " *" : ""} `, input)),
      make("td", {}, `${one.in}, ${typeOf(one.schema)}`),
      make("td", {}, bounds(one.schema)),
    ),
  );
  return make(
    "form",
    { onsubmit: send },
    make("table", {}, ...rows),
    ...(schema ? [make("h3", {}, "Body"), fields(schema), text] : []),
    make("button", {}, "Send"),
    result,
  );
}

function responses(operation) {
  const rows = Object.entries(operation.responses).map(([status, one]) => {
    const schema = Object.values(one.content ?? {})[0]?.schema;
    return make(
      "tr",
      {},
      make("td", {}, status),
      make("td", {}, one.description),
      make("td", {}, schema ? make("code", {}, typeOf(schema)) : ""),
    );
  });
  return make("table", {}, ...rows);
}

function show(method, path, operation) {
  const details = make(
    "details",
    {},
    make(
      "summary",
      {},
      make("span", { class: "method" }, method.toUpperCase()),
      make("code", {}, path),
      make("span", { class: "summary" }, operation.summary),
      make("span", { class: "permission" }, operation["x-permission"] ?? "open"),
    ),
  );
  details.dataset.text = `${method} ${path} ${operation.summary} ${operation["x-permission"] ?? ""}`.toLowerCase();
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    details.append(make("p", {}, operation.description ?? operation.summary));
    if (!path.endsWith("/events")) details.append(tryOut(method, path, operation));
    details.append(make("h3", {}, "Responses"), responses(operation));
  });
  return details;
}

function draw() {
  const byTag = new Map();
  for (const [path, methods] of Object.entries(state.document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0];
      byTag.set(tag, [...(byTag.get(tag) ?? []), show(method, path, operation)]);
    }
  }
  const schemas = Object.entries(state.document.components.schemas).map(([name, schema]) =>
    make(
      "details",
      {},
      make("summary", {}, make("code", {}, name)),
      make("p", {}, schema.description ?? ""),
      fields(schema),
    ),
  );
  const sections = [...byTag].map(([tag, nodes]) => make("section", {}, make("h2", {}, tag), ...nodes));
  document
    .querySelector("#operations")
    .replaceChildren(...sections, make("section", {}, make("h2", {}, "Schemas"), ...schemas));
}

async function load() {
  const who = document.querySelector("#who");
  const session = state.token ? null : await (await call("GET", "/api/session")).json();
  const response = await call("GET", "/api/openapi.json");
  who.textContent = response.ok
    ? state.token
      ? "with this token"
      : (session.me?.name ?? "signed in")
    : "not signed in";
  if (response.ok) {
    state.document = await response.json();
    draw();
  }
}

document.querySelector("#credential").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = new FormData(event.target).get("token").trim();
  load();
});
document.querySelector("#find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const node of document.querySelectorAll("details[data-text]")) {
    node.hidden = !words.every((word) => node.dataset.text.includes(word));
  }
});
load();
