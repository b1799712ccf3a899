#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The losses of a trial's first steps, as its script prints them. They show whether two configurations train equally.
namespace krigtune::deepspeed {

/// A training loss on one line.
struct ReportedLoss {
  double value = 0.0;                ///< may be NaN or infinite: scripts print that too
  double resolution = 0.0;           ///< precision of the printed number: 0.01 for "6.43", 1e-6 for "6.430000E+00"
  std::optional<std::int64_t> step;  ///< the line's step number, if any; it may count optimizer steps or micro-steps
  bool is_bar = false;               ///< a state of a progress bar, which a later one of the same step replaces
};

/// Empty if the line reports no training loss (evaluation and auxiliary losses do not count). ds_losses.cpp lists the
/// known forms and the programs that print them.
std::optional<ReportedLoss> loss_in_line(std::string_view line);

struct DsLosses {
  std::vector<double> values;  ///< in order, from the first step on
  double resolution = 0.0;     ///< precision of the coarsest number; 0: exact
  std::int64_t interval = 1;   ///< steps between two losses: scripts may print every tenth
};

/// Returns the losses of the first `steps_due` optimizer steps from the script's output. Several lines of one step (of
/// ranks or micro-steps) are averaged; carriage returns end lines. `steps`: lower limit of the number of timed steps.
/// Empty if the script prints no loss.
DsLosses losses_in(std::string_view output, std::int64_t steps, std::int64_t steps_due);

/// Returns the losses that the engine itself writes to its monitor's "Train_Samples_train_loss.csv": rank 0's mean over
/// the micro-batches of the step. Versions up to 0.17 write them.
DsLosses losses_in_monitor(const std::filesystem::path& file, std::int64_t steps_due);

/// Writes a trial's losses to its result.json: "losses" (null: not a number), "loss_resolution", "loss_interval";
/// nothing if there are none.
void write_losses(const DsLosses& losses, nlohmann::ordered_json& result);
/// Returns empty values if the file is missing or has no losses.
DsLosses read_losses(const std::filesystem::path& result_json);

}  // namespace krigtune::deepspeed
