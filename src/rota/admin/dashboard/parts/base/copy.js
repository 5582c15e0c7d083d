// @ts-check
// Copying: a line, a value, an action as a command, a request or a program.

import { base } from "../../state.js";
import { html, useState } from "../../ui.js";
import { write } from "../../exact.js";
import { clean, shellQuote } from "../../format.js";
import { Button } from "./button.js";
import { show } from "./dialog.js";

/**
 * @param {{text: string | (() => string), children?: unknown, label?: string,
 *   kind?: import("./button.js").ButtonKind}} props
 */
export function Copy({ text, children = "Copy", label, kind = "plain" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(typeof text === "function" ? text() : text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} tiny kind=${kind} glyph="copy" label=${label} onClick=${copy}>
    ${done ? "Copied" : children}
  <//>`;
}

/** @param {string} text */
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without TLS a browser has no clipboard interface, except on localhost.
  const field = Object.assign(document.createElement("textarea"), { value: text });
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** A line for a terminal. @param {{text: string}} props */
export function Command({ text }) {
  // Word by word, so that no line ends within "--option".
  const words = clean(text)
    .split(" ")
    .map((word, i) => html`${i ? " " : ""}<span>${word}</span>`);
  return html`<div class="command"><code>${words}</code><${Copy} text=${text} label="Copy command" /></div>`;
}

/**
 * Show an action as a command, a request and a program.
 * @param {{cli: string, method: string, path: string, body?: unknown, python: string}} action
 */
export function copyAs({ cli, method, path, body, python }) {
  const address = `${location.origin}${base}/api/admin${path}`;
  const curl = [
    `curl ${method === "GET" ? "" : `-X ${method} `}-H "Authorization: Bearer $ROTA_TOKEN"`,
    body === undefined ? "" : ` -H 'Content-Type: application/json' -d ${shellQuote(write(body) ?? "")}`,
    ` ${shellQuote(address)}`,
  ].join("");
  return show(Formats, { cli, curl, python }, { wide: true });
}

/** @param {import("./dialog.js").DialogControls<never> & {cli: string, curl: string, python: string}} props */
function Formats({ done, cli, curl, python }) {
  const formats = [
    ["Command line", cli],
    ["curl", curl],
    ["Python", python],
  ];
  return html`
    <h2 id="dialog-title">Copy as</h2>
    ${formats.map(
      ([name, text]) =>
        html`<div class="copy-format">
          <header><h3>${name}</h3><${Copy} text=${text} label=${`Copy as ${name}`} /></header>
          <pre class="code">${clean(text)}</pre>
        </div>`,
    )}
    <div class="acts"><${Button} onClick=${() => done(null)}>Close<//></div>
  `;
}
