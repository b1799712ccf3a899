#include "trial/watchdog.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace krigtune::trial {

bool Watchdog::expired(double now_s) {
  if (!limit_s_) return false;
  if (now_s < next_look_s_) return false;
  next_look_s_ = now_s + std::min(1.0, *limit_s_ / 10.0);
  std::vector<State> states = look();
  if (states != states_) last_change_s_ = now_s;
  states_ = std::move(states);
  return now_s - last_change_s_ >= *limit_s_;
}

std::vector<Watchdog::State> Watchdog::look() const {
  std::vector<State> states;
  for (const std::filesystem::path& file : files_) {
    struct stat state {};
    const bool there = ::stat(file.c_str(), &state) == 0;
    states.push_back(there ? State{state.st_size, state.st_mtim.tv_sec, state.st_mtim.tv_nsec} : State{-1, 0, 0});
  }
  if (signs_of_life_) states.push_back({signs_of_life_(), 0, 0});
  return states;
}

}  // namespace krigtune::trial
