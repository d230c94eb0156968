// Answers what the tests ask of the figures' modules: node answer.mjs FOLDER < asks.json, as JSON.
// An ask is {module, name, args}, a function's call, or {module, views}, states of its figure.

import fs from "node:fs";
import { pathToFileURL } from "node:url";

const folder = `${pathToFileURL(process.argv[2])}/`;
const WIDTHS = [300, 640];

/** {name: spec} of a figure's sliders, its first state, and the words of its lead. */
const described = ({ figure }) => ({
  state: figure.state,
  lead: figure.lead,
  sliders: figure.controls.filter(({ kind }) => kind === "slider").map(({ show, ...rest }) => rest),
});

function view({ figure }, state) {
  const { charts, says, below = "" } = figure.view({ ...figure.state, ...state });
  return { says: says.replace(/<[^>]*>/g, "").replace(/\s+/g, " "), below, charts: charts.flatMap((chart) => WIDTHS.map(chart)) };
}

const found = [];
for (const { module, name, args, views, about } of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const loaded = await import(`${folder}${module}.js`);
  if (about) found.push(described(loaded));
  else found.push(views ? views.map((state) => view(loaded, state)) : loaded[name](...args));
}
process.stdout.write(JSON.stringify(found));
