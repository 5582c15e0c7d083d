// @ts-check
// The rule of a schedule as a form: checked by the server and summarised while you type, with clock changes.

import { api, problemOf } from "../../api.js";
import { minute, now } from "../../state.js";
import { html, useEffect, useMemo, useState } from "../../ui.js";
import { line } from "../../format.js";
import { Choice } from "../base/button.js";
import { CronBuilder } from "./cron-builder.js";
import { isShifted, sentence } from "./fire-table.js";
import { Field, onValue } from "../base/form.js";
import { Glyph } from "../base/glyph.js";
import { Note } from "../base/panel.js";
import { clockChanges, dayIn, instantIn, isZone, placeOf, timeIn, zones } from "./zones.js";

const WAIT = 250; // after the last key
const FIRES = 10;
const DAY = 86_400_000;

/**
 * @typedef {{kind: "cron" | "every" | "at", cron: string, every: string, at: string, timezone: string, start_at:
 *   string, until: string, jitter: string}} RuleDraft as the form has it
 */
/** @typedef {import("./fire-table.js").Fire} Fire */
/**
 * @typedef {{summary: string, fires: Fire[], error: import("../../api.js").Problem | null, odd: Fire[],
 *   busy: boolean}} RuleCheck
 *   odd: those that a clock change affects
 */

/** The rule as the API expects it. @param {RuleDraft} draft */
export function ruleOf(draft) {
  const zone = isZone(draft.timezone) ? draft.timezone : "UTC";
  const instant = (/** @type {string} */ wall) => (wall ? (instantIn(wall, zone) ?? wall) : null);
  return {
    ...(draft.kind === "cron"
      ? { cron: draft.cron }
      : draft.kind === "every"
        ? { every: draft.every }
        : { at: instant(draft.at) }),
    timezone: draft.timezone.trim() || "UTC",
    start_at: instant(draft.start_at),
    until: instant(draft.until),
    jitter: draft.jitter.trim() || 0,
  };
}

/**
 * What the server answers about the rule, shortly after the last key.
 * @param {RuleDraft} draft
 * @param {string} anchor what an interval is counted from
 * @returns {RuleCheck}
 */
export function useRuleCheck(draft, anchor) {
  const own = ruleOf(draft);
  const rule = draft.kind === "every" ? { ...own, start_at: own.start_at ?? anchor } : own;
  const text = JSON.stringify(rule);
  const [verdict, set] = useState(
    /** @type {RuleCheck} */ ({ summary: "", fires: [], error: null, odd: [], busy: true }),
  );
  useEffect(() => {
    let current = true;
    set((old) => ({ ...old, busy: true }));
    const timer = setTimeout(async () => {
      try {
        const { rule_summary: summary, fires } = await api.post("/schedules/validate", { ...rule, n: FIRES });
        const odd = draft.kind === "cron" ? await atClockChanges(rule).catch(() => []) : fires.filter(isShifted);
        if (current) set({ summary, fires, odd, error: null, busy: false });
      } catch (error) {
        if (current) set({ summary: "", fires: [], odd: [], error: problemOf(error), busy: false });
      }
    }, WAIT);
    return () => ((current = false), clearTimeout(timer));
  }, [text]);
  return verdict;
}

/**
 * Runs of the next year that a clock change affects: the server is asked about the days around each.
 * @param {ReturnType<typeof ruleOf>} rule
 */
async function atClockChanges(rule) {
  const from = Math.max(now.peek(), Date.parse(rule.start_at ?? "") || 0);
  const around = clockChanges(rule.timezone, from).map((day) => Math.max(from, day - 2 * DAY));
  const requests = around
    .filter((start) => !rule.until || start < Date.parse(rule.until))
    .map((start) => api.post("/schedules/validate", { ...rule, start_at: new Date(start).toISOString(), n: 100 }));
  return (await Promise.all(requests)).flatMap(({ fires }) => fires.filter(isShifted).slice(0, 1));
}

/**
 * @param {{draft: RuleDraft, verdict: RuleCheck, errors: Record<string, string>, set: (patch: Partial<RuleDraft>) =>
 *   void}} props
 */
export function RuleFields({ draft, verdict, errors, set }) {
  const typed = (/** @type {keyof RuleDraft} */ key) => ({
    value: draft[key],
    onInput: onValue((value) => set({ [key]: value })),
  });
  const known = useMemo(zones, []);
  const place = placeOf(isZone(draft.timezone) ? draft.timezone : "UTC");
  return html`
    <${Choice}
      label="Rule"
      value=${draft.kind}
      options=${[
        ["cron", "Cron"],
        ["every", "Interval"],
        ["at", "Once"],
      ]}
      onChange=${(/** @type {RuleDraft["kind"]} */ kind) => set({ kind })}
    />
    ${draft.kind === "cron" && html`
      <div class="cron-text">
        <${Field}
          label="Cron expression"
          error=${errors.cron}
          hint="Minute, hour, day, month, weekday. With six fields, the first is seconds."
        >
          <input type="text" class="mono" autocomplete="off" spellcheck=${false} maxlength="256" ...${typed("cron")} />
        <//>
      </div>
      <${CronBuilder} value=${draft.cron} onChange=${(/** @type {string} */ cron) => set({ cron })} />
    `}
    ${draft.kind === "every" && html`<div class="cron-text">
      <${Field}
        label="Every"
        error=${errors.every}
        hint="For example 30s, 15m, 1h30m or 2d. Counted from the start, unaffected by clock changes."
      >
        <input type="text" class="mono" autocomplete="off" spellcheck=${false} ...${typed("every")} />
      <//>
    </div>`}
    ${draft.kind === "at" && html`<${Field} label=${`At (${place} time)`} error=${errors.at}>
      <input type="datetime-local" step="1" ...${typed("at")} />
    <//>`}
    <p class="rule-summary" role="status" aria-live="polite">
      ${verdict.summary
        ? html`<b>${line(verdict.summary, 400)}.</b>`
        : verdict.error
          ? html`<span class="faint">The rule is not valid yet.</span>`
          : html`<span class="skeleton-line w2"></span>`}
    </p>
    <${Field}
      label="Time zone"
      error=${errors.timezone}
      hint=${isZone(draft.timezone)
        ? `Now ${dayIn(minute.value, draft.timezone)} ${timeIn(minute.value, draft.timezone, true)}.`
        : "A name such as Europe/Stockholm, or UTC."}
    >
      <input
        type="text"
        class="mono"
        list="time-zones"
        autocomplete="off"
        spellcheck=${false}
        ...${typed("timezone")}
      />
    <//>
    <datalist id="time-zones">${known.map((name) => html`<option value=${name} />`)}</datalist>
    <${ClockChangeNotice} odd=${verdict.odd} timezone=${draft.timezone} set=${set} />
    <div class="fields three">
      <${Field} label=${`Start (${place} time)`} error=${errors.start_at} hint="Leave empty to start now.">
        <input type="datetime-local" ...${typed("start_at")} />
      <//>
      <${Field} label=${`End (${place} time)`} error=${errors.until} hint="Leave empty for no end.">
        <input type="datetime-local" ...${typed("until")} />
      <//>
      <${Field} label="Jitter" error=${errors.jitter} hint="Start up to this much later, to spread load: 60s.">
        <input type="text" class="mono" placeholder="none" autocomplete="off" ...${typed("jitter")} />
      <//>
    </div>
  `;
}

/** @param {{odd: Fire[], timezone: string, set: (patch: Partial<RuleDraft>) => void}} props */
function ClockChangeNotice({ odd, timezone, set }) {
  if (!odd.length) return null;
  return html`<${Note} state="attention">
    <p><b><${Glyph} name="warn" /> Clock changes in ${placeOf(timezone)} affect this rule.</b></p>
    ${odd.map((fire) => html`<p key=${fire.at}>${dayIn(fire.at, timezone)}: ${sentence(fire.note)}</p>`)}
    <div class="acts">
      <button type="button" class="button tiny" onClick=${() => set({ timezone: "UTC" })}>Use UTC instead</button>
    </div>
  <//>`;
}
