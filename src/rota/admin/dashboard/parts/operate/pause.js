// @ts-check
// Pause and resume: one dialog for everything, a queue, a task, a tenant or a schedule.

import { api } from "../../api.js";
import { PAUSE_EFFECTS } from "../../labels.js";
import { announce } from "../../live.js";
import { me, ownZone, zone } from "../../state.js";
import { html, useState } from "../../ui.js";
import { clean, hourMinute, line } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field, onValue } from "../base/form.js";
import { toast, showError } from "../base/toast.js";

/** @typedef {import("../../choices.js").GateScope} Scope */
/** @typedef {import("../../types").GateView} Gate */
/** @typedef {{scope: Scope, name: string | null, tenant: string | null, impact: unknown}} Target */

const DURATIONS = [
  ["", "until resumed"],
  ["900", "for 15 minutes"],
  ["3600", "for 1 hour"],
  ["14400", "for 4 hours"],
  ["86400", "for 1 day"],
  ["until", "until a set time"],
];
const EVERYTHING = "pause everything"; // must be typed to confirm

/**
 * Ask for reason and end, then pause; resolves to the gate, or null.
 * @param {Scope} scope
 * @param {string | null} [name]
 * @param {string | null} [tenant] of a schedule
 * @param {unknown} [impact] what it affects now, in a sentence
 */
export async function pauseDialog(scope, name = null, tenant = null, impact = null) {
  const gate = await show(PauseForm, { scope, name, tenant, impact });
  if (!gate) return null;
  announce("gate");
  const warning = gate.warning ? ` Note: ${clean(gate.warning)}.` : "";
  toast(html`Paused ${titled(gate, true)}.${warning}`, { state: "paused", undo: () => resumeGate(gate) });
  return gate;
}

/** @param {Gate} gate */
export async function resumeGate(gate) {
  await api.delete(`/gates/${gate.id.split("/").map(encodeURIComponent).join("/")}`);
  announce("gate");
  toast(html`Resumed ${titled(gate, true)}.`, { undo: () => pauseAgain(gate) });
}

/** @param {Gate} gate */
async function pauseAgain({ scope, name, tenant, reason, until_at }) {
  await api.post("/gates", { scope, name, tenant, reason, until: until_at });
  announce("gate");
}

/** "Queue mail", or "queue mail" inside a sentence. @param {{scope: string, name: string | null}} gate */
export function titled(gate, inSentence = false) {
  const word = gate.scope === "all" ? "everything" : gate.scope;
  const title = inSentence ? word : word[0].toUpperCase() + word.slice(1);
  return gate.scope === "all" ? title : html`${title} <code>${clean(gate.name)}</code>`;
}

/** Paused, and until when. @param {{gate: Gate | null | undefined, otherwise?: unknown}} props */
export function GateBadge({ gate, otherwise }) {
  if (!gate) return otherwise ?? null;
  return html`<span title=${line(`${gate.reason || "no reason given"}, by ${gate.actor}`)}>
    <${Badge} state="paused">paused${gate.until_at ? ` until ${hourMinute(gate.until_at, zone.value)}` : ""}<//>
  </span>`;
}

/**
 * Pause or resume, whichever applies.
 * @param {{scope: Scope, name?: string | null, tenant?: string | null, gate: Gate | null | undefined,
 *   need?: string, done?: () => unknown, tiny?: boolean, impact?: unknown}} props
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
  if (gate && me.value?.tenant && gate.by_tenant === null) return null; // set for all tenants: not theirs to resume
  const what = scope === "all" ? " everything" : ` ${clean(name)}`;
  const act = gate
    ? () => resumeGate(gate).then(() => done?.())
    : () =>
        pauseDialog(scope, name, tenant, impact)
          .then((created) => created && done?.())
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

/** @param {import("../base/dialog.js").DialogControls<Gate> & Target} props */
function PauseForm({ done, busy, scope, name, tenant, impact }) {
  const [values, setValues] = useState({ reason: "", length: "", until: "", typed: "" });
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.post("/gates", { scope, name, tenant, reason: values.reason, ...endOf(values) }),
  );
  const field = (/** @type {keyof typeof values} */ key) => ({
    value: values[key],
    onInput: onValue((value) => setValues((old) => ({ ...old, [key]: value }))),
  });
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Pause ${scope === "all" ? "everything" : html`${scope} <code>${clean(name)}</code>`}?</h2>
    <div class="dialog-body">
      <p>${PAUSE_EFFECTS[scope]} Running jobs finish.</p>
      ${impact && html`<p>${impact}</p>`}
    </div>
    <${Field} label="Reason" hint="Shown wherever the pause appears.">
      <input type="text" maxlength="200" autofocus ...${field("reason")} />
    <//>
    <${Field} label="Duration">
      <select ...${field("length")}>
        ${DURATIONS.map(([value, word]) => html`<option value=${value}>${word}</option>`)}
      </select>
    <//>
    ${values.length === "until" && html`<${Field} label="Until" hint=${`In your browser's time zone, ${ownZone}.`}>
      <input type="datetime-local" required ...${field("until")} />
    <//>`}
    ${scope === "all" && html`<${Field} label=${`Type “${EVERYTHING}” to confirm`}>
      <input type="text" autocomplete="off" ...${field("typed")} />
    <//>`}
    ${error && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
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

/** When the pause ends, as the API expects it. @param {{length: string, until: string}} values */
function endOf({ length, until }) {
  if (length === "until") return { until: new Date(until).toISOString() };
  return { for_s: length ? Number(length) : null };
}
