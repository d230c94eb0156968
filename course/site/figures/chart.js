// Charts as SVG text, drawn at the width they have on the page, so that letters keep their size.

export const MINUS = "\u2212";

/** A number with a true minus sign: 0.25, −1.20; with a plus where it is `signed`. */
export function written(value, digits = 2, signed = false) {
  const size = Math.abs(value).toFixed(digits);
  const zero = Number(size) === 0;
  return (zero ? "" : value < 0 ? MINUS : signed ? "+" : "") + size;
}

export const signed = (value, digits = 2) => written(value, digits, true);

/** So many values from low to high, both included. */
export const spaced = (low, high, count) =>
  Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));

/** About `count` round numbers within low … high. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= raw * 0.99);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

const MARGIN = { left: 46, right: 14, top: 12, bottom: 40 };
let frames = 0;

/** The shapes of a chart, in its own units: x and y are [low, high]; `log` makes x logarithmic. */
export class Frame {
  constructor(width, { x, y, height = width < 360 ? 185 : 230, log = false }) {
    Object.assign(this, { width, height, x, y, log, id: `frame-${++frames}` });
  }

  X(value) {
    const place = this.log ? Math.log : (v) => v;
    const [low, high] = this.x.map(place);
    const share = (place(value) - low) / (high - low);
    return +(MARGIN.left + share * (this.width - MARGIN.left - MARGIN.right)).toFixed(1);
  }

  Y(value) {
    const share = (value - this.y[0]) / (this.y[1] - this.y[0]);
    return +(this.height - MARGIN.bottom - share * (this.height - MARGIN.top - MARGIN.bottom)).toFixed(1);
  }

  line(points, kind) {
    const path = points.map(([x, y]) => `${this.X(x)} ${this.Y(y)}`).join("L");
    return `<path class="${kind}" d="M${path}"/>`;
  }

  across = (y, kind) => this.line([[this.x[0], y], [this.x[1], y]], kind);
  upright = (x, kind) => this.line([[x, this.y[0]], [x, this.y[1]]], kind);

  dot = ([x, y], kind, radius = 5) =>
    `<circle class="${kind}" cx="${this.X(x)}" cy="${this.Y(y)}" r="${radius}"/>`;

  /** A rectangle between two corners. */
  box([x0, y0], [x1, y1], kind) {
    const [left, right] = [this.X(x0), this.X(x1)].sort((a, b) => a - b);
    const [top, bottom] = [this.Y(y0), this.Y(y1)].sort((a, b) => a - b);
    const size = `width="${Math.max(0, right - left).toFixed(1)}" height="${Math.max(0, bottom - top).toFixed(1)}"`;
    return `<rect class="${kind}" x="${left}" y="${top}" ${size}/>`;
  }

  /** An arrow; without a head where there is no room for one. */
  arrow([x0, y0], [x1, y1], kind) {
    const [from, to] = [[this.X(x0), this.Y(y0)], [this.X(x1), this.Y(y1)]];
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (length < 2) return "";
    const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    const head = Math.min(8, length);
    const corner = (side) =>
      `${(to[0] - head * dx + side * head * 0.5 * dy).toFixed(1)} ${(to[1] - head * dy - side * head * 0.5 * dx).toFixed(1)}`;
    return `<path class="${kind}" d="M${from.join(" ")}L${to.join(" ")}"/>
      <path class="${kind} head" d="M${to.join(" ")}L${corner(1)}L${corner(-1)}Z"/>`;
  }

  /** Words at a point, moved by (dx, dy) pixels. */
  text([x, y], words, { kind = "", dx = 0, dy = 0, anchor = "start" } = {}) {
    const place = `x="${this.X(x) + dx}" y="${this.Y(y) + dy}" text-anchor="${anchor}"`;
    return `<text class="${kind}" ${place}>${words}</text>`;
  }

  /** Names {text, kind, at} of lines at their right ends, above them and not over one another. */
  names(several, least = 14) {
    let floor = Infinity;
    const places = several.map((one) => ({ ...one, y: this.Y(one.at) - 6 })).sort((a, b) => b.y - a.y);
    return places.map(({ text, kind, y }) => {
      floor = Math.min(y, floor - least);
      return `<text class="name ${kind}" x="${this.width - MARGIN.right - 2}" y="${floor}" text-anchor="end">${text}</text>`;
    });
  }

  axes({ xLabel = "", yLabel = "", xTicks = ticks(...this.x), yTicks = ticks(...this.y), zero = false }) {
    const bottom = this.height - MARGIN.bottom;
    const named = (tick) => (Array.isArray(tick) ? tick : [tick, String(tick).replace("-", MINUS)]);
    const rows = yTicks.map(named).map(([value, name]) =>
      `${this.across(value, zero && value === 0 ? "zero" : "grid")}
       <text class="tick" x="${MARGIN.left - 6}" y="${this.Y(value) + 4}" text-anchor="end">${name}</text>`);
    const columns = xTicks.map(named).map(([value, name]) =>
      `<text class="tick" x="${this.X(value)}" y="${bottom + 16}" text-anchor="middle">${name}</text>`);
    const middle = (MARGIN.left + this.width - MARGIN.right) / 2;
    return `${rows.join("")}${columns.join("")}
      <text class="axis" x="${middle}" y="${this.height - 4}" text-anchor="middle">${xLabel}</text>
      <text class="axis" x="${-(bottom + MARGIN.top) / 2}" y="12" text-anchor="middle" transform="rotate(-90)">${yLabel}</text>`;
  }

  /** The chart: axes, and shapes of which nothing is drawn outside of the frame; `over` may be. */
  svg(label, axes, shapes, over = []) {
    const { left, right, top, bottom } = MARGIN;
    const inner = `width="${this.width - left - right}" height="${this.height - top - bottom}"`;
    return `<svg viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}" role="img" aria-label="${label}">
      <clipPath id="${this.id}"><rect x="${left}" y="${top}" ${inner}/></clipPath>
      ${this.axes(axes)}<g clip-path="url(#${this.id})">${shapes.join("")}</g>${over.join("")}</svg>`;
  }
}
