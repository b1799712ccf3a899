#pragma once
#include <optional>
#include <string>
#include <vector>

#include "jobs/result/training_command.h"
#include "report/run_view.h"

namespace krigtune::jobs {

/// The value at one place of a command.
struct SaidPlace {
  std::string place;  ///< "--mbs", "train.lr", "$BATCH", "conf.yaml: train.lr"
  std::string text;   ///< "": present without a value
  friend bool operator==(const SaidPlace&, const SaidPlace&) = default;
};

/// Returns flags, override words, variables and the values of its files, in the order of the command. If a place occurs
/// twice, the last one counts. `switches`: flags without a value.
std::vector<SaidPlace> said_places(const TrainingCommand& command, const std::vector<std::string>& switches);

/// Returns changes.md: the differences in the user's command and files, and what each change is worth. Empty if the
/// runner is not a command, or if there is no best configuration.
std::optional<std::string> changes_of_job(const report::RunView& run);

}  // namespace krigtune::jobs
