// @ts-check
// The columns of the list of schedules, with the last runs of each.

import { clean, duration, hourMinute, line, plural } from "../../format.js";
import { SOURCE_LABELS, labelOf } from "../../labels.js";
import { at, may, now, zone } from "../../state.js";
import { html } from "../../ui.js";
import { StateGlyph } from "../base/badge.js";
import { Button, Switch } from "../base/button.js";
import { When } from "../base/time.js";
import { Strip } from "../charts/spark.js";
import { FireTimeline, HOURS, TimelineHours } from "./fire-timeline.js";
import { NextFire, keyOf, pageOf, setEnabled, trigger } from "./schedule.js";

/** @typedef {import("../../types").ScheduleView} ScheduleView */
/** @typedef {import("../../types").ScheduleRun} Run */

export const STRIP = 10; // runs to show

/** Whether its next run is within 24 hours. @param {ScheduleView} schedule */
function isSoon({ enabled, next_run_at: next }) {
  return enabled && next !== null && Date.parse(next) < now.peek() + HOURS * 3_600_000;
}

/**
 * @param {Map<string, Run[]> | null} runs
 * @param {Map<string, number[]> | null} planned
 * @param {Set<string>} cut
 * @param {boolean} more there are more runs than listed
 * @param {() => unknown} reload
 * @returns {import("../base/table.js").Column<ScheduleView>[]}
 */
export function columnsOf(runs, planned, cut, more, reload) {
  return [
    {
      title: "On",
      kind: "pick",
      width: "3.75rem",
      cell: (one) =>
        html`<${Switch}
          on=${one.enabled}
          need="operate"
          label=${`${clean(one.name)} enabled`}
          onChange=${(/** @type {boolean} */ on) => setEnabled(one, on, reload)}
        />`,
    },
    {
      title: "Schedule",
      kind: "head",
      cell: (one) =>
        html`
          <a class="name" href=${at(pageOf(one))}>
            ${clean(one.name)}
            ${one.tenant !== "default" && html` <span class="id">${clean(one.tenant)}</span>`}
          </a>
          <span class="sub">
            ${line(one.rule_summary)}
            ${one.cron && html` <code class="faint">${clean(one.cron)}</code>`}
          </span>
          ${!one.enabled && one.reason && html`<span class="sub">disabled: ${line(one.reason)}</span>`}
        `,
    },
    {
      title: html`<${TimelineHours} />`,
      card: "Next 24 hours",
      kind: "full wide-only",
      cell: (one) =>
        planned
          ? html`<${FireTimeline}
              name=${one.name}
              fires=${planned.get(keyOf(one)) ?? []}
              cut=${cut.has(keyOf(one))}
              more=${more && isSoon(one)}
              gate=${one.enabled ? one.gate : null}
            />`
          : html`<span class="skeleton-line"></span>`,
    },
    { title: "Next run", width: "11rem", cell: (one) => html`<${NextFire} schedule=${one} />` },
    {
      title: `Last ${STRIP} runs`,
      width: "11.5rem",
      cell: (one) =>
        runs ? html`<${LastRuns} runs=${runs.get(keyOf(one)) ?? []} />` : html`<span class="skeleton-line"></span>`,
    },
    {
      title: "Source",
      width: "5rem",
      kind: "wide-only",
      cell: (one) =>
        html`<span title=${`${labelOf(SOURCE_LABELS, one.source)}${one.owner ? ` of ${clean(one.owner)}` : ""}`}>
          ${clean(one.source)}
        </span>`,
    },
    ...(may("operate")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "8rem",
            cell: (/** @type {ScheduleView} */ one) =>
              html`<div class="acts">
                <${Button} tiny label=${`Trigger ${clean(one.name)}`} onClick=${() => trigger(one, reload)}>Trigger<//>
                <a class="button plain tiny" aria-label=${`Edit ${clean(one.name)}`} href=${at(pageOf(one, "/edit"))}>
                  Edit
                </a>
              </div>`,
          },
        ]
      : []),
  ];
}

/** @param {{runs: Run[]}} props newest first */
function LastRuns({ runs }) {
  const [last] = runs;
  if (!last) return html`<span class="faint">no runs yet</span>`;
  const shown = runs.slice(0, STRIP).reverse();
  const failed = shown.filter((run) => run.success === false).length;
  const caughtUp = shown.filter((run) => run.triggered_by === "catchup").length;
  const label = `Last ${plural(shown.length, "run")}, ${failed} failed${caughtUp ? `, ${caughtUp} caught up` : ""}`;
  return html`
    <${Strip} results=${shown.map(resultOf)} label=${label} />
    <span class="sub">
      ${last.success === null
        ? html`<${StateGlyph} state=${last.state} /> ${last.state}`
        : html`
            <${When} at=${last.finished_at} />
            ${last.duration_ms !== null && `, ${duration(last.duration_ms / 1000)}`}
          `}
    </span>
  `;
}

/**
 * One run as a mark: a failed one is taller, a catch-up run is hollow in the colour for late runs.
 * @param {Run} run
 */
function resultOf(run) {
  const caughtUp = run.triggered_by === "catchup";
  const time = hourMinute(run.finished_at ?? run.created_at, zone.value);
  const shown = caughtUp && run.success ? "missed" : run.state;
  return {
    state: shown === "queued" || shown === "waiting" ? "none" : shown,
    label: `${time} ${run.state}${caughtUp ? ", caught up" : ""}${run.message ? `: ${line(run.message, 120)}` : ""}`,
  };
}
