#pragma once
#include <optional>
#include <string>

#include "run/loop.h"
#include "search/model/best.h"

namespace krigtune {

/// What result files are made of: a run directory as it stands. `session` and `history` must outlive it.
struct RunView {
  const Session& session;
  const History& history;
  std::string name;  ///< of the session, for people
  LoopOptions options;
  std::filesystem::path directory;
  std::filesystem::path bench;  ///< krigtune-bench, as a command should name it
  std::optional<Recommendation> best;
};

}  // namespace krigtune
