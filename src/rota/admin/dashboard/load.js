// @ts-check
// Data of a view: loaded, loaded again on news, never shown as zero before it is there.

import { RECONNECTED, onHold, listen } from "./live.js";
import { useCallback, useEffect, useRef, useState } from "./ui.js";

const MIN_INTERVAL_S = 1; // seconds between two loads that news asked for

/**
 * @template T
 * @typedef {{data: T | null, error: any, busy: boolean, reload: () => Promise<void>}} Loaded
 */

/**
 * Load when ``deps`` change, and again on news. While it loads anew the old data stays; when the deps
 * change it goes, and the view shows its skeleton.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} deps
 * @param {{on?: string[], when?: boolean, every?: number, minInterval?: number}} [options]
 *   on: names of news; soonest: seconds between two loads that news asked for, more for what costs the server more;
 *   when: false loads nothing; every: seconds, with or without news
 * @returns {Loaded<T>}
 */
export function useLoad(load, deps, { on = [], when = true, every = 0, minInterval = MIN_INTERVAL_S } = {}) {
  const [state, set] = useState(
    /** @type {{data: any, error: any, busy: boolean}} */ ({ data: null, error: null, busy: true }),
  );
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
      if (!control.signal.aborted) set((old) => ({ data: old.data, error, busy: false }));
    }
  }, []);

  useEffect(() => {
    if (!when) return undefined;
    set({ data: null, error: null, busy: true });
    reload();
    return () => current.current?.abort();
  }, [...deps, when]);

  const failed = Boolean(state.error);
  const denied = isClientError(state.error);
  useEffect(() => {
    const names = denied ? [RECONNECTED] : failed ? [...on, RECONNECTED] : on;
    if (!when || !names.length) return undefined;
    const throttle = throttled(reload, minInterval);
    const unsubscribe = listen(names, throttle.request);
    return () => (unsubscribe(), throttle.stop());
  }, [...deps, when, on.join(), failed, denied]);

  useEvery(when && !denied ? every : 0, reload, deps);

  return { ...state, reload };
}

/**
 * The request itself was wrong, and asked again it would be wrong again; not so when there were only too many.
 * @param {any} error
 */
function isClientError(error) {
  return error?.status >= 400 && error.status < 500 && error.status !== 429;
}

/**
 * Call every so many seconds, unless news is held; 0: never.
 * @param {number} seconds
 * @param {() => any} act
 * @param {any[]} deps
 */
export function useEvery(seconds, act, deps) {
  useEffect(() => {
    if (!seconds) return undefined;
    const timer = setInterval(() => onHold.peek() || act(), seconds * 1000);
    return () => clearInterval(timer);
  }, [...deps, seconds]);
}

/**
 * Call at most once in so many seconds, never before the last call ended, and once more for what came in between; not
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
      wanted = true; // a load that news cuts short each second would never end
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
