// @ts-check
// State, slots and queues of a worker, wherever one is shown.

import { at } from "../../state.js";
import { html } from "../../ui.js";
import { clean, line } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Gauge } from "../charts/spark.js";

/** @typedef {import("../../types").WorkerView} Worker */

/** @param {{worker: Worker, solid?: boolean}} props */
export function WorkerBadge({ worker, solid }) {
  return html`<${Badge} state=${worker.state} solid=${solid}>
    ${line(worker.state, 20)}
  <//>`;
}

/** Busy slots. @param {{worker: Worker}} props */
export function Slots({ worker: { running, concurrency, state } }) {
  const text = `${running} of ${concurrency}`;
  return html`<span class="slots">
    ${text}
    <${Gauge}
      part=${running}
      whole=${concurrency}
      label=${`${text} slots busy`}
      state=${running >= concurrency ? "full" : state === "lost" ? "" : "running"}
    />
  </span>`;
}

/** The queues it serves. @param {Worker} worker */
export function queuesOf({ queues, exclude_queues }) {
  const served = queues === null ? "all" : queues.map(clean).join(", ");
  return exclude_queues.length ? `${served} except ${exclude_queues.map(clean).join(", ")}` : served;
}

/** Whether it claims jobs of this queue. @param {Worker} worker @param {string} queue */
export function serves({ queues, exclude_queues }, queue) {
  return (queues === null || queues.includes(queue)) && !exclude_queues.includes(queue);
}

/** @param {Worker} worker */
export function pageOf(worker) {
  return at(`/workers/${encodeURIComponent(worker.id)}`);
}
