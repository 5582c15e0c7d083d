// @ts-check
// What can be done with one job, as far as its state allows and the one who looks may.

import { api } from "../../api.js";
import { announce } from "../../live.js";
import { go, now } from "../../state.js";
import { html, useState } from "../../ui.js";
import { line, shortId } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, ask, show, useAct } from "../base/dialog.js";
import { enqueueDialog } from "./enqueue.js";
import { Field } from "../base/form.js";
import { toast } from "../base/toast.js";

const FINISHED = ["succeeded", "failed", "cancelled"];

/** Which one: in a list there are many. @param {import("../../types").JobView} job */
function named(job) {
  return `${line(job.task, 60)} ${shortId(job.id)}`;
}

/** @param {import("../../types").JobView} job */
async function retryJob(job) {
  await api.post(`/jobs/${job.id}/retry`);
  announce("job");
  toast("Queued again, with all its attempts.");
}

/** Resolves to null if it was not done. @param {import("../../types").JobView} job */
async function cancelJob(job) {
  const answer = await ask({
    title: `Cancel ${named(job)}?`,
    body: html`<p>
      ${job.state === "running"
        ? "It is asked to stop: a task stops at its next await, or when it looks at ctx.cancelled."
        : "It ends now, without having run."} It
      can be retried later.
    </p>`,
    verb: "Cancel",
    safe: "Let it be",
    reason: "Reason",
    act: (reason) => api.post(`/jobs/${job.id}/cancel`, reason ? { reason } : {}),
  });
  if (!answer) return null;
  announce("job");
  toast(job.state === "running" ? "Asked to stop." : "Cancelled.");
  return answer;
}

/**
 * On a row: the one thing that somebody would do with such a job.
 * @param {{job: import("../../types").JobView}} props
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

/** @param {{job: import("../../types").JobView, done: () => any}} props */
export function JobActions({ job, done }) {
  const finished = FINISHED.includes(job.state);
  const path = `/jobs/${job.id}`;
  const retry = () => retryJob(job).then(done);
  const runNow = async () => {
    await api.post(`${path}/move`, { now: true });
    toast("Due now.");
    await done();
  };
  const cancel = () => cancelJob(job).then((answer) => answer && done());
  const remove = () =>
    ask({
      title: `Delete ${named(job)}?`,
      body: html`<p>It is removed with its attempts and its output, for good. The audit log keeps that it was.</p>`,
      verb: "Delete",
      safe: "Keep it",
      danger: true,
      act: () => api.delete(path),
    }).then((answer) => answer && (toast("Deleted."), go("/jobs")));
  const move = () => show(MoveForm, { job }).then((answer) => answer && (toast("Moved."), done()));
  const edited = () => enqueueDialog(job).then((made) => made && go(`/jobs/${made.id}`));
  return html`
    ${finished && html`<${Button} kind="main" need="operate" onClick=${retry}>Retry<//>`}
    ${job.state === "queued" && Date.parse(job.run_at) > now.value && html`<${Button}
      kind="main"
      need="operate"
      onClick=${runNow}
    >
      Run now
    <//>`}
    <${Button} need="operate" onClick=${() => void edited()}>${finished ? "Retry with edits" : "Copy with edits"}<//>
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

/** When, how urgent, where. @param {import("../base/dialog.js").DialogControls & {job: any}} props */
function MoveForm({ done, busy, job }) {
  const [values, setValues] = useState({ priority: `${job.priority}`, queue: job.queue, delay: "" });
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.post(`/jobs/${job.id}/move`, changed(values, job)),
  );
  const bind = (/** @type {keyof typeof values} */ name) => ({
    value: values[name],
    onInput: (/** @type {any} */ event) => setValues({ ...values, [name]: event.target.value }),
  });
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Move ${named(job)}</h2>
    <${Field} label="Priority" hint="Larger first." error=${error?.field === "priority" ? error.message : null}>
      <input type="number" autofocus ...${bind("priority")} />
    <//>
    <${Field} label="Queue" error=${error?.field === "queue" ? error.message : null}>
      <input type="text" class="mono" ...${bind("queue")} />
    <//>
    <${Field} label="Snooze, seconds from now" hint="Empty: its due time stays.">
      <input type="number" min="0" step="any" ...${bind("delay")} />
    <//>
    ${error && !error.field && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Leave it<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Move<//>
    </div>
  </form>`;
}

/** @param {any} values @param {any} job */
function changed(values, job) {
  return {
    ...(values.priority !== "" && Number(values.priority) !== job.priority && { priority: Number(values.priority) }),
    ...(values.queue.trim() && values.queue.trim() !== job.queue && { queue: values.queue.trim() }),
    ...(values.delay !== "" && { run_at: new Date(now.peek() + Number(values.delay) * 1000).toISOString() }),
  };
}
