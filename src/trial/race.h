#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trial/outcome.h"

// Ending a trial that is surely worse than the best so far.
namespace krigtune::trial {

/// A running trial as it stands: the objective, from so many measured steps.
struct Provisional {
  double value = 0.0;
  double value_sem = 0.0;  ///< within this run
  std::int64_t steps = 0;
};

/// The best that the trial can be, where that is worse than the rival; empty: it may still win. See race.cpp.
std::optional<double> bound_of_a_loser(const Provisional& provisional, const Rival& rival);

/// The lines of a growing file, each a JSON object of a sign of life; numbers of the last whole one with `field`.
class ProgressLines {
 public:
  explicit ProgressLines(std::filesystem::path file) : file_(std::move(file)) {}
  /// Numbers by name of the last line that has all of the fields, if such a line has come since the last call.
  std::optional<std::map<std::string, double>> next(const std::string& field);

 private:
  std::filesystem::path file_;
  std::uintmax_t read_ = 0;
  std::string torn_;  ///< the beginning of a line whose end is not there yet
};

}  // namespace krigtune::trial
