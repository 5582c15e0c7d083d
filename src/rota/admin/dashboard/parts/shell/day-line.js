// @ts-check
// The day line at the top of every page: twelve hours back, twelve ahead, now always in the middle.
// Left: finished jobs, failures on top. Right: scheduled runs as stems. Pauses are hatched bands.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { may, now, zone } from "../../state.js";
import { html } from "../../ui.js";
import { compact, clean, hourMinute, plural, weekday } from "../../format.js";
import { keyOf } from "../schedules/schedule.js";

/** @typedef {import("../../types").GateView} Gate */
/** @typedef {import("../../types").ActivityBucket} Step */
/** @typedef {{at: number, good: number, bad: number}} Bar */
/** @typedef {{at: number, names: Set<string>, n: number}} Stem */

const HOURS = 12;
const STEP = 600; // seconds in a bar
const HOUR = 3_600_000;
const TOO_MANY = "Too many runs to show";

/** @param {{tall?: boolean}} props tall: on the overview */
export function DayLine({ tall = false }) {
  const day = useLoad(loadDay, [], { every: 30, on: ["gate", "schedule"] });
  const minute = Math.floor(now.value / 60_000) * 60_000; // it moves once a minute
  const height = tall ? 88 : 52;
  const ground = height - 18;
  const { steps, fires, frequent, more, gates } = day.data ?? EMPTY;
  const bars = barsOf(steps, minute);
  const stems = stemsOf(fires, minute);
  return html`<figure class=${`dayline ${tall ? "tall" : ""}`}>
    <svg
      width="100%"
      height=${height}
      role="img"
      aria-label=${day.data ? sentence(bars, stems, frequent, more, gates) : "Loading"}
    >
      <title>Twelve hours back, twelve ahead</title>
      <defs>
        <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path class="hatch" d="M0 0v6" />
        </pattern>
      </defs>
      <${Hours} now=${minute} ground=${ground} height=${height} />
      <${Bars} bars=${bars} ground=${ground} tall=${tall} />
      ${gates.map((gate) => html`<${Band} key=${gate.id} gate=${gate} now=${minute} tall=${tall} />`)}
      <${Stems} stems=${stems} ground=${ground} tall=${tall} />
      ${more && html`<text class="wide-only" x="100%" dx="-4" y=${ground - 4} text-anchor="end">${TOO_MANY}</text>`}
      <line class="needle" x1="50%" x2="50%" y1="0" y2=${ground + 2} />
      <text class="now" x="50%" y=${height - 5} text-anchor="middle">${hourMinute(minute, zone.value)}</text>
    </svg>
  </figure>`;
}

/** @type {Awaited<ReturnType<typeof loadDay>>} */
const EMPTY = { steps: [], fires: [], frequent: 0, more: false, gates: [] };

/** A user limited to one tenant gets no activity of all tenants. @param {AbortSignal} signal */
async function loadDay(signal) {
  const [steps, fires, gates] = await Promise.all([
    may("read.shared")
      ? api.get("/activity", { hours: HOURS, step_s: STEP }, signal)
      : { items: /** @type {Step[]} */ ([]) },
    api.get("/schedules/fires", { hours: HOURS }, signal),
    api.get("/gates", {}, signal),
  ]);
  // A schedule with more runs than listed would seem to stop early: it is left out, and mentioned.
  const frequent = new Set(fires.cut.map(keyOf));
  return {
    steps: steps.items,
    fires: fires.items.filter((fire) => !frequent.has(keyOf(fire))),
    frequent: frequent.size,
    more: fires.more,
    gates: gates.items,
  };
}

/** The position of a time, in percent. @param {number} at @param {number} now */
function place(at, now) {
  return 50 + ((at - now) / (HOURS * HOUR)) * 50;
}

/** @param {Step[]} steps @param {number} now @returns {Bar[]} */
function barsOf(steps, now) {
  return steps
    .map((step) => ({ at: Date.parse(step.at), good: step.succeeded + step.cancelled, bad: step.failed }))
    .filter((bar) => bar.at > now - HOURS * HOUR - STEP * 1000);
}

/**
 * Runs of the same ten minutes share a stem.
 * @param {import("../../types").UpcomingFire[]} fires
 * @param {number} now
 * @returns {Stem[]}
 */
function stemsOf(fires, now) {
  /** @type {Map<number, Stem>} */
  const stems = new Map();
  for (const fire of fires) {
    const at = Date.parse(fire.at);
    const slot = Math.floor(at / (STEP * 1000));
    if (at < now || place(at, now) > 100) continue;
    const stem = stems.get(slot) ?? { at, names: new Set(), n: 0 };
    stem.names.add(fire.schedule);
    stem.n += 1;
    stems.set(slot, stem);
  }
  return [...stems.values()];
}

/** @param {{now: number, ground: number, height: number}} props */
function Hours({ now: middle, ground, height }) {
  const first = Math.ceil((middle - HOURS * HOUR) / (3 * HOUR)) * 3 * HOUR;
  const ticks = Array.from({ length: 8 }, (_, i) => first + i * 3 * HOUR).filter(
    (at) => (at < middle - 1.5 * HOUR || at > middle + 0.75 * HOUR) && at < middle + 11.2 * HOUR,
  );
  return ticks.map((at, i) => {
    const x = `${place(at, middle)}%`;
    const time = hourMinute(at, zone.value);
    return html`
      <line class="hour" x1=${x} x2=${x} y1="4" y2=${ground} />
      <text
        class=${i % 2 || Math.abs(at - middle) < 4 * HOUR || at > middle + 9.5 * HOUR ? "wide-only" : ""}
        x=${x}
        dx="3"
        y=${height - 5}
      >
        ${time === "00:00" ? weekday(at, zone.value) : time}
      </text>
    `;
  });
}

/** @param {{bars: Bar[], ground: number, tall: boolean}} props */
function Bars({ bars, ground, tall }) {
  const space = ground - (tall ? 14 : 6);
  const top = Math.max(1, ...bars.map((bar) => bar.good + bar.bad));
  const width = `${(STEP * 1000 * 50) / (HOURS * HOUR) - 0.2}%`;
  // No job finished after now: all bars are moved left by as much as the newest would reach past the needle.
  const ahead = STEP * 1000 - (now.value % (STEP * 1000));
  return bars.map((bar) => {
    const x = place(bar.at - ahead, now.value);
    const bad = bar.bad && Math.max(2, (bar.bad / top) * space);
    const good = bar.good && Math.max(1, (bar.good / top) * space - bad);
    return html`<g key=${bar.at}>
      <title>
        ${`${hourMinute(bar.at, zone.value)}: ${plural(bar.good + bar.bad, "job")} finished, ${bar.bad} failed`}
      </title>
      <rect class="good" x=${`${Math.max(0, x)}%`} width=${width} y=${ground - good} height=${good} />
      <rect class="bad" x=${`${Math.max(0, x)}%`} width=${width} y=${ground - good - bad} height=${bad} />
    </g>`;
  });
}

/** @param {{stems: Stem[], ground: number, tall: boolean}} props */
function Stems({ stems, ground, tall }) {
  const top = Math.max(1, ...stems.map((stem) => stem.n));
  return stems.map((stem) => {
    const x = `${place(stem.at, now.value)}%`;
    const y = ground - 6 - (stem.n / top) * (tall ? 30 : 16);
    const names = [...stem.names].slice(0, 4).map(clean).join(", ") + (stem.names.size > 4 ? " …" : "");
    return html`<g key=${stem.at}>
      <title>
        ${`${hourMinute(stem.at, zone.value)}: ${plural(stem.n, "run")} of ${names}`}
      </title>
      <line class="stem" x1=${x} x2=${x} y1=${y} y2=${ground} />
      <circle class="seed" cx=${x} cy=${y} r="2.5" />
    </g>`;
  });
}

/** @param {{gate: Gate, now: number, tall: boolean}} props */
function Band({ gate, now: middle, tall }) {
  const from = Math.max(0, place(Date.parse(gate.since_at), middle));
  const to = gate.until_at ? Math.min(100, place(Date.parse(gate.until_at), middle)) : 100;
  return html`<g>
    <title>${gateSummary(gate)}</title>
    <rect class="band" x=${`${from}%`} width=${`${Math.max(0.4, to - from)}%`} y="2" height="8" />
    <line class="band-top" x1=${`${from}%`} x2=${`${Math.max(from + 0.4, to)}%`} y1="2" y2="2" />
    ${tall && html`<text
      class="band-label wide-only"
      x=${`${Math.min(to, 72)}%`}
      dx=${to <= 72 ? 5 : 0}
      y=${to <= 72 ? 10 : 20}
    >
      ${gateSummary(gate)}
    </text>`}
  </g>`;
}

/** @param {Gate} gate */
function gateSummary(gate) {
  const what = gate.scope === "all" ? "everything" : clean(gate.name);
  return `${what} paused${gate.until_at ? ` until ${hourMinute(gate.until_at, zone.value)}` : ""}`;
}

/**
 * @param {Bar[]} bars
 * @param {Stem[]} stems
 * @param {number} frequent number of schedules that run too often to be drawn
 * @param {boolean} more there are more runs than drawn
 * @param {Gate[]} gates
 */
function sentence(bars, stems, frequent, more, gates) {
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, n) => total + n, 0);
  const bad = sum(bars.map((bar) => bar.bad));
  const all = sum(bars.map((bar) => bar.good)) + bad;
  const runs = sum(stems.map((stem) => stem.n));
  const busiest = stems.reduce((most, stem) => (stem.n > most.n ? stem : most), { at: 0, n: 1 });
  const burst = busiest.at ? `, most at ${hourMinute(busiest.at, zone.value)}: ${busiest.n}` : "";
  return [
    `Twelve hours back and twelve ahead. ${compact(all)} ${all === 1 ? "job" : "jobs"} finished,`,
    `${compact(bad)} of them failed.`,
    `${more ? "At least " : ""}${plural(runs, "scheduled run")} to come${burst}.`,
    ...(more ? [`${TOO_MANY}.`] : []),
    ...(frequent ? [`${plural(frequent, "schedule runs", "schedules run")} too often to show.`] : []),
    ...gates.map((gate) => `${gateSummary(gate)}.`),
  ].join(" ");
}
