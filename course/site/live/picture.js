// A picture of one's own curve: the chart with its settings, as a PNG that is made in the page.

import { accuracyChart, share } from "./charts.js";

const WIDTH = 1200, HEIGHT = 720;
const STYLE = `text { font: 11px system-ui, sans-serif; fill: #444 } path { fill: none; stroke-width: 2; stroke: #777 }
  .grid { stroke: #ddd } .mark { stroke: #777 } .title { font-size: 15px; font-weight: 700; fill: #111 }
  .band { fill: #1f5fb8; opacity: .16; stroke: none } .held { stroke: #1f5fb8; stroke-width: 2.5 }
  circle { fill: #1f5fb8 } .reward { stroke: #9a5605; stroke-width: 1.2 } .ghost { stroke-dasharray: 4 4 }
  .of-held { fill: #1f5fb8; font-weight: 700 } .of-reward { fill: #9a5605 }`;

const said = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt()};`);

/** The picture as an SVG of its own, with a title, its settings, and the address to try them. */
export function pictureOf(run, ghost, { title, settings, address }) {
  const [first, last] = [run.held[0], run.held.at(-1)];
  const chart = accuracyChart(run, ghost).replace("<svg", '<svg x="34" y="86" width="520" height="271"');
  const rose = `held-out accuracy ${share(first.accuracy)} → ${share(last.accuracy)} in ${last.step} steps`;
  const dashed = ghost?.held.length ? `<tspan dx="14">dashed: ${said(ghost.name)}</tspan>` : "";
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 640 384">
    <style>${STYLE}</style><rect width="640" height="384" fill="#fff"/>
    <text class="title" x="34" y="30">${said(title)}</text><text x="34" y="49">${said(settings)}</text>
    <text x="34" y="72"><tspan class="of-held">${rose}</tspan><tspan class="of-reward" dx="14">reward</tspan>${dashed}</text>
    ${chart}<text x="34" y="374">${said(address)}</text></svg>`;
}

/** The same as the file of a PNG. */
export async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  canvas.getContext("2d").drawImage(image, 0, 0, WIDTH, HEIGHT);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

export function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
