// @ts-check
import { Empty } from "../parts/empty.js";
import { Lede } from "../parts/panel.js";
import { at } from "../state.js";
import { html } from "../ui.js";

export default function Lost() {
  return html`<${Lede} title="Nothing here" />
    <${Empty} title="No page has this address" acts=${html`<a class="button" href=${at("/")}>Overview</a><a class="button" href=${at("/jobs")}>Jobs</a>`}>It may have been typed by hand, or come from another version.<//>`;
}
