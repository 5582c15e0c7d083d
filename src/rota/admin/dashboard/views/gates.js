// @ts-check
// Active pauses: what, why, by whom, since when and until when; and the switch for everything.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge } from "../parts/base/badge.js";
import { Button } from "../parts/base/button.js";
import { show } from "../parts/base/dialog.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { Field, onValue } from "../parts/base/form.js";
import { PageHeader } from "../parts/base/panel.js";
import { PauseButton, pauseDialog, titled } from "../parts/operate/pause.js";
import { keyOf, pageOf } from "../parts/schedules/schedule.js";
import { Table, byId } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { at, may, me } from "../state.js";
import { html, useMemo, useState } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").GateView} Gate */
/** @typedef {{items: {name: string, due: number}[]}} Depths */

export default function Gates() {
  const gates = useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] });
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [], { on: ["gate"], every: 10 });
  const tenants = useLoad((signal) => api.get("/tenants", {}, signal), [], { on: ["gate"], every: 10 });
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], { on: ["stats"] });
  const rows = gates.data?.items ?? null;
  const all = rows?.find((gate) => gate.scope === "all") ?? null;
  const columns = useMemo(
    () => columnsOf(dueBehind(queues.data, tenants.data), gates.reload),
    [queues.data, tenants.data],
  );
  const pauseOne = async () => (await pauseSomething()) && gates.reload();
  const acts =
    rows &&
    html`
      <${Button} need="operate" onClick=${pauseOne}>Pause…<//>
      ${!all && html`<${PauseButton}
        tiny=${false}
        scope="all"
        gate=${null}
        done=${gates.reload}
        impact=${stats.data && impactOf(stats.data)}
      />`}
    `;
  return html`
    <${PageHeader} title="Paused" acts=${acts}>
      <p>${rows ? summary(rows, all) : html`<span class="skeleton-line w2"></span>`}</p>
    <//>
    ${gates.error && html`<${ErrorNotice} error=${gates.error} retry=${gates.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty}
          title="Nothing is paused"
          command=${may("operate.shared") ? "rota pause --queue mail --reason 'provider down' --for 30m" : undefined}
        >
          Pause a queue, task, tenant or schedule while you fix something. Running jobs finish; nothing is lost.
        <//>`
      : (rows || !gates.error) &&
        html`<${Table}
          caption="Active pauses"
          class="gates"
          columns=${columns}
          rows=${rows}
          id=${byId}
          skeleton=${3}
        />`}
    ${(rows?.length ?? 0) > 0 && may("audit") && html`<p class="quiet">
      Earlier pauses are in the <a href=${at("/audit")}>audit log</a>.
    </p>`}
  `;
}

/** @param {Gate[]} gates @param {Gate | null} all */
function summary(gates, all) {
  if (all) return html`<b>Everything is paused.</b> Workers start no jobs. Running jobs finish.`;
  if (!gates.length) return "No active pauses.";
  const open = gates.filter((gate) => gate.until_at === null).length;
  return `${plural(gates.length, "active pause")}. ${endings(open, gates.length - open)}`;
}

/** @param {number} open pauses without an end @param {number} rest pauses with one */
function endings(open, rest) {
  if (!rest) return open === 1 ? "Paused until resumed." : "All paused until resumed.";
  if (!open) return rest === 1 ? "It resumes automatically." : "All resume automatically.";
  return `${count(open)} until resumed; ${rest === 1 ? "the other resumes" : "the others resume"} automatically.`;
}

/** What a pause of everything would affect now. @param {import("../types").Stats} stats */
function impactOf(stats) {
  const due = Object.values(stats.queues).reduce((sum, queue) => sum + (queue.due ?? 0), 0);
  const queues = plural(Object.keys(stats.queues).length, "queue");
  return `Affects ${plural(due, "due job")} in ${queues}; ${plural(stats.running, "running job")} would finish.`;
}

/**
 * The number of due jobs that a pause affects; null: not known.
 * @param {Depths | null} queues
 * @param {Depths | null} tenants
 * @returns {(gate: Gate) => number | null}
 */
function dueBehind(queues, tenants) {
  const due = (/** @type {Depths | null} */ page, /** @type {string | null} */ name) =>
    page?.items.find((one) => one.name === name)?.due ?? null;
  return (gate) => {
    if (gate.scope === "queue") return due(queues, gate.name);
    if (gate.scope === "tenant") return due(tenants, gate.name);
    if (gate.scope === "all") return queues?.items.reduce((sum, queue) => sum + queue.due, 0) ?? null;
    return null;
  };
}

/**
 * @param {(gate: Gate) => number | null} waiting
 * @param {() => unknown} done
 * @returns {import("../parts/base/table.js").Column<Gate>[]}
 */
function columnsOf(waiting, done) {
  return [
    {
      title: "Paused",
      kind: "head",
      width: "22%",
      cell: (gate) =>
        html`
          <a class="name" href=${whereTo(gate)}><${Badge} state="paused">${titled(gate)}<//></a>
          ${gate.tenant && html`<span class="sub">tenant ${clean(gate.tenant)}</span>`}
        `,
    },
    {
      title: "Reason",
      kind: "full",
      cell: (gate) => (gate.reason ? line(gate.reason) : html`<span class="faint">no reason given</span>`),
    },
    {
      title: "By",
      width: "9rem",
      kind: "broad",
      cell: (gate) => html`<span class="clip" title=${clean(gate.actor)}>${clean(gate.actor)}</span>`,
    },
    { title: "Since", width: "8.5rem", cell: (gate) => html`<${When} at=${gate.since_at} />` },
    {
      title: "Until",
      width: "9.5rem",
      cell: (gate) => (gate.until_at ? html`<${When} at=${gate.until_at} />` : html`<span class="soft">resumed</span>`),
    },
    {
      title: "Due jobs",
      kind: "num not-mid",
      width: "7rem",
      cell: (gate) => html`<${DueCount} n=${waiting(gate)} />`,
    },
    ...(may("operate")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "6rem",
            cell: (/** @type {Gate} */ gate) =>
              html`<${PauseButton}
                scope=${gate.scope}
                name=${gate.name}
                gate=${gate}
                need=${permissionFor(gate)}
                done=${done}
              />`,
          },
        ]
      : []),
  ];
}

/** @param {{n: number | null}} props */
function DueCount({ n }) {
  return n === null ? html`<span class="faint">—</span>` : count(n);
}

/** An operator of a tenant may resume the tenant's own pauses; the others are shared. @param {Gate} gate */
function permissionFor({ scope, name }) {
  return scope === "schedule" || (scope === "tenant" && name === me.value?.tenant) ? "operate" : "operate.shared";
}

/** The affected jobs, or the schedule. @param {Gate} gate */
function whereTo({ scope, name, tenant }) {
  if (scope === "schedule") return at(pageOf({ name: name ?? "", tenant: tenant ?? "default" }));
  return at("/jobs", { ...(scope === "all" ? {} : { [scope]: name }), state: "queued" });
}

// --- pausing by name -----------------------------------------------------------------------------

/** Where the names of a scope are listed. */
const LISTS = /** @type {const} */ ({ queue: "/queues", task: "/tasks", tenant: "/tenants", schedule: "/schedules" });
/** @typedef {keyof typeof LISTS} NamedScope */

/** Ask what to pause, then how; resolves to the gate, or null. */
async function pauseSomething() {
  const what = await show(Which, {});
  return what && pauseDialog(what.scope, what.name, what.tenant);
}

/** @typedef {{scope: NamedScope, name: string, tenant: string | null}} Chosen */

/** @param {import("../parts/base/dialog.js").DialogControls<Chosen>} props */
function Which({ done }) {
  const all = /** @type {NamedScope[]} */ (Object.keys(LISTS));
  const scopes = may("operate.shared") ? all : all.filter((one) => one === "tenant" || one === "schedule");
  const [scope, setScope] = useState(scopes[0]);
  const [name, setName] = useState("");
  const list = useLoad((signal) => api.get(LISTS[scope], scope === "schedule" ? { limit: 200 } : {}, signal), [scope]);
  const known = /** @type {{name: string, tenant?: string}[]} */ (list.data?.items ?? []);
  const fullName = (/** @type {{name: string, tenant?: string}} */ one) => keyOf({ ...one, tenant: one.tenant ?? "" });
  const typed = name.trim();
  const meant = scope === "schedule" ? known.filter((one) => [one.name, fullName(one)].includes(typed)) : [];
  const several = meant.length > 1;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    done({ scope, name: meant[0]?.name ?? typed, tenant: meant[0]?.tenant ?? null });
  };
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Pause</h2>
    <${Field} label="Kind">
      <select value=${scope} onChange=${onValue((value) => (setScope(/** @type {NamedScope} */ (value)), setName("")))}>
        ${scopes.map((one) => html`<option value=${one}>${one}</option>`)}
      </select>
    <//>
    <${Field}
      label="Name"
      hint=${several ? null : "It may also have no jobs yet."}
      error=${several ? `Several tenants have it. Choose one: ${meant.map(fullName).join(", ")}.` : null}
    >
      <input
        type="text"
        required
        maxlength="200"
        autocomplete="off"
        autocapitalize="off"
        spellcheck=${false}
        list="pause-names"
        autofocus
        value=${name}
        onInput=${onValue(setName)}
      />
    <//>
    <datalist id="pause-names">
      ${known.map((one) => html`<option value=${scope === "schedule" ? fullName(one) : one.name}></option>`)}
    </datalist>
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${!typed || several}>Continue<//>
    </div>
  </form>`;
}
