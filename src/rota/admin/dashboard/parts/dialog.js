// @ts-check
// Questions. The title asks, the body states the effect, the safe button comes first.

import { html, signal, useEffect, useRef, useState } from "../ui.js";
import { line } from "../words.js";
import { Button } from "./button.js";
import { Field } from "./form.js";
import { Glyph } from "./glyph.js";

const open = signal(/** @type {{Body: any, props: any, done: (value: any) => void, label: string, wide: boolean, grave: boolean} | null} */ (null));

/**
 * Show a component as a dialog; resolves to what it hands to ``done``, or null when it is dismissed.
 * @param {any} Body gets {done, ...props}; has an h2 with the id "dialog-title"
 * @param {any} [props] @param {{wide?: boolean, grave?: boolean}} [look] @returns {Promise<any>}
 */
export function show(Body, props = {}, { wide = false, grave = false } = {}) {
  open.value?.done(null);
  return new Promise((resolve) => {
    const done = (/** @type {any} */ value) => {
      open.value = null;
      resolve(value ?? null);
    };
    open.value = { Body, props, done, label: "dialog-title", wide, grave };
  });
}

/**
 * Ask before an act. ``act`` runs while the dialog is open, so that an error is told where it happened.
 * @param {{title: string, body?: any, verb: string, grave?: boolean, typed?: string, reason?: string | null, act: (reason: string) => Promise<any>, safe?: string}} question
 *   typed: what must be typed first; reason: the label of a field that asks why
 * @returns {Promise<any>} what the act answered; null: it was not done
 */
export function ask(question) {
  return show(Question, question, { grave: question.grave });
}

/** @param {any} props */
function Question({ done, title, body, verb, grave, typed, reason, act, safe = "Keep as it is" }) {
  const [said, setSaid] = useState("");
  const [why, setWhy] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      done((await act(why.trim())) ?? true);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${title}</h2>
    <div class="dialog-body">${body}</div>
    ${reason && html`<${Field} label=${reason}><input type="text" maxlength="200" value=${why} onInput=${(/** @type {any} */ e) => setWhy(e.target.value)} autofocus /><//>`}
    ${typed && html`<${Field} label=${`Type ${typed} to go on`}><input type="text" autocomplete="off" value=${said} onInput=${(/** @type {any} */ e) => setSaid(e.target.value)} autofocus /><//>`}
    ${error && html`<${Complaint} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>${safe}<//>
      <${Button} type="submit" kind=${grave ? "grave" : "main"} disabled=${busy || Boolean(typed && said.trim() !== typed)}>${verb}<//>
    </div>
  </form>`;
}

/** What went wrong, beside what was tried. @param {{error: any}} props */
export function Complaint({ error }) {
  return html`<p class="complaint tone-failed" role="alert"><${Glyph} name="failed" /><span>${line(error?.message ?? error, 500)}</span></p>`;
}

export function Dialogs() {
  const place = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const shown = open.value;
  useEffect(() => {
    const dialog = place.current;
    if (!dialog) return;
    if (shown && !dialog.open) {
      dialog.showModal();
      /** @type {HTMLElement | null} */ (dialog.querySelector("[autofocus]"))?.focus();
    }
    if (!shown && dialog.open) dialog.close();
  }, [shown]);
  return html`<dialog ref=${place} class=${`dialog ${shown?.wide ? "wide" : ""} ${shown?.grave ? "grave" : ""}`} aria-labelledby="dialog-title"
    onCancel=${(/** @type {Event} */ event) => (event.preventDefault(), shown?.done(null))}
    onClick=${(/** @type {MouseEvent} */ event) => event.target === place.current && shown?.done(null)}>
    ${shown && html`<div class="dialog-in"><${shown.Body} done=${shown.done} ...${shown.props} /></div>`}
  </dialog>`;
}
