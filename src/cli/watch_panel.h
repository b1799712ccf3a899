#pragma once
#include <string>
#include <vector>

#include "krigtune/cli/command_line.h"
#include "krigtune/core/json.h"
#include "krigtune/tuner/run_directory.h"

namespace krigtune {

/// A run directory as somebody else sees it who only reads it.
struct Watched {
  std::string directory;  ///< as it was typed
  const RunRecord& record;
  const History& history;
  bool tune_runs = false;  ///< a tuner has claimed the directory
  std::int64_t now_us = 0;
};

/// Trials that somebody will close: those of a tuner that lives, and those that were asked by hand.
std::vector<Trial> pending_trials(const Watched& watched);

/// What stands above the trials: the session, the best, the counts, what runs, the time left.
std::vector<std::string> panel_header(const Watched& watched);
/// The header, then the last closed trials that fit; lines are clipped to the width.
std::vector<std::string> panel(const Watched& watched, TerminalSize size);

/// The same for programs.
void add_state(Json& document, const Watched& watched);

}  // namespace krigtune
