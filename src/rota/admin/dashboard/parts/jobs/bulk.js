// @ts-check
// One action on many jobs: counted first, confirmed with a sample, done in steps that can be stopped.

import { api, problemOf } from "../../api.js";
import { html, useEffect, useRef, useState } from "../../ui.js";
import { clean, count, plural, shortId } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field, onValue } from "../base/form.js";
import { toast } from "../base/toast.js";
import { Skeleton } from "../base/empty.js";

/** @typedef {{ids: string[]} | {filter: Record<string, unknown>}} Target */
/** @typedef {import("../../types").BulkRequest["action"]} Action */

/** @type {Record<Action, string>} */
const EFFECT = {
  retry: "They are queued to run now with attempts reset. History is kept.",
  cancel: "Queued and waiting jobs are cancelled now. Running jobs are asked to stop.",
  delete: "They are deleted with their history. This cannot be undone. Running jobs are not deleted.",
  move: "They become due now, in order of priority.",
};
/** @type {Record<Action, string>} */
const VERB = { retry: "Retry", cancel: "Cancel", delete: "Delete", move: "Run now" };
/** @type {Record<Action, string>} */
const PAST = { retry: "queued", cancel: "cancelled", delete: "deleted", move: "due now" };

/** A field that appears after its dialog must take the focus itself. @param {HTMLElement | null} field */
function focus(field) {
  field?.focus();
}

/** Ask and act; resolves to the number of changed jobs, or null. @param {Action} action @param {Target} target */
export async function bulkDialog(action, target) {
  const done = await show(Steps, { action, target }, { danger: action === "delete" });
  if (done !== null) toast(`${plural(done, "job")} ${PAST[action]}.`);
  return done;
}

/** @param {import("../base/dialog.js").DialogControls<number> & {action: Action, target: Target}} props */
function Steps({ done, busy, action, target }) {
  const [dry, setDry] = useState(/** @type {import("../../types").BulkResult | null} */ (null));
  const [unread, setUnread] = useState(/** @type {import("../../api.js").Problem | null} */ (null));
  const [progress, setProgress] = useState(/** @type {{done: number, refused: number} | null} */ (null));
  const [reached, setReached] = useState(0);
  const [typed, setTyped] = useState("");
  const stopped = useRef(false);
  const body = { action, ...target, ...(action === "move" ? { move: { now: true } } : {}) };
  useEffect(() => {
    api.post("/jobs/bulk", { ...body, dry_run: true }).then(setDry, (problem) => setUnread(problemOf(problem)));
    return () => (stopped.current = true);
  }, []);
  const { submit, error: failed } = useAct({ done, busy }, async () => {
    stopped.current = false;
    let [touched, refused] = [0, 0];
    let cursor = /** @type {string | null} */ (null);
    try {
      do {
        setProgress({ done: touched, refused });
        const step = await api.post("/jobs/bulk", { ...body, cursor });
        [touched, refused, cursor] = [touched + step.done, refused + step.refused, step.next ?? null];
      } while (cursor && !stopped.current);
      return touched;
    } catch (problem) {
      setReached(touched + (problemOf(problem).done ?? 0));
      throw problem;
    } finally {
      setProgress(null);
    }
  });
  const error = failed ?? unread;
  const total = dry && `${dry.exact ? "" : "at least "}${count(dry.matched)}`;
  const word = String(dry?.matched ?? "");
  const matched = dry?.matched ?? 0;
  const sample = dry?.sample ?? [];
  const mustType = action === "delete" && matched > 1;
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${VERB[action]} ${dry ? html`${total} ${dry.matched === 1 ? "job" : "jobs"}` : "jobs"}?</h2>
    ${!dry && !error && html`<${Skeleton} />`}
    ${dry && html`<div class="dialog-body">
      <p>${dry.matched ? EFFECT[action] : "No selected job is in a state that allows this."}</p>
      ${sample.length > 0 && html`<ul class="sample">
        ${sample.map(
          (job) =>
            html`<li>
              <code>${clean(job.task)}</code> <span class="faint">
                ${shortId(job.id)} · ${job.state} · ${clean(job.queue)}
              </span>
            </li>`,
        )}
        ${matched > sample.length && html`<li class="faint">
          and ${count(matched - sample.length)} more, oldest first
        </li>`}
      </ul>`}
    </div>`}
    ${mustType && html`<${Field} label=${`Type ${word} to confirm`}>
      <input
        type="text"
        inputmode="numeric"
        autocomplete="off"
        ref=${focus}
        value=${typed}
        onInput=${onValue(setTyped)}
      />
    <//>`}
    ${error && html`<${FormError} error=${error} />`}
    ${failed && reached > 0 && html`<p role="status">
      ${plural(reached, "job")} ${PAST[action]} before that. Continue with the rest, or leave it.
    </p>`}
    ${progress && html`<p role="status">
      ${count(progress.done)} of ${total} done${progress.refused ? `, ${count(progress.refused)} skipped` : ""}.
    </p>`}
    <div class="acts">
      <${Button} onClick=${() => ((stopped.current = true), progress || done(null))}>
        ${progress ? "Stop" : action === "cancel" ? "Keep jobs" : "Cancel"}
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
 * The selected jobs and their actions.
 * @param {{n: number, total: number | null, exact: boolean, all: boolean, onAll: () => void, onClear: () => void,
 *   onAct: (action: Action) => unknown, states: string[]}} props
 */
export function BulkBar({ n, total, exact, all, onAll, onClear, onAct, states }) {
  if (!n) return null;
  const size = all ? `${exact ? "" : "≥ "}${count(total ?? n)}` : count(n);
  const can = (/** @type {string[]} */ ...wanted) => all || states.some((state) => wanted.includes(state));
  return html`<div class="bulk" role="region" aria-label="Selected jobs">
    <p>
      <b>${all ? `All ${size} matching jobs selected.` : `${size} selected.`}</b> ${!all &&
        total !== null &&
        total > n && html`<button type="button" class="link" onClick=${onAll}>
        Select all ${exact ? "" : "≥ "}
        ${count(total)} matching jobs
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
    <${Button} onClick=${onClear}>Clear selection<//>
  </div>`;
}
