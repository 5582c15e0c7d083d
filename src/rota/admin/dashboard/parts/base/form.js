// @ts-check
// Fields of forms: a label, a hint, an error that says what to do.

import { Fragment, h, html, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Glyph } from "./glyph.js";

let count = 0;

/**
 * Labels the one control inside.
 * @param {{label: string, hint?: unknown, error?: string | null, children?: unknown}} props
 */
export function Field({ label, hint, error, children }) {
  const [id] = useState(() => `field-${++count}`);
  const controls = /** @type {({props?: object} | null | undefined)[]} */ ([children].flat());
  const props = controls.find((one) => one?.props)?.props;
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  if (props) Object.assign(props, { id, "aria-describedby": described, "aria-invalid": error ? "true" : undefined });
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${h(Fragment, null, children)}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${error && html`<p class="form-error tone-failed" id=${`${id}-error`} role="alert">
      <${Glyph} name="failed" />
      <span>${line(error, 500)}</span>
    </p>`}
  </div>`;
}

/**
 * A choice of several, each with a sentence.
 * @param {{legend: string, name: string, value: string, options: [string, string][],
 *   onChange: (value: string) => void}} props options: values and their sentences
 */
export function Options({ legend, name, value, options, onChange }) {
  return html`<fieldset class="field options">
    <legend>${legend}</legend>
    ${options.map(
      ([one, sentence]) =>
        html`<label>
          <input type="radio" name=${name} value=${one} checked=${one === value} onChange=${() => onChange(one)} />
          <b class="mono">${one}</b>
          <span>${sentence}</span>
        </label>`,
    )}
  </fieldset>`;
}

/**
 * A handler that passes on the value of its control.
 * @param {(value: string) => unknown} set
 * @returns {(event: Event) => void}
 */
export function onValue(set) {
  return (event) => void set(/** @type {HTMLInputElement} */ (event.target).value);
}
