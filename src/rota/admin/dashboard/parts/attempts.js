// @ts-check
// The attempts of a job: a track of time, then each with its error, its traceback and its log.

import { now, zone } from "../state.js";
import { html, useState } from "../ui.js";
import { clean, exact, many, span } from "../words.js";
import { Badge } from "./badge.js";
import { Copy } from "./copy.js";
import { errorLine } from "./failures.js";
import { Code, Panel } from "./panel.js";
import { Took, When } from "./time.js";

/** @param {{job: any, attempts: any[], why: any}} props */
export function Attempts({ job, attempts, why }) {
  const newest = [...attempts].reverse();
  return html`<${Panel} title="Attempts" aside=${`${job.attempt} of ${job.max_attempts} used`}>
    <${Track} job=${job} attempts=${attempts} why=${why} />
    ${job.state === "running" && job.progress?.log && html`<div class="live-log" aria-live="polite"><${Log} lines=${job.progress.log} /></div>`}
    ${newest.map((one, i) => html`<${Attempt} key=${`${one.attempt}-${one.token}`} one=${one} open=${i === 0} />`)}
    ${!attempts.length && !job.progress?.log && html`<p class="quiet">${empty(job)}</p>`}
  <//>`;
}

/** @param {any} job */
function empty(job) {
  if (job.state === "succeeded") return "It succeeded at its first attempt and said nothing. What a task says with ctx.log(…) appears here.";
  if (job.state === "running") return "The first attempt is running. What it says with ctx.log(…) appears here.";
  return "It has not run yet.";
}

/** What happened when, as marks. @param {any} job @param {any[]} attempts @param {any} why */
function marksOf(job, attempts, why) {
  const marks = [{ kind: "made", from: job.created_at, to: job.created_at, word: "created" }];
  for (const one of attempts) marks.push({ kind: one.outcome, from: one.started_at ?? one.finished_at, to: one.finished_at, word: String(one.attempt) });
  if (job.state === "running") marks.push({ kind: "running", from: job.started_at, to: new Date(now.value).toISOString(), word: `${job.attempt}` });
  else if (job.state === "succeeded" && !attempts.some((one) => one.outcome === "succeeded")) marks.push({ kind: "succeeded", from: job.started_at, to: job.finished_at, word: `${job.attempt}` });
  else if (job.state === "queued") marks.push({ kind: "next", from: why?.likely_start_at ?? job.run_at, to: why?.likely_start_at ?? job.run_at, word: "next" });
  else if (job.state === "cancelled") marks.push({ kind: "cancelled", from: job.finished_at, to: job.finished_at, word: "cancelled" });
  return marks.filter((mark) => mark.from).slice(-8);
}

/** Marks in the order of time, evenly spaced: seconds and days must both be readable. @param {any} props */
function Track({ job, attempts, why }) {
  const marks = marksOf(job, attempts, why);
  const step = 100 / Math.max(2, marks.length);
  return html`<svg class="track" width="100%" height="78" role="img" aria-label=${marks.map((mark) => `${mark.word} ${mark.kind} ${exact(mark.from, now.value, zone.value)}`).join(", ")}>
    <line class="thread" x1="0" x2=${`${step * (marks.length - 1)}%`} y1="34" y2="34" />
    ${marks.map((mark, i) => html`<g key=${i}>
      <text class="word" x=${`${i * step}%`} y="12">${mark.word}</text>
      <svg x=${`${i * step}%`} y="24" width="20" height="20" overflow="visible"><${Shape} kind=${mark.kind} /></svg>
      <text x=${`${i * step}%`} y="60">${exact(mark.from, now.value, zone.value)}</text>
      <text x=${`${i * step}%`} y="74">${mark.from !== mark.to ? span((Date.parse(mark.to) - Date.parse(mark.from)) / 1000) : ""}</text>
    </g>`)}
  </svg>`;
}

/** @param {{kind: string}} props */
function Shape({ kind }) {
  if (kind === "made") return html`<circle class="t-made" cx="4" cy="10" r="4" />`;
  if (kind === "failed") return html`<rect class="t-failed" width="20" height="20" rx="2" /><path class="t-cut" d="m6 6 8 8m0-8-8 8" />`;
  if (kind === "rescued" || kind === "lost") return html`<rect class="t-lost" x="1" y="1" width="18" height="18" rx="2" />`;
  if (kind === "succeeded" || kind === "removed") return html`<rect class="t-good" width="20" height="20" rx="2" /><path class="t-cut" d="m5 10.5 3.5 3.5L15 6.5" />`;
  if (kind === "running") return html`<rect class="t-run" width="20" height="20" rx="2" /><path class="t-cut full" d="M7 5v10l8-5z" />`;
  return html`<rect class="t-next" x="1" y="1" width="18" height="18" rx="2" />`;
}

/** @param {{one: any, open: boolean}} props */
function Attempt({ one, open }) {
  const [shown, setShown] = useState(open);
  const trace = one.error?.traceback;
  return html`<details class="attempt" open=${shown} onToggle=${(/** @type {any} */ event) => setShown(event.currentTarget.open)}>
    <summary><b>Attempt ${one.attempt}</b><${Badge} state=${one.outcome} /><span class="clip mono">${errorLine(one.error)}</span><${When} at=${one.finished_at} /></summary>
    ${shown && html`<div class="attempt-body">
      <p class="meta"><span>Took <${Took} from=${one.started_at} to=${one.finished_at} /></span>${one.worker && html`<span>Worker <${Code}>${one.worker}<//></span>`}${one.cost_cents > 0 && html`<span>Cost ${one.cost_cents.toFixed(2)} cents</span>`}${trace && html`<${Copy} text=${trace} kind="">Copy traceback<//>`}</p>
      ${trace ? html`<${Trace} text=${trace} />` : one.error && html`<pre class="trace"><span class="exc">${errorLine(one.error)}</span></pre>`}
      <${Log} lines=${one.logs} />
    </div>`}
  </details>`;
}

/** A traceback with the user's own frames in bold. @param {{text: string}} props */
function Trace({ text }) {
  let own = false;
  const lines = clean(text).trimEnd().split("\n");
  return html`<pre class="trace" tabindex="0" aria-label="Traceback">${lines.map((line, i) => {
    const frame = /^\s*File "/.test(line);
    if (frame) own = !/site-packages|dist-packages|\/lib\/python|rota\/worker\/|<frozen/.test(line);
    const kind = frame ? (own ? "own" : "lib") : /^\S/.test(line) && i > 0 && !line.startsWith("Traceback") ? "exc" : own ? "src" : "lib";
    return html`<span class=${kind}>${line}${"\n"}</span>`;
  })}</pre>`;
}

/** @param {{lines: any[]}} props */
function Log({ lines }) {
  if (!lines?.length) return html`<p class="quiet">This attempt wrote no log lines.</p>`;
  return html`<table class="log"><caption class="unseen">${many(lines.length, "log line")}</caption><tbody>${lines.map((one) => html`<tr><td class="faint">${exact(one.at, now.peek(), zone.value)}</td><td class=${["error", "critical"].includes(one.level) ? "tone-failed toned" : one.level === "warning" ? "tone-held toned" : "faint"}>${clean(one.level)}</td><td>${clean(one.message)}</td></tr>`)}</tbody></table>`;
}
