// @ts-check
// Questions. The title asks, the body states the effect, the safe button comes first.

import { html, signal, useEffect, useRef, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Button } from "./button.js";
import { Field } from "./form.js";
import { Glyph } from "./glyph.js";

/**
 * @typedef {{done: (value: any) => void, busy: import("../../vendor/signals.js").Signal<boolean>}} DialogControls
 *   what every dialog's component gets: how it ends, and whether its act goes on
 */
/** @typedef {DialogControls & {Body: any, props: any, wide: boolean, danger: boolean}} Dialog */

const open = signal(/** @type {Dialog | null} */ (null));

/**
 * Show a component as a dialog; resolves to what it hands to ``done``, or null when it is dismissed.
 * @param {any} Body gets {done, busy, ...props}; has an h2 with the id "dialog-title"
 * @param {any} [props] @param {{wide?: boolean, danger?: boolean}} [look] @returns {Promise<any>}
 */
export function show(Body, props = {}, { wide = false, danger = false } = {}) {
  dismiss();
  return new Promise((resolve) => {
    const busy = signal(false);
    const done = (/** @type {any} */ value = null) => {
      if (value === null && busy.value) return; // what is being done cannot be left: its end must be told
      if (open.value === mine) open.value = null; // not the one that was opened since
      resolve(value);
    };
    const mine = { Body, props, done, busy, wide, danger };
    open.value = mine;
  });
}

/** Whatever is open goes, done or not. */
function dismiss() {
  if (!open.value) return;
  open.value.busy.value = false;
  open.value.done(null);
}

/**
 * The act of a dialog's form: once at a time, and the dialog stays until it has ended.
 * @param {DialogControls} talk @param {() => Promise<any>} act what it resolves to ends the dialog; nothing: true
 */
export function useAct({ done, busy }, act) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    setError(null);
    try {
      const answer = (await act()) ?? true;
      busy.value = false;
      done(answer);
    } catch (problem) {
      busy.value = false;
      setError(problem);
    }
  };
  return { submit, error, acting: busy.value };
}

/**
 * Ask before an act. ``act`` runs while the dialog is open, so that an error is told where it happened.
 * @param {{title: string, body?: any, verb: string, danger?: boolean, typed?: string, reason?: string | null, act:
 *   (reason: string) => Promise<any>, safe?: string}} question
 *   typed: what must be typed first; reason: the label of a field that asks why
 * @returns {Promise<any>} what the act answered; null: it was not done
 */
export function ask(question) {
  return show(Question, question, { danger: question.danger });
}

/** @param {any} props */
function Question({ done, busy, title, body, verb, danger, typed, reason, act, safe = "Keep as it is" }) {
  const [confirmation, setConfirmation] = useState("");
  const [why, setWhy] = useState("");
  const { submit, error, acting } = useAct({ done, busy }, () => act(why.trim()));
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${title}</h2>
    <div class="dialog-body">${body}</div>
    ${reason && html`<${Field} label=${reason}>
      <input
        type="text"
        maxlength="200"
        value=${why}
        onInput=${(/** @type {any} */ e) => setWhy(e.target.value)}
        autofocus
      />
    <//>`}
    ${typed && html`<${Field} label=${`Type ${typed} to go on`}>
      <input
        type="text"
        autocomplete="off"
        value=${confirmation}
        onInput=${(/** @type {any} */ e) => setConfirmation(e.target.value)}
        autofocus
      />
    <//>`}
    ${error && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>${safe}<//>
      <${Button}
        type="submit"
        kind=${danger ? "danger" : "main"}
        disabled=${acting || Boolean(typed && confirmation.trim() !== typed)}
      >
        ${verb}
      <//>
    </div>
  </form>`;
}

/** What went wrong, beside what was tried. @param {{error: any}} props */
export function FormError({ error }) {
  return html`<p class="form-error tone-failed" role="alert">
    <${Glyph} name="failed" />
    <span>${line(error?.message ?? error, 500)}</span>
  </p>`;
}

export function Dialogs() {
  const place = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const pressed = useRef(/** @type {EventTarget | null} */ (null));
  const closing = useRef(false);
  const shown = open.value;
  useEffect(() => dismiss, []); // whoever signs in next must not meet a question that somebody else was asked
  useEffect(() => {
    const dialog = place.current;
    if (!dialog) return;
    if (shown && !dialog.open) {
      dialog.showModal();
      /** @type {HTMLElement | null} */ (dialog.querySelector("[autofocus]"))?.focus();
    }
    if (!shown && dialog.open) {
      closing.current = true;
      dialog.close();
    }
  }, [shown]);
  const leave = () => shown?.done(null);
  // At a second Escape a browser may close it unasked: then it is left, or, while it acts, shown again.
  const closed = () => {
    if (!closing.current) leave();
    closing.current = false;
    if (open.value && !place.current?.open) place.current?.showModal();
  };
  // Text that is selected may be let go of outside: only what was also pressed there leaves.
  return html`<dialog
    ref=${place}
    class=${`dialog ${shown?.wide ? "wide" : ""} ${shown?.danger ? "danger" : ""}`}
    aria-labelledby="dialog-title"
    onCancel=${(/** @type {Event} */ event) => (event.preventDefault(), leave())}
    onClose=${closed}
    onPointerDown=${(/** @type {Event} */ event) => (pressed.current = event.target)}
    onClick=${(/** @type {Event} */ event) =>
      event.target === place.current && pressed.current === place.current && leave()}
  >
    ${shown && html`<div class="dialog-in">
      <${shown.Body} done=${shown.done} busy=${shown.busy} ...${shown.props} />
    </div>`}
  </dialog>`;
}
