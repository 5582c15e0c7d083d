// @ts-check
// A long list whose rows never change, newest first: pages are added below, new rows on top.

import { useLoad } from "../../load.js";
import { useMemo, useState } from "../../ui.js";

/**
 * @template {{id: string}} Row
 * @param {(cursor: string | null, signal?: AbortSignal) => Promise<{items: Row[], next?: string | null}>} load one page
 * @param {string} key what the list depends on: another key starts a new list
 * @param {{on?: string[], when?: boolean, minInterval?: number}} [options] as of useLoad
 */
export function usePages(load, key, options) {
  const first = useLoad((signal) => load(null, signal), [key], options);
  const [older, setOlder] = useState(
    /** @type {{key: string, rows: Row[], next: string | null}} */ ({ key, rows: [], next: null }),
  );
  const kept = older.key === key ? older : { key, rows: /** @type {Row[]} */ ([]), next: null };
  const rows = useMemo(() => (first.data ? joined(first.data.items, kept.rows) : null), [first.data, kept.rows]);
  const next = kept.rows.length ? kept.next : (first.data?.next ?? null);
  const more = async () => {
    const page = await load(next);
    // Newer rows push others out of the first page: keep all that is shown.
    setOlder({ key, rows: [...(rows ?? []), ...page.items], next: page.next ?? null });
  };
  return { rows, next, more, error: first.error, reload: first.reload };
}

/** @template {{id: string}} Row @param {Row[]} newest @param {Row[]} older */
function joined(newest, older) {
  const known = new Set(newest.map((row) => row.id));
  return [...newest, ...older.filter((row) => !known.has(row.id))];
}
