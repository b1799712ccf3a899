#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runner/replay.h"

namespace krigtune::runner {

/// One ok row: the objective and its other metrics.
struct ReplayRow {
  double value = 0.0;
  std::map<std::string, double> metrics = {};
};

/// The rows of one configuration.
struct ReplayGroup {
  /// Values of the parameters as spelled in the table, in units of the space.
  std::vector<std::string> fields;
  std::vector<ReplayRow> rows = {};               ///< the ok ones, in the table's order
  std::optional<trial::Bounded> bound = {};       ///< the best of its bounded rows
  std::optional<trial::OutOfMemory> memory = {};  ///< its first row with status oom
  std::optional<trial::Failed> failure = {};      ///< its first row with any other status
};

/// Groups by the values of the parameters, as ReplayKeys writes them.
using ReplayGroups = std::unordered_map<std::string, ReplayGroup>;

/// Reads the rows that `spec.where` selects. Throws UserError with file, line and column.
ReplayGroups read_replay_groups(const ReplaySpec& spec, const std::vector<std::string>& parameters, bool maximize);

}  // namespace krigtune::runner
