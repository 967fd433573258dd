// Reports the state of the game to the env at each tick, and restarts the level on its request.
//
//     run EPISODE TICK DIED X Y SPEED_X SPEED_Y
//
// The table `state` outlives levels and respawns, so ticks are counted since the process started.
// Speeds are in pixels a second. A jump has at most 580 and a death throws Tux up with 700, so the
// speed shows a death. After it, the reported position and speed are those of the death.

import("episode.nut"); // sets state.wanted, the current episode of the env

if (!("tick" in state)) {
  state.tick <- 0;
  state.died <- false;
  state.episode <- state.wanted;
  state.where <- "0 0 0 0";
}
if (state.episode != state.wanted) {
  state.episode = state.wanted;
  state.died = false;
}

// Returns false if this script must end, because `restart` starts it again.
function tell() {
  state.tick++;
  local tux = sector.Tux;
  if (tux.get_velocity_y() < -650) state.died = true;
  if (!state.died)
    state.where = tux.get_x() + " " + tux.get_y() + " "
      + tux.get_velocity_x() + " " + tux.get_velocity_y();
  print("run " + state.episode + " " + state.tick + " " + (state.died ? 1 : 0) + " "
    + state.where + "\n");
  import("episode.nut");
  if (state.wanted == state.episode) return true;
  restart();
  return false;
}
