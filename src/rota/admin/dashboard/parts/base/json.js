// @ts-check
// A payload or an output as a tree. Stored text is hostile: nothing in it runs, and only plain web links work.

import { write } from "../../exact.js";
import { html, useState } from "../../ui.js";
import { clean, plural } from "../../format.js";
import { Copy } from "./copy.js";

const MOST = 100; // entries shown before asking
const OPEN_DEPTH = 3;
const MASKS = /^(\(hidden: .*\)|\*{3,}|•{3,})$/; // what the server writes in place of hidden values

/** @param {{value: unknown, label: string}} props */
export function JsonTree({ value, label }) {
  return html`<div class="json" role="group" aria-label=${label}><${Value} value=${value} depth=${0} /></div>`;
}

/** @param {{value: unknown}} props */
export function CopyJson({ value }) {
  return html`<${Copy} text=${() => write(value, 2)}>Copy JSON<//>`;
}

/** @param {{value: unknown, depth: number}} props */
function Value({ value, depth }) {
  if (Array.isArray(value))
    return html`<${Branch} entries=${value.map((one, i) => [i, one])} brackets="[]" depth=${depth} />`;
  if (value !== null && typeof value === "object")
    return html`<${Branch} entries=${Object.entries(value)} brackets="{}" depth=${depth} />`;
  if (typeof value === "string") return html`<${Text} text=${value} />`;
  return html`<span class="j-plain">${String(value)}</span>`;
}

/** @param {{entries: [string | number, unknown][], brackets: string, depth: number}} props */
function Branch({ entries, brackets, depth }) {
  const [open, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= MOST);
  const [most, setMost] = useState(MOST);
  const list = brackets === "[]";
  if (!entries.length) return html`<span>${brackets}</span>`;
  const size = plural(entries.length, list ? "item" : "field");
  return html`
    <button type="button" class="j-fold" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>
      ${brackets[0]}
      ${!open && html`<span class="faint"> ${size} </span>${brackets[1]}`}
    </button>
    ${open && html`
      <ul>
        ${entries.slice(0, most).map(
          ([key, one]) =>
            html`<li key=${key}>
              ${!list && html`<span class="j-key">${clean(key)}</span>: `}
              <${Value} value=${one} depth=${depth + 1} />
            </li>`,
        )}
        ${entries.length > most && html`<li>
          <button type="button" class="j-fold" onClick=${() => setMost(most * 10)}>
            ${entries.length - most} more
          </button>
        </li>`}
      </ul>
      ${brackets[1]}
    `}
  `;
}

/** @param {{text: string}} props */
function Text({ text }) {
  if (MASKS.test(text)) return html`<span class="j-hidden">${text}</span>`;
  const shown = `"${clean(text)}"`;
  if (!/^https?:\/\/[^\s]+$/.test(text)) return html`<span class="j-text">${shown}</span>`;
  return html`<a class="j-text" href=${text} target="_blank" rel="noopener noreferrer">${shown}</a>`;
}
