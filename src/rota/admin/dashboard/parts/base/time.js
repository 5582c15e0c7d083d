// @ts-check
// Times, shown twice: relative to now, and exactly.

import { now, zone } from "../../state.js";
import { computed, html, useMemo } from "../../ui.js";
import { exact, relative, duration } from "../../format.js";

/** @param {{at: string | null | undefined, lead?: string, none?: string}} props lead: "due", "started" … */
export function When({ at, lead, none = "—" }) {
  // Bound as signals: a tick changes two texts and renders nothing again.
  const text = useMemo(
    () =>
      at && {
        meaning: computed(() => relative(at, now.value)),
        exact: computed(() => exact(at, now.value, zone.value)),
      },
    [at],
  );
  if (!text) return html`<span class="faint">${none}</span>`;
  return html`<time class="when" datetime=${at} title=${at}>
    ${lead ? `${lead} ` : ""}
    ${text.meaning} <small>${text.exact}</small>
  </time>`;
}

/**
 * A duration that has ended, or grows until now.
 * @param {{from: string | null | undefined, to?: string | null}} props
 */
export function Elapsed({ from, to }) {
  const text = useMemo(
    () =>
      from &&
      (to
        ? duration((Date.parse(to) - Date.parse(from)) / 1000)
        : computed(() => duration(Math.max(0, Math.round((now.value - Date.parse(from)) / 1000))))),
    [from, to],
  );
  return text ? html`<span class="nowrap">${text}</span>` : html`<span class="faint">—</span>`;
}
