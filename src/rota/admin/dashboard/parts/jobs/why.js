// @ts-check
// Why is it not running: the reasons in the order they must be cleared, each with its remedy.

import { api } from "../../api.js";
import { html } from "../../ui.js";
import { line } from "../../format.js";
import { StateGlyph, tone } from "../base/badge.js";
import { Button } from "../base/button.js";
import { Panel } from "../base/panel.js";
import { When } from "../base/time.js";
import { toast } from "../base/toast.js";

const SIGN = {
  paused: "paused",
  due_later: "scheduled",
  retry_later: "retrying",
  no_worker: "ghost",
  unknown_task: "ghost",
  unserved_queue: "ghost",
  in_line: "full",
  next: "succeeded",
  dependency: "waiting",
  lease_expired: "ghost",
  stopping: "paused",
};
const TONE = { next: "succeeded", no_worker: "failed", unknown_task: "failed", unserved_queue: "failed" };

/** @param {{why: any, job: any, done: () => any}} props */
export function Why({ why, job, done }) {
  const start = why.likely_start_at && html`Likely start <${When} at=${why.likely_start_at} />`;
  return html`<${Panel}
    title="Why is it not running?"
    tone="held"
    note=${start || (why.reasons.length > 1 ? `${why.reasons.length} things hold it.` : "")}
  >
    <ul class="lines">
      ${why.reasons.map(
        (/** @type {any} */ reason) => html`<li
          key=${reason.code + reason.text}
          class=${tone(TONE[/** @type {keyof typeof TONE} */ (reason.code)] ?? "paused")}
        >
          <${StateGlyph} state=${SIGN[/** @type {keyof typeof SIGN} */ (reason.code)] ?? "warn"} />
          <div>
            <p><b>${line(reason.text, 400)}</b></p>
            ${reason.remedy && html`<p>${line(reason.remedy, 400)}</p>`}
            ${reason.clears_at && html`<p>Clears by itself <${When} at=${reason.clears_at} />.</p>`}
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

/** The one button that helps. @param {any} props */
function Help({ code, job, done }) {
  if (code !== "due_later" && code !== "retry_later") return html`<span></span>`;
  const now = async () => {
    await api.post(`/jobs/${job.id}/move`, { now: true });
    toast("Due now.");
    await done();
  };
  return html`<${Button} tiny need="operate" onClick=${now}>Make due now<//>`;
}
