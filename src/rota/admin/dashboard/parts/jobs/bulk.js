// @ts-check
// One act on many jobs: counted first, confirmed with a sample, done in steps that can be stopped.

import { api } from "../../api.js";
import { html, useEffect, useRef, useState } from "../../ui.js";
import { clean, count, plural, shortId } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field } from "../base/form.js";
import { toast } from "../base/toast.js";
import { Skeleton } from "../base/empty.js";

/** @typedef {{ids: string[]} | {filter: Record<string, any>}} Target */
/** @typedef {"retry" | "cancel" | "delete" | "move"} Action */

const EFFECT = {
  retry: "They become due at once, with all their attempts anew. What has ended stays in their history.",
  cancel: "Those that wait end now. Those that run are asked to stop.",
  delete: "They are removed with their history, for good. Those that run are left alone.",
  move: "They become due now, in the order of their priority.",
};
const VERB = { retry: "Retry", cancel: "Cancel", delete: "Delete", move: "Run now" };
const PAST = { retry: "queued again", cancel: "cancelled", delete: "deleted", move: "due now" };
const SAFE = { retry: "Leave them", cancel: "Let them be", delete: "Keep them", move: "Leave them" };

/** What comes later than the dialog must ask for the focus itself. @param {HTMLElement | null} field */
function focus(field) {
  field?.focus();
}

/** Ask and act; resolves to how many were touched, or null. @param {Action} action @param {Target} target */
export async function bulkDialog(action, target) {
  const done = await show(Steps, { action, target }, { danger: action === "delete" });
  if (done !== null) toast(`${plural(done, "job")} ${PAST[action]}.`);
  return done;
}

/** @param {import("../base/dialog.js").DialogControls & {action: Action, target: Target}} props */
function Steps({ done, busy, action, target }) {
  const [dry, setDry] = useState(/** @type {any} */ (null));
  const [unread, setUnread] = useState(/** @type {any} */ (null));
  const [progress, setProgress] = useState(/** @type {{done: number, refused: number} | null} */ (null));
  const [typed, setTyped] = useState("");
  const stopped = useRef(false);
  const body = { action, ...target, ...(action === "move" ? { move: { now: true } } : {}) };
  useEffect(() => {
    api.post("/jobs/bulk", { ...body, dry_run: true }).then(setDry, setUnread);
    return () => (stopped.current = true);
  }, []);
  const { submit, error: failed } = useAct({ done, busy }, async () => {
    stopped.current = false;
    let [touched, refused, cursor] = [0, 0, null];
    try {
      do {
        setProgress({ done: touched, refused });
        const step = await api.post("/jobs/bulk", { ...body, cursor });
        [touched, refused, cursor] = [touched + step.done, refused + step.refused, step.next];
      } while (cursor && !stopped.current);
      return touched;
    } finally {
      setProgress(null);
    }
  });
  const error = failed ?? unread;
  const total = dry && `${dry.exact ? "" : "at least "}${count(dry.matched)}`;
  const word = String(dry?.matched ?? "");
  const mustType = action === "delete" && dry?.matched > 1;
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${VERB[action]} ${dry ? html`${total} ${dry.matched === 1 ? "job" : "jobs"}` : "jobs"}?</h2>
    ${!dry && !error && html`<${Skeleton} />`}
    ${dry && html`<div class="dialog-body">
      <p>${dry.matched ? EFFECT[action] : `None of them can: their states do not allow it.`}</p>
      ${dry.sample.length > 0 && html`<ul class="sample">
        ${dry.sample.map(
          (/** @type {any} */ job) =>
            html`<li>
              <code>${clean(job.task)}</code> <span class="faint">
                ${shortId(job.id)} · ${job.state} · ${clean(job.queue)}
              </span>
            </li>`,
        )}
        ${dry.matched > dry.sample.length && html`<li class="faint">
          and ${count(dry.matched - dry.sample.length)} more, oldest first
        </li>`}
      </ul>`}
    </div>`}
    ${mustType && html`<${Field} label=${`Type ${word} to go on`}>
      <input
        type="text"
        inputmode="numeric"
        autocomplete="off"
        ref=${focus}
        value=${typed}
        onInput=${(/** @type {any} */ event) => setTyped(event.target.value)}
      />
    <//>`}
    ${error && html`<${FormError} error=${error} />`}
    ${progress && html`<p role="status">
      ${count(progress.done)} of ${total} done${progress.refused ? `, ${count(progress.refused)} refused` : ""}.
    </p>`}
    <div class="acts">
      <${Button} onClick=${() => ((stopped.current = true), progress || done(null))}>
        ${progress ? "Stop here" : SAFE[action]}
      <//>
      <${Button}
        type="submit"
        kind=${action === "delete" ? "danger" : "main"}
        disabled=${!dry?.matched || Boolean(progress) || (mustType && typed.trim() !== word)}
      >
        ${VERB[action]}
        ${dry?.matched ? ` ${count(dry.matched)}` : ""}
      <//>
    </div>
  </form>`;
}

/**
 * What is selected, and what can be done with it.
 * @param {{n: number, total: number | null, exact: boolean, all: boolean, onAll: () => void, onClear: () => void,
 *   onAct: (action: Action) => any, states: string[]}} props
 */
export function BulkBar({ n, total, exact, all, onAll, onClear, onAct, states }) {
  if (!n) return null;
  const size = all ? `${exact ? "" : "≥ "}${count(total ?? n)}` : count(n);
  const can = (/** @type {string[]} */ ...wanted) => all || states.some((state) => wanted.includes(state));
  return html`<div class="bulk" role="region" aria-label="Selected jobs">
    <p>
      <b>${all ? `All ${size} that match.` : `${size} selected.`}</b> ${!all &&
        total !== null &&
        total > n && html`<button type="button" class="link" onClick=${onAll}>
        Select all ${exact ? "" : "≥ "}
        ${count(total)} that match
      </button>`}
    </p>
    ${can("failed", "cancelled", "succeeded") && html`<${Button}
      kind="main"
      need="operate"
      onClick=${() => onAct("retry")}
    >
      Retry ${size}
    <//>`}
    ${can("queued") && html`<${Button} need="operate" onClick=${() => onAct("move")}>Run now<//>`}
    ${can("queued", "waiting", "running") && html`<${Button} need="operate" onClick=${() => onAct("cancel")}>
      Cancel ${size}
    <//>`}
    ${can("failed", "cancelled", "succeeded", "queued", "waiting") && html`<${Button}
      need="operate"
      onClick=${() => onAct("delete")}
    >
      Delete ${size}
    <//>`}
    <${Button} onClick=${onClear}>Clear<//>
  </div>`;
}
