// @ts-check
// Pausing and resuming: the same dialog for everything, a queue, a task, a tenant or a schedule.

import { api } from "../../api.js";
import { announce } from "../../live.js";
import { me, ownZone, zone } from "../../state.js";
import { html, useState } from "../../ui.js";
import { clean, hourMinute, line } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field } from "../base/form.js";
import { toast, showError } from "../base/toast.js";

/** @typedef {"all" | "queue" | "task" | "tenant" | "schedule"} Scope */

const EFFECT = {
  all: "No worker takes another job. Schedules go on making jobs, and these wait too.",
  queue: "Its jobs wait. Other queues go on.",
  task: "Jobs of this task wait, in whatever queue they are.",
  tenant: "The tenant's jobs wait. Other tenants go on.",
  schedule: "It does not fire. What it would have fired is treated as missed.",
};
const LENGTHS = [
  ["", "until somebody resumes"],
  ["900", "for 15 minutes"],
  ["3600", "for 1 hour"],
  ["14400", "for 4 hours"],
  ["86400", "for 1 day"],
  ["until", "until a time of my choice"],
];
const EVERYTHING = "pause everything"; // typed by whoever stops the whole house

/**
 * Ask for reason and end, then pause; resolves to the gate, or null.
 * @param {Scope} scope
 * @param {string | null} [name]
 * @param {string | null} [tenant] of a schedule
 * @param {any} [impact] what it would meet now, in a sentence
 */
export async function pauseDialog(scope, name = null, tenant = null, impact = null) {
  const gate = await show(PauseForm, { scope, name, tenant, impact });
  if (!gate) return null;
  announce("gate");
  toast(html`${titled(gate)} is paused.`, { state: "paused", undo: () => resumeGate(gate) });
  return gate;
}

/** @param {import("../../types").GateView} gate */
export async function resumeGate(gate) {
  await api.delete(`/gates/${gate.id.split("/").map(encodeURIComponent).join("/")}`);
  announce("gate");
  toast(html`${titled(gate)} goes on.`, { undo: () => pauseAgain(gate) });
}

/** @param {import("../../types").GateView} gate */
async function pauseAgain({ scope, name, tenant, reason, until_at }) {
  await api.post("/gates", { scope, name, tenant, reason, until: until_at });
  announce("gate");
}

/** "Queue mail". @param {{scope: string, name: string | null}} gate */
export function titled(gate) {
  if (gate.scope === "all") return "Everything";
  return html`${gate.scope[0].toUpperCase() + gate.scope.slice(1)} <code>${clean(gate.name)}</code>`;
}

/** Paused, and until when. @param {{gate: import("../../types").GateView | null | undefined, otherwise?: any}} props */
export function GateBadge({ gate, otherwise }) {
  if (!gate) return otherwise ?? null;
  return html`<span title=${line(`${gate.reason || "no reason given"}, by ${gate.actor}`)}>
    <${Badge} state="paused">paused${gate.until_at ? ` until ${hourMinute(gate.until_at, zone.value)}` : ""}<//>
  </span>`;
}

/**
 * Pause or resume, whichever fits.
 * @param {{scope: Scope, name?: string | null, tenant?: string | null, gate: any, need?: string, done?: () => any,
 *   tiny?: boolean, impact?: any}} props
 */
export function PauseButton({
  scope,
  name = null,
  tenant = null,
  gate,
  need = "operate.shared",
  done,
  tiny = true,
  impact,
}) {
  if (gate && me.value?.tenant && gate.by_tenant === null) return null; // closed over the tenant's head: not theirs to open
  const what = scope === "all" ? " everything" : ` ${clean(name)}`;
  const act = gate
    ? () => resumeGate(gate).then(() => done?.())
    : () =>
        pauseDialog(scope, name, tenant, impact)
          .then((made) => made && done?.())
          .catch(showError);
  return html`<${Button}
    tiny=${tiny}
    need=${need}
    label=${`${gate ? "Resume" : "Pause"}${what}`}
    glyph=${tiny ? "" : gate ? "running" : "paused"}
    onClick=${act}
  >
    ${gate ? "Resume" : "Pause"}
    ${tiny ? "" : what}
  <//>`;
}

/** @param {any} props */
function PauseForm({ done, busy, scope, name, tenant, impact }) {
  const [values, setValues] = useState({ reason: "", length: "", until: "", typed: "" });
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.post("/gates", { scope, name, tenant, reason: values.reason, ...endOf(values) }),
  );
  const field = (/** @type {keyof typeof values} */ key) => ({
    value: values[key],
    onInput: (/** @type {any} */ event) => setValues((old) => ({ ...old, [key]: event.target.value })),
  });
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Pause ${scope === "all" ? "everything" : html`${scope} <code>${clean(name)}</code>`}?</h2>
    <div class="dialog-body">
      <p>${EFFECT[/** @type {Scope} */ (scope)]} Jobs already running go on.</p>
      ${impact && html`<p>${impact}</p>`}
    </div>
    <${Field} label="Reason" hint="Whoever wonders reads this.">
      <input type="text" maxlength="200" autofocus ...${field("reason")} />
    <//>
    <${Field} label="How long">
      <select ...${field("length")}>
        ${LENGTHS.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
      </select>
    <//>
    ${values.length === "until" && html`<${Field} label="Until" hint=${`By this machine's clock, ${ownZone}.`}>
      <input type="datetime-local" required ...${field("until")} />
    <//>`}
    ${scope === "all" && html`<${Field} label=${`Type “${EVERYTHING}” to go on`}>
      <input type="text" autocomplete="off" ...${field("typed")} />
    <//>`}
    ${error && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Let it run<//>
      <${Button}
        type="submit"
        kind="main"
        disabled=${acting || (scope === "all" && values.typed.trim() !== EVERYTHING)}
      >
        Pause
      <//>
    </div>
  </form>`;
}

/** When the gate opens by itself, as the server is told. @param {{length: string, until: string}} values */
function endOf({ length, until }) {
  if (length === "until") return { until: new Date(until).toISOString() };
  return { for_s: length ? Number(length) : null };
}
