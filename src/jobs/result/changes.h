#pragma once
#include <optional>
#include <string>
#include <vector>

#include "jobs/result/training_command.h"
#include "report/run_view.h"

namespace krigtune::jobs {

/// What a command says at one of its places.
struct SaidPlace {
  std::string place;  ///< "--mbs", "train.lr", "$BATCH", "conf.yaml: train.lr"
  std::string text;   ///< "": it is there, without a value
  friend bool operator==(const SaidPlace&, const SaidPlace&) = default;
};

/// Flags, override words, variables and the values of its files, in the order of the command. Of a place that is there
/// twice the last one counts. `switches`: flags that take no value.
std::vector<SaidPlace> said_places(const TrainingCommand& command, const std::vector<std::string>& switches);

/// changes.md: what is different in the user's command and files, and what each change is worth. Empty where the runner
/// is no command, or there is no best.
std::optional<std::string> changes_of_job(const report::RunView& run);

}  // namespace krigtune::jobs
