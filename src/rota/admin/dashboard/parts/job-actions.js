// @ts-check
// What can be done with one job, as far as its state allows and the one who looks may.

import { api } from "../api.js";
import { go } from "../state.js";
import { html, useState } from "../ui.js";
import { clean } from "../words.js";
import { Button } from "./button.js";
import { Complaint, ask, show } from "./dialog.js";
import { enqueueDialog } from "./enqueue.js";
import { Field } from "./form.js";
import { toast } from "./toast.js";

const ENDED = ["succeeded", "failed", "cancelled"];

/** @param {{job: import("../types").JobView, done: () => any}} props */
export function JobActions({ job, done }) {
  const ended = ENDED.includes(job.state);
  const path = `/jobs/${job.id}`;
  const retry = async () => {
    await api.post(`${path}/retry`);
    toast("Queued again, with all its attempts.");
    await done();
  };
  const runNow = async () => {
    await api.post(`${path}/move`, { now: true });
    toast("Due now.");
    await done();
  };
  const cancel = () => ask({
    title: "Cancel this job?",
    body: html`<p>${job.state === "running" ? "It is asked to stop: a task stops at its next await, or when it looks at ctx.cancelled." : "It ends now, without having run."} It can be retried later.</p>`,
    verb: "Cancel",
    safe: "Let it be",
    reason: "Reason",
    act: (reason) => api.post(`${path}/cancel`, reason ? { reason } : {}),
  }).then((answer) => answer && (toast(job.state === "running" ? "Asked to stop." : "Cancelled."), done()));
  const remove = () => ask({
    title: "Delete this job?",
    body: html`<p><code>${clean(job.task)}</code> is removed with its attempts and its output, for good. The audit log keeps that it was.</p>`,
    verb: "Delete",
    safe: "Keep it",
    grave: true,
    act: () => api.delete(path),
  }).then((answer) => answer && (toast("Deleted."), go("/jobs")));
  const move = () => show(MoveForm, { job }).then((answer) => answer && (toast("Moved."), done()));
  const edited = () => enqueueDialog(job).then((made) => made && go(`/jobs/${made.id}`));
  return html`
    ${ended && html`<${Button} kind="main" need="operate" onClick=${retry}>Retry<//>`}
    ${job.state === "queued" && Date.parse(job.run_at) > Date.now() && html`<${Button} kind="main" need="operate" onClick=${runNow}>Run now<//>`}
    <${Button} need="operate" onClick=${() => void edited()}>${ended ? "Retry with edits" : "Copy with edits"}<//>
    ${job.state === "queued" && html`<${Button} need="operate" onClick=${() => void move()}>Move<//>`}
    ${!ended && html`<${Button} kind="grave" need="operate" disabled=${job.cancel_requested} onClick=${() => void cancel()}>Cancel<//>`}
    ${job.state !== "running" && html`<${Button} kind="grave" need="operate" onClick=${() => void remove()}>Delete<//>`}`;
}

/** When, how urgent, where. @param {{done: (value: any) => void, job: any}} props */
function MoveForm({ done, job }) {
  const [said, setSaid] = useState({ priority: `${job.priority}`, queue: job.queue, delay: "" });
  const [error, setError] = useState(/** @type {any} */ (null));
  const bind = (/** @type {keyof typeof said} */ name) => ({ value: said[name], onInput: (/** @type {any} */ event) => setSaid({ ...said, [name]: event.target.value }) });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      done(await api.post(`/jobs/${job.id}/move`, changed(said, job)));
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Move this job</h2>
    <${Field} label="Priority" hint="Larger first." error=${error?.field === "priority" ? error.message : null}><input type="number" autofocus ...${bind("priority")} /><//>
    <${Field} label="Queue" error=${error?.field === "queue" ? error.message : null}><input type="text" class="mono" ...${bind("queue")} /><//>
    <${Field} label="Snooze, seconds from now" hint="Empty: its due time stays."><input type="number" min="0" step="any" ...${bind("delay")} /><//>
    ${error && !error.field && html`<${Complaint} error=${error} />`}
    <div class="acts"><${Button} onClick=${() => done(null)}>Leave it<//><${Button} type="submit" kind="main">Move<//></div>
  </form>`;
}

/** @param {any} said @param {any} job */
function changed(said, job) {
  return {
    ...(said.priority !== "" && Number(said.priority) !== job.priority && { priority: Number(said.priority) }),
    ...(said.queue.trim() && said.queue.trim() !== job.queue && { queue: said.queue.trim() }),
    ...(said.delay !== "" && { run_at: new Date(Date.now() + Number(said.delay) * 1000).toISOString() }),
  };
}

