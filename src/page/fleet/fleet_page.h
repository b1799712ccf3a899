#pragma once
#include <optional>
#include <string>

#include "fleet/choice.h"
#include "fleet/fleet.h"

namespace krigtune::page {

/// The input of the page of `krigtune plan --clusters`.
struct FleetSource {
  const fleet::Fleet& fleet;
  const fleet::Choice& choice;
  std::optional<double> deadline_days;
  std::string name;  ///< name of the session
  std::string made;  ///< time of creation, for people
};

/// Returns one self-contained file: the answers, time against price with the Pareto front, what all numbers assume,
/// efficiency against size, and a row for each cluster.
std::string fleet_page(const FleetSource& source);

}  // namespace krigtune::page
