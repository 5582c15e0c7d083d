// @ts-check
// A long list whose rows never change, newest first: page by page downwards, news on top.

import { useLoad } from "../../load.js";
import { useMemo, useState } from "../../ui.js";

/**
 * @param {(cursor: string | null, signal?: AbortSignal) => Promise<{items: any[], next: string | null}>} load one page
 * @param {string} key what the list depends on: another key begins anew
 * @param {{on?: string[], when?: boolean, minInterval?: number}} [options] as of useLoad
 */
export function usePages(load, key, options) {
  const first = useLoad((signal) => load(null, signal), [key], options);
  const [older, setOlder] = useState(
    /** @type {{key: string, rows: any[], next: string | null}} */ ({ key, rows: [], next: null }),
  );
  const kept = older.key === key ? older : { key, rows: [], next: null };
  const rows = useMemo(() => (first.data ? joined(first.data.items, kept.rows) : null), [first.data, kept.rows]);
  const next = kept.rows.length ? kept.next : (first.data?.next ?? null);
  const more = async () => {
    const page = await load(next);
    // What newer rows push out of the first page must not fall into a hole: keep all that is shown.
    setOlder({ key, rows: [...(rows ?? []), ...page.items], next: page.next });
  };
  return { rows, next, more, error: first.error, reload: first.reload };
}

/** @param {any[]} newest @param {any[]} older */
function joined(newest, older) {
  const known = new Set(newest.map((row) => row.id));
  return [...newest, ...older.filter((row) => !known.has(row.id))];
}
