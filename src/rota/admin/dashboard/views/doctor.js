// @ts-check
// Doctor: all checks, worst first, each finding with what to do.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Badge } from "../parts/base/badge.js";
import { Button } from "../parts/base/button.js";
import { Command, Copy } from "../parts/base/copy.js";
import { Forbidden } from "../parts/base/forbidden.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { PageHeader, Panel } from "../parts/base/panel.js";
import { Table } from "../parts/base/table.js";
import { When } from "../parts/base/time.js";
import { FINDING_LEVEL_LABELS, labelOf, valuesOf } from "../labels.js";
import { at, may, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, plural } from "../format.js";

/** @typedef {import("../types").Finding} Finding */

// The command in a remedy: "Start one: rota worker --app MODULE:APP".
const COMMAND = /(?:^|[:;,] (?:then )?)(rota [^.,;:]*(?:[.:][^\s.,;:]+[^.,;:]*)*)/;
/** @type {Record<string, string>} */
const PAGES = {
  schedules: "/schedules",
  workers: "/workers",
  tasks: "/tasks",
  gates: "/gates",
  waiting: "/jobs?state=queued",
};

export default function Doctor() {
  if (!may("operate.shared"))
    return html`<${PageHeader} title="Doctor" /><${Forbidden} what="Doctor" role="operator" shared />`;
  return html`<${Report} />`;
}

function Report() {
  const report = useLoad(
    async (signal) => ({ ...(await api.get("/doctor", {}, signal)), at: new Date(now.peek()).toISOString() }),
    [],
  );
  const columns = useMemo(columnsOf, []);
  const order = valuesOf(FINDING_LEVEL_LABELS);
  const withoutRemedy = useMemo(() => columns.slice(0, 3), []);
  const found = report.data?.findings.toSorted((a, b) => order.indexOf(a.level) - order.indexOf(b.level)) ?? null;
  const wrong = found?.filter((one) => one.level !== "ok") ?? null;
  const fine = found?.filter((one) => one.level === "ok") ?? null;
  return html`
    <${PageHeader}
      title="Doctor"
      beside=${report.data && html`<${Badge} solid state=${report.data.worst}>${verdict(wrong)}<//>`}
      acts=${html`<${Button} kind="main" disabled=${report.busy} onClick=${report.reload}>
        ${report.busy ? "Checking…" : "Run again"}
      <//>`}
    >
      ${report.data
        ? html`<span>
            ${plural(new Set(found?.map((one) => one.check)).size, "check")}, run <${When} at=${report.data.at} />.
          </span>`
        : "Checks the store, clocks, workers, tasks and schedules."}
    <//>
    ${report.error && html`<${ErrorNotice} error=${report.error} retry=${report.reload} />`}
    ${wrong?.length === 0 && html`<${Empty} title="All checks passed" command="rota doctor --strict">
      Nothing needs fixing. To check from a terminal, or from a monitor that reads exit codes:
    <//>`}
    ${(wrong === null || wrong.length > 0) && !(report.error && !wrong) && html`<${Panel}
      title="Needs fixing"
      note=${wrong && "worst first"}
    >
      <${Table}
        caption="Findings that need fixing"
        class="findings"
        columns=${columns}
        rows=${wrong}
        skeleton=${3}
        id=${keyOf}
      />
    <//>`}
    ${fine && fine.length > 0 && html`<${Panel} title="Passed">
      <${Table}
        caption="Passed checks"
        class="findings fine"
        columns=${fine.some((one) => one.remedy) ? columns : withoutRemedy}
        rows=${fine}
        id=${keyOf}
      />
    <//>`}
  `;
}

/** @param {Finding} finding */
function keyOf(finding) {
  return `${finding.check} ${finding.text}`;
}

/** @param {Finding[] | null} wrong */
function verdict(wrong) {
  if (!wrong?.length) return "all checks passed";
  const problems = wrong.filter((one) => one.level === "problem").length;
  return [
    problems && plural(problems, "problem"),
    wrong.length > problems && plural(wrong.length - problems, "warning"),
  ]
    .filter(Boolean)
    .join(", ");
}

/** @returns {import("../parts/base/table.js").Column<Finding>[]} */
function columnsOf() {
  return [
    {
      title: "Result",
      width: "7rem",
      cell: (one) => html`<${Badge} state=${one.level}>${labelOf(FINDING_LEVEL_LABELS, one.level)}<//>`,
    },
    {
      title: "Check",
      kind: "head",
      width: "10rem",
      cell: (one) => html`<${Check} name=${one.check} />`,
    },
    { title: "Finding", kind: "full", cell: (one) => clean(one.text) },
    { title: "What to do", kind: "full", cell: (one) => html`<${Remedy} text=${one.remedy} />` },
  ];
}

/** @param {{name: string}} props */
function Check({ name }) {
  const to = PAGES[name];
  return to ? html`<a href=${at(to)}>${clean(name)}</a>` : html`<b>${clean(name)}</b>`;
}

/** What helps; a command is shown apart, to be copied. @param {{text: string | null | undefined}} props */
function Remedy({ text }) {
  if (!text) return html`<span class="faint">—</span>`;
  const command = COMMAND.exec(text)?.[1];
  return html`
    <span>${clean(command && text.endsWith(command) ? text.slice(0, -command.length) : text)}</span> ${command
      ? html`<${Command} text=${command} />`
      : html`<${Copy} text=${text} label=${`Copy: ${clean(text)}`} />`}
  `;
}
