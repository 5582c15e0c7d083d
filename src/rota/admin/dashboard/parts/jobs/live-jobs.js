// @ts-check
// The oldest live jobs of a queue or a tenant.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { at, now } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { clean, shortId } from "../../format.js";
import { Badge, displayState } from "../base/badge.js";
import { ErrorNotice } from "../base/empty.js";
import { Panel } from "../base/panel.js";
import { Table, byId } from "../base/table.js";
import { When } from "../base/time.js";

/** @param {{where: {queue?: string, tenant?: string}}} props */
export function LiveJobs({ where }) {
  const [[field, name]] = Object.entries(where);
  const jobs = useLoad(
    (signal) => api.get("/jobs", { ...where, state: "queued,running", order: "oldest", limit: 8 }, signal),
    [field, name],
    { on: ["job"] },
  );
  const columns = useMemo(
    () =>
      /** @type {import("../base/table.js").Column<import("../../types").JobView>[]} */ ([
        {
          title: "State",
          width: "7.25rem",
          cell: (job) => html`<${Badge} state=${displayState(job, now.peek())} />`,
        },
        {
          title: "Job",
          kind: "head",
          cell: (job) =>
            html`<a class="name" href=${at(`/jobs/${job.id}`)}>
              ${clean(job.task)} <span class="faint">${shortId(job.id)}</span>
            </a>`,
        },
        field === "tenant"
          ? {
              title: "Queue",
              width: "7rem",
              cell: (job) => html`<span class="clip">${clean(job.queue)}</span>`,
            }
          : {
              title: "Tenant",
              width: "7rem",
              cell: (job) => html`<span class="clip">${clean(job.tenant)}</span>`,
            },
        { title: "Created", width: "8.5rem", cell: (job) => html`<${When} at=${job.created_at} />` },
      ]),
    [field],
  );
  return html`<${Panel}
    title="Live jobs, oldest first"
    note=${html`<a href=${at("/jobs", { ...where, state: "failed" })}>View failed jobs</a>`}
  >
    ${jobs.error && html`<${ErrorNotice} error=${jobs.error} retry=${jobs.reload} />`}
    ${jobs.data?.items.length === 0
      ? html`<p class="quiet">None.</p>`
      : html`<${Table}
          caption="Live jobs"
          columns=${columns}
          rows=${jobs.data?.items ?? null}
          id=${byId}
          skeleton=${3}
        />`}
  <//>`;
}
