// @ts-check
// Why a job is not running: the reasons in the order they must be cleared, each with its remedy.

import { api } from "../../api.js";
import { at, may, me } from "../../state.js";
import { html } from "../../ui.js";
import { line, shortId } from "../../format.js";
import { StateGlyph, tone } from "../base/badge.js";
import { Button } from "../base/button.js";
import { Panel } from "../base/panel.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";
import { limitAt } from "../operate/limit-cells.js";

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
/** @typedef {import("../../types").Reason} Reason */

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
          <${Help} reason=${reason} job=${job} done=${done} />
        </li>`,
      )}
      ${why.fine && html`<li class="tone-succeeded">
        <${StateGlyph} state="succeeded" />
        <p class="soft">${line(why.fine[0].toUpperCase() + why.fine.slice(1), 400)}.</p>
      </li>`}
    </ul>
  <//>`;
}

/** The buttons that help, if there are any. @param {{reason: Reason, job: Job, done: () => unknown}} props */
function Help({ reason: { code, limit, blocker }, job, done }) {
  const now = async () => {
    await api.post(`/jobs/${job.id}/move`, { now: true });
    toast("Due now.");
    await done();
  };
  if (code === "due_later" || code === "retry_later")
    return html`<${Button} tiny need="operate" onClick=${now}>Make due now<//>`;
  const seesLimit = limit && (may("read.shared") || limit === `tenant:${me.value?.tenant}`);
  return html`<span class="acts">
    ${blocker && html`<a class="button tiny" href=${at(`/jobs/${blocker}`)}>View job ${shortId(blocker)}</a>`}
    ${seesLimit && html`<a class="button tiny" href=${limitAt(limit)}>View limit</a>`}
    ${code === "budget" && html`<a class="button tiny" href=${at(`/tenants/${encodeURIComponent(job.tenant)}`)}>
      View tenant
    </a>`}
  </span>`;
}
