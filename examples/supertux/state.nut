// Tells the env, once a game tick, how the run stands, and begins it anew when the env wants that.
//
//     run EPISODE TICK DIED X Y SPEED_X SPEED_Y
//
// The table `state` outlives levels and respawns, so ticks are counted over the process's life.
// Speeds are in pixels a second. Tux jumps with at most 580; one who dies is thrown up with 700,
// and that is how it is seen. What is told of him afterwards is how he stood when he died.

import("episode.nut"); // state.wanted <- the episode that the env is in

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

// Whether to go on: after `restart` this script is run anew, and the old one must end.
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
