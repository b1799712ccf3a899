#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runner/replay.h"

namespace krigtune::runner {

/// One ok row: the objective and the other metrics that it has.
struct ReplayRow {
  double value = 0.0;
  std::map<std::string, double> metrics = {};
};

/// The rows of one configuration.
struct ReplayGroup {
  std::vector<std::string> fields;           ///< of the parameters, as the table spells them, in units of the space
  std::vector<ReplayRow> rows = {};          ///< the ok ones, in the table's order
  std::optional<trial::Bounded> bound = {};  ///< the best of its bounded rows
  std::optional<trial::OutOfMemory> memory = {};  ///< its first row that says oom
  std::optional<trial::Failed> failure = {};      ///< its first row that is none of these
};

/// By the values of the parameters, as ReplayKeys writes them.
using ReplayGroups = std::unordered_map<std::string, ReplayGroup>;

/// Reads the rows that `spec.where` picks. Throws UserError with file, line and column.
ReplayGroups read_replay_groups(const ReplaySpec& spec, const std::vector<std::string>& parameters, bool maximize);

}  // namespace krigtune::runner
