#pragma once
#include <optional>
#include <string>
#include <vector>

#include "krigtune/space/configuration.h"

namespace krigtune {

/// How many times better one configuration is than another, by the surrogate: the median and its 95 % interval.
struct Gain {
  double factor = 1.0;  ///< below 1: worse
  double lower_95 = 1.0, upper_95 = 1.0;
  bool clear() const { return lower_95 > 1.0 || upper_95 < 1.0; }
};

/// One parameter that two configurations do not agree about.
struct Change {
  /// What taking back this change alone leads to.
  enum class Alone {
    kPossible,      ///< a configuration of which the surrogate knows something
    kFollows,       ///< nothing: it follows from other parameters (gradient accumulation at a kept batch)
    kNeedsAnother,  ///< no configuration: it has a meaning only with another of the changes
    kTooLarge,      ///< one that does not fit into memory
  };
  std::string parameter;
  std::optional<Value> before;  ///< empty: it did not exist
  std::optional<Value> after;   ///< empty: it does not exist any more
  Alone alone = Alone::kPossible;
  std::optional<Gain> gain;  ///< of the later configuration over itself with this change taken back; kPossible only
};

/// What lies between two configurations. Gains of single changes need not multiply to that of all together: parameters
/// work on each other.
struct Changes {
  std::vector<Change> each;      ///< in the order of the later configuration, then what it lacks
  std::optional<Gain> together;  ///< of the later configuration over the earlier one
};

}  // namespace krigtune
