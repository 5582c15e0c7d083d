// @ts-check
// Buttons, switches and choices. What the user has no permission for is not shown.

import { may } from "../../state.js";
import { html, useState } from "../../ui.js";
import { Glyph } from "./glyph.js";
import { showError } from "./toast.js";

/** @typedef {"main" | "danger" | "plain" | ""} ButtonKind */

/**
 * @param {{children?: unknown, onClick?: (event: Event) => unknown, kind?: ButtonKind, tiny?: boolean, need?: string,
 *   glyph?: string, disabled?: boolean, type?: string, title?: string, label?: string}} props
 *   need: the permission; label: the full name where the visible text alone would be the same on every row
 */
export function Button({ children, onClick, kind = "", tiny, need, glyph, disabled, type = "button", title, label }) {
  const [busy, setBusy] = useState(false);
  if (!may(need)) return null;
  const press = async (/** @type {Event} */ event) => {
    const done = onClick?.(event);
    if (!(done instanceof Promise)) return;
    setBusy(true);
    await done.catch(showError);
    setBusy(false);
  };
  return html`<button
    type=${type}
    class=${`button ${kind} ${tiny ? "tiny" : ""}`}
    disabled=${disabled || busy}
    title=${title}
    aria-label=${label}
    onClick=${press}
  >
    ${glyph && html`<${Glyph} name=${glyph} />`}
    ${children}
  </button>`;
}

/**
 * @param {{on: boolean, label: string, onChange: (on: boolean) => unknown, need?: string}} props
 *   without the permission it is a word
 */
export function Switch({ on, label, onChange, need }) {
  const [busy, setBusy] = useState(false);
  if (!may(need)) return html`<span class="soft">${on ? "on" : "off"}</span>`;
  const turn = async () => {
    setBusy(true);
    await Promise.resolve(onChange(!on)).catch(showError);
    setBusy(false);
  };
  return html`<button
    type="button"
    class="switch"
    role="switch"
    aria-checked=${on ? "true" : "false"}
    aria-label=${label}
    disabled=${busy}
    onClick=${turn}
  ></button>`;
}

let choices = 0;

/**
 * A choice of a few.
 * @param {{label: string, value: string, options: [string, string][], onChange: (value: string) => void}} props
 *   options: values and labels
 */
export function Choice({ label, value, options, onChange }) {
  const [name] = useState(() => `choice-${++choices}`); // two choices on a page may have the same label
  return html`<fieldset class="choice">
    <legend class="visually-hidden">${label}</legend>
    ${options.map(
      ([one, word]) =>
        html`<label>
          <input type="radio" name=${name} value=${one} checked=${one === value} onChange=${() => onChange(one)} />
          ${word}
        </label>`,
    )}
  </fieldset>`;
}
