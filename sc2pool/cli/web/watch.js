// Shows what `sc2pool watch` tells of a running pool: asks a few times a second, draws what comes.
// Everything told is put in as text, never as HTML; nothing is loaded from elsewhere.
"use strict";

const ASK_EVERY_MS = 400;
const RETRY_EVERY_MS = 2000;
const HISTORY = 120; // returns kept for the line beside the figure
const EVENT_SHOWN_S = 60;
const MARGIN = 0.5; // map cells drawn around the playable part
const CARD_PX = 250; // no card is narrower
const WIDEST_CARD_PX = 440;
const GAP_PX = 12;
const GRID = 8; // map cells between two lines, or a multiple on a large map

const HEALTH = {
  playing: "good", stepping: "good", ready: "good", over: "good",
  dead: "bad", failed: "bad", closed: "bad",
}; // any other state: on its way, or stopped by the pool

// The order of `KINDS` in sc2pool.tasks.view.
const KINDS = ["own", "ally", "enemy", "neutral", "minerals", "gas", "beacon"];

const cards = new Map(); // by seat
const maps = new Map(); // by key: the map, and its ground as an image
let colours = readColours();

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [...KINDS, "void", "low", "high", "grid", "order", "bar", "full", "half", "weak"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours = readColours();
  for (const map of maps.values()) map.ground = drawGround(map);
});

// ---- asking ------------------------------------------------------------------------------

async function turn() {
  let wait = ASK_EVERY_MS;
  if (!document.hidden) {
    try {
      await show(await ask("state"));
    } catch {
      if (!ended) notice("no answer from sc2pool watch: is it still running?");
      wait = RETRY_EVERY_MS;
    }
  }
  if (!ended) setTimeout(turn, wait);
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let ended = false;

async function show(state) {
  if (state.ended) {
    ended = true;
    notice("the pool has ended; this is its last state");
    return;
  }
  if (!state.pool) return;
  notice(state.age_s > 5 ? `no news for ${duration(state.age_s)}: is the training stopped?` : "");
  showTotals(state.pool);
  for (const view of Object.values(state.views)) {
    if (view.map && !maps.has(view.map)) await fetchMap(view.map);
  }
  const seats = new Set();
  for (const row of state.pool.instances) {
    seats.add(row.seat);
    showGame(row, state.views[row.instance], state.pool);
  }
  for (const [seat, card] of cards) {
    if (!seats.has(seat)) {
      card.root.remove();
      cards.delete(seat);
    }
  }
  arrange();
}

// Rows of the same length: eight games stand four by four, where five would have room in a row.
function arrange() {
  const games = document.getElementById("games");
  const room = Math.max(1, Math.floor((games.clientWidth + GAP_PX) / (CARD_PX + GAP_PX)));
  const rows = Math.max(1, Math.ceil(cards.size / room));
  const columns = Math.max(1, Math.ceil(cards.size / rows));
  games.style.gridTemplateColumns = `repeat(${columns}, minmax(0, ${WIDEST_CARD_PX}px))`;
}

addEventListener("resize", arrange);

async function fetchMap(key) {
  const map = await ask(`map/${key}`);
  map.ground = drawGround(map);
  maps.set(key, map);
}

function notice(text) {
  document.getElementById("notice").textContent = text;
}

// ---- figures -----------------------------------------------------------------------------

function showTotals(pool) {
  const spares = pool.instances.filter((row) => row.seat.startsWith("spare")).length;
  const envs = pool.instances.length - spares;
  document.title = `sc2pool · ${envs} games`;
  const parts = [pool.game_version || "no game", `process ${pool.trainer_pid}`,
    `up ${duration(pool.uptime_s)}`];
  document.getElementById("about").textContent = parts.join(" · ");
  const recycles = Object.entries(pool.recycles).map(([cause, count]) => `${cause} ${count}`);
  showFigures(document.getElementById("totals"), [
    ["steps/s", number(pool.steps_per_s)],
    ["steps", pool.env_steps.toLocaleString("en")],
    ["episodes", pool.episodes.toLocaleString("en")],
    ["recycles", recycles.join(", ") || "none"],
  ]);
}

function showFigures(list, figures) {
  if (list.childElementCount !== figures.length) {
    list.replaceChildren(...figures.map(() => {
      const entry = document.createElement("div");
      entry.append(document.createElement("dt"), document.createElement("dd"));
      return entry;
    }));
  }
  figures.forEach(([name, value], index) => {
    const [dt, dd] = list.children[index].children;
    dt.textContent = name;
    dd.textContent = value;
  });
}

function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function duration(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function bytes(value) {
  if (value === null) return "–";
  return value >= 1e9 ? `${(value / 1e9).toFixed(1)} GB` : `${Math.round(value / 1e6)} MB`;
}

// ---- one game ----------------------------------------------------------------------------

function makeCard(seat) {
  const root = document.getElementById("game").content.firstElementChild.cloneNode(true);
  root.dataset.seat = seat;
  document.getElementById("games").append(root);
  const find = (name) => root.querySelector(name);
  const card = {
    root, history: [], episode: null,
    instance: find(".instance"), state: find(".state"), canvas: find(".view"),
    blank: find(".blank"), total: find(".return"), line: find("polyline"),
    figures: find(".figures"), event: find(".event"),
  };
  find(".seat").textContent = seat;
  cards.set(seat, card);
  return card;
}

function showGame(row, view, pool) {
  const card = cards.get(row.seat) || makeCard(row.seat);
  card.root.dataset.state = row.state;
  card.root.dataset.health = HEALTH[row.state] || "busy";
  card.state.textContent = row.state;
  card.instance.textContent = `instance ${row.instance}`;
  card.total.textContent = number(row.episode_return, Number.isInteger(row.episode_return) ? 0 : 2);
  showHistory(card, row);
  showFigures(card.figures, [
    ["episode", number(row.episode)],
    ["steps", number(row.episode_steps)],
    ["steps/s", number(row.steps_per_s)],
    ["memory", bytes(row.memory_bytes)],
    ["CPU", row.cpu_share === null ? "–" : `${Math.round(row.cpu_share * 100)} %`],
    ["faults", number(row.faults)],
  ]);
  showEvent(card, row, pool);
  const map = view && maps.get(view.map);
  card.blank.textContent = map ? "" : blankReason(row);
  card.canvas.dataset.units = map ? view.units.length : 0;
  if (map) drawView(card.canvas, map, view);
  else card.canvas.getContext("2d").clearRect(0, 0, card.canvas.width, card.canvas.height);
}

function blankReason(row) {
  if (row.pid !== null) return "no view yet";
  return row.state === "new" || row.state === "launching" ? "the game is being started"
    : "this env has no game to show";
}

function showHistory(card, row) {
  if (card.episode !== row.episode) {
    card.episode = row.episode;
    card.history = [];
  }
  if (row.episode_return !== null) card.history.push(row.episode_return);
  if (card.history.length > HISTORY) card.history.shift();
  const low = Math.min(...card.history, 0);
  const high = Math.max(...card.history, low + 1);
  const points = card.history.map((value, index) => {
    const x = (index * 120) / Math.max(card.history.length - 1, 1);
    return `${x.toFixed(1)},${(26 - (24 * (value - low)) / (high - low)).toFixed(1)}`;
  });
  card.line.setAttribute("points", points.join(" "));
}

function showEvent(card, row, pool) {
  const newest = pool.events.findLast((event) => event.seat === row.seat && event.event === "fault");
  const ago_s = newest && pool.at_s - newest.at_s;
  const shown = newest && ago_s < EVENT_SHOWN_S;
  card.root.classList.toggle("bad", Boolean(shown));
  card.event.textContent = shown
    ? `${newest.cause} while ${newest.phase}, ${duration(ago_s)} ago` : "";
}

// ---- drawing -----------------------------------------------------------------------------

function grid(image) {
  const data = Uint8Array.from(atob(image.data), (letter) => letter.charCodeAt(0));
  if (image.bits === 8) return (cell) => data[cell];
  return (cell) => (data[cell >> 3] >> (7 - (cell & 7))) & 1;
}

function rgb(hex) {
  const value = parseInt(hex.slice(1, 7), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// The ground as an image of one pixel a cell, the map's top row first.
function drawGround(map) {
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

function drawView(canvas, map, view) {
  const [x0, y0, x1, y1] = visibleArea(map);
  canvas.style.aspectRatio = `${Math.max(0.8, Math.min(1.8, (x1 - x0) / (y1 - y0)))}`;
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
  const counts = {};
  for (const unit of view.units) counts[KINDS[unit[0]]] = (counts[KINDS[unit[0]]] || 0) + 1;
  // What stands on the ground first, own units last.
  const drawn = [...view.units].sort((a, b) => b[0] - a[0]);
  for (const unit of drawn) drawOrder(context, unit, toX, toY, ratio);
  for (const unit of drawn) drawUnit(context, unit, toX, toY, scale, ratio);
  for (const unit of drawn) drawHealth(context, unit, toX, toY, scale, ratio);
  const told = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  canvas.setAttribute("aria-label", `${map.name}: ${told.join(", ") || "no units"}`);
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
  context.strokeStyle = colours.low; // sets apart what stands close together
  context.lineWidth = ratio;
  context.stroke();
}

// A bar over what is hurt.
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

turn();
