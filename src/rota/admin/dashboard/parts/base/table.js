// @ts-check
// Lists. Real tables with fixed columns: news changes what rows say, never where they are.
// On a small screen each row becomes a card; the roles are spelled out since such a row is no table row to the browser.

import { Component, html } from "../../ui.js";

/**
 * @typedef {{title: any, cell: (row: any) => any, width?: string, kind?: string, card?: string, sort?: "ascending"
 *   | "descending"}} Column
 *   width: of the column, as CSS says it; kind: "num" aligns right, "head" names the card, "full" takes a card's whole
 *   width, "pick" and "act" stand in a card's corner, "wide-only" waits for a wide screen, "not-on-card" for any
 *   that has tables; card: the label on a card, if not the title
 */

/**
 * @param {{caption: string, columns: Column[], rows: any[] | null, id: (row: any) => string, class?: string,
 *   skeleton?: number,
 *   state?: (row: any) => string, foot?: any}} props
 *   rows null: bones, as many as asked; state: classes of a row ("is-selected", "is-off")
 */
export function Table({ caption, columns, rows, id, class: extra = "", skeleton = 5, state }) {
  return html`<table class=${`list ${extra}`} role="table" aria-busy=${rows === null ? "true" : undefined}>
    <caption class="visually-hidden">${caption}</caption>
    <colgroup>
      ${columns.map(
        (column) => html`<col class=${kinds(column)} style=${column.width ? { width: column.width } : undefined} />`,
      )}
    </colgroup>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map(
          (column) =>
            html`<th role="columnheader" scope="col" class=${kinds(column)} aria-sort=${column.sort}>
              ${column.title}
            </th>`,
        )}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows === null
        ? Array.from({ length: skeleton }, (_, i) => html`<${SkeletonRow} key=${i} columns=${columns} n=${i} />`)
        : rows.map((row) => html`<${Row} key=${id(row)} row=${row} columns=${columns} state=${state?.(row) ?? ""} />`)}
    </tbody>
  </table>`;
}

/** @param {Column} column */
function kinds(column) {
  return column.kind ?? "";
}

/** Rendered anew only when its own data, its state or the columns change: a thousand rows stay cheap. */
class Row extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const { row, columns, state } = /** @type {any} */ (this).props;
    return next.row !== row || next.columns !== columns || next.state !== state;
  }
  render() {
    const { row, columns, state } = /** @type {any} */ (this).props;
    return html`<tr role="row" class=${state}>
      ${columns.map(
        (/** @type {Column} */ column) =>
          html`<td
            role="cell"
            class=${kinds(column)}
            data-label=${column.card ?? (typeof column.title === "string" ? column.title : "")}
          >
            ${column.cell(row)}
          </td>`,
      )}
    </tr>`;
  }
}

/** @param {any} props */
function SkeletonRow({ columns, n }) {
  return html`<tr role="row">
    ${columns.map(
      (/** @type {Column} */ column, /** @type {number} */ i) =>
        html`<td role="cell" class=${kinds(column)}><span class=${`skeleton-line w${((i + n) % 3) + 1}`}></span></td>`,
    )}
  </tr>`;
}
