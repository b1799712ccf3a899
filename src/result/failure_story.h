#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "report/run_view.h"

namespace krigtune::result {

/// Why no trial has succeeded, for people.
struct FailureStory {
  std::string reasons;                      ///< "12 oom, 1 failed (crash)", or "none was run"
  std::optional<int> first = std::nullopt;  ///< the first trial that failed
  std::filesystem::path log = {};           ///< log of that trial; empty if it has none
  std::string said = {};                    ///< its last lines; "" if none
  std::string to_try = {};                  ///< advice about the most frequent failure; "" if none
};
FailureStory failure_story(const report::RunView& run);

}  // namespace krigtune::result
