// Draws the newest view of a game: the ground, the units, their targets and their health.

const MARGIN = 0.5; // map cells drawn around the playable part
const GRID = 8; // map cells between two lines of the grid; a multiple of this on a large map

// The kinds of units, in the order of `KINDS` in sc2pool.players.view.
const KINDS = ["own", "ally", "enemy", "neutral", "minerals", "gas", "beacon"];

let colours = readColours();

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [...KINDS, "void", "low", "high", "grid", "order", "bar", "full", "half", "weak"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Read the colours again; the caller must then draw the ground of each map again.
export function changeColours() {
  colours = readColours();
}

// The number of units of each kind in a view, in words.
export function unitsInWords(view) {
  const counts = {};
  for (const [kind] of view.units) counts[KINDS[kind]] = (counts[KINDS[kind]] || 0) + 1;
  const told = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  return told.join(", ");
}

// The width of a map's picture, divided by its height.
export function aspectOf(map) {
  const [x0, y0, x1, y1] = visibleArea(map);
  return Math.max(0.8, Math.min(1.8, (x1 - x0) / (y1 - y0)));
}

function grid(image) {
  const data = Uint8Array.from(atob(image.data), (letter) => letter.charCodeAt(0));
  if (image.bits === 8) return (cell) => data[cell];
  return (cell) => (data[cell >> 3] >> (7 - (cell & 7))) & 1;
}

function rgb(hex) {
  const value = parseInt(hex.slice(1, 7), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// The ground as an image with one pixel for each cell, the map's top row first.
export function drawGround(map) {
  const canvas = document.createElement("canvas");
  const { width, height } = map.pathing;
  if (!width || !height) return canvas;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const walkable = grid(map.pathing);
  const sameSize = map.terrain.width === width && map.terrain.height === height;
  const level = sameSize ? grid(map.terrain) : () => 0;
  let lowest = 255;
  let highest = 0;
  for (let cell = 0; cell < width * height; cell++) {
    if (!walkable(cell)) continue;
    lowest = Math.min(lowest, level(cell));
    highest = Math.max(highest, level(cell));
  }
  const [none, low, high] = [rgb(colours.void), rgb(colours.low), rgb(colours.high)];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const cell = y * width + x;
      const share = highest > lowest ? (level(cell) - lowest) / (highest - lowest) : 0.5;
      const colour = walkable(cell) ? low.map((part, i) => part + share * (high[i] - part)) : none;
      image.data.set([...colour, 255], 4 * ((height - 1 - y) * width + x));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

export function drawView(canvas, map, view) {
  const [x0, y0, x1, y1] = visibleArea(map);
  canvas.style.aspectRatio = `${aspectOf(map)}`;
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  const scale = Math.min(width / (x1 - x0), height / (y1 - y0));
  const left = (width - scale * (x1 - x0)) / 2;
  const top = (height - scale * (y1 - y0)) / 2;
  const toX = (x) => left + (x - x0) * scale;
  const toY = (y) => top + (y1 - y) * scale; // the map's y points up
  context.fillStyle = colours.void;
  context.fillRect(0, 0, width, height);
  if (map.ground.width) {
    context.imageSmoothingEnabled = false;
    context.drawImage(map.ground, toX(0), toY(map.pathing.height),
      scale * map.pathing.width, scale * map.pathing.height);
  }
  drawGrid(context, map.area, toX, toY, ratio);
  // Draw neutral things on the ground first, and own units last.
  const drawn = [...view.units].sort((a, b) => b[0] - a[0]);
  for (const unit of drawn) drawOrder(context, unit, toX, toY, ratio);
  for (const unit of drawn) drawUnit(context, unit, toX, toY, scale, ratio);
  for (const unit of drawn) drawHealth(context, unit, toX, toY, scale, ratio);
  canvas.setAttribute("aria-label", `${map.name}: ${unitsInWords(view) || "no units"}`);
}

function visibleArea(map) {
  const [x0, y0, x1, y1] = map.area;
  if (x1 > x0 && y1 > y0) return [x0 - MARGIN, y0 - MARGIN, x1 + MARGIN, y1 + MARGIN];
  return [0, 0, map.width || 1, map.height || 1];
}

function drawGrid(context, [x0, y0, x1, y1], toX, toY, ratio) {
  context.strokeStyle = colours.grid;
  context.lineWidth = ratio;
  context.beginPath();
  const step = GRID * Math.max(1, Math.ceil((x1 - x0) / (8 * GRID)));
  for (let x = Math.ceil(x0 / step) * step; x <= x1; x += step) {
    context.moveTo(toX(x), toY(y0));
    context.lineTo(toX(x), toY(y1));
  }
  for (let y = Math.ceil(y0 / step) * step; y <= y1; y += step) {
    context.moveTo(toX(x0), toY(y));
    context.lineTo(toX(x1), toY(y));
  }
  context.stroke();
}

function drawOrder(context, [, , x, y, , , targetX, targetY], toX, toY, ratio) {
  if (targetX === undefined) return;
  context.strokeStyle = colours.order;
  context.lineWidth = 1.5 * ratio;
  context.beginPath();
  context.moveTo(toX(x), toY(y));
  context.lineTo(toX(targetX), toY(targetY));
  context.stroke();
}

function drawUnit(context, [kind, , x, y, radius], toX, toY, scale, ratio) {
  const name = KINDS[kind];
  const [centreX, centreY] = [toX(x), toY(y)];
  const size = drawnSize(radius, scale, ratio);
  context.fillStyle = colours[name];
  context.beginPath();
  if (name === "beacon") {
    context.arc(centreX, centreY, size, 0, 2 * Math.PI);
    context.strokeStyle = colours.beacon;
    context.lineWidth = 2 * ratio;
    context.globalAlpha = 0.3;
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
    return;
  }
  if (name === "minerals" || name === "gas") {
    context.moveTo(centreX, centreY - 1.3 * size);
    context.lineTo(centreX + size, centreY);
    context.lineTo(centreX, centreY + 1.3 * size);
    context.lineTo(centreX - size, centreY);
  } else {
    context.arc(centreX, centreY, size, 0, 2 * Math.PI);
  }
  context.fill();
  context.strokeStyle = colours.low; // an outline separates units that stand close together
  context.lineWidth = ratio;
  context.stroke();
}

// A health bar over each damaged unit.
function drawHealth(context, [, , x, y, radius, health], toX, toY, scale, ratio) {
  if (health === null || health >= 1) return;
  const size = drawnSize(radius, scale, ratio);
  const [width, height] = [Math.max(2.2 * size, 12 * ratio), 3 * ratio];
  const [left, top] = [toX(x) - width / 2, toY(y) - size - 1.6 * height];
  context.fillStyle = colours.bar;
  context.fillRect(left - ratio / 2, top - ratio / 2, width + ratio, height + ratio);
  context.fillStyle = health > 0.6 ? colours.full : health > 0.3 ? colours.half : colours.weak;
  context.fillRect(left, top, width * health, height);
}

function drawnSize(radius, scale, ratio) {
  return Math.max(radius * scale, 3 * ratio);
}
