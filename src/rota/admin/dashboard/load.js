// @ts-check
// Data of a view: loaded, loaded again on events, never shown as zero before it has arrived.

import { problemOf } from "./api.js";
import { RECONNECTED, listen, onHold } from "./live.js";
import { useCallback, useEffect, useRef, useState } from "./ui.js";

const MIN_INTERVAL_S = 1; // between two loads that events asked for

/** @typedef {import("./api.js").Problem} Problem */
/**
 * @template T
 * @typedef {{data: T | null, error: Problem | null, busy: boolean, reload: () => Promise<void>}} Loaded
 */

/**
 * Load when ``deps`` change, and again on events. The old data stays during a reload; when the deps change it
 * goes, and the view shows its skeleton.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} deps
 * @param {{on?: string[], when?: boolean, every?: number, minInterval?: number}} [options]
 *   on: names of events; minInterval: seconds between two loads that events asked for, more for what costs the
 *   server more; when: false loads nothing; every: seconds, with or without events
 * @returns {Loaded<T>}
 */
export function useLoad(load, deps, { on = [], when = true, every = 0, minInterval = MIN_INTERVAL_S } = {}) {
  const empty = /** @type {{data: T | null, error: Problem | null, busy: boolean}} */ ({
    data: null,
    error: null,
    busy: true,
  });
  const [state, set] = useState(empty);
  const current = useRef(/** @type {AbortController | null} */ (null));
  const latest = useRef(load);
  latest.current = load;

  const reload = useCallback(async () => {
    current.current?.abort();
    const control = (current.current = new AbortController());
    set((old) => ({ ...old, busy: true }));
    try {
      const data = await latest.current(control.signal);
      if (!control.signal.aborted) set({ data, error: null, busy: false });
    } catch (error) {
      if (!control.signal.aborted) set((old) => ({ data: old.data, error: problemOf(error), busy: false }));
    }
  }, []);

  useEffect(() => {
    if (!when) return undefined;
    set(empty);
    reload();
    return () => current.current?.abort();
  }, [...deps, when]);

  const failed = Boolean(state.error);
  const isFinal = isClientError(state.error);
  useEffect(() => {
    const names = isFinal ? [RECONNECTED] : failed ? [...on, RECONNECTED] : on;
    if (!when || !names.length) return undefined;
    const throttle = throttled(reload, minInterval);
    const unsubscribe = listen(names, throttle.request);
    return () => (unsubscribe(), throttle.stop());
  }, [...deps, when, on.join(), failed, isFinal]);

  useEvery(when && !isFinal ? every : 0, reload, deps);

  return { ...state, reload };
}

/** The request itself was wrong, so the same request would fail again; too many requests is no such case. */
function isClientError(/** @type {Problem | null} */ error) {
  const status = error?.status ?? 0;
  return status >= 400 && status < 500 && status !== 429;
}

/**
 * Call at an interval in seconds, except while updates are on hold; 0: never.
 * @param {number} seconds
 * @param {() => unknown} act
 * @param {unknown[]} deps
 */
export function useEvery(seconds, act, deps) {
  useEffect(() => {
    if (!seconds) return undefined;
    const timer = setInterval(() => onHold.peek() || act(), seconds * 1000);
    return () => clearInterval(timer);
  }, [...deps, seconds]);
}

/**
 * Call at most once per interval, never before the last call has ended, once more for requests in between, and not
 * after the stop.
 * @param {() => Promise<void>} act
 * @param {number} seconds
 */
function throttled(act, seconds) {
  let timer = 0;
  let last = -Infinity;
  let busy = false;
  let wanted = false;
  let stopped = false;
  const request = () => {
    if (stopped) return;
    if (busy)
      wanted = true; // a load that is cut short by events every second would never end
    else timer ||= setTimeout(run, Math.max(0, last + seconds * 1000 - performance.now()));
  };
  const run = async () => {
    [timer, last, busy, wanted] = [0, performance.now(), true, false];
    await act();
    busy = false;
    if (wanted) request();
  };
  const stop = () => ((stopped = true), clearTimeout(timer));
  return { request, stop };
}
