// @ts-check
// A form that makes a job: a new one, or a copy of another with an edited payload.

import { api } from "../api.js";
import { write } from "../exact.js";
import { html, useEffect, useState } from "../ui.js";
import { may } from "../state.js";
import { Button } from "./button.js";
import { Complaint, show, useAct } from "./dialog.js";
import { Field } from "./form.js";
import { payloadOf } from "./payload.js";
import { toast } from "./toast.js";

/** Resolves to the new job, or null. @param {import("../types").JobView} [like] the job to copy */
export async function enqueueDialog(like) {
  const job = await show(Form, { like }, { wide: true });
  if (job) toast(html`Job <code>${job.id}</code> is queued.`);
  return job;
}

/** @param {import("./dialog.js").Talk & {like?: any}} props */
function Form({ done, busy, like }) {
  const [said, setSaid] = useState({ task: like?.task ?? "", queue: like?.queue ?? "", tenant: like?.tenant ?? "", priority: `${like?.priority ?? ""}`, delay: "", payload: write(like?.payload ?? {}, 2) ?? "{}" });
  const { submit, error, acting } = useAct({ done, busy }, async () => api.post("/jobs", bodyOf(said, like)));
  const [tasks, setTasks] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    if (may("read.shared")) api.get("/tasks").then((page) => setTasks(page.items.map((/** @type {any} */ one) => one.name)), () => {});
  }, []);
  const bind = (/** @type {keyof typeof said} */ name) => ({ value: said[name], spellcheck: false, onInput: (/** @type {any} */ event) => setSaid({ ...said, [name]: event.target.value }) });
  const complaint = (/** @type {string} */ name) => (error?.field === name ? error.message : null);
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${like ? "Retry with an edited payload" : "Enqueue a job"}</h2>
    ${like && html`<div class="dialog-body"><p>A new job, with this one as its parent. This one stays as it is.</p></div>`}
    <${Field} label="Task" error=${complaint("task")}><input type="text" class="mono" required list="known-tasks" readonly=${Boolean(like)} autofocus=${!like} ...${bind("task")} /><//>
    <datalist id="known-tasks">${tasks.map((name) => html`<option value=${name}></option>`)}</datalist>
    <${Field} label="Payload" hint="A JSON object: the task's arguments." error=${complaint("payload")}><textarea rows="8" autofocus=${Boolean(like)} ...${bind("payload")}></textarea><//>
    <div class="fields">
      <${Field} label="Queue" hint="Empty: the task's own." error=${complaint("queue")}><input type="text" class="mono" ...${bind("queue")} /><//>
      <${Field} label="Tenant" error=${complaint("tenant")}><input type="text" ...${bind("tenant")} /><//>
      <${Field} label="Priority" hint="Larger first." error=${complaint("priority")}><input type="number" ...${bind("priority")} /><//>
      <${Field} label="Delay, seconds" error=${complaint("delay")}><input type="number" min="0" step="any" ...${bind("delay")} /><//>
    </div>
    ${error && !["task", "payload", "queue", "tenant", "priority", "delay"].includes(error.field) && html`<${Complaint} error=${error} />`}
    <div class="acts"><${Button} onClick=${() => done(null)}>Leave it<//><${Button} type="submit" kind="main" disabled=${acting}>Enqueue job<//></div>
  </form>`;
}

/** @param {any} said @param {any} like */
function bodyOf(said, like) {
  const { value: payload, error } = payloadOf(said.payload);
  if (error) throw Object.assign(new Error(error), { field: "payload" });
  const body = { task: said.task.trim(), payload, parent: like?.id, tags: like?.tags, max_attempts: like?.max_attempts, timeout: like?.timeout };
  for (const name of ["queue", "tenant"]) if (said[name].trim()) Object.assign(body, { [name]: said[name].trim() });
  for (const name of ["priority", "delay"]) if (said[name] !== "") Object.assign(body, { [name]: Number(said[name]) });
  return body;
}
