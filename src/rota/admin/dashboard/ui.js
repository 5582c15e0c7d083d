// @ts-check
// The one import of the vendored libraries: templates, hooks, signals. Must never hold other code.

import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { h, render, Component, Fragment } from "./vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "./vendor/preact-hooks.js";
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect } from "./vendor/signals.js";
