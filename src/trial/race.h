#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trial/outcome.h"

// Ends a trial that is certainly worse than the best so far.
namespace krigtune::trial {

/// The present state of a running trial: the objective from its measured steps.
struct Provisional {
  double value = 0.0;
  double value_sem = 0.0;  ///< within this run
  std::int64_t steps = 0;
};

/// Returns the best value that the trial can reach if that is worse than the rival; empty if it may still win. See
/// race.cpp.
std::optional<double> bound_of_a_loser(const Provisional& provisional, const Rival& rival);

/// Reads the lines of a growing file, each a JSON object with signs of life.
class ProgressLines {
 public:
  explicit ProgressLines(std::filesystem::path file) : file_(std::move(file)) {}
  /// Returns the numbers by name of the last complete line with `field`, if a new one has appeared since the last call.
  std::optional<std::map<std::string, double>> next(const std::string& field);

 private:
  std::filesystem::path file_;
  std::uintmax_t read_ = 0;
  std::string torn_;  ///< the beginning of an incomplete line
};

}  // namespace krigtune::trial
