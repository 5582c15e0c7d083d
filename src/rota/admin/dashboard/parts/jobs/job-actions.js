// @ts-check
// Actions on one job, as far as its state and the user's permissions allow.

import { api } from "../../api.js";
import { FINAL_STATES } from "../../choices.js";
import { announce } from "../../live.js";
import { go, now } from "../../state.js";
import { html, useState } from "../../ui.js";
import { line, shortId } from "../../format.js";
import { isQuarantined } from "../base/badge.js";
import { Button } from "../base/button.js";
import { FormError, ask, show, useAct } from "../base/dialog.js";
import { enqueueDialog } from "./enqueue.js";
import { Field, onValue } from "../base/form.js";
import { toast } from "../base/toast.js";

/** @param {Job} job */
function isFinished(job) {
  return FINAL_STATES.some((state) => state === job.state);
}

/** @typedef {import("../../types").JobView} Job */

/** The name of a job in a list of many. @param {Job} job */
function named(job) {
  return `${line(job.task, 60)} ${shortId(job.id)}`;
}

/** Resolves to null if it was not retried. @param {Job} job */
async function retryJob(job) {
  const act = () => api.post(`/jobs/${job.id}/retry`).then(() => true);
  const answer = await (isQuarantined(job) ? release(job, act) : act());
  if (!answer) return null;
  announce("job");
  toast("Queued. Attempts reset to 0.");
  return answer;
}

/** @param {Job} job @param {() => Promise<boolean>} act */
function release(job, act) {
  const lost = job.crashes > 1 ? `${job.crashes} workers in a row` : "Its worker";
  return ask({
    title: `Release ${named(job)} from quarantine?`,
    body: html`<p>${lost} stopped responding while running it. Running it again may end another worker.</p>`,
    verb: "Retry",
    danger: true,
    act,
  });
}

/** Resolves to null if it was not cancelled. @param {Job} job */
async function cancelJob(job) {
  const answer = await ask({
    title: `Cancel ${named(job)}?`,
    body: html`<p>
      ${job.state === "running"
        ? "It is asked to stop: an async task stops at its next await, others when they check ctx.cancelled."
        : "It will not run."} You
      can retry it later.
    </p>`,
    verb: "Cancel job",
    cancel: "Keep job",
    reason: "Reason (optional)",
    act: (reason) => api.post(`/jobs/${job.id}/cancel`, reason ? { reason } : {}),
  });
  if (!answer) return null;
  announce("job");
  toast(job.state === "running" ? "Asked to stop." : "Cancelled.");
  return answer;
}

/**
 * On a row: the most likely action for the job's state.
 * @param {{job: Job}} props
 */
export function RowAction({ job }) {
  if (job.state === "failed" || job.state === "cancelled")
    return html`<${Button}
      tiny
      kind="plain"
      need="operate"
      label=${`Retry ${named(job)}`}
      onClick=${() => retryJob(job)}
    >
      Retry
    <//>`;
  if (job.state === "succeeded" || job.cancel_requested) return null;
  return html`<${Button}
    tiny
    kind="plain"
    need="operate"
    label=${`Cancel ${named(job)}`}
    onClick=${() => void cancelJob(job)}
  >
    Cancel
  <//>`;
}

/** @param {{job: Job, done: () => unknown}} props */
export function JobActions({ job, done }) {
  const finished = isFinished(job);
  const path = `/jobs/${job.id}`;
  const retry = () => retryJob(job).then((answer) => answer && done());
  const runNow = async () => {
    await api.post(`${path}/move`, { now: true });
    toast("Due now.");
    await done();
  };
  const cancel = () => cancelJob(job).then((answer) => answer && done());
  const remove = () =>
    ask({
      title: `Delete ${named(job)}?`,
      body: html`<p>
        It is deleted with its attempts and its output. This cannot be undone. The deletion stays in the audit log.
      </p>`,
      verb: "Delete",
      danger: true,
      act: () => api.delete(path).then(() => true),
    }).then((answer) => answer && (toast("Deleted."), go("/jobs")));
  const move = () => show(MoveForm, { job }).then((answer) => answer && (toast("Moved."), done()));
  const edited = () => enqueueDialog(job).then((created) => created && go(`/jobs/${created.id}`));
  return html`
    ${finished && html`<${Button} kind="main" need="operate" onClick=${retry}>Retry<//>`}
    ${job.state === "queued" && Date.parse(job.run_at) > now.value && html`<${Button}
      kind="main"
      need="operate"
      onClick=${runNow}
    >
      Run now
    <//>`}
    <${Button} need="operate" onClick=${() => void edited()}>${finished ? "Retry with edits…" : "Duplicate…"}<//>
    ${job.state === "queued" && html`<${Button} need="operate" onClick=${() => void move()}>Move<//>`}
    ${!finished && html`<${Button}
      kind="danger"
      need="operate"
      disabled=${job.cancel_requested}
      onClick=${() => void cancel()}
    >
      Cancel
    <//>`}
    ${job.state !== "running" && html`<${Button} kind="danger" need="operate" onClick=${() => void remove()}>
      Delete
    <//>`}
  `;
}

/** Priority, queue and due time. @param {import("../base/dialog.js").DialogControls<Job> & {job: Job}} props */
function MoveForm({ done, busy, job }) {
  const [values, setValues] = useState({ priority: `${job.priority}`, queue: job.queue, delay: "" });
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.post(`/jobs/${job.id}/move`, changed(values, job)),
  );
  const bind = (/** @type {keyof typeof values} */ name) => ({
    value: values[name],
    onInput: onValue((value) => setValues({ ...values, [name]: value })),
  });
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Move ${named(job)}</h2>
    <${Field} label="Priority" hint="Higher runs first." error=${error?.field === "priority" ? error.message : null}>
      <input type="number" autofocus ...${bind("priority")} />
    <//>
    <${Field} label="Queue" error=${error?.field === "queue" ? error.message : null}>
      <input type="text" class="mono" ...${bind("queue")} />
    <//>
    <${Field} label="Delay (seconds)" hint="Leave empty to keep the due time.">
      <input type="number" min="0" step="any" ...${bind("delay")} />
    <//>
    ${error && !error.field && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Move job<//>
    </div>
  </form>`;
}

/** @param {Record<"priority" | "queue" | "delay", string>} values @param {Job} job */
function changed(values, job) {
  return {
    ...(values.priority !== "" && Number(values.priority) !== job.priority && { priority: Number(values.priority) }),
    ...(values.queue.trim() && values.queue.trim() !== job.queue && { queue: values.queue.trim() }),
    ...(values.delay !== "" && { run_at: new Date(now.peek() + Number(values.delay) * 1000).toISOString() }),
  };
}
