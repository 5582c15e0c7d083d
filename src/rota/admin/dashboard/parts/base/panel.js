// @ts-check
// What pages are made of: the head, panels under a heavy rule, facts.

import { html, useEffect, useState } from "../../ui.js";
import { clean } from "../../format.js";

/**
 * The head of a page; its title is the page's h1 and the window's.
 * @param {{title: any, name?: string, crumb?: any, beside?: any, acts?: any, children?: any, mono?: boolean}} props
 *   name: the window's title where the h1 is no text; beside: badges next to it; children: one sentence below
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
 * @param {{title: string, note?: any, children?: any, tone?: string}} props aside: one fact or link; tone: a state,
 *   for a panel in trouble
 */
export function Panel({ title, note, children, tone }) {
  const [id] = useState(() => `panel-${++count}`);
  return html`<section class=${`panel ${tone ? `has-tone tone-${tone}` : ""}`} aria-labelledby=${id}>
    <header><h2 id=${id}>${title}</h2>${note && html`<div class="panel-note">${note}</div>`}</header>
    ${children}
  </section>`;
}

/** Names and values. @param {{items: ([string, any] | null | false | undefined)[]}} props */
export function Facts({ items }) {
  return html`<dl class="facts">
    ${items.map((item) => item && html`<dt>${item[0]}</dt><dd>${item[1] ?? html`<span class="faint">—</span>`}</dd>`)}
  </dl>`;
}

/** What a program would recognise: a task, a queue, an id. @param {{children: any, class?: string}} props */
export function Code({ children, class: extra = "" }) {
  return html`<code class=${extra} dir="auto">${clean(children)}</code>`;
}

/** A remark with a state. @param {{state: string, children?: any}} props */
export function Note({ state, children }) {
  return html`<div class=${`note tone-${state}`} role="status"><div>${children}</div></div>`;
}
