// @ts-check
// Dialogs. The title asks, the body states the effect, the way out comes first.

import { problemOf } from "../../api.js";
import { html, signal, useEffect, useRef, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Button } from "./button.js";
import { Field, onValue } from "./form.js";
import { Glyph } from "./glyph.js";

/**
 * What every dialog's component gets: how it ends, and whether its action is running.
 * @template R
 * @typedef {{done: (value: R | null) => void, busy: import("../../vendor/signals.js").Signal<boolean>}} DialogControls
 */
/** @typedef {DialogControls<never> & {content: () => unknown, wide: boolean, danger: boolean}} Dialog */

const open = signal(/** @type {Dialog | null} */ (null));

/**
 * Show a component as a dialog; resolves to the value it passes to ``done``, or null when it is dismissed.
 * @template P, R
 * @param {(props: P & DialogControls<R>) => unknown} Body has an h2 with the id "dialog-title"
 * @param {P} props
 * @param {{wide?: boolean, danger?: boolean}} [look]
 * @returns {Promise<R | null>}
 */
export function show(Body, props, { wide = false, danger = false } = {}) {
  dismiss();
  return new Promise((resolve) => {
    const busy = signal(false);
    const done = (/** @type {R | null} */ value = null) => {
      if (value === null && busy.value) return; // an action that has started must report how it ended
      if (open.value === mine) open.value = null; // not one that was opened since
      resolve(value);
    };
    const content = () => html`<${Body} done=${done} busy=${busy} ...${props} />`;
    const mine = { content, done, busy, wide, danger };
    open.value = mine;
  });
}

/** Close the open dialog, whether it is done or not. */
function dismiss() {
  if (!open.value) return;
  open.value.busy.value = false;
  open.value.done(null);
}

/**
 * The action of a dialog's form: runs once at a time, and the dialog stays until it has ended.
 * @template R
 * @param {DialogControls<R>} controls
 * @param {() => Promise<R>} act its result ends the dialog
 */
export function useAct({ done, busy }, act) {
  const [error, setError] = useState(/** @type {import("../../api.js").Problem | null} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    setError(null);
    try {
      const result = await act();
      busy.value = false;
      done(result);
    } catch (problem) {
      busy.value = false;
      setError(problemOf(problem));
    }
  };
  return { submit, error, acting: busy.value };
}

/**
 * What is asked before an action.
 * @template R
 * @typedef {{title: string, body?: unknown, verb: string, cancel?: string, danger?: boolean, typed?: string,
 *   reason?: string, act: (reason: string) => Promise<R>}} Confirmation
 *   cancel: the way out; typed: what must be typed first; reason: the label of a field that asks why
 */

/**
 * Ask before an action. ``act`` runs while the dialog is open, so that an error appears where it happened.
 * @template R
 * @param {Confirmation<R>} question
 * @returns {Promise<R | null>} the result of the action; null: it was not done
 */
export function ask(question) {
  return show((/** @type {Confirmation<R> & DialogControls<R>} */ props) => Question(props), question, {
    danger: question.danger,
  });
}

/** @template R @param {Confirmation<R> & DialogControls<R>} props */
function Question({ done, busy, title, body, verb, danger, typed, reason, act, cancel = "Cancel" }) {
  const [confirmation, setConfirmation] = useState("");
  const [why, setWhy] = useState("");
  const { submit, error, acting } = useAct({ done, busy }, () => act(why.trim()));
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${title}</h2>
    <div class="dialog-body">${body}</div>
    ${reason && html`<${Field} label=${reason}>
      <input type="text" maxlength="200" value=${why} onInput=${onValue(setWhy)} autofocus />
    <//>`}
    ${typed && html`<${Field} label=${`Type ${typed} to confirm`}>
      <input type="text" autocomplete="off" value=${confirmation} onInput=${onValue(setConfirmation)} autofocus />
    <//>`}
    ${error && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>${cancel}<//>
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

/** An error inside a form. @param {{error: import("../../api.js").Problem}} props */
export function FormError({ error }) {
  return html`<p class="form-error tone-failed" role="alert">
    <${Glyph} name="failed" />
    <span>${line(error.message, 500)}</span>
  </p>`;
}

export function Dialogs() {
  const place = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const pressed = useRef(/** @type {EventTarget | null} */ (null));
  const closing = useRef(false);
  const shown = open.value;
  useEffect(() => dismiss, []); // the next user must not see a dialog of the last one
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
  // A browser may close it at a second Escape: that cancels it, or, while its action runs, shows it again.
  const closed = () => {
    if (!closing.current) leave();
    closing.current = false;
    if (open.value && !place.current?.open) place.current?.showModal();
  };
  // A text selection may end outside: only a click that also began there leaves the dialog.
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
      ${shown.content()}
    </div>`}
  </dialog>`;
}
