// @ts-check
// Doctor: everything that can be looked at, worst first, each finding with what to do.

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
import { at, may, now } from "../state.js";
import { html, useMemo } from "../ui.js";
import { clean, plural } from "../format.js";

/** @typedef {import("../types").Finding} Finding */

const ORDER = ["problem", "warning", "fine"];
const COMMAND = /(?:^|[:;,] (?:then )?)(rota [^.,;:]*(?:[.:][^\s.,;:]+[^.,;:]*)*)/; // "Start one: rota worker --app MODULE:APP"
const PLACES = {
  schedules: "/schedules",
  workers: "/workers",
  tasks: "/tasks",
  gates: "/gates",
  waiting: "/jobs?state=queued",
};

export default function Doctor() {
  if (!may("operate.shared"))
    return html`<${PageHeader} title="Doctor" /><${Forbidden} what="The doctor" role="operator" shared />`;
  return html`<${Report} />`;
}

function Report() {
  const report = useLoad(
    async (signal) => ({ ...(await api.get("/doctor", {}, signal)), at: new Date(now.peek()).toISOString() }),
    [],
  );
  const columns = useMemo(columnsOf, []);
  const withoutRemedy = useMemo(() => columns.slice(0, 3), []);
  const found =
    report.data?.findings.toSorted(
      (/** @type {Finding} */ a, /** @type {Finding} */ b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level),
    ) ?? null;
  const wrong = found?.filter((/** @type {Finding} */ one) => one.level !== "fine") ?? null;
  const fine = found?.filter((/** @type {Finding} */ one) => one.level === "fine") ?? null;
  return html`
    <${PageHeader}
      title="Doctor"
      beside=${report.data && html`<${Badge} solid state=${report.data.worst}>${verdict(wrong)}<//>`}
      acts=${html`<${Button} kind="main" disabled=${report.busy} onClick=${report.reload}>
        ${report.busy ? "Looking" : "Run again"}
      <//>`}
    >
      ${report.data
        ? html`<span>
            Looked
            at ${plural(new Set(found.map((/** @type {Finding} */ one) => one.check)).size, "thing")} <${When}
              at=${report.data.at}
            />.
          </span>`
        : "Looks at the store, the clocks, workers, tasks and schedules."}
    <//>
    ${report.error && html`<${ErrorNotice} error=${report.error} retry=${report.reload} />`}
    ${wrong?.length === 0 && html`<${Empty} title="All is well" command="rota doctor --strict">
      Nothing that was looked at needs you. The same from a terminal, or from a monitor that reads exit codes:
    <//>`}
    ${(wrong === null || wrong.length > 0) && !(report.error && !wrong) && html`<${Panel}
      title="To mend"
      note=${wrong && "worst first"}
    >
      <${Table}
        caption="Findings to mend"
        class="findings"
        columns=${columns}
        rows=${wrong}
        skeleton=${3}
        id=${keyOf}
      />
    <//>`}
    ${fine && fine.length > 0 && html`<${Panel} title="Fine">
      <${Table}
        caption="What is fine"
        class="findings fine"
        columns=${fine.some((/** @type {Finding} */ one) => one.remedy) ? columns : withoutRemedy}
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
  if (!wrong?.length) return "all is well";
  const problems = wrong.filter((one) => one.level === "problem").length;
  return [
    problems && plural(problems, "problem"),
    wrong.length > problems && plural(wrong.length - problems, "warning"),
  ]
    .filter(Boolean)
    .join(", ");
}

function columnsOf() {
  return [
    { title: "State", width: "7rem", cell: (/** @type {Finding} */ one) => html`<${Badge} state=${one.level} />` },
    {
      title: "Check",
      kind: "head",
      width: "10rem",
      cell: (/** @type {Finding} */ one) => html`<${Check} name=${one.check} />`,
    },
    { title: "Found", kind: "full", cell: (/** @type {Finding} */ one) => clean(one.text) },
    { title: "What to do", kind: "full", cell: (/** @type {Finding} */ one) => html`<${Remedy} text=${one.remedy} />` },
  ];
}

/** @param {{name: string}} props */
function Check({ name }) {
  const to = PLACES[/** @type {keyof typeof PLACES} */ (name)];
  return to ? html`<a href=${at(to)}>${clean(name)}</a>` : html`<b>${clean(name)}</b>`;
}

/** What helps; a command stands apart, to be copied. @param {{text: string | null}} props */
function Remedy({ text }) {
  if (!text) return html`<span class="faint">nothing</span>`;
  const command = COMMAND.exec(text)?.[1];
  return html`
    <span>${clean(command && text.endsWith(command) ? text.slice(0, -command.length) : text)}</span> ${command
      ? html`<${Command} text=${command} />`
      : html`<${Copy} text=${text} label=${`Copy: ${clean(text)}`} />`}
  `;
}
