// @ts-check
// One line about what happened. It goes by itself, unless it is about an error: that stays until it is read.

import { html, signal } from "../ui.js";
import { line } from "../words.js";
import { Sign, tone } from "./badge.js";
import { Glyph } from "./glyph.js";

const SECONDS = 6;
/** @typedef {{id: number, text: any, state: string, undo?: () => any}} Toast */
const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

/** @param {any} text @param {{state?: string, undo?: () => any}} [options] */
export function toast(text, { state = "succeeded", undo } = {}) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-3), { id, text, state, undo }];
  if (state !== "failed") setTimeout(() => drop(id), SECONDS * 1000);
}

/** An error that an action met. @param {any} error */
export function trouble(error) {
  if (error?.name === "AbortError") return;
  toast(line(error?.message ?? error, 500), { state: "failed" });
}

/** @param {number} id */
function drop(id) {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map(
    (one) => html`<div key=${one.id} class=${`toast ${tone(one.state)}`} role=${one.state === "failed" ? "alert" : undefined}>
      <${Sign} state=${one.state} /><span>${one.text}</span>
      ${one.undo && html`<button type="button" class="button plain tiny" onClick=${() => (drop(one.id), Promise.resolve(one.undo?.()).catch(trouble))}>Undo</button>`}
      <button type="button" class="button plain tiny" aria-label="Dismiss" onClick=${() => drop(one.id)}><${Glyph} name="close" /></button>
    </div>`,
  )}</div>`;
}
