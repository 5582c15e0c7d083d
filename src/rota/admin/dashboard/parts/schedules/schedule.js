// @ts-check
// What all views of schedules share: links, state, and actions.

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
const RESERVED = /^(new|\.+)$/; // names that mean something else in a path

/**
 * The path of its page: by name where a path can hold it, else by id; without an id, the list.
 * @param {{id?: string, name: string, tenant: string}} schedule
 * @param {string} [more] such as "/edit"
 */
export function pageOf({ id, name, tenant }, more = "") {
  if (id && !PLAIN.test(name)) return `/schedules/${id}${more}`;
  if (RESERVED.test(name)) return `/schedules?${new URLSearchParams({ named: name, tenant })}`;
  const search = tenant === "default" ? "" : `?tenant=${encodeURIComponent(tenant)}`;
  return `/schedules/${encodeURIComponent(name)}${more}${search}`;
}

/**
 * Its full name, of which a slash in the tenant is escaped: no two schedules share one.
 * @param {{tenant: string, name?: string, schedule?: string}} one a schedule, a run or a fire
 */
export function keyOf(one) {
  const tenant = one.tenant.replaceAll("%", "%25").replaceAll("/", "%2F");
  return `${tenant}/${one.name ?? one.schedule}`;
}

/** Enabled, disabled, paused or late. @param {{schedule: ScheduleView, solid?: boolean}} props */
export function ScheduleState({ schedule, solid }) {
  const { enabled, gate, late_s: late, next_run_at: next } = schedule;
  if (!enabled)
    return html`<span title=${line(schedule.reason ?? "")}><${Badge} state="off" solid=${solid}>disabled<//></span>`;
  if (gate) return html`<${GateBadge} gate=${gate} />`;
  if ((late ?? 0) > 5) return html`<${Badge} state="late" solid=${solid}>${duration(Math.round(late ?? 0))} late<//>`;
  if (!next) return html`<${Badge} state="off" solid=${solid}>finished<//>`;
  return solid ? html`<${Badge} state="scheduled" solid>enabled<//>` : null;
}

/**
 * The next run: relative, in the user's zone, and in the zone of the schedule.
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

/** @param {ScheduleView} schedule @param {() => unknown} [done] */
export async function trigger(schedule, done) {
  const job = await api.post(`/schedules/${schedule.id}/trigger`);
  toast(
    html`
      <code>${clean(schedule.name)}</code> runs now as job <a href=${at(`/jobs/${job.id}`)}>${shortId(job.id)}</a>. Its
      next run does not change.
    `,
    {
      undo: () => api.post(`/jobs/${job.id}/cancel`, { reason: "trigger undone" }),
    },
  );
  await done?.();
}

/** @param {ScheduleView} schedule @param {boolean} on @param {() => unknown} [done] */
export async function setEnabled(schedule, on, done) {
  await api.post(`/schedules/${schedule.id}/${on ? "enable" : "disable"}`);
  toast(html`<code>${clean(schedule.name)}</code> is ${on ? "enabled" : "disabled. Existing jobs continue"}.`, {
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
      It creates no jobs until enabled. Runs missed meanwhile are not caught up; existing jobs continue.
    </p>`,
    reason: "Reason (optional)",
    verb: "Disable",

    act: (reason) => api.post(`/schedules/${schedule.id}/disable`, { reason: reason || null }),
  });
}

/** Deletes it if confirmed, and shows the list. @param {ScheduleView} schedule */
export async function deleteDialog(schedule) {
  const code =
    schedule.source === "code"
      ? html`<p>It is declared in code, so the program creates it again when it starts. Disable it instead.</p>`
      : null;
  const gone = await ask({
    title: `Delete ${line(schedule.name, 60)}?`,
    body: html`
      <p>The schedule and its settings are deleted. Its jobs and audit entries stay.</p>
      ${code}
    `,
    typed: clean(schedule.name).trim(),
    danger: true,
    verb: "Delete",

    act: () => api.delete(`/schedules/${schedule.id}`).then(() => true),
  });
  if (!gone) return;
  toast(html`Deleted schedule <code>${clean(schedule.name)}</code>.`);
  go("/schedules");
}
