// @ts-check
// Create or edit a schedule: the rule reads back as you type, and what will change stands above Save.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Button } from "../parts/base/button.js";
import { Forbidden } from "../parts/base/forbidden.js";
import { FormError } from "../parts/base/dialog.js";
import { Diff, differences } from "../parts/base/diff.js";
import { Skeleton, ErrorNotice } from "../parts/base/empty.js";
import { FireTable } from "../parts/schedules/fire-table.js";
import { Field, Options } from "../parts/base/form.js";
import { Code, PageHeader, Note, Panel } from "../parts/base/panel.js";
import { payloadOf } from "../parts/jobs/payload.js";
import { RuleFields, useRuleCheck } from "../parts/schedules/rule.js";
import { bodyOf, changesOf, draftOf, emptyDraft } from "../parts/schedules/schedule-draft.js";
import { deleteDialog, pageOf } from "../parts/schedules/schedule.js";
import { When } from "../parts/base/time.js";
import { toast } from "../parts/base/toast.js";
import { at, go, may, me, now, query } from "../state.js";
import { html, useEffect, useRef, useState } from "../ui.js";
import { clean, line, plural } from "../format.js";

/** @typedef {import("../types").ScheduleView} ScheduleView */
/** @typedef {import("../parts/schedules/schedule-draft.js").Draft} Draft */

/** @type {[string, string][]} */
const OVERLAP = [
  ["allow", "Start the next beside it."],
  ["skip", "Leave this fire out."],
  ["queue", "Start it when the run before it has ended."],
  ["cancel_previous", "Ask the old run to stop, and start the new one."],
];
/** @type {[string, string][]} */
const MISSED = [
  ["skip", "Forget what was missed. The next fire is on time."],
  ["latest", "Run once, for the latest that was missed."],
  ["all", "Run each one that was missed, oldest first."],
];

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
      <${Forbidden} what="Changing schedules" role="operator" />
    `;
  if (!name)
    return html`
      <${PageHeader} title=${title} crumb=${crumb}><p>A rule that makes jobs of one task.</p><//>
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
      : "Made by hand."} Last
    fired <${When} at=${schedule.last_fire_at} none="never" />.
  </p>`;
}

/** @param {{schedule: ScheduleView | null}} props */
function Form({ schedule }) {
  const [before] = useState(() => (schedule ? draftOf(schedule) : emptyDraft(me.value?.tenant ?? "default")));
  const [anchor] = useState(() => schedule?.created_at ?? new Date(now.peek()).toISOString());
  const [draft, setDraft] = useState(before);
  const [rejected, setRejected] = useState(/** @type {any} */ (null));
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
      toast(html`Schedule <code>${clean(after.name)}</code> is ${schedule ? "changed" : "made"}.`);
      go(pageOf(after));
    } catch (error) {
      setRejected(error);
      setBusy(false);
    }
  };
  const ready = !busy && !verdict.busy && !verdict.error && !errors.payload && Object.keys(changes).length > 0;
  return html`<form ref=${place} onSubmit=${save}>
    ${schedule?.source === "code" && html`<${Note} state="queued">
      <p>
        Its code stays in charge of what you leave alone. What you change here is kept when the program starts anew.
      </p>
    <//>`}
    <div class="schedule-form">
      <${Panel} title="What"><${What} draft=${draft} set=${set} errors=${errors} isNew=${!schedule} /><//>
      <${Panel} title="When"><${RuleFields} draft=${draft} verdict=${verdict} errors=${errors} set=${set} /><//>
      <div class="beside">
        <${Panel} title="Next fires" note="as you type"><${Fires} verdict=${verdict} timezone=${draft.timezone} /><//>
      </div>
      <${Panel} title="If things go wrong"><${Policies} draft=${draft} set=${set} errors=${errors} /><//>
      <${More} draft=${draft} set=${set} errors=${errors} />
    </div>
    <${SaveBar}
      schedule=${schedule}
      draft=${draft}
      before=${before}
      changes=${changes}
      words=${verdict.words}
      ready=${ready}
      rejected=${rejected}
    />
  </form>`;
}

/**
 * Each complaint at its field: what the server refused, what it says of the rule, what cannot be read.
 * @param {Draft} draft
 * @param {Draft} before
 * @param {any} verdict
 * @param {any} rejected
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

/** @param {any} rejected */
function fieldOf(rejected) {
  if (rejected.code === "already_registered") return "name";
  // The task's own signature speaks of its arguments: those stand in the payload.
  return /argument/.test(rejected.message) ? "payload" : (rejected.field ?? "");
}

/** @param {{verdict: import("../parts/schedules/rule.js").RuleCheck, timezone: string}} props */
function Fires({ verdict, timezone }) {
  if (verdict.error)
    return verdict.error.field
      ? html`<p class="quiet">They stand here as soon as the rule can be read.</p>`
      : html`<${FormError} error=${verdict.error} />`;
  if (verdict.words && !verdict.fires.length) return html`<p class="quiet">It would never fire: its time is over.</p>`;
  return html`<${FireTable} fires=${verdict.words ? verdict.fires : null} timezone=${timezone} skeleton=${10} />`;
}

/**
 * @param {{draft: Draft, set: (patch: Partial<Draft>) => void, errors: Record<string, string>, isNew: boolean}} props
 */
function What({ draft, set, errors, isNew }) {
  const tasks = useLoad((signal) => api.get("/tasks", {}, signal), [], { when: may("read.shared") });
  const typed = (/** @type {keyof Draft} */ key) => ({
    value: draft[key],
    onInput: (/** @type {any} */ event) => set({ [key]: event.target.value }),
  });
  const known = tasks.data?.items.find((/** @type {any} */ one) => one.name === draft.task.trim());
  const hint =
    !tasks.data || !draft.task
      ? "The name that a worker knows it by."
      : known?.workers
        ? `Known to ${plural(known.workers, "live worker")}.`
        : "No live worker knows it: its jobs will wait for one.";
  const hidden = draft.payload.startsWith("(hidden");
  return html`
    ${isNew && html`<div class="fields">
      <${Field} label="Name" error=${errors.name} hint="How people and commands call it.">
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
      ${tasks.data?.items.map((/** @type {any} */ one) => html`<option value=${one.name} />`)}
    </datalist>
    <${Field}
      label="Payload"
      error=${errors.payload}
      hint=${hidden
        ? "You may not see payloads; it stays as it is."
        : "What the task is given, as JSON. Checked against the task when it is saved."}
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
      legend="A run still goes on when the next is due"
      name="overlap"
      value=${draft.overlap}
      options=${OVERLAP}
      onChange=${(/** @type {string} */ overlap) => set({ overlap })}
    />
    <${Options}
      legend="No scheduler was there when it was due"
      name="missed"
      value=${draft.missed}
      options=${MISSED}
      onChange=${(/** @type {string} */ missed) => set({ missed })}
    />
    <div class="fields">
      ${draft.missed === "all" && html`<${Field}
        label="At most"
        hint="The newest so many are made up."
        error=${errors.missed_cap}
      >
        <input
          type="number"
          min="1"
          max="10000"
          value=${draft.missed_cap}
          onInput=${(/** @type {any} */ e) => set({ missed_cap: e.target.value })}
        />
      <//>`}
      ${draft.missed !== "skip" && html`<${Field}
        label="None older than"
        hint="Such as 6h. Empty: however old."
        error=${errors.missed_window}
      >
        <input
          type="text"
          class="mono"
          value=${draft.missed_window}
          onInput=${(/** @type {any} */ e) => set({ missed_window: e.target.value })}
        />
      <//>`}
    </div>
  `;
}

/**
 * What is seldom needed.
 * @param {{draft: Draft, set: (patch: Partial<Draft>) => void, errors: Record<string, string>}} props
 */
function More({ draft, set, errors }) {
  const calendars = useLoad((signal) => api.get("/calendars", {}, signal), []);
  const typed = (/** @type {keyof Draft} */ key) => ({
    value: draft[key],
    onInput: (/** @type {any} */ event) => set({ [key]: event.target.value }),
  });
  const wrong = ["queue", "priority", "max_attempts", "timeout", "calendar", "calendar_mode"].some(
    (key) => errors[key],
  );
  const names = [
    ...new Set([draft.calendar, ...(calendars.data?.items ?? []).map((/** @type {any} */ one) => one.name)]),
  ].filter(Boolean);
  return html`<details class="panel form-more" open=${wrong || undefined}>
    <summary>Queue, attempts and calendar</summary>
    <div class="fields">
      <${Field} label="Queue" error=${errors.queue} hint="Empty: as the task says.">
        <input type="text" class="mono" maxlength="200" ...${typed("queue")} />
      <//>
      <${Field} label="Priority" error=${errors.priority} hint="Larger goes first. Empty: as the task says.">
        <input type="number" step="1" ...${typed("priority")} />
      <//>
      <${Field} label="Attempts" error=${errors.max_attempts} hint="Empty: as the task says.">
        <input type="number" min="1" max="100" ...${typed("max_attempts")} />
      <//>
      <${Field} label="Timeout, seconds" error=${errors.timeout} hint="Empty: as the task says.">
        <input type="number" min="0" step="any" ...${typed("timeout")} />
      <//>
      <${Field}
        label="Calendar"
        error=${errors.calendar}
        hint=${names.length
          ? "Days on which it does not run."
          : html`There is none yet. <a href=${at("/calendars")}>Make one</a>.`}
      >
        <select value=${draft.calendar} onChange=${(/** @type {any} */ e) => set({ calendar: e.target.value })}>
          <option value="">none</option>
          ${names.map((one) => html`<option value=${one} selected=${one === draft.calendar}>${line(one, 60)}</option>`)}
        </select>
      <//>
      ${draft.calendar && html`<${Field} label="On such a day" error=${errors.calendar_mode}>
        <select
          value=${draft.calendar_mode}
          onChange=${(/** @type {any} */ e) => set({ calendar_mode: e.target.value })}
        >
          <option value="skip">leave it out</option>
          <option value="next_working_day" selected=${draft.calendar_mode === "next_working_day"}>
            run on the next working day
          </option>
        </select>
      <//>`}
    </div>
  </details>`;
}

/** @param {any} props */
function SaveBar({ schedule, draft, before, changes, words, ready, rejected }) {
  const old = bodyOf(before);
  const shown = differences(Object.fromEntries(Object.keys(changes).map((key) => [key, old[key]])), changes);
  const summary = schedule
    ? shown.length
      ? html`<${Diff} changes=${shown} most=${6} /><p>Jobs that are already made keep their time.</p>`
      : html`<p>Nothing is changed yet.</p>`
    : html`<p>
        ${words && draft.task
          ? html`<b>${line(words, 200)}</b>, one job of <code>${line(draft.task, 60)}</code>.`
          : "Name a task and a rule."}
      </p>`;
  // What concerns no field that is shown is told here.
  const stray =
    rejected && (!(fieldOf(rejected) in draft) || (schedule && ["name", "tenant"].includes(fieldOf(rejected))));
  return html`<div class="savebar">
    <div class="change-summary" role="status">${summary}${stray && html`<${FormError} error=${rejected} />`}</div>
    ${schedule && html`<${Button} kind="danger" onClick=${() => void deleteDialog(schedule)}>Delete<//>`}
    <a class="button" href=${at(schedule ? pageOf(schedule) : "/schedules")}>Discard</a>
    <${Button} type="submit" kind="main" disabled=${!ready}>${schedule ? "Save schedule" : "Create schedule"}<//>
  </div>`;
}
