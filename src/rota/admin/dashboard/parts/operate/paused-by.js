// @ts-check
// Work that does not begin because something over it is paused.

import { api } from "../../api.js";
import { useLoad } from "../../load.js";
import { may, zone } from "../../state.js";
import { html } from "../../ui.js";
import { hourMinute, line, actorName } from "../../format.js";
import { StateGlyph } from "../base/badge.js";
import { PauseButton, titled } from "./pause.js";

/** @typedef {import("../../types").GateView} Gate */

/** The gates that stand; none until they are known. @returns {Gate[]} */
export function useGates() {
  return useLoad((signal) => api.get("/gates", {}, signal), [], { on: ["gate"] }).data?.items ?? NONE;
}

/** @type {Gate[]} */
const NONE = [];

/**
 * Those that keep such jobs from being begun, the widest first.
 * @param {Gate[]} gates
 * @param {{queue?: string, task?: string, tenant?: string}} of
 */
export function gatesAffecting(gates, of) {
  const rank = ["all", "queue", "task", "tenant"];
  const over = gates.filter(
    (gate) =>
      gate.scope === "all" || (rank.includes(gate.scope) && gate.name === of[/** @type {"queue"} */ (gate.scope)]),
  );
  return over.sort((a, b) => rank.indexOf(a.scope) - rank.indexOf(b.scope));
}

/** A line for each gate over what is looked at. @param {{gates: Gate[]}} props */
export function PausedBy({ gates }) {
  return gates.map(
    (gate) => html`<div key=${gate.id} class="paused-by tone-held" role="status">
      <${StateGlyph} state="paused" />
      <p>
        <b>
          ${titled(gate)} is paused${gate.until_at ? ` until ${hourMinute(gate.until_at, zone.value)}` : ""}
          ${gate.reason ? html`: “${line(gate.reason)}”` : ""}
        </b>,
        by ${actorName(gate.actor)}. ${may("operate.shared") && html`<${PauseButton}
          scope=${gate.scope}
          name=${gate.name}
          gate=${gate}
        />`}
      </p>
    </div>`,
  );
}
