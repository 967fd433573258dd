// Shows a running pool: requests its state from `sc2pool watch` a few times a second.
// All values are inserted as text, never as HTML. Nothing is loaded from other servers.

import { showCurves } from "./curves.js";
import { aspectOf, changeColours, drawGround, drawView, unitsInWords } from "./map.js";

const ASK_EVERY_MS = 400;
const ASK_LARGER_EVERY_MS = 250; // while a game is shown larger; the pool does not write more often
const RETRY_EVERY_MS = 2000;
const CURVES_EVERY_MS = 2000;
const HISTORY = 120; // how many values of an episode's return so far the small line shows
const EVENT_SHOWN_S = 60;
const GAP_PX = 10;

// The sizes of cards, in pixels: the least width, and the height in addition to that of the map.
const SIZES = [
  { name: "full", least: 250, more: 114 },
  { name: "narrow", least: 196, more: 132 },
  { name: "small", least: 150, more: 66 },
  { name: "tiny", least: 104, more: 26 },
];
const FEW = 16; // up to this many games are shown "full", even if the page must then scroll
const LARGER_SHARE = 0.6; // the share of the window's height for the map of a game shown larger
const HEAD_PX = 40; // the height of a larger game's head, which is above its map

const HEALTH = {
  playing: "good", stepping: "good", ready: "good", over: "good",
  dead: "bad", failed: "bad", closed: "bad",
}; // in all states not named here, the instance starts or resets, or the pool has stopped it

const cards = new Map(); // by seat
const maps = new Map(); // by key: the map, and its ground as an image
let curvesAt = -Infinity; // time of the newest request for the curves
let ended = false;

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  changeColours();
  for (const map of maps.values()) map.ground = drawGround(map);
});

// ---- requests ----------------------------------------------------------------------------

async function turn() {
  let wait = larger() ? ASK_LARGER_EVERY_MS : ASK_EVERY_MS;
  if (!document.hidden) {
    try {
      await show(await ask("state"));
      if (!ended && performance.now() - curvesAt > CURVES_EVERY_MS) {
        curvesAt = performance.now();
        showCurves(await ask("curves"));
      }
    } catch {
      if (!ended) notice("no answer: has the training ended, or sc2pool watch?");
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

async function show(state) {
  if (state.ended) {
    ended = true;
    notice("the pool has ended; this is its last state");
    return;
  }
  if (!state.pool) return;
  notice(state.age_s > 5 ? `no news for ${duration(state.age_s)}: is the training stopped?` : "");
  showTotals(state.pool, state.is_standin);
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

// ---- layout ------------------------------------------------------------------------------

// The seat of the game that is shown larger: the clicked game, or the only one; else "".
function larger() {
  if (cards.size === 1) return cards.keys().next().value;
  return [...cards.keys()].find((seat) => location.hash === addressOf(seat)) || "";
}

function addressOf(seat) {
  return `#${encodeURIComponent(seat)}`;
}

function choose(seat) {
  history.replaceState(null, "", seat === larger() ? "#" : addressOf(seat));
  arrange();
}

// Arrange the cards so that all fit into the window. If the smallest do not, the page scrolls.
function arrange() {
  const games = document.getElementById("games");
  const chosen = larger();
  for (const [seat, card] of cards) {
    card.root.classList.toggle("larger", seat === chosen);
    card.grow.setAttribute("aria-pressed", String(seat === chosen));
    card.grow.hidden = cards.size === 1;
  }
  const count = cards.size - Boolean(chosen);
  const below = innerHeight - games.getBoundingClientRect().top - scrollY - GAP_PX;
  const share = LARGER_SHARE * innerHeight;
  const largerPx = count ? share : Math.max(share, below - HEAD_PX - GAP_PX);
  games.style.setProperty("--larger", `${Math.round(largerPx)}px`);
  const first = maps.values().next().value;
  const aspect = first ? aspectOf(first) : 4 / 3;
  const room = {
    width: games.clientWidth,
    height: below - (chosen ? largerPx + HEAD_PX : 0),
  };
  const place = fit(count, aspect, room, count <= FEW && !chosen);
  games.dataset.size = place.size.name;
  games.style.gridTemplateColumns = `repeat(${place.columns}, minmax(0, ${place.width}px))`;
}

// Choose the most detailed cards that fit, and then the largest width.
function fit(count, aspect, room, isFew) {
  const widthOf = (columns) => Math.floor((room.width + GAP_PX) / columns) - GAP_PX;
  for (const size of SIZES) {
    for (let columns = 1; widthOf(columns) >= size.least; columns++) {
      const width = widthOf(columns);
      const high = Math.ceil(count / columns) * (width / aspect + size.more + GAP_PX);
      if (high <= room.height) return { columns, width, size };
    }
  }
  const size = SIZES[isFew ? 0 : SIZES.length - 1];
  const most = Math.max(1, Math.floor((room.width + GAP_PX) / (size.least + GAP_PX)));
  const columns = Math.ceil(count / Math.ceil(Math.max(count, 1) / most)) || 1;
  return { columns, width: widthOf(columns), size };
}

addEventListener("resize", arrange);
addEventListener("hashchange", arrange);
addEventListener("keydown", (event) => {
  const chosen = larger();
  if (!chosen || cards.size === 1) return;
  if (event.key === "Escape") choose(chosen);
  const step = (event.key === "ArrowRight") - (event.key === "ArrowLeft");
  if (step) {
    const seats = [...cards.keys()];
    choose(seats[(seats.indexOf(chosen) + step + seats.length) % seats.length]);
  }
});

async function fetchMap(key) {
  const map = await ask(`map/${key}`);
  map.ground = drawGround(map);
  maps.set(key, map);
}

function notice(text) {
  document.getElementById("notice").textContent = text;
}

// ---- figures -----------------------------------------------------------------------------

function showTotals(pool, isStandin) {
  const spares = pool.instances.filter((row) => row.seat.startsWith("spare")).length;
  const envs = pool.instances.length - spares;
  const counted = `${envs} ${pool.game_version ? "game" : "env"}${envs === 1 ? "" : "s"}`;
  document.title = `${pool.task || "sc2pool"} · ${counted}`;
  document.getElementById("task").textContent = pool.task || "sc2pool";
  document.getElementById("standin").hidden = !isStandin;
  const parts = [`${counted}${spares ? ` and ${spares} spare` : ""}`,
    pool.game_version || "no game", placeOf(pool), `up ${duration(pool.uptime_s)}`];
  document.getElementById("about").textContent = parts.join(" · ");
  const replacements = Object.entries(pool.replacements).map(([cause, count]) => `${cause} ${count}`);
  const late = pool.realtime.steps ? [
    ["gap (95 %)", milliseconds(pool.realtime.gap_s.p95)],
    ["too late", number(pool.realtime.misses)],
  ] : [];
  const results = Object.values(pool.matches).flatMap(Object.entries);
  const count = (some) => some.reduce((sum, [, value]) => sum + value, 0);
  const won = count(results.filter(([result]) => result === "win"));
  const matches = results.length ? [["matches won", `${number(won)} of ${number(count(results))}`]] : [];
  showFigures(document.getElementById("totals"), [
    ["mean return", number(pool.mean_return, 2)],
    ["steps/s", number(pool.steps_per_s)],
    ["steps", number(pool.env_steps)],
    ["episodes", number(pool.episodes)],
    ...matches,
    ...late,
    ["replaced", replacements.join(", ") || "none"],
  ]);
}

// The process that has the pool, or the number of Ray nodes with a pool.
function placeOf(pool) {
  const nodes = new Set(pool.instances.map((row) => row.node).filter(Boolean)).size;
  return nodes ? `${nodes} Ray ${nodes === 1 ? "node" : "nodes"}` : `process ${pool.trainer_pid}`;
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

function milliseconds(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return `${number(1000 * seconds, seconds < 0.01 ? 1 : 0)} ms`;
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
    root, history: [], episode: null, seen: null,
    instance: find(".instance"), state: find(".state"), canvas: find(".view"),
    blank: find(".blank"), total: find(".return"), line: find("polyline"),
    figures: find(".figures"), event: find(".event"), grow: find(".grow"),
  };
  root.addEventListener("click", () => choose(seat));
  new ResizeObserver(() => card.seen && drawView(card.canvas, ...card.seen)).observe(card.canvas);
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
  showFigures(card.figures, figuresOf(row, view, pool));
  showEvent(card, row, pool);
  const map = view && maps.get(view.map);
  card.seen = map ? [map, view] : null;
  card.blank.textContent = map ? "" : blankReason(row);
  card.canvas.dataset.units = map ? view.units.length : 0;
  if (map) drawView(card.canvas, map, view);
  else card.canvas.getContext("2d").clearRect(0, 0, card.canvas.width, card.canvas.height);
}

function figuresOf(row, view, pool) {
  const spare = row.seat.startsWith("spare");
  const late = pool.realtime.envs[row.seat];
  const figures = [
    ["episodes", spare ? "–" : number(row.episodes)],
    ["steps", number(row.episode_steps)],
    ["steps/s", number(row.steps_per_s)],
    ["memory", bytes(row.memory_bytes)],
    ["CPU", row.cpu_share === null ? "–" : `${Math.round(row.cpu_share * 100)} %`],
    ["faults", number(row.faults)],
  ];
  if (late && late.gap_s) {
    figures.push(["gap", milliseconds(late.gap_s.p95)], ["too late", number(late.misses)]);
  }
  if (row.seat !== larger()) return figures;
  figures.push(["running", row.episode === null ? "–" : `episode no. ${row.episode}`]);
  if (!view) return figures;
  return [...figures, ["game loop", number(view.loop)], ["score", number(view.score)],
    ["minerals", number(view.minerals)], ["gas", number(view.vespene)],
    ["supply", `${view.food_used} / ${view.food_cap}`], ["units", unitsInWords(view) || "none"]];
}

function blankReason(row) {
  if (row.pid !== null) return "no view yet";
  return ["new", "starting", "launching"].includes(row.state) ? "the game is being started"
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
  const after = HEALTH[row.state] === "bad" ? "" : "; a new game took over";
  card.event.textContent = shown
    ? `${newest.cause} while ${newest.phase}, ${duration(ago_s)} ago${after}` : "";
}

turn();
