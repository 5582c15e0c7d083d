// @ts-check
// Fields of forms: a label that says what, a hint that says how, an error that says what to do.

import { Fragment, h, html, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Glyph } from "./glyph.js";

let count = 0;

/**
 * The one control inside gets its id, and its name is the label.
 * @param {{label: string, hint?: any, error?: string | null, children?: any}} props
 */
export function Field({ label, hint, error, children }) {
  const [id] = useState(() => `field-${++count}`);
  const control = [children].flat().find((one) => one?.props);
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  if (control)
    Object.assign(control.props, { id, "aria-describedby": described, "aria-invalid": error ? "true" : undefined });
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
 * One of several, each with a sentence.
 * @param {{legend: string, name: string, value: string, options: [string, string][], onChange: (value: string) =>
 *   void}} props
 */
export function Options({ legend, name, value, options, onChange }) {
  return html`<fieldset class="field options">
    <legend>${legend}</legend>
    ${options.map(
      ([one, says]) =>
        html`<label>
          <input type="radio" name=${name} value=${one} checked=${one === value} onChange=${() => onChange(one)} />
          <b class="mono">${one}</b>
          <span>${says}</span>
        </label>`,
    )}
  </fieldset>`;
}
