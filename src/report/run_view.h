#pragma once
#include <optional>
#include <string>

#include "run/loop.h"
#include "search/model/best.h"

namespace krigtune::report {

/// What result files are made of: a run directory as it stands. `session` and `history` must outlive it.
struct RunView {
  const session::Session& session;
  const search::History& history;
  std::string name;  ///< of the session, for people
  run::LoopOptions options;
  std::filesystem::path directory;
  std::filesystem::path bench;  ///< krigtune-bench, as a command should name it
  std::optional<search::Recommendation> best;
};

}  // namespace krigtune::report
