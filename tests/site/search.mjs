// The page that the site's own search finds first: node search.mjs SITE WORDS … prints one a line.

import fs from "node:fs";

const [site, ...sought] = process.argv.slice(2);
const files = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]; // as search.html loads them
const source = files.map((name) => fs.readFileSync(`${site}/${name}`, "utf8")).join("\n");
const location = {}, document = { getElementById: () => null };
const names = ["document", "location", "_ready", "_", "SPHINX_HIGHLIGHT_ENABLED", "window"];
const search = Function(...names, `;${source}; return Search`)(document, location, () => {}, (text) => text, false, globalThis);
for (const words of sought) {
  location.search = `?q=${encodeURIComponent(words)}`;
  console.log(search._performSearch(...search._parseQuery(words)).at(-1)?.[0]);
}
