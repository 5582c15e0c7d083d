// @ts-check
// The rows of the jobs view: pages by key, live, and the same objects as long as nothing has changed.

import { api } from "../../api.js";
import { write } from "../../exact.js";
import { useEvents } from "../../live.js";
import { useEvery, useLoad } from "../../load.js";
import { useMemo, useRef, useState } from "../../ui.js";

/** @typedef {import("../../types").JobView} Job */
/** @typedef {{row: Job, text: string, job: Job}} Known */

export const PAGE = 50;
const MOST = 200; // in one response
const EVERY = 10; // seconds, for changes without an event

/**
 * Pages of jobs by key; the first is loaded again on events, rows further down are changed in place.
 * @param {import("../../api.js").Query} filter
 * @param {string} search
 */
export function usePages(filter, search) {
  const first = useLoad((signal) => api.get("/jobs", { ...filter, limit: PAGE }, signal), [search], {
    on: ["job", "stats"],
    every: EVERY,
  });
  const [later, setLater] = useState(
    /** @type {{search: string, rows: Job[], next: string | null}} */ ({ search, rows: [], next: null }),
  );
  const older = later.search === search ? later : { search, rows: /** @type {Job[]} */ ([]), next: null };
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
    const known = new Set(first.data.items.map((job) => job.id));
    return [...first.data.items, ...older.rows.filter((job) => !known.has(job.id))];
  }, [first.data, older.rows]);
  const stable = useStableRows(rows);
  const next = older.rows.length ? older.next : (first.data?.next ?? null);
  const more = async () => {
    const page = await api.get("/jobs", { ...filter, limit: PAGE, cursor: next });
    // Newer jobs push others out of the first page: keep all that is shown.
    setLater({ search, rows: [...(rows ?? []), ...page.items], next: page.next ?? null });
  };
  // Missed events may concern any row: load as many rows as are shown again.
  const refresh = async () => {
    if (!older.rows.length || !rows) return;
    let page = /** @type {import("../../types").Page_JobView} */ ({ items: [], next: null });
    /** @type {Job[]} */
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
        ? { search, rows: reloaded, next: page.next ?? null }
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

/** The same objects for rows that did not change, so that they are not rendered again. @param {Job[] | null} rows */
function useStableRows(rows) {
  const before = useRef(/** @type {Map<string, Known>} */ (new Map()));
  return useMemo(() => {
    if (!rows) return rows;
    const seen = new Map(rows.map((row) => [row.id, stableRow(before.current.get(row.id), row)]));
    before.current = seen;
    return [...seen.values()].map((one) => one.job);
  }, [rows]);
}

/**
 * The object shown before, if it has the same content; texts are compared only where the objects differ.
 * @param {Known | undefined} old
 * @param {Job} row
 * @returns {Known}
 */
function stableRow(old, row) {
  if (old && old.row === row) return old;
  const text = write(row) ?? "";
  return { row, text, job: old?.text === text ? old.job : row };
}
