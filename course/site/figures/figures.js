// Every place on a page that names a figure gets it. Without this file the static picture stays.

import { mount } from "./figure.js";

for (const place of document.querySelectorAll("[data-figure]")) {
  const { figure } = await import(`./${place.dataset.figure}.js`);
  mount(place, figure);
}
