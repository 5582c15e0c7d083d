// @ts-check
// The rows of the jobs view: pages by key, live, and the same objects as long as nothing changed.

import { api } from "../../api.js";
import { write } from "../../exact.js";
import { useEvents } from "../../live.js";
import { useEvery, useLoad } from "../../load.js";
import { useMemo, useRef, useState } from "../../ui.js";

export const PAGE = 50;
const MOST = 200; // in one answer
const EVERY = 10; // seconds after which even what was never told is seen

/**
 * Pages of jobs by key; the first is loaded anew on news, rows further down are changed in place.
 * @param {any} filter
 * @param {string} search
 */
export function usePages(filter, search) {
  const first = useLoad((signal) => api.get("/jobs", { ...filter, limit: PAGE }, signal), [search], {
    on: ["job", "stats"],
    every: EVERY,
  });
  const [later, setLater] = useState(
    /** @type {{search: string, rows: any[], next: string | null}} */ ({ search, rows: [], next: null }),
  );
  const older = later.search === search ? later : { search, rows: [], next: null };
  useEvents(["job"], (changed) => {
    if (!changed) return void latest.current().catch(() => {});
    setLater((old) =>
      old.rows.some((job) => job.id === changed.id)
        ? {
            ...old,
            rows: old.rows.map((job) =>
              job.id === changed.id ? { ...job, ...changed, payload: job.payload, output: job.output } : job,
            ),
          }
        : old,
    );
  });
  const rows = useMemo(() => {
    if (!first.data) return null;
    if (!older.rows.length) return first.data.items;
    const known = new Set(first.data.items.map((/** @type {any} */ job) => job.id));
    return [...first.data.items, ...older.rows.filter((job) => !known.has(job.id))];
  }, [first.data, older.rows]);
  const stable = useStableRows(rows);
  const next = older.rows.length ? older.next : (first.data?.next ?? null);
  const more = async () => {
    const page = await api.get("/jobs", { ...filter, limit: PAGE, cursor: next });
    // What stands in the first page now may be pushed out of it by newer jobs: keep it all.
    setLater({ search, rows: [...(rows ?? []), ...page.items], next: page.next });
  };
  // Of news that was missed nobody knows what it was about: as many rows as are shown, anew.
  const refresh = async () => {
    if (!older.rows.length || !rows) return;
    let page = { items: /** @type {any[]} */ ([]), next: /** @type {string | null} */ (null) };
    /** @type {any[]} */
    const reloaded = [];
    do {
      page = await api.get("/jobs", {
        ...filter,
        limit: Math.min(MOST, rows.length - reloaded.length),
        cursor: page.next,
      });
      reloaded.push(...page.items);
    } while (page.next && reloaded.length < rows.length);
    setLater((now) =>
      now.search === search && now.rows.length === older.rows.length
        ? { search, rows: reloaded, next: page.next }
        : now,
    );
  };
  const latest = useRef(refresh);
  latest.current = refresh;
  useEvery(EVERY, () => latest.current().catch(() => {}), [search]);
  const reload = async () => {
    setLater({ search, rows: [], next: null });
    await first.reload();
  };
  return { rows: stable, error: first.error, next, more, reload };
}

/** The same objects for rows that did not change, so that they are not rendered anew. @param {any[] | null} rows */
function useStableRows(rows) {
  const before = useRef(/** @type {Map<string, {row: any, text: string, job: any}>} */ (new Map()));
  return useMemo(() => {
    if (!rows) return rows;
    const seen = new Map(rows.map((row) => [row.id, stableRow(before.current.get(row.id), row)]));
    before.current = seen;
    return [...seen.values()].map((one) => one.job);
  }, [rows]);
}

/**
 * What was shown, if it says the same as what is told now; texts are compared only where the objects differ.
 * @param {{row: any, text: string, job: any} | undefined} old
 * @param {any} row
 */
function stableRow(old, row) {
  if (old && old.row === row) return old;
  const text = write(row) ?? "";
  return { row, text, job: old?.text === text ? old.job : row };
}
