// @ts-check
// Selected rows, and the keys that move between rows.

import { holdUpdates, releaseUpdates } from "../../live.js";
import { go, may } from "../../state.js";
import { useCallback, useEffect, useMemo, useRef, useState } from "../../ui.js";
import { useKeys } from "../shell/palette.js";

/** @typedef {import("../../types").JobView} Job */

/**
 * The selected rows. While there are any, live updates are on hold.
 * @param {Job[] | null} rows
 * @param {string} search
 */
export function useSelection(rows, search) {
  const [ids, setIds] = useState(/** @type {Set<string>} */ (new Set()));
  const [all, setAll] = useState(false);
  useEffect(() => (setIds(new Set()), setAll(false)), [search]);
  useEffect(() => {
    if (ids.size) holdUpdates("select");
    else releaseUpdates("select");
    return () => releaseUpdates("select");
  }, [ids.size > 0]);
  const last = useRef("");
  const toggle = useCallback((/** @type {string} */ id, extend = false) => {
    const range = extend ? between(latest.current.shown, last.current, id) : [id];
    last.current = id;
    setAll(false);
    setIds((old) => {
      const next = new Set(old);
      for (const one of range) old.has(id) ? next.delete(one) : next.add(one);
      return next;
    });
  }, []);
  const shown = rows ?? [];
  const full = shown.length > 0 && shown.every((job) => ids.has(job.id));
  // Columns are created once and must still see the current selection.
  const latest = useRef({ ids, shown, full });
  latest.current = { ids, shown, full };
  return {
    ids,
    all,
    full,
    toggle,
    has: (/** @type {string} */ id) => latest.current.ids.has(id),
    page: () => (
      setAll(false),
      setIds(latest.current.full ? new Set() : new Set(latest.current.shown.map((job) => job.id)))
    ),
    states: [...new Set(shown.filter((job) => ids.has(job.id)).map((job) => job.state))],
    selectAll: () => setAll(true),
    clear: () => (setIds(new Set()), setAll(false)),
  };
}

/**
 * The ids from one row to another, in either direction.
 * @param {Job[]} rows
 * @param {string} from
 * @param {string} to
 * @returns {string[]}
 */
function between(rows, from, to) {
  const ends = [from, to].map((id) => rows.findIndex((job) => job.id === id)).sort((a, b) => a - b);
  return ends[0] < 0 ? [to] : rows.slice(ends[0], ends[1] + 1).map((job) => job.id);
}

/**
 * j and k move, x selects, Enter opens.
 * @param {Job[] | null} rows
 * @param {{toggle: (id: string) => void}} selection
 * @returns {string | null}
 */
export function useRowKeys(rows, selection) {
  const [place, setPlace] = useState(/** @type {string | null} */ (null));
  // Keys may come faster than the page renders: they act on the current rows, not on those rendered last.
  const latest = useRef({ rows, place });
  latest.current.rows = rows;
  const walk = (/** @type {number} */ step) => {
    const shown = latest.current.rows ?? [];
    const i = shown.findIndex((job) => job.id === latest.current.place);
    const next = shown[Math.min(shown.length - 1, Math.max(0, i + step))];
    if (!next) return;
    latest.current.place = next.id;
    setPlace(next.id);
    document.querySelector(`[data-job="${next.id}"]`)?.closest("tr")?.scrollIntoView({ block: "nearest" });
  };
  const at = () => latest.current.place;
  const keys = useMemo(
    () =>
      /** @type {import("../shell/palette.js").Key[]} */ ([
        ["j", "Next row", () => walk(1)],
        ["k", "Previous row", () => walk(-1)],
        [
          "x",
          "Select row",
          () => {
            const id = at();
            if (id && may("operate")) selection.toggle(id);
          },
        ],
        ["Enter", "Open row", () => at() && go(`/jobs/${at()}`)],
      ]),
    [],
  );
  useKeys(keys);
  return place;
}
