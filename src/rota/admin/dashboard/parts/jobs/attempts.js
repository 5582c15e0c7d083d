// @ts-check
// The attempts of a job: a timeline, then each with its error, its traceback and its log; two of them side by side
// where there is space.

import { now, zone } from "../../state.js";
import { html, useEffect, useState } from "../../ui.js";
import { progressOf } from "./job-columns.js";
import { clean, exact, line, plural, duration } from "../../format.js";
import { Badge } from "../base/badge.js";
import { Copy } from "../base/copy.js";
import { onValue } from "../base/form.js";
import { JsonTree } from "../base/json.js";
import { errorLine, errorOf } from "./failures.js";
import { Code, Panel } from "../base/panel.js";
import { Elapsed, When } from "../base/time.js";
import { AttemptTimeline } from "./attempt-timeline.js";

const ROOMY = "(min-width: 86rem)"; // about 1,100 pixels beside the navigation: enough for two tracebacks
const LONGER = 1.5; // times as long is worth mentioning
const LEAST_S = 0.1;

/** @typedef {import("../../types").AttemptView} Attempt */
/** @typedef {import("../../types").JobView} Job */

/**
 * @param {{job: Job, attempts: Attempt[], why: import("../../types").Why | null}} props attempts: oldest first
 */
export function Attempts({ job, attempts, why }) {
  const newest = [...attempts].reverse();
  const log = progressOf(job)?.log;
  const roomy = useMatch(ROOMY);
  return html`<${Panel} title="Attempts" note=${`${job.attempt} of ${job.max_attempts} used`}>
    <${AttemptTimeline} job=${job} attempts=${attempts} why=${why} />
    ${job.state === "running" && log && html`<div class="live-log" aria-live="polite">
      <${Log} lines=${log} />
    </div>`}
    ${newest.length > 1 && roomy ? html`<${Pair} attempts=${newest} />` : html`<${Stack} attempts=${newest} />`}
    ${!attempts.length && !log && html`<p class="quiet">${empty(job)}</p>`}
  <//>`;
}

/** Whether a media query matches, now and when that changes. @param {string} media */
function useMatch(media) {
  const [matches, setMatches] = useState(() => matchMedia(media).matches);
  useEffect(() => {
    const list = matchMedia(media);
    const update = () => setMatches(list.matches);
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [media]);
  return matches;
}

/** @param {Job} job */
function empty(job) {
  if (job.state === "succeeded")
    return "It succeeded at the first attempt and logged nothing. Lines from ctx.log(…) appear here.";
  if (job.state === "running") return "The first attempt is running. Lines from ctx.log(…) appear here.";
  return "It has not run yet.";
}

/** The number alone may occur twice: a retry counts from 1 again. @param {Attempt} one */
const keyOf = (one) => `${one.attempt}-${one.lease_token}`;

/** One below the other, the newest open. @param {{attempts: Attempt[]}} props newest first */
function Stack({ attempts }) {
  return html`
    <${Difference} one=${attempts[0]} other=${attempts[1]} />
    ${attempts.map((one, i) => html`<${Fold} key=${keyOf(one)} one=${one} open=${i === 0} />`)}
  `;
}

/**
 * Two side by side in the order of time: the newest right, the one before it left, unless others are chosen.
 * @param {{attempts: Attempt[]}} props newest first
 */
function Pair({ attempts }) {
  const [chosen, setChosen] = useState(/** @type {(string | null)[]} */ ([null, null]));
  const sides = chosen.map((key, i) => attempts.find((one) => keyOf(one) === key) ?? attempts[1 - i]);
  const choose = (/** @type {number} */ side, /** @type {string} */ key) =>
    setChosen(chosen.map((old, i) => (i === side ? key : old)));
  return html`
    <${Difference} one=${sides[1]} other=${sides[0]} />
    <div class="pair">
      ${sides.map(
        (one, i) => html`<section class="attempt" aria-label=${`Attempt ${one.attempt}, ${i ? "right" : "left"}`}>
          <header>
            ${attempts.length > 2
              ? html`<${Chooser}
                  attempts=${attempts}
                  shown=${one}
                  label=${`Attempt on the ${i ? "right" : "left"}`}
                  onChoose=${(/** @type {string} */ key) => choose(i, key)}
                />`
              : html`<b>Attempt ${one.attempt}</b>`}
            <${Badge} state=${one.outcome} />
            <${When} at=${one.finished_at} />
          </header>
          <${Body} one=${one} />
        </section>`,
      )}
    </div>
  `;
}

/** @param {{attempts: Attempt[], shown: Attempt, label: string, onChoose: (key: string) => void}} props */
function Chooser({ attempts, shown, label, onChoose }) {
  return html`<select class="slim" aria-label=${label} value=${keyOf(shown)} onChange=${onValue(onChoose)}>
    ${attempts.map(
      (one) =>
        html`<option key=${keyOf(one)} value=${keyOf(one)} selected=${one === shown}>
          Attempt ${one.attempt}, ${line(errorOf(one)?.type || one.outcome, 40)}
        </option>`,
    )}
  </select>`;
}

/** How two attempts compare. @param {{one: Attempt | undefined, other: Attempt | undefined}} props */
function Difference({ one, other }) {
  if (!one || !other || one === other) return null;
  const found = differences(one, other);
  return (
    found.length > 0 &&
    html`<p class="quiet">Attempt ${one.attempt} compared with attempt ${other.attempt}: ${found.join(", ")}.</p>`
  );
}

/** @param {Attempt} one @param {Attempt} other @returns {string[]} */
function differences(one, other) {
  const found = [];
  if (one.error && other.error)
    found.push(
      errorLine(one.error) === errorLine(other.error)
        ? "the same error"
        : errorOf(one)?.type === errorOf(other)?.type
          ? "the same type of error, a different message"
          : "a different error",
    );
  if (one.worker && other.worker) found.push(one.worker === other.worker ? "the same worker" : "a different worker");
  const [took, before] = [one, other].map(secondsOf);
  if (Math.abs(took - before) > LEAST_S && Math.max(took, before) > LONGER * Math.min(took, before))
    found.push(`${duration(Math.abs(took - before))} ${took > before ? "longer" : "shorter"}`);
  return found;
}

/** @param {Attempt} one */
function secondsOf(one) {
  return one.started_at ? (Date.parse(one.finished_at) - Date.parse(one.started_at)) / 1000 : 0;
}

/** @param {{one: Attempt, open: boolean}} props */
function Fold({ one, open }) {
  const [shown, setShown] = useState(open);
  return html`<details
    class="attempt"
    open=${shown}
    onToggle=${(/** @type {{currentTarget: HTMLDetailsElement}} */ event) => setShown(event.currentTarget.open)}
  >
    <summary>
      <b>Attempt ${one.attempt}</b>
      <${Badge} state=${one.outcome} />
      <span class="clip mono">${errorLine(one.error)}</span>
      <${When} at=${one.finished_at} />
    </summary>
    ${shown && html`<${Body} one=${one} />`}
  </details>`;
}

/** @param {{one: Attempt}} props */
function Body({ one }) {
  const { traceback: trace, details } = errorOf(one) ?? {};
  return html`<div class="attempt-body">
    <p class="meta">
      <span>Duration <${Elapsed} from=${one.started_at} to=${one.finished_at} /></span>
      ${one.worker && html`<span>Worker <${Code}>${one.worker}<//></span>`}
      ${one.cost_cents > 0 && html`<span>Cost ${one.cost_cents.toFixed(2)} cents</span>`}
      ${trace && html`<${Copy} text=${trace} kind="">Copy traceback<//>`}
    </p>
    ${trace
      ? html`<${Trace} text=${trace} />`
      : one.error &&
        html`<pre class=${one.outcome === "cancelled" ? "code" : "trace"}>
          <span class=${one.outcome === "cancelled" ? "" : "exc"}>${errorLine(one.error)}</span>
        </pre>`}
    ${details != null && html`<${JsonTree} value=${details} label="Details of the error" />`}
    <${Log} lines=${one.logs} />
  </div>`;
}

/** A traceback with the user's own frames in bold. @param {{text: string}} props */
function Trace({ text }) {
  let own = false;
  const lines = clean(text).trimEnd().split("\n");
  return html`<pre class="trace" tabindex="0" aria-label="Traceback">
    ${lines.map((line, i) => {
      const frame = /^\s*File "/.test(line);
      if (frame) own = !/site-packages|dist-packages|\/lib\/python|rota\/worker\/|<frozen/.test(line);
      const kind = frame
        ? own
          ? "own"
          : "lib"
        : /^\S/.test(line) && i > 0 && !line.startsWith("Traceback")
          ? "exc"
          : own
            ? "src"
            : "lib";
      return html`<span class=${kind}>${line}${"\n"}</span>`;
    })}
  </pre>`;
}

/** @param {{lines: import("../../types").LogLine[] | undefined}} props */
function Log({ lines }) {
  if (!lines?.length) return html`<p class="quiet">This attempt logged nothing.</p>`;
  return html`<table class="log">
    <caption class="visually-hidden">${plural(lines.length, "log line")}</caption>
    <tbody>
      ${lines.map(
        (one) =>
          html`<tr>
            <td class="faint">${exact(one.at, now.peek(), zone.value)}</td>
            <td
              class=${["error", "critical"].includes(one.level)
                ? "tone-failed toned"
                : one.level === "warning"
                  ? "tone-attention toned"
                  : "faint"}
            >
              ${clean(one.level)}
            </td>
            <td>${clean(one.message)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
