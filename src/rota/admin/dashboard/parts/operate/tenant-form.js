// @ts-check
// Change what a tenant may: weight, priority, quotas, budget, retention. Beside the fields: what will happen.

import { api } from "../../api.js";
import { announce } from "../../live.js";
import { html, useState } from "../../ui.js";
import { clean } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field, onValue } from "../base/form.js";
import { toast } from "../base/toast.js";
import { PERIODS } from "../../choices.js";
import { Effect } from "./limit-form.js";
import { changes, effectOf, typedOf } from "./tenant-words.js";

/** @typedef {import("../../types").TenantView} Tenant */
/** @typedef {import("./tenant-words.js").Typed} Typed */

/** @param {string} name */
export function pathOf(name) {
  return /** @type {const} */ (`/tenants/${encodeURIComponent(name)}`);
}

/** The fields of the form: key, label, hint, and what the input is. @type {[keyof Typed, string, string, object][]} */
const FIELDS = [
  ["weight", "Weight", "Its share of a queue beside others.", { min: 0, step: "any" }],
  ["max_priority", "Highest priority", "Empty: unlimited.", { step: 1 }],
  ["waiting", "Waiting jobs", "Quota. Empty: no limit.", { min: 0, step: 1 }],
  ["schedules", "Schedules", "Quota. Empty: no limit.", { min: 0, step: 1 }],
  ["bytes_per_day", "Payload bytes per day", "Quota. Empty: no limit.", { min: 0, step: 1 }],
  ["retention_days", "History kept, days", "Empty: as the settings say.", { min: 0, step: "any" }],
];

/** Fields of the API that are other fields of the form. @type {Record<string, string>} */
const SHOWN_AT = { budget: "amount", budget_alert: "alert" };

/** Ask, then save; resolves to the tenant, or null. @param {Tenant} tenant @param {() => unknown} done */
export async function tenantDialog(tenant, done) {
  const before = typedOf(tenant);
  const saved = await show(TenantForm, { tenant }, { wide: true });
  if (!saved) return null;
  announce("stats");
  const undo = async () => {
    await api.put(pathOf(tenant.name), changes(typedOf(saved), before));
    await done();
  };
  toast(`Saved ${clean(tenant.name)}.`, { undo });
  await done();
  return saved;
}

/** @param {import("../base/dialog.js").DialogControls<Tenant> & {tenant: Tenant}} props */
function TenantForm({ done, busy, tenant }) {
  const [typed, setTyped] = useState(() => typedOf(tenant));
  const changed = changes(typedOf(tenant), typed);
  const { submit, error, acting } = useAct({ done, busy }, () => api.put(pathOf(tenant.name), changed));
  const about = (/** @type {string} */ key) =>
    error && (SHOWN_AT[error.field ?? ""] ?? error.field) === key ? error.message : null;
  const field = (/** @type {keyof Typed} */ key) => ({
    value: typed[key],
    onInput: onValue((value) => setTyped((old) => ({ ...old, [key]: value }))),
  });
  const isPlaced = [...FIELDS.map(([key]) => key), "amount", "alert"].some((key) => about(key));
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Settings of <code>${clean(tenant.name)}</code></h2>
    <div class="trio">
      ${FIELDS.map(
        ([key, label, hint, input], i) =>
          html`<${Field} key=${key} label=${label} hint=${hint} error=${about(key)}>
            <input type="number" ...${input} autofocus=${i === 0} ...${field(key)} />
          <//>`,
      )}
      <${Field} label="Budget" hint="Empty: none." error=${about("amount")}>
        <input type="number" min="0" step="0.01" ...${field("amount")} />
      <//>
      <${Field} label="Per">
        <select ...${field("period")}>
          ${PERIODS.map((period) => html`<option value=${period}>${period}</option>`)}
        </select>
      <//>
      <${Field} label="Alert at, %" hint="Of the budget." error=${about("alert")}>
        <input type="number" min="0" max="100" step="any" disabled=${!typed.amount.trim()} ...${field("alert")} />
      <//>
    </div>
    <${Effect} sentences=${effectOf(tenant, typed)} />
    ${error && !isPlaced && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting || !Object.keys(changed).length}>Save<//>
    </div>
  </form>`;
}
