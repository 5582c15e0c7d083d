// @ts-check
// What users and the system did with one job, newest first.

import { AUDIT_RESULT_LABELS, labelOf } from "../../labels.js";
import { at } from "../../state.js";
import { html } from "../../ui.js";
import { clean, line, actorName, shortId } from "../../format.js";
import { Panel } from "../base/panel.js";
import { When } from "../base/time.js";

const ENQUEUE = "job.enqueue"; // its actor is more precise than the job's origin

/** @param {{id: string}} props */
function From({ id }) {
  return html`<a class="mono" href=${at(`/jobs/${encodeURIComponent(id)}`)}>${shortId(clean(id))}</a>`;
}

/**
 * @param {{job: import("../../types").JobView, entries: import("../../types").AuditView[]}} props entries: newest first
 */
export function History({ job, entries }) {
  return html`<${Panel}
    title="History"
    note=${html`<a href=${at("/audit", { object: `job:${job.id}` })}>View in audit log</a>`}
  >
    <ul class="history">
      ${entries.map(
        (one) =>
          html`<li key=${one.id}>
            <${When} at=${one.at} />
            <p>
              <b title=${clean(one.actor)}>${actorName(one.actor)}</b> ${one.action === ENQUEUE
                ? html`created it${job.parent && html`, from <${From} id=${job.parent} />`}`
                : clean(one.action)}
              ${one.result === "done" ? "" : `, ${labelOf(AUDIT_RESULT_LABELS, one.result)}`}
              ${one.message ? `: ${line(one.message)}` : ""}
            </p>
          </li>`,
      )}
      ${!entries.some((one) => one.action === ENQUEUE) && html`<li>
        <${When} at=${job.created_at} />
        <p>created by ${clean(job.origin)}${job.parent && html` <${From} id=${job.parent} />`}</p>
      </li>`}
    </ul>
  <//>`;
}
