// @ts-check
// The next 24 hours of all schedules, and the busiest time in them.

import { clean, count, hourMinute, plural } from "../../format.js";
import { zone } from "../../state.js";
import { html, useMemo } from "../../ui.js";
import { ErrorNotice, Skeleton } from "../base/empty.js";
import { Panel } from "../base/panel.js";
import { FireMap } from "./fire-timeline.js";

/**
 * The next 24 hours of all schedules, except those that run more often than is listed.
 * @param {{planned: Map<string, number[]> | null, cut: Set<string>, more: boolean,
 *   error: import("../../load.js").Problem | null}} props more: the list of runs is not complete
 */
export function Ahead({ planned, cut, more, error }) {
  const fires = useMemo(
    () =>
      planned &&
      [...planned].flatMap(([key, times]) =>
        cut.has(key) ? [] : times.map((time) => ({ at: time, name: nameIn(key) })),
      ),
    [planned, cut],
  );
  const [often] = cut;
  const note =
    cut.size > 0 &&
    planned &&
    html`<span>
      Not shown: ${cut.size === 1 ? html`<code>${clean(nameIn(often))}</code>` : plural(cut.size, "schedule")} (more
      than ${plural(planned.get(often)?.length ?? 0, "run")}
      ${cut.size > 1 ? " each" : ""})
    </span>`;
  return html`<${Panel} title="Next 24 hours" note=${note}>
    ${error && !planned
      ? html`<${ErrorNotice} error=${error} />`
      : fires
        ? html`
            <${FireMap} fires=${fires} />
            <p class="small soft">
              ${busiestTime(fires, cut.size > 0)}
              ${more && " There are too many runs to show: filter by tenant to see all of its runs."}
            </p>
          `
        : html`<${Skeleton} lines=${2} />`}
  <//>`;
}

/** @param {string} key of a schedule */
const nameIn = (key) => key.slice(key.indexOf("/") + 1);

/**
 * The time with the most runs at once.
 * @param {{at: number, name: string}[]} fires
 * @param {boolean} others whether some schedules are left out
 */
function busiestTime(fires, others) {
  /** @type {Map<number, string[]>} */
  const at = new Map();
  for (const fire of fires) at.set(fire.at, [...(at.get(fire.at) ?? []), fire.name]);
  const [time, names] = [...at].reduce(
    (a, b) => (b[1].length > a[1].length ? b : a),
    [0, /** @type {string[]} */ ([])],
  );
  const when = hourMinute(time, zone.value);
  if (!fires.length) return others ? "No other runs." : "No runs.";
  if (fires.length === 1) return `1 run, at ${when}.`;
  if (fires.length === 2) return names.length === 2 ? `2 runs, both at ${when}.` : "2 runs, one after the other.";
  if (names.length < 3) return `${plural(fires.length, "run")}. No three of them at the same time.`;
  const shown = names.slice(0, 4).map(clean).join(", ") + (names.length > 4 ? " …" : "");
  const most = `${count(names.length)} at once at ${when}: ${shown}.`;
  return `${plural(fires.length, "run")}. ${most} Jitter would spread them.`;
}
