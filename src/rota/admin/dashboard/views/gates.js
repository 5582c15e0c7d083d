// @ts-check
// What is paused: by whom, why, since when, until when; and the switch for everything.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge } from "../parts/base/badge.js";
import { Button } from "../parts/base/button.js";
import { show } from "../parts/base/dialog.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { Field } from "../parts/base/form.js";
import { PageHeader } from "../parts/base/panel.js";
import { PauseButton, pauseDialog, titled } from "../parts/operate/pause.js";
import { keyOf, pageOf } from "../parts/schedules/schedule.js";
import { Table } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { at, may, me } from "../state.js";
import { html, useMemo, useState } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").GateView} Gate */

export default function Gates() {
  const gates = useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] });
  const queues = useLoad((signal) => api.get("/queues", {}, signal), [], { on: ["gate"], every: 10 });
  const tenants = useLoad((signal) => api.get("/tenants", {}, signal), [], { on: ["gate"], every: 10 });
  const stats = useLoad((signal) => api.get("/jobs/stats", {}, signal), [], { on: ["stats"] });
  const rows = gates.data?.items ?? null;
  const all = rows?.find((/** @type {Gate} */ gate) => gate.scope === "all") ?? null;
  const columns = useMemo(
    () => columnsOf(dueBehind(queues.data, tenants.data), gates.reload),
    [queues.data, tenants.data],
  );
  const pauseOne = async () => (await pauseSomething()) && gates.reload();
  const acts =
    rows &&
    html`
      <${Button} need="operate" onClick=${pauseOne}>Pause one thing<//>
      ${!all && html`<${PauseButton}
        tiny=${false}
        scope="all"
        gate=${null}
        done=${gates.reload}
        impact=${stats.data && impact(stats.data)}
      />`}
    `;
  return html`
    <${PageHeader} title="Gates" acts=${acts}>
      <p>${rows ? summary(rows, all) : html`<span class="skeleton-line w2"></span>`}</p>
    <//>
    ${gates.error && html`<${ErrorNotice} error=${gates.error} retry=${gates.reload} />`}
    ${rows?.length === 0
      ? html`<${Empty}
          title="Nothing is paused"
          command=${may("operate.shared") ? "rota pause --queue mail --reason 'provider down' --for 30m" : undefined}
        >
          A gate holds jobs back while something is repaired: those of a queue, a task, a tenant, or all of them; or it
          keeps a schedule from firing. What runs goes on, and nothing is lost.
        <//>`
      : (rows || !gates.error) &&
        html`<${Table}
          caption="Gates"
          class="gates"
          columns=${columns}
          rows=${rows}
          id=${(/** @type {Gate} */ gate) => gate.id}
          skeleton=${3}
        />`}
    ${rows?.length > 0 && may("audit") && html`<p class="quiet">
      Who paused and resumed before is in the <a href=${at("/audit")}>audit log</a>.
    </p>`}
  `;
}

/** @param {Gate[]} gates @param {Gate | null} all */
function summary(gates, all) {
  if (all) return html`<b>Everything is paused.</b> Workers take no job. What runs goes on.`;
  if (!gates.length) return "Everything may run.";
  const open = gates.filter((gate) => gate.until_at === null).length;
  return `${plural(gates.length, "gate stands", "gates stand")}. ${endings(open, gates.length - open)}`;
}

/** @param {number} open gates that somebody must open @param {number} rest those that open by themselves */
function endings(open, rest) {
  if (!rest) return open === 1 ? "It waits for somebody to resume." : "All wait for somebody to resume.";
  if (!open) return rest === 1 ? "It opens by itself." : "All open by themselves.";
  return `${count(open)} until somebody resumes; ${rest === 1 ? "the other opens by itself" : "the others open by themselves"}.`;
}

/** What a pause of everything would meet now. @param {import("../types").Stats} stats */
function impact(stats) {
  const due = Object.values(stats.queues).reduce((sum, /** @type {any} */ queue) => sum + queue.queued, 0);
  return `Now ${plural(due, "due job")} would wait, in ${plural(Object.keys(stats.queues).length, "queue")}, and ${plural(stats.running, "running job")} would end as usual.`;
}

/**
 * How many due jobs wait behind a gate; null: not known.
 * @param {any} queues
 * @param {any} tenants
 * @returns {(gate: Gate) => number | null}
 */
function dueBehind(queues, tenants) {
  const due = (/** @type {any} */ page, /** @type {string | null} */ name) =>
    page?.items.find((/** @type {any} */ one) => one.name === name)?.queued ?? null;
  return (gate) => {
    if (gate.scope === "queue") return due(queues, gate.name);
    if (gate.scope === "tenant") return due(tenants, gate.name);
    if (gate.scope === "all")
      return (
        queues?.items.reduce((/** @type {number} */ sum, /** @type {any} */ queue) => sum + queue.queued, 0) ?? null
      );
    return null;
  };
}

/**
 * @param {(gate: Gate) => number | null} waiting
 * @param {() => any} done
 * @returns {import("../parts/base/table.js").Column[]}
 */
function columnsOf(waiting, done) {
  return [
    {
      title: "What",
      kind: "head",
      width: "22%",
      cell: (gate) =>
        html`
          <a class="name" href=${whereTo(gate)}><${Badge} state="paused">${titled(gate)}<//></a>
          ${gate.tenant && html`<span class="sub">of tenant ${clean(gate.tenant)}</span>`}
        `,
    },
    {
      title: "Why",
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
      cell: (gate) =>
        gate.until_at ? html`<${When} at=${gate.until_at} />` : html`<span class="soft">somebody resumes</span>`,
    },
    {
      title: "Due behind it",
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

/** A tenant's own operator lifts what is the tenant's; the rest is shared. @param {Gate} gate */
function permissionFor({ scope, name }) {
  return scope === "schedule" || (scope === "tenant" && name === me.value?.tenant) ? "operate" : "operate.shared";
}

/** The jobs that it holds, or the schedule. @param {Gate} gate */
function whereTo({ scope, name, tenant }) {
  if (scope === "schedule") return at(pageOf({ name: name ?? "", tenant: tenant ?? "default" }));
  return at("/jobs", { ...(scope === "all" ? {} : { [scope]: name }), state: "queued" });
}

// --- pausing something by its name ---------------------------------------------------------------

/** Where names of a scope are listed. @type {Record<string, string>} */
const LISTS = { queue: "/queues", task: "/tasks", tenant: "/tenants", schedule: "/schedules" };

/** Ask what, then how; resolves to the gate, or null. */
async function pauseSomething() {
  const what = await show(Which);
  return what && pauseDialog(what.scope, what.name, what.tenant);
}

/** @param {{done: (value: any) => void}} props */
function Which({ done }) {
  const scopes = may("operate.shared") ? ["queue", "task", "tenant", "schedule"] : ["tenant", "schedule"];
  const [scope, setScope] = useState(scopes[0]);
  const [name, setName] = useState("");
  const known =
    useLoad((signal) => api.get(LISTS[scope], scope === "schedule" ? { limit: 200 } : {}, signal), [scope]).data
      ?.items ?? [];
  const typed = name.trim();
  const meant =
    scope === "schedule" ? known.filter((/** @type {any} */ one) => [one.name, keyOf(one)].includes(typed)) : [];
  const several = meant.length > 1;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    done({ scope, name: meant[0]?.name ?? typed, tenant: meant[0]?.tenant ?? null });
  };
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Pause what?</h2>
    <${Field} label="Kind">
      <select value=${scope} onChange=${(/** @type {any} */ event) => (setScope(event.target.value), setName(""))}>
        ${scopes.map((one) => html`<option value=${one}>${one}</option>`)}
      </select>
    <//>
    <${Field}
      label="Name"
      hint=${several ? null : "One that has no jobs yet may be paused too."}
      error=${several ? `Several tenants have it. Say whose: ${meant.map(keyOf).join(", ")}.` : null}
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
        onInput=${(/** @type {any} */ event) => setName(event.target.value)}
      />
    <//>
    <datalist id="pause-names">
      ${known.map(
        (/** @type {any} */ one) => html`<option value=${scope === "schedule" ? keyOf(one) : one.name}></option>`,
      )}
    </datalist>
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Pause nothing<//>
      <${Button} type="submit" kind="main" disabled=${!typed || several}>Go on<//>
    </div>
  </form>`;
}
