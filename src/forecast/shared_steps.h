#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "forecast/roles.h"
#include "space/configuration.h"

namespace krigtune::forecast {

/// Numbers the training steps that configurations mean. Many configurations are one step: they differ in parameters
/// that no step has, or in what they are called under different meanings of the parameters. What is predicted of a step
/// need be predicted only once. Thread-safe.
class SharedSteps {
 public:
  using Number = std::uint32_t;

  /// `meanings`: what the parameters may mean; empty roles: as their names say. `is_told`: the session describes the
  /// job, so values are read as they are (session::modelled_part); otherwise as as_training_step() reads them.
  SharedSteps(std::vector<Roles> meanings, bool is_told);

  /// Returns one row per entry of `meanings` (indices), each with one number per configuration. Equal numbers are equal
  /// steps.
  std::vector<std::vector<Number>> of(const std::vector<std::size_t>& meanings,
                                      const std::vector<space::Configuration>& configurations) const;
  /// Returns the step as the models of time and memory read it.
  space::Configuration step(std::size_t meaning, const space::Configuration& configuration) const;
  std::size_t size() const;  ///< steps that have a number

 private:
  struct Meaning {
    Roles roles;
    std::unordered_map<std::string, std::string> names;  ///< in the step, by the configuration's; empty: in no step
    std::vector<Number> numbers;                         ///< by the configuration's number
  };
  const std::string& name_in_step(Meaning& meaning, const std::string& name) const;
  Number number_of(Meaning& meaning, const space::Configuration& configuration) const;

  bool is_told_;
  mutable std::mutex mutex_;                                        // protects the members below
  mutable std::unordered_map<std::string, Number> configurations_;  ///< by their text
  mutable std::vector<Meaning> meanings_;
  mutable std::unordered_map<std::string, Number> steps_;  ///< by theirs
};

}  // namespace krigtune::forecast
