// @ts-check
// A form that creates a job: a new one, or a copy of another with an edited payload.

import { api } from "../../api.js";
import { write } from "../../exact.js";
import { clean } from "../../format.js";
import { html, useEffect, useState } from "../../ui.js";
import { may } from "../../state.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field, onValue } from "../base/form.js";
import { payloadOf } from "./payload.js";
import { toast } from "../base/toast.js";

/** @typedef {import("../../types").JobView} Job */
/** @typedef {import("../../types").EnqueuedView} Enqueued */

/** Resolves to the new job, or null. @param {Job} [like] the job to copy */
export async function enqueueDialog(like) {
  const job = await show(Form, { like }, { wide: true });
  const warning = job?.warning ? ` Note: ${clean(job.warning)}.` : "";
  if (job) toast(html`Enqueued job <code>${job.id}</code>.${warning}`);
  return job;
}

/** @param {import("../base/dialog.js").DialogControls<Enqueued> & {like?: Job}} props */
function Form({ done, busy, like }) {
  const [values, setValues] = useState({
    task: like?.task ?? "",
    queue: like?.queue ?? "",
    tenant: like?.tenant ?? "",
    priority: `${like?.priority ?? ""}`,
    delay: "",
    payload: write(like?.payload ?? {}, 2) ?? "{}",
  });
  const { submit, error, acting } = useAct({ done, busy }, async () => api.post("/jobs", bodyOf(values, like)));
  const [tasks, setTasks] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    if (may("read.shared"))
      api.get("/tasks").then(
        (page) => setTasks(page.items.map((one) => one.name)),
        () => {},
      );
  }, []);
  const bind = (/** @type {keyof typeof values} */ name) => ({
    value: values[name],
    spellcheck: false,
    onInput: onValue((value) => setValues({ ...values, [name]: value })),
  });
  const errorOf = (/** @type {string} */ name) => (error?.field === name ? error.message : null);
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${like ? "Enqueue an edited copy" : "Enqueue job"}</h2>
    ${like && html`<div class="dialog-body">
      <p>Creates a new job with this one as its parent. This job does not change.</p>
    </div>`}
    <${Field} label="Task" error=${errorOf("task")}>
      <input
        type="text"
        class="mono"
        required
        list="known-tasks"
        readonly=${Boolean(like)}
        autofocus=${!like}
        ...${bind("task")}
      />
    <//>
    <datalist id="known-tasks">${tasks.map((name) => html`<option value=${name}></option>`)}</datalist>
    <${Field} label="Payload" hint="The task's arguments, as a JSON object." error=${errorOf("payload")}>
      <textarea rows="8" autofocus=${Boolean(like)} ...${bind("payload")}></textarea>
    <//>
    <div class="fields">
      <${Field} label="Queue" hint="Leave empty to use the task's queue." error=${errorOf("queue")}>
        <input type="text" class="mono" ...${bind("queue")} />
      <//>
      <${Field} label="Tenant" error=${errorOf("tenant")}><input type="text" ...${bind("tenant")} /><//>
      <${Field} label="Priority" hint="Higher runs first." error=${errorOf("priority")}>
        <input type="number" ...${bind("priority")} />
      <//>
      <${Field} label="Delay (seconds)" error=${errorOf("delay")}>
        <input type="number" min="0" step="any" ...${bind("delay")} />
      <//>
    </div>
    ${error && !(error.field && error.field in values) && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>Enqueue job<//>
    </div>
  </form>`;
}

/**
 * @param {Record<"task" | "queue" | "tenant" | "priority" | "delay" | "payload", string>} values
 * @param {Job} [like]
 */
function bodyOf(values, like) {
  const { value: payload, error } = payloadOf(values.payload);
  if (error) throw Object.assign(new Error(error), { field: "payload" });
  const body = {
    task: values.task.trim(),
    payload,
    parent: like?.id,
    tags: like?.tags,
    max_attempts: like?.max_attempts,
    timeout: like?.timeout,
  };
  for (const name of /** @type {const} */ (["queue", "tenant"]))
    if (values[name].trim()) Object.assign(body, { [name]: values[name].trim() });
  for (const name of /** @type {const} */ (["priority", "delay"]))
    if (values[name] !== "") Object.assign(body, { [name]: Number(values[name]) });
  return body;
}
