#pragma once
#include <optional>
#include <string>

#include "run/loop.h"
#include "search/model/best.h"

namespace krigtune::report {

/// The input of all result files: the present state of a run directory. `session` and `history` must outlive it.
struct RunView {
  const session::Session& session;
  const search::History& history;
  std::string name;  ///< name of the session, for people
  run::LoopOptions options;
  std::filesystem::path directory;
  std::filesystem::path bench;  ///< krigtune-bench, as commands should refer to it
  std::optional<search::Recommendation> best;
};

}  // namespace krigtune::report
