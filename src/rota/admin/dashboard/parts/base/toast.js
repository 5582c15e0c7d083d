// @ts-check
// One line about what happened. It disappears by itself, except an error, which stays until dismissed.

import { problemOf } from "../../api.js";
import { me } from "../../state.js";
import { html, signal } from "../../ui.js";
import { line } from "../../format.js";
import { StateGlyph, tone } from "./badge.js";
import { Glyph } from "./glyph.js";

const SECONDS = 6;
/** @typedef {{id: number, text: unknown, state: string, undo?: () => unknown}} Toast */
const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

// The next user must not read or undo what the last one did.
let present = false;
me.subscribe((who) => {
  if (present && !who) toasts.value = [];
  present = Boolean(who);
});

/** @param {unknown} text @param {{state?: string, undo?: () => unknown}} [options] */
export function toast(text, { state = "succeeded", undo } = {}) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-3), { id, text, state, undo }];
  if (state !== "failed") expire(id);
}

/**
 * Dismiss after a while, but not under the pointer or the keyboard focus.
 * @param {number} id
 */
function expire(id) {
  setTimeout(
    () => (document.querySelector(`[data-toast="${id}"]:is(:hover, :focus-within)`) ? expire(id) : dismiss(id)),
    SECONDS * 1000,
  );
}

/** Show the error of an action. @param {unknown} error */
export function showError(error) {
  if (error instanceof Error && error.name === "AbortError") return;
  toast(line(problemOf(error).message, 500), { state: "failed" });
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
