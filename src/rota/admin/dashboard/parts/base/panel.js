// @ts-check
// What pages consist of: the header, panels, facts, notes.

import { html, useEffect, useState } from "../../ui.js";
import { clean } from "../../format.js";

/**
 * The header of a page; its title is the page's h1 and the window's title.
 * @param {{title: unknown, name?: string, crumb?: unknown, beside?: unknown, acts?: unknown, children?: unknown,
 *   mono?: boolean}} props
 *   name: the window's title where the h1 is not plain text; beside: badges next to it; children: one sentence below
 */
export function PageHeader({ title, name, crumb, beside, acts, children, mono }) {
  useEffect(() => {
    document.title = `${clean(name ?? title)} · rota`;
  }, [name ?? title]);
  return html`<div class="page-header">
    <div>
      ${crumb && html`<p class="crumb">${crumb}</p>`}
      <div class="title"><h1 class=${mono ? "mono" : ""}>${title}</h1>${beside}</div>
      ${children && html`<div class="summary">${children}</div>`}
    </div>
    ${acts && html`<div class="acts">${acts}</div>`}
  </div>`;
}

let count = 0;

/**
 * @param {{title: string, note?: unknown, children?: unknown, tone?: string}} props
 *   note: one fact or link; tone: a state, for a panel that needs attention
 */
export function Panel({ title, note, children, tone }) {
  const [id] = useState(() => `panel-${++count}`);
  return html`<section class=${`panel ${tone ? `has-tone tone-${tone}` : ""}`} aria-labelledby=${id}>
    <header><h2 id=${id}>${title}</h2>${note && html`<div class="panel-note">${note}</div>`}</header>
    ${children}
  </section>`;
}

/** Names and values. @param {{items: ([string, unknown] | null | false | undefined)[]}} props */
export function Facts({ items }) {
  return html`<dl class="facts">
    ${items.map((item) => item && html`<dt>${item[0]}</dt><dd>${item[1] ?? html`<span class="faint">—</span>`}</dd>`)}
  </dl>`;
}

/** A name as code has it: a task, a queue, an id. @param {{children: unknown, class?: string}} props */
export function Code({ children, class: extra = "" }) {
  return html`<code class=${extra} dir="auto">${clean(children)}</code>`;
}

/** A note in the colour of a state. @param {{state: string, children?: unknown}} props */
export function Note({ state, children }) {
  return html`<div class=${`note tone-${state}`} role="status"><div>${children}</div></div>`;
}
