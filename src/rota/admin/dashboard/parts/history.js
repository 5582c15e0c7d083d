// @ts-check
// What people and the system did with one job, newest first.

import { at } from "../state.js";
import { html } from "../ui.js";
import { clean, line } from "../words.js";
import { Panel } from "./panel.js";
import { When } from "./time.js";

/** @param {{job: any, entries: any[]}} props */
export function History({ job, entries }) {
  return html`<${Panel} title="History" aside=${html`<a href=${at("/audit", { object: `job:${job.id}` })}>In the audit log</a>`}>
    <ul class="history">
      ${entries.map((one) => html`<li key=${one.id}><${When} at=${one.at} /><p><b>${clean(one.actor)}</b> ${clean(one.action)}${one.result === "done" ? "" : `, ${clean(one.result)}`}${one.message ? `: ${line(one.message)}` : ""}</p></li>`)}
      <li><${When} at=${job.created_at} /><p>created by ${clean(job.origin)}</p></li>
    </ul>
  <//>`;
}
