// @ts-check
// Why a job is not running: the reasons in the order they must be cleared, each with its remedy.

import { api } from "../../api.js";
import { html } from "../../ui.js";
import { line } from "../../format.js";
import { StateGlyph, tone } from "../base/badge.js";
import { Button } from "../base/button.js";
import { Panel } from "../base/panel.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";

/** @type {Record<import("../../choices.js").WhyCode, string>} */
const GLYPHS = {
  ended: "warn",
  quarantined: "ghost",
  running: "warn",
  paused: "paused",
  due_later: "scheduled",
  retry_later: "retrying",
  no_worker: "ghost",
  unknown_task: "ghost",
  unserved_queue: "ghost",
  budget: "full",
  oversized: "ghost",
  strict: "waiting",
  limit_full: "full",
  rate: "scheduled",
  in_line: "full",
  next: "succeeded",
  dependency: "waiting",
  lease_expired: "ghost",
  stopping: "paused",
};
/** @type {Partial<Record<import("../../choices.js").WhyCode, string>>} */
const TONES = { next: "succeeded", no_worker: "failed", unknown_task: "failed", unserved_queue: "failed" };

/** @typedef {import("../../types").JobView} Job */

/** @param {{why: import("../../types").Why, job: Job, done: () => unknown}} props */
export function Why({ why, job, done }) {
  const start =
    why.likely_start_at &&
    html`Likely start <${When} at=${why.likely_start_at} />${why.is_estimate && ", an estimate"}`;
  return html`<${Panel}
    title="Why is it not running?"
    tone="attention"
    note=${start || (why.reasons.length > 1 ? `${why.reasons.length} reasons` : "")}
  >
    <ul class="lines">
      ${why.reasons.map(
        (reason) => html`<li key=${reason.code + reason.text} class=${tone(TONES[reason.code] ?? "paused")}>
          <${StateGlyph} state=${GLYPHS[reason.code] ?? "warn"} />
          <div>
            <p><b>${line(reason.text, 400)}</b></p>
            ${reason.remedy && html`<p>${line(reason.remedy, 400)}</p>`}
            ${reason.clears_at && html`<p>Clears automatically <${When} at=${reason.clears_at} />.</p>`}
          </div>
          <${Help} code=${reason.code} job=${job} done=${done} />
        </li>`,
      )}
      ${why.fine && html`<li class="tone-succeeded">
        <${StateGlyph} state="succeeded" />
        <p class="soft">${line(why.fine[0].toUpperCase() + why.fine.slice(1), 400)}.</p>
      </li>`}
    </ul>
  <//>`;
}

/** The button that helps, if there is one. @param {{code: string, job: Job, done: () => unknown}} props */
function Help({ code, job, done }) {
  if (code !== "due_later" && code !== "retry_later") return html`<span></span>`;
  const now = async () => {
    await api.post(`/jobs/${job.id}/move`, { now: true });
    toast("Due now.");
    await done();
  };
  return html`<${Button} tiny need="operate" onClick=${now}>Make due now<//>`;
}
