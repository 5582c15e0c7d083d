// @ts-check
// Failed jobs, grouped by what went wrong. The server groups them; here they are shown.

import { at } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { clean, count, line, plural, shortId } from "../../format.js";
import { bulkDialog } from "./bulk.js";
import { Button } from "../base/button.js";
import { Code } from "../base/panel.js";
import { Table } from "../base/table.js";
import { When } from "../base/time.js";

/** @typedef {import("../../types").Failure} Failure */

/** The error of a job in one line. @param {any} error */
export function errorLine(error) {
  if (!error) return "";
  if (typeof error !== "object") return line(error);
  return line([error.type, error.message].filter(Boolean).join(": ")) || line(JSON.stringify(error));
}

/** @param {{found: import("../../types").Failures, done: () => any}} props done: after a retry */
export function Failures({ found, done }) {
  const columns = useMemo(() => columnsOf(done), []);
  if (!found.items.length) return html`<p class="quiet">No job has failed for good.</p>`;
  return html`
    <${Table}
      caption="Failures by error"
      columns=${columns}
      rows=${found.items}
      id=${(/** @type {Failure} */ one) => one.fingerprint}
    />
    <${Rest} found=${found} />
  `;
}

/** What is not told above. @param {{found: import("../../types").Failures}} props */
function Rest({ found: { items, groups, of, more } }) {
  const left = groups - items.length;
  if (!left && !more) return null;
  return html`<p class="quiet">
    ${left > 0 && `And ${plural(left, "more kind")} of failure: rota jobs failures tells them all. `}
    ${more && `Of the newest ${count(of)} failed jobs; there are older ones.`}
  </p>`;
}

/** @param {() => any} done @returns {import("../base/table.js").Column[]} */
function columnsOf(done) {
  return [
    {
      title: "Error",
      kind: "head",
      cell: (one) =>
        html`
          <a
            class="name bad"
            href=${at("/jobs", { state: "failed", task: one.task, error: one.type })}
            title=${line(one.message)}
          >
            ${errorLine({ type: one.type, message: one.pattern }) || "No error was stored"}
          </a>
          <span class="sub">
            newest <a href=${at(`/jobs/${one.newest}`)}>${shortId(one.newest)}</a>
            ${one.message !== one.pattern && html`: ${line(one.message, 120)}`}
          </span>
        `,
    },
    { title: "Task", width: "12rem", cell: (one) => html`<span class="clip"><${Code}>${one.task}<//></span>` },
    { title: "Jobs", kind: "num", width: "4rem", cell: (one) => count(one.count) },
    { title: "First seen", width: "9rem", kind: "wide-only", cell: (one) => html`<${When} at=${one.first_at} />` },
    { title: "Last seen", width: "9rem", cell: (one) => html`<${When} at=${one.last_at} />` },
    {
      title: html`<span class="visually-hidden">Actions</span>`,
      kind: "act",
      width: "8rem",
      cell: (one) => html`<${Retry} of=${one} done=${done} />`,
    },
  ];
}

/**
 * A step of a bulk action has a bound: of a larger group the newest are retried.
 * @param {{of: Failure, done: () => any}} props
 */
function Retry({ of: { ids, count: all, task }, done }) {
  const which = `${ids.length < all ? "newest " : ""}${count(ids.length)}`;
  const retry = async () => (await bulkDialog("retry", { ids })) !== null && done();
  return html`<${Button} tiny need="operate" label=${`Retry ${which} of ${clean(task)}`} onClick=${() => void retry()}>
    Retry ${which}
  <//>`;
}
