// @ts-check
// What a view shows in place of data: nothing yet, loading, or an error.

import { html } from "../../ui.js";
import { line } from "../../format.js";
import { Button } from "./button.js";
import { Command } from "./copy.js";
import { Glyph } from "./glyph.js";

/**
 * What belongs here, why it is useful, and the first step.
 * @param {{title: string, children?: unknown, command?: string, acts?: unknown}} props command: a line to copy
 */
export function Empty({ title, children, command, acts }) {
  return html`<div class="empty">
    <svg viewBox="0 0 72 72" width="64" height="64" aria-hidden="true">
      <circle cx="36" cy="36" r="29" stroke-dasharray="11 4.2" />
      <path d="M36 19v17l11 7" />
    </svg>
    <div>
      <h3>${title}</h3>
      ${children && html`<p>${children}</p>`}
      ${command && html`<${Command} text=${command} />`}
      ${acts && html`<div class="acts">${acts}</div>`}
    </div>
  </div>`;
}

/** A placeholder for a text or a panel. @param {{lines?: number}} props */
export function Skeleton({ lines = 3 }) {
  return html`<div class="skeleton" role="status" aria-busy="true" aria-label="Loading">
    ${Array.from({ length: lines }, (_, i) => html`<span class=${`skeleton-line w${(i % 3) + 1}`}></span>`)}
  </div>`;
}

/**
 * What could not be loaded, and what to do.
 * @param {{error: import("../../api.js").Problem, retry?: () => unknown}} props
 */
export function ErrorNotice({ error, retry }) {
  return html`<div class="note tone-failed" role="alert">
    <${Glyph} name="failed" />
    <div>
      <p><b>${line(error.title || "Could not load")}</b></p>
      <p>
        ${line(error.message, 500)}
        ${error.requestId ? html` <span class="faint">Request <code>${line(error.requestId)}</code>.</span>` : ""}
      </p>
      ${retry && html`<div class="acts"><${Button} tiny onClick=${retry}>Try again<//></div>`}
    </div>
  </div>`;
}

/**
 * A skeleton, an error, or the children with the data: every load shows one of the three.
 * @template T
 * @param {{of: import("../../load.js").Loaded<T>, children: (data: T) => unknown, lines?: number}} props
 */
export function WhenLoaded({ of, children, lines }) {
  if (of.data !== null)
    return html`${of.error && html`<${ErrorNotice} error=${of.error} retry=${of.reload} />`}${children(of.data)}`;
  return of.error
    ? html`<${ErrorNotice} error=${of.error} retry=${of.reload} />`
    : html`<${Skeleton} lines=${lines} />`;
}
