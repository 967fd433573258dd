// Draws the training's curves as small charts: faint raw values, and a smoothed line over them.

const SVG = "http://www.w3.org/2000/svg";
const SMOOTHING = 0.6; // the weight of all earlier points in each smoothed point
const FIRST = ["mean return", "steps/s", "loss", "value_loss", "policy_gradient_loss",
  "entropy_loss"]; // the most important curves; others follow in the order in which they came
const EXACT = new Set(["mean return"]); // not smoothed, because it is a mean already
const LEFT = 44; // px for the labels of the values, at the left of a chart
const BOTTOM = 16; // px for the labels below a chart
const TOP = 6;
const TICK_PX = 20; // the least distance between two labels of values
const SHOWN_AT_FIRST = 4; // how many curves a narrow window shows at first

const charts = new Map(); // by name
let newest = null;
let byTime = false;

const list = document.getElementById("charts");
const more = document.getElementById("more");

for (const button of document.querySelectorAll("#over button")) {
  button.addEventListener("click", () => {
    byTime = button.value === "time";
    for (const each of document.querySelectorAll("#over button")) {
      each.setAttribute("aria-pressed", String(each === button));
    }
    redraw();
  });
}
more.addEventListener("click", () => {
  list.classList.toggle("all");
  redraw();
});
addEventListener("resize", redraw);

// Show the pool's curves: `at_s`, `steps`, and `figures`, a list of values for each name.
export function showCurves(curves) {
  newest = curves;
  const names = Object.keys(curves.figures);
  const place = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  names.sort((a, b) => place(a) - place(b)); // a stable sort keeps the order of other names
  names.forEach((name) => charts.has(name) || charts.set(name, makeChart(name)));
  const shown = names.map((name) => charts.get(name).root);
  if (shown.some((root, index) => list.children[index] !== root)) list.replaceChildren(...shown);
  list.classList.toggle("few", names.length <= 2);
  document.getElementById("curves").hidden = curves.at_s.length < 2;
  redraw();
}

function redraw() {
  if (!newest) return;
  const hidden = list.classList.contains("all") ? 0 : list.children.length - SHOWN_AT_FIRST;
  more.textContent = hidden > 0 ? `all ${list.children.length} curves` : "fewer curves";
  more.hidden = list.children.length <= SHOWN_AT_FIRST;
  for (const [name, chart] of charts) {
    if (newest.figures[name] && chart.root.clientWidth) drawChart(chart, name);
  }
}

function makeChart(name) {
  const root = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const title = document.createElement("span");
  const value = document.createElement("b");
  const svg = document.createElementNS(SVG, "svg");
  title.textContent = title.title = name; // a long name is cut off, so it is the tooltip, too
  svg.setAttribute("role", "img");
  caption.append(title, value);
  root.append(caption, svg);
  root.dataset.name = name;
  const chart = { root, value, svg, at: null };
  svg.addEventListener("pointermove", (event) => point(chart, name, event.offsetX));
  svg.addEventListener("pointerleave", () => point(chart, name, null));
  return chart;
}

function point(chart, name, at) {
  chart.at = at;
  drawChart(chart, name);
}

function drawChart(chart, name) {
  const xs = byTime ? newest.at_s : newest.steps;
  const points = newest.figures[name].map((y, index) => [xs[index], y]).filter(([, y]) => y !== null);
  const { svg } = chart;
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (!points.length) {
    svg.replaceChildren();
    return;
  }
  const line = EXACT.has(name) ? points : smoothed(points);
  const values = points.map(([, y]) => y);
  const [low, high] = around(Math.min(...values), Math.max(...values));
  const ticks = ticksOf(low, high, (height - TOP - BOTTOM) / TICK_PX);
  const [first, last] = [xs[0], Math.max(xs[xs.length - 1], xs[0] + 1)];
  const toX = (x) => LEFT + ((width - LEFT - 4) * (x - first)) / (last - first);
  const toY = (y) => TOP + ((height - TOP - BOTTOM) * (high - y)) / (high - low);
  const path = (some) => some.map(([x, y]) => `${toX(x).toFixed(1)},${toY(y).toFixed(1)}`).join(" ");
  const parts = ticks.flatMap((tick) => [
    element("line", { class: "rule", x1: LEFT, x2: width, y1: toY(tick), y2: toY(tick) }),
    element("text", { class: "end", x: LEFT - 5, y: toY(tick) + 3.5 }, short(tick)),
  ]);
  parts.push(element("text", { x: LEFT, y: height - 3 }, label(first)),
    element("text", { class: "end", x: width - 2, y: height - 3 }, label(last)));
  if (line !== points) parts.push(element("polyline", { class: "raw", points: path(points) }));
  parts.push(element("polyline", { class: "line", points: path(line) }));
  let chosen = line.length - 1;
  if (chart.at !== null) {
    chosen = nearest(line.map(([x]) => toX(x)), chart.at);
    const [x, y] = line[chosen];
    parts.push(element("line", { class: "mark", x1: toX(x), x2: toX(x), y1: TOP, y2: height - BOTTOM }),
      element("circle", { class: "dot", cx: toX(x), cy: toY(y), r: 3 }));
  } else {
    const [x, y] = line[chosen];
    parts.push(element("circle", { class: "dot", cx: toX(x), cy: toY(y), r: 2.5 }));
  }
  const [x, y] = [line[chosen][0], points[chosen][1]];
  chart.value.textContent = chart.at === null ? short(y) : `${short(y)} at ${label(x)}`;
  svg.setAttribute("aria-label", `${name}: ${short(points[0][1])} to ${short(y)}`);
  svg.replaceChildren(...parts);
}

// An exponential moving average of the points, corrected so that it does not begin near 0.
function smoothed(points) {
  let [sum, weight] = [0, 0];
  return points.map(([x, y]) => {
    sum = SMOOTHING * sum + (1 - SMOOTHING) * y;
    weight = SMOOTHING * weight + (1 - SMOOTHING);
    return [x, sum / weight];
  });
}

function nearest(places, at) {
  let best = 0;
  places.forEach((place, index) => {
    if (Math.abs(place - at) < Math.abs(places[best] - at)) best = index;
  });
  return best;
}

// The range of a chart's axis, which is the range of the values with a margin.
function around(low, high) {
  if (low === high) [low, high] = low ? [Math.min(low, 0), Math.max(low, 0)] : [0, 1];
  const more = 0.05 * (high - low);
  return [low - more, high + more];
}

// At most about `most` round values between `low` and `high`.
function ticksOf(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough);
  const first = Math.ceil(low / step);
  const count = Math.floor(high / step) - first + 1;
  return Array.from({ length: count }, (_, index) => (first + index) * step);
}

function element(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// A number in few characters, with three significant digits.
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9 || (size && size < 1e-3)) {
    return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
  }
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return String(+value.toPrecision(3));
}

function label(x) {
  if (!byTime) return short(Math.round(x));
  if (x < 60) return `${Math.round(x)} s`;
  if (x < 3600) return `${Math.round(x / 60)} min`;
  return `${(x / 3600).toFixed(1)} h`;
}
