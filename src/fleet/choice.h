#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "fleet/fleet.h"

namespace krigtune::fleet {

/// Which clusters answer the usual questions. All numbers are indices of Fleet::plans. Plans without a price take no
/// part in questions about prices; if no plan has one, only `fastest` and the deadline are answered.
struct Choice {
  std::optional<std::size_t> cheapest;
  std::optional<std::size_t> fastest;
  /// Those that no other one beats in both days and price, the fastest first.
  std::vector<std::size_t> front;

  // With a deadline; without any price, the plan with the fewest GPU-hours is taken instead of the cheapest.
  std::optional<std::size_t> in_time;         ///< the cheapest whose predicted days meet it
  std::optional<std::size_t> surely_in_time;  ///< the cheapest whose upper end meets it too
  std::optional<std::size_t> nearest;         ///< the fastest, if none meets it
};

Choice choose(const Fleet& fleet, std::optional<double> deadline_days);

}  // namespace krigtune::fleet
