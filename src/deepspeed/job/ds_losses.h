#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The losses of a trial's first steps, as its script prints them: what tells whether two configurations train alike.
namespace krigtune::deepspeed {

/// What one line says of a training loss.
struct ReportedLoss {
  double value = 0.0;                ///< may be NaN or infinite: scripts print that too
  double resolution = 0.0;           ///< of the number as it is written: 0.01 of "6.43", 1e-6 of "6.430000E+00"
  std::optional<std::int64_t> step;  ///< where the line has one: of the optimizer, or of micro-steps, who knows
  bool is_bar = false;               ///< a state of a progress bar: a later one of the same step replaces it
};

/// Empty: the line reports no training loss (those of an evaluation and auxiliary ones are none). The forms that are
/// known, each with who prints it: ds_losses.cpp.
std::optional<ReportedLoss> loss_in_line(std::string_view line);

struct DsLosses {
  std::vector<double> values;  ///< in their order, from the first step on
  double resolution = 0.0;     ///< of the coarsest number; 0: exact
  std::int64_t interval = 1;   ///< steps from one to the next: scripts may print every tenth
};

/// The losses of the first `steps_due` optimizer steps in what the script printed. Several lines of one step (of ranks,
/// of micro-steps) count with their mean; carriage returns end lines. `steps`: how many were timed, at least. Empty:
/// the script prints none.
DsLosses losses_in(std::string_view output, std::int64_t steps, std::int64_t steps_due);

/// Those that the engine itself writes to its monitor's "Train_Samples_train_loss.csv": rank 0's own mean over the
/// step's micro-batches. Versions up to 0.17 do.
DsLosses losses_in_monitor(const std::filesystem::path& file, std::int64_t steps_due);

/// A trial's result.json: "losses" (null: not a number), "loss_resolution", "loss_interval"; nothing where there are
/// none.
void write_losses(const DsLosses& losses, nlohmann::ordered_json& result);
/// Empty values: the file is not there, or tells none.
DsLosses read_losses(const std::filesystem::path& result_json);

}  // namespace krigtune::deepspeed
