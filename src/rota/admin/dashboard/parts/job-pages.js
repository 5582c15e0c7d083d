// @ts-check
// The rows of the jobs view: pages by key, live, and the same objects as long as nothing changed.

import { api } from "../api.js";
import { write } from "../exact.js";
import { useNews } from "../live.js";
import { useLoad } from "../load.js";
import { useMemo, useRef, useState } from "../ui.js";

export const PAGE = 50;

/** Pages of jobs by key; the first is loaded anew on news, rows further down are changed in place. @param {any} filter @param {string} search */
export function usePages(filter, search) {
  const first = useLoad((signal) => api.get("/jobs", { ...filter, limit: PAGE }, signal), [search], { on: ["job", "stats"] });
  const [later, setLater] = useState(/** @type {{search: string, rows: any[], next: string | null}} */ ({ search, rows: [], next: null }));
  const older = later.search === search ? later : { search, rows: [], next: null };
  useNews(["job"], (changed) => {
    if (!changed?.id) return;
    setLater((old) => (old.rows.some((job) => job.id === changed.id) ? { ...old, rows: old.rows.map((job) => (job.id === changed.id ? { ...job, ...changed, payload: job.payload, output: job.output } : job)) } : old));
  });
  const rows = useMemo(() => {
    if (!first.data) return null;
    if (!older.rows.length) return first.data.items;
    const known = new Set(first.data.items.map((/** @type {any} */ job) => job.id));
    return [...first.data.items, ...older.rows.filter((job) => !known.has(job.id))];
  }, [first.data, older.rows]);
  const kept = useKept(rows);
  const next = older.rows.length ? older.next : (first.data?.next ?? null);
  const more = async () => {
    const page = await api.get("/jobs", { ...filter, limit: PAGE, cursor: next });
    // What stands in the first page now may be pushed out of it by newer jobs: keep it all.
    setLater({ search, rows: [...(rows ?? []), ...page.items], next: page.next });
  };
  const reload = async () => {
    setLater({ search, rows: [], next: null });
    await first.reload();
  };
  return { rows: kept, error: first.error, next, more, reload };
}

/** The same objects for rows that did not change, so that they are not rendered anew. @param {any[] | null} rows */
function useKept(rows) {
  const before = useRef(/** @type {Map<string, {text: string, job: any}>} */ (new Map()));
  return useMemo(() => {
    if (!rows) return rows;
    const seen = new Map();
    const kept = rows.map((job) => {
      const text = write(job) ?? "";
      const old = before.current.get(job.id);
      const one = old?.text === text ? old : { text, job };
      seen.set(job.id, one);
      return one.job;
    });
    before.current = seen;
    return kept;
  }, [rows]);
}
