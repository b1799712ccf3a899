#pragma once
#include <map>
#include <string>
#include <vector>

#include "krigtune/runner/runner.h"

namespace krigtune {

/// The rows of one configuration.
struct ReplayGroup {
  std::vector<double> values;  ///< of its ok rows, in the table's order
  bool out_of_memory = false;  ///< a row says oom
  std::string failure;         ///< the first status that is neither
};

/// By the values of the parameters, as replay_key writes them.
using ReplayGroups = std::map<std::vector<std::string>, ReplayGroup>;

/// Reads the rows that `spec.where` picks. Throws UserError with file and line or column.
ReplayGroups read_replay_groups(const RunnerSpec& spec, const std::vector<std::string>& parameters);

/// Values in one spelling, so that 4, 4.0 and "4", or true, True and 1, are the same; a parameter that is absent is
/// an empty field.
std::vector<std::string> replay_key(const Configuration& configuration, const std::vector<std::string>& parameters);

double best_of(const std::vector<double>& values, bool maximize);  ///< of at least one
double median_of(std::vector<double> values);                      ///< of at least one

}  // namespace krigtune
