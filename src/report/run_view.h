#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "answer/answer.h"
#include "run/loop.h"
#include "search/model/best.h"

namespace krigtune::report {

/// The input of all result files: the present state of a run directory, and what follows from it. `session` and
/// `history` must outlive it.
struct RunView {
  const session::Session& session;
  const search::History& history;
  std::string name;  ///< name of the session, for people
  run::LoopOptions options;
  std::filesystem::path directory;
  std::filesystem::path bench;  ///< krigtune-bench, as commands should refer to it
  answer::Answer answer = {};

  /// Returns the same run with other trials, which must outlive it, and what follows from them.
  RunView with(const search::History& trials, answer::Answer facts) const {
    return {session, trials, name, options, directory, bench, std::move(facts)};
  }
  RunView with(const search::History& trials, const std::optional<search::Recommendation>& best) const {
    return with(trials, answer::answer_of(session, trials, best));
  }
};

}  // namespace krigtune::report
