// @ts-check
// A complete list: filtered by name and kind, ordered by a column. All of it is kept in the URL.

import { query, refine } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { count } from "../../format.js";
import { Choice } from "./button.js";
import { onValue } from "./form.js";
import { Glyph } from "./glyph.js";

/**
 * @template Row
 * @typedef {Record<string, [string, (row: Row) => boolean]>} Kinds by the word in the URL: the label, and which rows
 */
/**
 * @template Row
 * @typedef {Record<string, (row: Row) => number>} Orders by the word in the URL: the number to order by, largest first
 */

/**
 * The rows that match, in the chosen order; without one, as they came.
 * @template Row
 * @param {Row[] | null | undefined} rows
 * @param {{kinds?: Kinds<Row>, orders?: Orders<Row>, name: (row: Row) => string}} by
 * @returns {Row[] | null}
 */
export function useFiltered(rows, { kinds = {}, orders = {}, name }) {
  const [named, show, by] = ["named", "show", "by"].map((key) => query.value.get(key) ?? "");
  return useMemo(() => {
    if (!rows) return null;
    const belongs = Object.hasOwn(kinds, show) ? kinds[show][1] : () => true;
    const matching = rows.filter((row) => name(row).toLowerCase().includes(named.toLowerCase()) && belongs(row));
    const rank = Object.hasOwn(orders, by) && orders[by]; // the address may say "constructor"
    return rank ? matching.sort((a, b) => rank(b) - rank(a)) : matching;
  }, [rows, named, show, by]);
}

/** Whether a filter is set. */
export function isListFiltered() {
  return Boolean(query.value.get("named") || query.value.get("show"));
}

/**
 * @param {{what: string, kinds?: Record<string, [string, unknown]>, shown: unknown[] | null,
 *   of: unknown[] | null | undefined}} props what: the plural, "queues"
 */
export function ListFilters({ what, kinds = {}, shown, of }) {
  const choices = /** @type {[string, string][]} */ ([
    ["", "All"],
    ...Object.entries(kinds).map(([key, [word]]) => [key, word]),
  ]);
  const type = onValue((named) => refine({ named }, { replace: true }));
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
 * A column whose head orders the list; pressed again, the list is ordered by name.
 * @template Row
 * @param {string} key
 * @param {import("./table.js").Column<Row>} column
 * @returns {import("./table.js").Column<Row>}
 */
export function orderable(key, column) {
  const on = query.value.get("by") === key;
  const title = html`<button
    type="button"
    class="order"
    title=${on ? "Order by name" : "Largest first"}
    onClick=${() => refine({ by: on ? "" : key }, { replace: true })}
  >
    ${column.title}
    ${on && html`<${Glyph} name="more" />`}
  </button>`;
  return { ...column, title, card: column.card ?? `${column.title}`, sort: on ? "descending" : undefined };
}
