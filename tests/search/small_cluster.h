#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "search/fixtures.h"

namespace krigtune {

inline std::int64_t stage_of(const space::Configuration& c) { return c.integer("zero_stage", 0); }
inline std::int64_t micro_batch_of(const space::Configuration& c) { return c.integer("micro_batch", 1); }

/// Saturates with the micro-batch. The second of three buckets and stage 1 are the fastest.
inline trial::Outcome small_cluster(const session::Session& session, const space::Configuration& c) {
  constexpr std::array<std::int64_t, 4> kLargest{5, 9, 9, 12};
  constexpr std::array<double, 4> kSpeed{1.0, 1.02, 0.9, 0.8};
  const std::map<std::int64_t, double> bucket_speed{{10, 1.0}, {20, 1.1}, {30, 1.05}};
  const auto stage = static_cast<std::size_t>(stage_of(c));
  if (micro_batch_of(c) > kLargest[stage]) return trial::OutOfMemory{};
  const auto micro_batch = static_cast<double>(micro_batch_of(c));
  return measured(session,
                  100.0 * micro_batch / (micro_batch + 2.0) * kSpeed[stage] * bucket_speed.at(c.integer("bucket", 10)));
}

inline constexpr const char* kStages = R"({"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 16},
                                    "bucket": [10, 20, 30]})";

/// Returns "1:9:20" for stage, micro-batch and bucket.
inline std::vector<std::string> short_texts(const search::History& history) {
  std::vector<std::string> result;
  for (const journal::Trial& trial : history) {
    const space::Configuration& c = trial.proposal.configuration;
    result.push_back(std::to_string(stage_of(c)) + ":" + std::to_string(micro_batch_of(c)) + ":" +
                     std::to_string(c.integer("bucket", 10)));
  }
  return result;
}

}  // namespace krigtune
