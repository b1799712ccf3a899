#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "report/run_view.h"

namespace krigtune::result {

/// Why no trial is ok, for people.
struct FailureStory {
  std::string reasons;                      ///< "12 oom, 1 failed (crash)", or "none was run"
  std::optional<int> first = std::nullopt;  ///< the first trial that failed
  std::filesystem::path log = {};           ///< of that one; empty: it left none
  std::string said = {};                    ///< its last lines; "": nothing
  std::string to_try = {};                  ///< about the most frequent failure; "": there is no advice
};
FailureStory failure_story(const report::RunView& run);

}  // namespace krigtune::result
