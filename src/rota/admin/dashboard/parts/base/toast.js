// @ts-check
// One line about what happened. It goes by itself, unless it is about an error: that stays until it is read.

import { me } from "../../state.js";
import { html, signal } from "../../ui.js";
import { line } from "../../format.js";
import { StateGlyph, tone } from "./badge.js";
import { Glyph } from "./glyph.js";

const SECONDS = 6;
/** @typedef {{id: number, text: any, state: string, undo?: () => any}} Toast */
const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

// What the one who left did is nobody else's to read or to undo.
let present = false;
me.subscribe((who) => {
  if (present && !who) toasts.value = [];
  present = Boolean(who);
});

/** @param {any} text @param {{state?: string, undo?: () => any}} [options] */
export function toast(text, { state = "succeeded", undo } = {}) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-3), { id, text, state, undo }];
  if (state !== "failed") expire(id);
}

/**
 * It goes after a while; not under the pointer or the keyboard of somebody who is about to use it.
 * @param {number} id
 */
function expire(id) {
  setTimeout(
    () => (document.querySelector(`[data-toast="${id}"]:is(:hover, :focus-within)`) ? expire(id) : dismiss(id)),
    SECONDS * 1000,
  );
}

/** An error that an action met. @param {any} error */
export function showError(error) {
  if (error?.name === "AbortError") return;
  toast(line(error?.message ?? error, 500), { state: "failed" });
}

/** @param {number} id */
function dismiss(id) {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(
      (one) => html`<div
        key=${one.id}
        data-toast=${one.id}
        class=${`toast ${tone(one.state)}`}
        role=${one.state === "failed" ? "alert" : undefined}
      >
        <${StateGlyph} state=${one.state} />
        <span>${one.text}</span>
        ${one.undo && html`<button
          type="button"
          class="button plain tiny"
          onClick=${() => (dismiss(one.id), Promise.resolve(one.undo?.()).catch(showError))}
        >
          Undo
        </button>`}
        <button type="button" class="button plain tiny" aria-label="Dismiss" onClick=${() => dismiss(one.id)}>
          <${Glyph} name="close" />
        </button>
      </div>`,
    )}
  </div>`;
}
