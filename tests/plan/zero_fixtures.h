#pragma once
#include <string>
#include <utility>
#include <vector>

#include "plan/plan_fixtures.h"

namespace krigtune {

using Settings = std::vector<std::pair<std::string, space::Value>>;

inline space::Configuration with(space::Configuration configuration, const Settings& settings) {
  for (const auto& [name, value] : settings) configuration.set(name, value);
  return configuration;
}

inline workload::Workload workload_in(workload::Dialect dialect,
                                      workload::Precision precision = workload::Precision::kFp32,
                                      double clipping = 0.0) {
  workload::Workload workload = small_workload();
  workload.dialect = dialect;
  workload.precision = precision;
  workload.gradient_clipping = clipping;
  return workload;
}

}  // namespace krigtune
