// @ts-check
// Cells about a tenant: its share beside the fair one, what it has spent of its budget, and its quotas.

import { html } from "../../ui.js";
import { Badge } from "../base/badge.js";
import { Fill } from "../charts/fill.js";
import { QUOTA_WORDS, THIS_PERIOD, committed, money, percent, quotaUse, quotaWords } from "./tenant-words.js";

/** @typedef {import("../../types").TenantView} Tenant */

/** Whether its limit or its budget keeps jobs of it from starting. @param {Tenant} tenant */
export function isHeldUp({ limit, budget }) {
  return budget?.level === "reached" || (limit !== null && limit.most !== null && limit.running >= limit.most);
}

/** What holds it up, or that it is active. @param {{tenant: Tenant, solid?: boolean}} props */
export function TenantBadge({ tenant, solid }) {
  if (tenant.budget?.level === "reached") return html`<${Badge} state="full" solid=${solid}>budget spent<//>`;
  if (isHeldUp(tenant)) return html`<${Badge} state="full" solid=${solid}>at its limit<//>`;
  return html`<${Badge} state="running" solid=${solid}>active<//>`;
}

/** Its part of what runs now; the tick is its fair share. @param {{tenant: Tenant, running: number}} props */
export function RunningShare({ tenant, running }) {
  const fair = tenant.share === null ? "" : `, fair ${percent(tenant.share, 1)}`;
  if (!running && !fair) return html`<span class="faint">nothing runs</span>`;
  const text = `${percent(tenant.running, running)} of running jobs${fair}`;
  return html`<div class="limit-use">
    <${Fill}
      part=${tenant.running}
      whole=${running || 1}
      isFull=${false}
      tick=${tenant.share === null ? null : tenant.share * (running || 1)}
      label=${text}
    />
    <p class="soft small">${text}</p>
  </div>`;
}

/** What is spent of the budget; the tick is the alert. @param {{tenant: Tenant}} props */
export function Spent({ tenant: { budget, spent_cents: spent } }) {
  if (!budget)
    return spent
      ? html`<span class="small">${money(spent)} today</span>`
      : html`<span class="faint small">no budget</span>`;
  const text = `${money(budget.spent)} of ${money(budget.cents)} ${THIS_PERIOD[budget.period]}`;
  return html`<div class="limit-use">
    <${Fill}
      part=${committed(budget)}
      whole=${budget.cents}
      isFull=${budget.level !== null}
      tick=${budget.alert === null ? null : budget.alert * budget.cents}
      label=${budget.reserved ? `${text}, ${money(budget.reserved)} reserved` : text}
    />
    <p class="soft small">${text}</p>
  </div>`;
}

/** @param {{quota: import("../../types").QuotaView, named?: boolean}} props */
export function QuotaUse({ quota, named = true }) {
  const words = quotaWords(quota);
  const name = QUOTA_WORDS[quota.name] ?? quota.name;
  return html`<div class="limit-use">
    ${quota.most !== null && html`<${Fill}
      part=${quota.used}
      whole=${quota.most || 1}
      isFull=${quotaUse(quota) >= 1}
      label=${`${name}: ${words}`}
    />`}
    <p class="soft small">${named ? `${name}: ${words}` : words}</p>
  </div>`;
}
