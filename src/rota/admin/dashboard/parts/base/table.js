// @ts-check
// Lists. Real tables with fixed columns: events change what rows show, never where they are.
// On a small screen each row becomes a card; roles are explicit, since a browser takes such a row for no table row.

import { Component, Fragment, h, html } from "../../ui.js";

/**
 * @template Row
 * @typedef {{title: unknown, cell: (row: Row) => unknown, width?: string, kind?: string, card?: string,
 *   sort?: "ascending" | "descending"}} Column
 *   width: as in CSS; kind: "num" aligns right, "head" names the card, "full" takes a card's whole width, "pick" and
 *   "act" are placed in a card's corner, "wide-only" needs a wide screen, "not-on-card" a table; card: the label on a
 *   card, if not the title
 */

/** @param {{id: string}} row */
export const byId = (row) => row.id;
/** @param {{name: string}} row */
export const byName = (row) => row.name;

/**
 * @template T
 * @param {{caption: string, columns: Column<T>[], rows: T[] | null, id: (row: T) => string, class?: string,
 *   skeleton?: number, state?: (row: T) => string, detail?: (row: T) => unknown}} props
 *   rows: null shows a skeleton of as many rows as wanted; state: classes of a row ("is-selected", "is-off"); detail:
 *   what is shown below a row, over all columns
 */
export function Table({ caption, columns, rows, id, class: extra = "", skeleton = 5, state, detail }) {
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
        : rows.map((row) =>
            h(
              Fragment,
              { key: id(row) },
              html`<${Row} row=${row} columns=${columns} state=${state?.(row) ?? ""} />`,
              detailRow(detail?.(row), columns.length),
            ),
          )}
    </tbody>
  </table>`;
}

/** @param {unknown} content @param {number} columns */
function detailRow(content, columns) {
  if (!content) return null;
  return html`<tr role="row" class="detail"><td role="cell" class="full" colspan=${columns}>${content}</td></tr>`;
}

/** @param {{kind?: string}} column */
function kinds(column) {
  return column.kind ?? "";
}

/** @typedef {{row: unknown, columns: Column<unknown>[], state: string}} RowProps */

/**
 * Renders again only when its data, its state or the columns change: a thousand rows stay cheap.
 * @extends {Component<RowProps>}
 */
class Row extends Component {
  /** @param {RowProps} next */
  shouldComponentUpdate(next) {
    const { row, columns, state } = this.props;
    return next.row !== row || next.columns !== columns || next.state !== state;
  }
  render() {
    const { row, columns, state } = this.props;
    return html`<tr role="row" class=${state}>
      ${columns.map(
        (column) =>
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

/** @param {{columns: {kind?: string}[], n: number}} props */
function SkeletonRow({ columns, n }) {
  return html`<tr role="row">
    ${columns.map(
      (column, i) =>
        html`<td role="cell" class=${kinds(column)}><span class=${`skeleton-line w${((i + n) % 3) + 1}`}></span></td>`,
    )}
  </tr>`;
}
