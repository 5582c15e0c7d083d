// @ts-check
import { Empty } from "../parts/base/empty.js";
import { PageHeader } from "../parts/base/panel.js";
import { at } from "../state.js";
import { html } from "../ui.js";

export default function NotFound() {
  return html`
    <${PageHeader} title="Nothing here" />
    <${Empty}
      title="No page has this address"
      acts=${html`<a class="button" href=${at("/")}>Overview</a><a class="button" href=${at("/jobs")}>Jobs</a>`}
    >
      It may have been typed by hand, or come from another version.
    <//>
  `;
}
