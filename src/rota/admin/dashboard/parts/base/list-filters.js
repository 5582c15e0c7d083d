// @ts-check
// A list that is known whole: narrowed by name and kind, ordered by a column. All of it lives in the URL.

import { query, refine } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { count } from "../../format.js";
import { Choice } from "./button.js";
import { Glyph } from "./glyph.js";

/**
 * @typedef {Record<string, [string, (row: any) => boolean]>} Kinds by the word of the URL: what the choice says, who
 *   belongs
 */
/**
 * @typedef {Record<string, (row: any) => number>} Orders by the word of the URL: the number to order by, greatest
 *   first
 */

/**
 * The rows that are wanted, in the order that is wanted; without one, as they came.
 * @param {any[] | null | undefined} rows @param {{kinds?: Kinds, orders?: Orders, name?: (row: any) => string}}
 *   [by] @returns {any[] | null}
 */
export function useFiltered(rows, { kinds = {}, orders = {}, name = (row) => row.name } = {}) {
  const [named, show, by] = ["named", "show", "by"].map((key) => query.value.get(key) ?? "");
  return useMemo(() => {
    if (!rows) return null;
    const belongs = kinds[show]?.[1] ?? (() => true);
    const matching = rows.filter((row) => name(row).toLowerCase().includes(named.toLowerCase()) && belongs(row));
    const rank = orders[by];
    return rank ? matching.sort((a, b) => rank(b) - rank(a)) : matching;
  }, [rows, named, show, by]);
}

/** Is the list narrowed at all? */
export function isListFiltered() {
  return Boolean(query.value.get("named") || query.value.get("show"));
}

/**
 * @param {{what: string, kinds?: Kinds, shown: any[] | null, of: any[] | null | undefined}} props what: the plural,
 *   "queues"
 */
export function ListFilters({ what, kinds = {}, shown, of }) {
  const choices = /** @type {[string, string][]} */ ([
    ["", "All"],
    ...Object.entries(kinds).map(([key, [word]]) => [key, word]),
  ]);
  const type = (/** @type {any} */ event) => refine({ named: event.target.value }, { replace: true });
  return html`<div class="list-filters" role="search">
    <label class="list-filter-name">
      <${Glyph} name="find" />
      <span class="visually-hidden">Find ${what} by name</span>
      <input
        data-search
        type="search"
        placeholder=${`Find ${what} by name`}
        autocomplete="off"
        spellcheck=${false}
        value=${query.value.get("named") ?? ""}
        onInput=${type}
      />
    </label>
    ${choices.length > 1 && html`<${Choice}
      label="Show"
      value=${query.value.get("show") ?? ""}
      options=${choices}
      onChange=${(/** @type {string} */ show) => refine({ show }, { replace: true })}
    />`}
    <p class="faint small" role="status">
      ${shown && of && shown.length < of.length
        ? html`
            ${count(shown.length)} of ${count(of.length)}. <button
              type="button"
              class="link"
              onClick=${() => refine({ named: "", show: "" })}
            >
              Show all
            </button>
          `
        : ""}
    </p>
  </div>`;
}

/**
 * A column whose head orders the list; pressed again, the order is by name.
 * @param {string} key
 * @param {import("./table.js").Column} column
 * @returns {import("./table.js").Column}
 */
export function orderable(key, column) {
  const on = query.value.get("by") === key;
  const title = html`<button
    type="button"
    class="order"
    title=${on ? "Order by name" : "Greatest first"}
    onClick=${() => refine({ by: on ? "" : key }, { replace: true })}
  >
    ${column.title}
    ${on && html`<${Glyph} name="more" />`}
  </button>`;
  return { ...column, title, card: column.card ?? `${column.title}`, sort: on ? "descending" : undefined };
}
