// @ts-check
// What every view of schedules shares: where one is found, how it is told, what can be done with it.

import { api } from "../../api.js";
import { at, go, zone } from "../../state.js";
import { html } from "../../ui.js";
import { clean, line, shortId, duration } from "../../format.js";
import { Badge } from "../base/badge.js";
import { ask } from "../base/dialog.js";
import { GateBadge } from "../operate/pause.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";
import { dayIn, isZone, placeOf, timeIn } from "./zones.js";

/** @typedef {import("../../types").ScheduleView} ScheduleView */

const PLAIN = /^(?!new$|\.+$)[\w.-]+$/;
const RESERVED = /^(new|\.+)$/; // what a path would read otherwise

/**
 * Its page: by name where the name can stand in a path, else by id; who knows no id is led to the list.
 * @param {{id?: string, name: string, tenant: string}} schedule
 * @param {string} [more] such as "/edit"
 */
export function pageOf({ id, name, tenant }, more = "") {
  if (id && !PLAIN.test(name)) return `/schedules/${id}${more}`;
  if (RESERVED.test(name)) return `/schedules?${new URLSearchParams({ named: name, tenant })}`;
  return `/schedules/${encodeURIComponent(name)}${more}${tenant === "default" ? "" : `?tenant=${encodeURIComponent(tenant)}`}`;
}

/**
 * Two tenants may use one name.
 * @param {{tenant: string, name?: string, schedule?: string}} one a schedule, a run or a fire
 */
export function keyOf(one) {
  return `${one.tenant}/${one.name ?? one.schedule}`;
}

/** On, off, paused or late. @param {{schedule: ScheduleView, solid?: boolean}} props */
export function ScheduleState({ schedule, solid }) {
  const { enabled, gate, late_s: late, next_run_at: next } = schedule;
  if (!enabled)
    return html`<span title=${line(schedule.reason ?? "")}><${Badge} state="off" solid=${solid}>off<//></span>`;
  if (gate) return html`<${GateBadge} gate=${gate} />`;
  if ((late ?? 0) > 5) return html`<${Badge} state="late" solid=${solid}>${duration(Math.round(late ?? 0))} late<//>`;
  if (!next) return html`<${Badge} state="off" solid=${solid}>over<//>`;
  return solid ? html`<${Badge} state="scheduled" solid>on<//>` : null;
}

/**
 * The next fire: what it means, when that is for the viewer, and where the schedule lives.
 * @param {{schedule: ScheduleView}} props
 */
export function NextFire({ schedule }) {
  const { enabled, next_run_at: next, timezone } = schedule;
  const state = html`<${ScheduleState} schedule=${schedule} />`;
  if (!enabled || !next) return state;
  return html`
    ${state}
    <${When} lead=${schedule.gate || (schedule.late_s ?? 0) > 5 ? "due" : ""} at=${next} />
    ${timezone !== zone.value && isZone(timezone) && html`<span class="sub">
      ${dayIn(next, timezone)} ${timeIn(next, timezone)} ${clean(placeOf(timezone))}
    </span>`}
  `;
}

/** @param {ScheduleView} schedule @param {() => any} [done] */
export async function trigger(schedule, done) {
  const job = await api.post(`/schedules/${schedule.id}/trigger`);
  toast(
    html`
      <code>${clean(schedule.name)}</code> runs now, as job <a href=${at(`/jobs/${job.id}`)}>${shortId(job.id)}</a>. Its
      next fire stays as it is.
    `,
    {
      undo: () => api.post(`/jobs/${job.id}/cancel`, { reason: "the trigger was taken back" }),
    },
  );
  await done?.();
}

/** @param {ScheduleView} schedule @param {boolean} on @param {() => any} [done] */
export async function setEnabled(schedule, on, done) {
  await api.post(`/schedules/${schedule.id}/${on ? "enable" : "disable"}`);
  toast(html`<code>${clean(schedule.name)}</code> is ${on ? "on, counted from now" : "off. Jobs it has made go on"}.`, {
    state: on ? "succeeded" : "off",
    undo: () => setEnabled(schedule, !on, done),
  });
  await done?.();
}

/** @param {ScheduleView} schedule */
export function disableDialog(schedule) {
  return ask({
    title: `Disable ${line(schedule.name, 60)}?`,
    body: html`<p>
      It fires no more until somebody enables it. What would have fired meanwhile is not caught up. Jobs it has made go
      on.
    </p>`,
    reason: "Reason, for whoever wonders",
    verb: "Disable",
    safe: "Let it fire",
    act: (reason) => api.post(`/schedules/${schedule.id}/disable`, { reason: reason || null }),
  });
}

/** Resolves to true when it is gone, and shows the list. @param {ScheduleView} schedule */
export async function deleteDialog(schedule) {
  const code =
    schedule.source === "code"
      ? html`<p>It is declared in code: the program makes it anew when it starts. To keep it away, disable it.</p>`
      : null;
  const gone = await ask({
    title: `Delete ${line(schedule.name, 60)}?`,
    body: html`
      <p>The schedule is forgotten, with its settings. The jobs it has made stay, and so does the audit log.</p>
      ${code}
    `,
    typed: clean(schedule.name).trim(),
    danger: true,
    verb: "Delete",
    safe: "Keep it",
    act: () => api.delete(`/schedules/${schedule.id}`).then(() => true),
  });
  if (!gone) return;
  toast(html`Schedule <code>${clean(schedule.name)}</code> is deleted.`);
  go("/schedules");
}
