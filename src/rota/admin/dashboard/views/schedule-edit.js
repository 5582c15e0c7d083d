// @ts-check
// Create or edit a schedule: the rule is summarised as you type, and the changes are listed beside Save.

import { api, problemOf } from "../api.js";
import { useLoad } from "../load.js";
import { Button } from "../parts/base/button.js";
import { Forbidden } from "../parts/base/forbidden.js";
import { FormError } from "../parts/base/dialog.js";
import { Diff, differences } from "../parts/base/diff.js";
import { Skeleton, ErrorNotice } from "../parts/base/empty.js";
import { FireTable } from "../parts/schedules/fire-table.js";
import { Field, Options, onValue } from "../parts/base/form.js";
import { Code, PageHeader, Note, Panel } from "../parts/base/panel.js";
import { payloadOf } from "../parts/jobs/payload.js";
import { RuleFields, useRuleCheck } from "../parts/schedules/rule.js";
import { bodyOf, changesOf, draftOf, emptyDraft } from "../parts/schedules/schedule-draft.js";
import { deleteDialog, pageOf } from "../parts/schedules/schedule.js";
import { When } from "../parts/base/time.js";
import { toast } from "../parts/base/toast.js";
import { CALENDAR_MODE_LABELS, MISSED_LABELS, OVERLAP_LABELS, optionsOf } from "../labels.js";
import { at, go, may, me, now, query } from "../state.js";
import { html, useEffect, useRef, useState } from "../ui.js";
import { clean, line, plural } from "../format.js";

/** @typedef {import("../types").ScheduleView} ScheduleView */
/** @typedef {import("../parts/schedules/schedule-draft.js").Draft} Draft */
/** @typedef {import("../api.js").Problem} Problem */

/** @param {{name?: string}} props without a name: a new one */
export default function ScheduleEdit({ name }) {
  const tenant = query.value.get("tenant");
  const loaded = useLoad(
    (signal) => api.get(`/schedules/${encodeURIComponent(name ?? "")}`, { tenant }, signal),
    [name, tenant],
    { when: Boolean(name) },
  );
  const crumb = html`
    <a href=${at("/schedules")}>Schedules</a> / ${name
      ? html`<a href=${at(`/schedules/${encodeURIComponent(name)}`, { tenant })}>
          ${clean(loaded.data?.name ?? name)}
        </a>`
      : "new"}
  `;
  const title = name ? `Edit ${clean(loaded.data?.name ?? name)}` : "Create schedule";
  if (!may("operate"))
    return html`
      <${PageHeader} title=${title} crumb=${crumb} />
      <${Forbidden} what="Editing schedules" role="operator" />
    `;
  if (!name)
    return html`
      <${PageHeader} title=${title} crumb=${crumb}><p>A rule that creates jobs of one task.</p><//>
      <${Form} schedule=${null} />
    `;
  return html`
    <${PageHeader} title=${title} crumb=${crumb}>
      ${loaded.data ? html`<${Past} schedule=${loaded.data} />` : html`<p><span class="skeleton-line w2"></span></p>`}
    <//>
    ${loaded.data
      ? html`<${Form} key=${loaded.data.id} schedule=${loaded.data} />`
      : loaded.error
        ? html`<${ErrorNotice} error=${loaded.error} retry=${loaded.reload} />`
        : html`<${Skeleton} lines=${8} />`}
  `;
}

/** @param {{schedule: ScheduleView}} props */
function Past({ schedule }) {
  return html`<p>
    ${schedule.source === "code"
      ? html`Declared in the code of <${Code}>${schedule.owner ?? "a program"}<//>.`
      : "Created by a user."} Last
    run <${When} at=${schedule.last_fire_at} none="never" />.
  </p>`;
}

/** @param {{schedule: ScheduleView | null}} props */
function Form({ schedule }) {
  const [before] = useState(() => (schedule ? draftOf(schedule) : emptyDraft(me.value?.tenant ?? "default")));
  const [anchor] = useState(() => schedule?.created_at ?? new Date(now.peek()).toISOString());
  const [draft, setDraft] = useState(before);
  const [rejected, setRejected] = useState(/** @type {Problem | null} */ (null));
  const [busy, setBusy] = useState(false);
  const place = useRef(/** @type {HTMLFormElement | null} */ (null));
  const verdict = useRuleCheck(draft, anchor);
  const set = (/** @type {Partial<Draft>} */ patch) => (setDraft((old) => ({ ...old, ...patch })), setRejected(null));
  const changes = schedule ? changesOf(draft, before) : bodyOf(draft);
  const errors = errorsOf(draft, before, verdict, rejected);
  useEffect(() => {
    if (rejected) /** @type {HTMLElement | null} */ (place.current?.querySelector('[aria-invalid="true"]'))?.focus();
  }, [rejected]);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const after = schedule
        ? await api.put(`/schedules/${schedule.id}`, changes)
        : await api.post("/schedules", { ...changes, name: draft.name.trim(), tenant: draft.tenant.trim() || null });
      toast(html`Schedule <code>${clean(after.name)}</code> is ${schedule ? "saved" : "created"}.`);
      go(pageOf(after));
    } catch (error) {
      setRejected(problemOf(error));
      setBusy(false);
    }
  };
  const ready = !busy && !verdict.busy && !verdict.error && !errors.payload && Object.keys(changes).length > 0;
  return html`<form ref=${place} onSubmit=${save}>
    ${schedule?.source === "code" && html`<${Note} state="queued">
      <p>
        Fields you edit here keep your values across deploys; the rest follow the code.
      </p>
    <//>`}
    <div class="schedule-form">
      <${Panel} title="Job"><${What} draft=${draft} set=${set} errors=${errors} isNew=${!schedule} /><//>
      <${Panel} title="Rule"><${RuleFields} draft=${draft} verdict=${verdict} errors=${errors} set=${set} /><//>
      <div class="beside">
        <${Panel} title="Next runs" note="as you type"><${Fires} verdict=${verdict} timezone=${draft.timezone} /><//>
      </div>
      <${Panel} title="Overlapping and missed runs"><${Policies} draft=${draft} set=${set} errors=${errors} /><//>
      <${More} draft=${draft} set=${set} errors=${errors} />
    </div>
    <${SaveBar}
      schedule=${schedule}
      draft=${draft}
      before=${before}
      changes=${changes}
      rule=${verdict.summary}
      ready=${ready}
      rejected=${rejected}
    />
  </form>`;
}

/**
 * Each error at its field: what the server rejected, what it answers about the rule, an invalid payload.
 * @param {Draft} draft
 * @param {Draft} before
 * @param {import("../parts/schedules/rule.js").RuleCheck} verdict
 * @param {Problem | null} rejected
 * @returns {Record<string, string>}
 */
function errorsOf(draft, before, verdict, rejected) {
  const payload = payloadOf(draft.payload).error;
  return {
    ...(verdict.error?.field ? { [verdict.error.field]: verdict.error.message } : {}),
    ...(payload && draft.payload !== before.payload ? { payload } : {}),
    ...(rejected ? { [fieldOf(rejected)]: rejected.message } : {}),
  };
}

/** @param {Problem} rejected */
function fieldOf(rejected) {
  if (rejected.code === "already_registered") return "name";
  // Errors about the task's arguments belong to the payload.
  return /argument/.test(rejected.message) ? "payload" : (rejected.field ?? "");
}

/** @param {{verdict: import("../parts/schedules/rule.js").RuleCheck, timezone: string}} props */
function Fires({ verdict, timezone }) {
  if (verdict.error)
    return verdict.error.field
      ? html`<p class="quiet">Next runs appear here once the rule is valid.</p>`
      : html`<${FormError} error=${verdict.error} />`;
  if (verdict.summary && !verdict.fires.length) return html`<p class="quiet">No runs: its end date has passed.</p>`;
  return html`<${FireTable} fires=${verdict.summary ? verdict.fires : null} timezone=${timezone} skeleton=${10} />`;
}

/**
 * @param {{draft: Draft, set: (patch: Partial<Draft>) => void, errors: Record<string, string>, isNew: boolean}} props
 */
function What({ draft, set, errors, isNew }) {
  const tasks = useLoad((signal) => api.get("/tasks", {}, signal), [], { when: may("read.shared") });
  const typed = (/** @type {keyof Draft} */ key) => ({
    value: draft[key],
    onInput: onValue((value) => set({ [key]: value })),
  });
  const known = tasks.data?.items.find((one) => one.name === draft.task.trim());
  const hint =
    !tasks.data || !draft.task
      ? "The name that the code declares."
      : known?.workers
        ? `${plural(known.workers, "running worker has", "running workers have")} this task.`
        : "No running worker has this task: its jobs start when one does.";
  const hidden = draft.payload.startsWith("(hidden");
  return html`
    ${isNew && html`<div class="fields">
      <${Field} label="Name" error=${errors.name} hint="Used in URLs and commands.">
        <input
          type="text"
          class="mono"
          required
          maxlength="200"
          autocomplete="off"
          spellcheck=${false}
          autofocus
          ...${typed("name")}
        />
      <//>
      <${Field} label="Tenant" error=${errors.tenant}>
        <input
          type="text"
          class="mono"
          maxlength="200"
          disabled=${Boolean(me.value?.tenant)}
          autocomplete="off"
          ...${typed("tenant")}
        />
      <//>
    </div>`}
    <${Field} label="Task" error=${errors.task} hint=${hint}>
      <input
        type="text"
        class="mono"
        required
        maxlength="200"
        list="task-names"
        autocomplete="off"
        spellcheck=${false}
        ...${typed("task")}
      />
    <//>
    <datalist id="task-names">
      ${tasks.data?.items.map((one) => html`<option value=${one.name} />`)}
    </datalist>
    <${Field}
      label="Payload"
      error=${errors.payload}
      hint=${hidden
        ? "You have no access to payloads; it does not change."
        : "The task's arguments, as a JSON object. Checked against the task when saved."}
    >
      <textarea rows="4" spellcheck=${false} disabled=${hidden} ...${typed("payload")}></textarea>
    <//>
    <${Field} label="Description" error=${errors.description}>
      <input type="text" maxlength="2000" ...${typed("description")} />
    <//>
  `;
}

/** @param {{draft: Draft, set: (patch: Partial<Draft>) => void, errors: Record<string, string>}} props */
function Policies({ draft, set, errors }) {
  return html`
    <${Options}
      legend="If the previous run is still running"
      name="overlap"
      value=${draft.overlap}
      options=${optionsOf(OVERLAP_LABELS)}
      onChange=${(/** @type {string} */ overlap) => set({ overlap })}
    />
    <${Options}
      legend="If a run was missed"
      name="missed"
      value=${draft.missed}
      options=${optionsOf(MISSED_LABELS)}
      onChange=${(/** @type {string} */ missed) => set({ missed })}
    />
    <div class="fields">
      ${draft.missed === "all" && html`<${Field}
        label="At most"
        hint="Catch up at most this many, newest first."
        error=${errors.missed_cap}
      >
        <input
          type="number"
          min="1"
          max="10000"
          value=${draft.missed_cap}
          onInput=${onValue((value) => set({ missed_cap: value }))}
        />
      <//>`}
      ${draft.missed !== "skip" && html`<${Field}
        label="None older than"
        hint="For example 6h. Leave empty for no limit."
        error=${errors.missed_window}
      >
        <input
          type="text"
          class="mono"
          value=${draft.missed_window}
          onInput=${onValue((value) => set({ missed_window: value }))}
        />
      <//>`}
    </div>
  `;
}

/**
 * Options that are rarely needed.
 * @param {{draft: Draft, set: (patch: Partial<Draft>) => void, errors: Record<string, string>}} props
 */
function More({ draft, set, errors }) {
  const calendars = useLoad((signal) => api.get("/calendars", {}, signal), []);
  const typed = (/** @type {keyof Draft} */ key) => ({
    value: draft[key],
    onInput: onValue((value) => set({ [key]: value })),
  });
  const wrong = ["queue", "priority", "max_attempts", "timeout", "calendar", "calendar_mode"].some(
    (key) => errors[key],
  );
  const names = [...new Set([draft.calendar, ...(calendars.data?.items ?? []).map((one) => one.name)])].filter(Boolean);
  return html`<details class="panel form-more" open=${wrong || undefined}>
    <summary>Queue, attempts and calendar</summary>
    <div class="fields">
      <${Field} label="Queue" error=${errors.queue} hint="Leave empty to use the task's setting.">
        <input type="text" class="mono" maxlength="200" ...${typed("queue")} />
      <//>
      <${Field}
        label="Priority"
        error=${errors.priority}
        hint="Higher runs first. Leave empty to use the task's setting."
      >
        <input type="number" step="1" ...${typed("priority")} />
      <//>
      <${Field} label="Attempts" error=${errors.max_attempts} hint="Leave empty to use the task's setting.">
        <input type="number" min="1" max="100" ...${typed("max_attempts")} />
      <//>
      <${Field} label="Timeout (seconds)" error=${errors.timeout} hint="Leave empty to use the task's setting.">
        <input type="number" min="0" step="any" ...${typed("timeout")} />
      <//>
      <${Field}
        label="Calendar"
        error=${errors.calendar}
        hint=${names.length
          ? "Days on which it does not run."
          : html`No calendars yet. <a href=${at("/calendars")}>Create one</a>.`}
      >
        <select value=${draft.calendar} onChange=${onValue((value) => set({ calendar: value }))}>
          <option value="">none</option>
          ${names.map((one) => html`<option value=${one} selected=${one === draft.calendar}>${line(one, 60)}</option>`)}
        </select>
      <//>
      ${draft.calendar && html`<${Field} label="On these days" error=${errors.calendar_mode}>
        <select value=${draft.calendar_mode} onChange=${onValue((value) => set({ calendar_mode: value }))}>
          ${optionsOf(CALENDAR_MODE_LABELS).map(
            ([one, label]) => html`<option value=${one} selected=${one === draft.calendar_mode}>${label}</option>`,
          )}
        </select>
      <//>`}
    </div>
  </details>`;
}

/**
 * @param {{schedule: ScheduleView | null, draft: Draft, before: Draft, changes: Record<string, unknown>, rule: string,
 *   ready: boolean, rejected: Problem | null}} props
 */
function SaveBar({ schedule, draft, before, changes, rule, ready, rejected }) {
  const old = bodyOf(before);
  const shown = differences(Object.fromEntries(Object.keys(changes).map((key) => [key, old[key]])), changes);
  const summary = schedule
    ? shown.length
      ? html`<${Diff} changes=${shown} most=${6} /><p>Existing jobs do not change.</p>`
      : html`<p>No changes yet.</p>`
    : html`<p>
        ${rule && draft.task
          ? html`<b>${line(rule, 200)}</b>, creates a job of <code>${line(draft.task, 60)}</code>.`
          : "Enter a task and a rule."}
      </p>`;
  // An error about no visible field is shown here.
  const stray =
    rejected && (!(fieldOf(rejected) in draft) || (schedule && ["name", "tenant"].includes(fieldOf(rejected))));
  return html`<div class="savebar">
    <div class="change-summary" role="status">${summary}${stray && html`<${FormError} error=${rejected} />`}</div>
    ${schedule && html`<${Button} kind="danger" onClick=${() => void deleteDialog(schedule)}>Delete<//>`}
    <a class="button" href=${at(schedule ? pageOf(schedule) : "/schedules")}>Cancel</a>
    <${Button} type="submit" kind="main" disabled=${!ready}>${schedule ? "Save schedule" : "Create schedule"}<//>
  </div>`;
}
