// @ts-check
// Calendars: days on which schedules that name them do not run.

import { api } from "../api.js";
import { useLoad } from "../load.js";
import { Button, Choice } from "../parts/base/button.js";
import { FormError, ask, show, useAct } from "../parts/base/dialog.js";
import { Empty, ErrorNotice } from "../parts/base/empty.js";
import { Field, onValue } from "../parts/base/form.js";
import { PageHeader } from "../parts/base/panel.js";
import { Table, byName } from "../parts/base/table.js";
import { toast } from "../parts/base/toast.js";
import { at, may, now } from "../state.js";
import { html, useMemo, useState } from "../ui.js";
import { clean, count, line, plural } from "../format.js";

/** @typedef {import("../types").CalendarView} CalendarView */
/** @typedef {import("../types").ScheduleView} ScheduleView */

const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SHOWN = 6;

export default function Calendars() {
  const list = useLoad((signal) => api.get("/calendars", {}, signal), [], { every: 60 });
  const uses = useLoad((signal) => api.get("/schedules", { limit: 200 }, signal), [], { on: ["schedule"] });
  const columns = useMemo(() => columnsOf(uses.data, list.reload), [uses.data]);
  const create = () => void calendarDialog(null).then((saved) => saved && list.reload());
  return html`
    <${PageHeader}
      title="Calendars"
      crumb=${html`<a href=${at("/schedules")}>Schedules</a> / calendars`}
      acts=${html`<${Button} kind="main" need="operate.shared" onClick=${create}>Create calendar<//>`}
    >
      <p>Holidays and other days on which schedules do not run.</p>
    <//>
    ${list.error && html`<${ErrorNotice} error=${list.error} retry=${list.reload} />`}
    ${list.data?.items.length === 0
      ? html`<${Empty}
          title="No calendars yet"
          command="rota calendars import holidays.ics --name holidays"
          acts=${html`<${Button} need="operate.shared" onClick=${create}>Create calendar<//>`}
        >
          A calendar lists days off. A schedule that uses it skips such a day, or runs on the next working day. Import
          an iCalendar file, or enter the dates here.
        <//>`
      : html`<${Table} caption="Calendars" columns=${columns} rows=${list.data?.items ?? null} id=${byName} />`}
  `;
}

/**
 * @param {{items: ScheduleView[]} | null} uses
 * @param {() => unknown} reload
 * @returns {import("../parts/base/table.js").Column<CalendarView>[]}
 */
function columnsOf(uses, reload) {
  const edit = (/** @type {CalendarView} */ one) => void calendarDialog(one).then((saved) => saved && reload());
  return [
    {
      title: "Calendar",
      kind: "head",
      width: "24%",
      cell: (one) => html`<span class="name">${clean(one.name)}</span>`,
    },
    {
      title: "Weekly days off",
      width: "14rem",
      cell: (one) =>
        one.weekend.length ? one.weekend.map((day) => WEEKDAYS[day]).join(", ") : html`<span class="faint">none</span>`,
    },
    { title: "Upcoming dates", kind: "full", cell: (one) => html`<${Dates} dates=${one.dates} />` },
    {
      title: "Used by",
      width: "10rem",
      cell: (one) =>
        uses
          ? html`<${Users} names=${uses.items.filter((schedule) => schedule.calendar === one.name)} />`
          : html`<span class="skeleton-line"></span>`,
    },
    ...(may("operate.shared")
      ? [
          {
            title: html`<span class="visually-hidden">Actions</span>`,
            kind: "act",
            width: "10rem",
            cell: (/** @type {CalendarView} */ one) =>
              html`<div class="acts">
                <${Button} tiny label=${`Edit ${clean(one.name)}`} onClick=${() => edit(one)}>Edit<//>
                <${Button}
                  tiny
                  kind="danger"
                  label=${`Delete ${clean(one.name)}`}
                  onClick=${() => void remove(one, reload)}
                >
                  Delete
                <//>
              </div>`,
          },
        ]
      : []),
  ];
}

/** @param {{dates: string[]}} props */
function Dates({ dates }) {
  const today = new Date(now.peek()).toISOString().slice(0, 10);
  const coming = dates.filter((date) => date >= today);
  if (!coming.length) return html`<span class="faint">none left of ${plural(dates.length, "date")}</span>`;
  return html`
    <span class="mono small">${coming.slice(0, SHOWN).map(clean).join("  ")}</span>
    <span class="sub">
      ${plural(dates.length, "date")} in
      total${coming.length > SHOWN ? `, ${count(coming.length - SHOWN)} more upcoming` : ""}
    </span>
  `;
}

/** @param {{names: ScheduleView[]}} props */
function Users({ names }) {
  if (!names.length) return html`<span class="faint">no schedule</span>`;
  return html`<span title=${names.map((one) => clean(one.name)).join(", ")}>${plural(names.length, "schedule")}</span>`;
}

/** @param {CalendarView} calendar @param {() => unknown} reload */
async function remove(calendar, reload) {
  const gone = await ask({
    title: `Delete calendar ${line(calendar.name, 60)}?`,
    body: html`<p>
      Its dates are deleted. A schedule that still uses it is disabled at its next run, with this as the reason.
    </p>`,
    typed: clean(calendar.name).trim(),
    danger: true,
    verb: "Delete",

    act: () => api.delete(`/calendars/${encodeURIComponent(calendar.name)}`).then(() => true),
  });
  if (!gone) return;
  toast(html`Deleted calendar <code>${clean(calendar.name)}</code>.`);
  await reload();
}

/** Resolves to the stored calendar, or null. @param {CalendarView | null} calendar */
async function calendarDialog(calendar) {
  const saved = await show(CalendarForm, { calendar }, { wide: true });
  if (saved) toast(html`Saved calendar <code>${clean(saved.name)}</code> with ${plural(saved.dates.length, "date")}.`);
  return saved;
}

/** @param {import("../parts/base/dialog.js").DialogControls<CalendarView> & {calendar: CalendarView | null}} props */
function CalendarForm({ done, busy, calendar }) {
  const [name, setName] = useState(calendar?.name ?? "");
  const [from, setFrom] = useState("dates");
  const [text, setText] = useState(calendar?.dates.join("\n") ?? "");
  const [weekend, setWeekend] = useState(new Set(calendar?.weekend ?? [5, 6]));
  const body =
    from === "ics" ? { ics: text } : { dates: text.split(/[\s,]+/).filter(Boolean), weekend: [...weekend].sort() };
  const { submit, error, acting } = useAct({ done, busy }, () =>
    api.put(`/calendars/${encodeURIComponent(name.trim())}`, { ...body, new: !calendar }),
  );
  const taken = error?.code === "already_registered";
  const toggle = (/** @type {number} */ day) =>
    setWeekend((old) => {
      const next = new Set(old);
      if (!next.delete(day)) next.add(day);
      return next;
    });
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${calendar ? `Edit calendar ${clean(calendar.name)}` : "Create calendar"}</h2>
    ${!calendar && html`<${Field} label="Name" error=${taken ? error?.message : null}>
      <input type="text" class="mono" required maxlength="200" autofocus value=${name} onInput=${onValue(setName)} />
    <//>`}
    <${Choice}
      label="Source of the dates"
      value=${from}
      options=${[
        ["dates", "Dates"],
        ["ics", "iCalendar text"],
      ]}
      onChange=${setFrom}
    />
    <${Field}
      label=${from === "ics" ? "Content of the .ics file" : "Dates"}
      hint=${from === "ics"
        ? "Paste the whole file. An event of several days counts for each day."
        : "One per line, for example 2030-12-25."}
    >
      <textarea rows="8" spellcheck=${false} value=${text} onInput=${onValue(setText)}></textarea>
    <//>
    ${from === "dates" && html`<fieldset class="field weekend">
      <legend>Weekly days off</legend>
      ${WEEKDAYS.map(
        (word, day) =>
          html`<label>
            <input type="checkbox" checked=${weekend.has(day)} onChange=${() => toggle(day)} />
            ${word}
          </label>`,
      )}
    </fieldset>`}
    ${error && !taken && html`<${FormError} error=${error} />`}
    <div class="acts">
      <${Button} onClick=${() => done(null)}>Cancel<//>
      <${Button} type="submit" kind="main" disabled=${acting}>${calendar ? "Save calendar" : "Create calendar"}<//>
    </div>
  </form>`;
}
