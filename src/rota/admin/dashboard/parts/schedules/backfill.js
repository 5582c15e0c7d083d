// @ts-check
// Backfill of a schedule: a range, a dry run that lists the missing runs, and only then the jobs.

import { api, problemOf } from "../../api.js";
import { now } from "../../state.js";
import { html, useEffect, useState } from "../../ui.js";
import { clean, count, plural } from "../../format.js";
import { Button } from "../base/button.js";
import { FormError, show, useAct } from "../base/dialog.js";
import { Field, onValue } from "../base/form.js";
import { toast } from "../base/toast.js";
import { dayIn, instantIn, isZone, placeOf, timeIn, wallIn } from "./zones.js";

const SHOWN = 200;
const WAIT = 300;

/** Resolves to the number of created jobs, or null. @param {import("../../types").ScheduleView} schedule */
export async function backfillDialog(schedule) {
  const created = await show(Range, { schedule }, { wide: true });
  if (created !== null)
    toast(html`Created ${plural(created, "job")} of <code>${clean(schedule.name)}</code>, due now.`);
  return created;
}

/**
 * @param {import("../base/dialog.js").DialogControls<number> & {schedule: import("../../types").ScheduleView}} props
 */
function Range({ done, busy, schedule }) {
  const zone = isZone(schedule.timezone) ? schedule.timezone : "UTC";
  const [since, setSince] = useState(() => wallIn(now.peek() - 86_400_000, zone));
  const [until, setUntil] = useState(() => wallIn(now.peek(), zone));
  const [dry, setDry] = useState(
    /** @type {{fires: string[] | null, error: import("../../api.js").Problem | null}} */ ({
      fires: null,
      error: null,
    }),
  );
  const path = /** @type {const} */ (`/schedules/${schedule.id}/backfill`);
  const range = { since: instantIn(since, zone), until: instantIn(until, zone) };
  useEffect(() => {
    setDry({ fires: null, error: null });
    let current = true;
    const timer = setTimeout(
      () =>
        api.post(path, { ...range, dry_run: true }).then(
          (answer) => current && setDry({ fires: answer.fires, error: null }),
          (error) => current && setDry({ fires: null, error: problemOf(error) }),
        ),
      WAIT,
    );
    return () => ((current = false), clearTimeout(timer));
  }, [since, until]);
  const { submit, error, acting } = useAct(
    { done, busy },
    async () => (await api.post(path, { ...range, dry_run: false })).fires.length,
  );
  const n = dry.fires?.length ?? 0;
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">Backfill ${clean(schedule.name)}?</h2>
    <div class="dialog-body">
      <p>Creates a job for each run time in the range that has none.</p>
    </div>
    <div class="fields">
      <${Field} label=${`From, ${placeOf(zone)} time`}>
        <input type="datetime-local" required value=${since} onInput=${onValue(setSince)} />
      <//>
      <${Field} label=${`To, ${placeOf(zone)} time`}>
        <input type="datetime-local" required value=${until} onInput=${onValue(setUntil)} />
      <//>
    </div>
    <div role="status">
      ${dry.fires
        ? html`<${FireList} fires=${dry.fires} zone=${zone} />`
        : !dry.error && html`<p class="quiet">Counting…</p>`}
    </div>
    ${(dry.error || error) && html`<${FormError} error=${dry.error || error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting || !n}>Backfill${n ? ` ${count(n)}` : ""}<//>
    </div>
  </form>`;
}

/** @param {{fires: string[], zone: string}} props */
function FireList({ fires, zone }) {
  if (!fires.length) return html`<p class="quiet">Nothing is missing: every run time in this range has a job.</p>`;
  return html`
    <p class="quiet">
      ${plural(fires.length, "job")} will be created and due now, for these times:
    </p>
    <ul class="sample mono backfill-fires">
      ${fires
        .slice(0, SHOWN)
        .map((at) => html`<li key=${at}><time datetime=${at}>${dayIn(at, zone)} ${timeIn(at, zone, true)}</time></li>`)}
      ${fires.length > SHOWN && html`<li class="faint">and ${count(fires.length - SHOWN)} more</li>`}
    </ul>
  `;
}
