#pragma once
#include <string>

namespace krigtune::jobs {

/// Returns the unit of the number that a regular expression with one group finds in a log: "tok/s" of
/// "([0-9.]+) tok/s" and of "tok/s: ([0-9.]+)". A word counts as a unit if it has a "/" or a "%", or if it is a usual
/// one behind the number, such as "ms". Otherwise returns "": "loss" of "loss ([0-9.]+)" is a name.
std::string unit_in(const std::string& regex);

}  // namespace krigtune::jobs
