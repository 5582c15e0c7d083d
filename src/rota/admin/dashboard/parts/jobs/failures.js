// @ts-check
// Failed jobs, grouped by error. The server groups them; this only shows them.

import { at } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { clean, count, line, plural, shortId } from "../../format.js";
import { bulkDialog } from "./bulk.js";
import { Button } from "../base/button.js";
import { Code } from "../base/panel.js";
import { Table } from "../base/table.js";
import { When } from "../base/time.js";

/** @typedef {import("../../types").FailureGroup} Failure */

/**
 * As the server stores it.
 * @typedef {{type?: string, message?: string, traceback?: string, details?: unknown}} ErrorRecord
 */

/** The error of a job or an attempt. @param {{error: unknown}} of */
export function errorOf({ error }) {
  return /** @type {ErrorRecord | null} */ (error);
}

/** An error on one line. @param {unknown} error */
export function errorLine(error) {
  if (!error) return "";
  if (typeof error !== "object") return line(error);
  const { type, message } = /** @type {ErrorRecord} */ (error);
  return line([type, message].filter(Boolean).join(": ")) || line(JSON.stringify(error));
}

/** @param {{found: import("../../types").FailureGroups, done: () => unknown}} props done: after a retry */
export function Failures({ found, done }) {
  const columns = useMemo(() => columnsOf(done), []);
  if (!found.items.length) return html`<p class="quiet">No failed jobs.</p>`;
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

/** What the table leaves out. @param {{found: import("../../types").FailureGroups}} props */
function Rest({ found: { items, groups, of, more } }) {
  const left = groups - items.length;
  if (!left && !more) return null;
  return html`<p class="quiet">
    ${left > 0 && `And ${plural(left, "more error")}. Full list: rota jobs failures. `}
    ${more && `Only the newest ${count(of)} failed jobs are grouped.`}
  </p>`;
}

/** @param {() => unknown} done @returns {import("../base/table.js").Column<Failure>[]} */
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
            ${errorLine({ type: one.type, message: one.pattern }) || "No error stored"}
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
 * A bulk action has a limit: of a larger group the newest are retried.
 * @param {{of: Failure, done: () => unknown}} props
 */
function Retry({ of: { ids, count: all, task }, done }) {
  const which = `${ids.length < all ? "newest " : ""}${count(ids.length)}`;
  const retry = async () => (await bulkDialog("retry", { ids })) !== null && done();
  return html`<${Button} tiny need="operate" label=${`Retry ${which} of ${clean(task)}`} onClick=${() => void retry()}>
    Retry ${which}
  <//>`;
}
