#pragma once
#include <string>
#include <vector>

#include "core/json.h"
#include "space/space.h"

namespace krigtune {

inline space::Space constrained(const std::string& json, const std::vector<std::string>& constraints,
                                space::JobFacts facts = {}) {
  std::vector<space::Expression> parsed;
  for (const std::string& constraint : constraints) parsed.push_back(space::Expression::parse(constraint));
  return {space::read_parameters(parse_json(json, "test"), "test", "/space"), std::move(facts), parsed};
}

inline space::Space space_from(const std::string& json, const space::JobFacts& facts = {}) {
  return constrained(json, {}, facts);
}

/// The space of a small session on two ranks, with 480 points in its lattice.
inline space::Space quickstart_space(std::int64_t parameter_count = 5'000'000) {
  return space_from(R"({
    "zero_stage": [0, 1, 2, 3],
    "micro_batch": {"min": 1, "max": 8, "scale": "log2"},
    "reduce_bucket_size": {"min": 1e4, "max": 1e6, "scale": "log", "steps": 5},
    "allgather_bucket_size": {"min": 1e4, "max": 1e6, "scale": "log", "steps": 3},
    "overlap_comm": [true, false]
  })",
                    {.ranks = 2, .train_batch_size = 16, .parameter_count = parameter_count});
}

inline std::vector<space::Configuration> all_of(const space::Space& space) {
  std::vector<space::Configuration> all;
  space.for_each([&](const space::Configuration& configuration) {
    all.push_back(configuration);
    return true;
  });
  return all;
}

/// Returns every point of the lattice, by a recursion that does not know the space's rules.
inline std::vector<space::Configuration> lattice_of(const std::vector<space::Parameter>& parameters) {
  std::vector<space::Configuration> points(1);
  for (const space::Parameter& parameter : parameters) {
    std::vector<space::Configuration> longer;
    for (const space::Configuration& point : points) {
      for (const space::Value& value : parameter.values) {
        longer.push_back(point);
        longer.back().set(parameter.name, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace krigtune
