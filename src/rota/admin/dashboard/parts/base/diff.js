// @ts-check
// What an action changed: field by field, before and after.

import { write } from "../../exact.js";
import { html } from "../../ui.js";
import { line, plural } from "../../format.js";

/** @typedef {{path: string, before: string | null, after: string | null}} Difference null: the field did not exist */

const DEEPEST = 6;

/** What differs between two values. @param {unknown} before @param {unknown} after @returns {Difference[]} */
export function differences(before, after) {
  const [old, current] = [flat(before), flat(after)];
  const paths = new Set([...old.keys(), ...current.keys()]);
  return [...paths]
    .map((path) => ({ path, before: old.get(path) ?? null, after: current.get(path) ?? null }))
    .filter((one) => one.before !== one.after);
}

/**
 * Each leaf by its path, as JSON; null is left out.
 * @param {unknown} value
 * @param {string} path
 * @param {Map<string, string>} found
 * @returns {Map<string, string>}
 */
function flat(value, path = "", found = new Map(), depth = 0) {
  if (value === null || value === undefined) return found;
  const isBranch = typeof value === "object" && !Array.isArray(value) && depth < DEEPEST;
  if (!isBranch) return found.set(path, write(value) ?? "");
  for (const [key, one] of Object.entries(value)) flat(one, path ? `${path}.${key}` : key, found, depth + 1);
  return found;
}

/** The first few in a line each. @param {{changes: Difference[], most?: number}} props */
export function Diff({ changes, most = 3 }) {
  return html`<ul class="diff">
    ${changes.slice(0, most).map((one) => html`<li><${Change} ...${one} /></li>`)}
    ${changes.length > most && html`<li class="faint">and ${plural(changes.length - most, "more field")}</li>`}
  </ul>`;
}

/** @param {Difference} props */
function Change({ path, before, after }) {
  return html`
    <code class="diff-path">${line(path, 80)}</code> ${before !== null && html`<del>${line(before)}</del> `}
    ${after !== null && html`<ins>${line(after)}</ins>`}
  `;
}

/** All of them as a table. @param {{changes: Difference[]}} props */
export function DiffTable({ changes }) {
  return html`<div class="diff-all">
    <table class="diff">
      <caption class="visually-hidden">Changes</caption>
      <thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
      <tbody>
        ${changes.map(
          (one) =>
            html`<tr>
              <th scope="row"><code>${line(one.path, 120)}</code></th>
              <td>${valueCell(one.before, "del")}</td>
              <td>${valueCell(one.after, "ins")}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** @param {string | null} text @param {"del" | "ins"} tag */
function valueCell(text, tag) {
  if (text === null) return html`<span class="faint">—</span>`;
  return html`<${tag}>${line(text, 2000)}<//>`;
}
