// Which knobs mean nothing where, as DeepSpeed reads them (docs/config-json, "ZeRO optimizations"; stages as in
// Rajbhandari et al. 2020): a configuration that differs in such a knob only would be measured twice.
#include "canonical.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace krigtune {
namespace {

bool shards_no_parameters(const Situation& s) { return s.zero_stage < 3; }
// Stage 0 has nothing to gather, stage 3 gathers unit by unit.
bool gathers_no_buckets(const Situation& s) { return s.zero_stage == 0 || s.zero_stage == 3; }
bool is_alone(const Situation& s) { return s.dp == 1; }

struct NoEffect {
  std::string_view knob;  ///< a name, or a prefix that ends in '*'
  bool (*where)(const Situation&);
};
constexpr std::array kNoEffect = {
    NoEffect{"stage3_*", shards_no_parameters},
    NoEffect{"stage3_prefetch_bucket_size", is_alone},
    NoEffect{"allgather_bucket_size", gathers_no_buckets},
    NoEffect{"allgather_bucket_size", is_alone},
    NoEffect{"reduce_bucket_size", is_alone},
    NoEffect{"overlap_comm", is_alone},
};

// In elements: whatever holds all parameters makes one bucket.
constexpr std::array<std::string_view, 2> kBuckets = {"reduce_bucket_size", "allgather_bucket_size"};

bool names(std::string_view pattern, std::string_view name) {
  if (pattern.back() != '*') return pattern == name;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

bool has_no_effect(const std::string& name, const Situation& situation) {
  return std::any_of(kNoEffect.begin(), kNoEffect.end(),
                     [&](const NoEffect& rule) { return names(rule.knob, name) && rule.where(situation); });
}

// The smallest value of the range that holds `elems`; `value` itself where there is none. Never a smaller bucket.
Value smallest_that_holds(const Parameter& parameter, double elems, const Value& value) {
  const Value* smallest = nullptr;
  for (const Value& candidate : parameter.values) {
    if (!is_number(candidate) || as_number(candidate) < elems) continue;
    if (smallest == nullptr || as_number(candidate) < as_number(*smallest)) smallest = &candidate;
  }
  return smallest == nullptr ? value : *smallest;
}

}  // namespace

void canonicalise_knobs(const std::vector<Parameter>& parameters, const Situation& situation,
                        Configuration& configuration) {
  for (const Parameter& parameter : parameters) {
    const Value* value = configuration.find(parameter.name);
    if (value == nullptr) continue;
    if (has_no_effect(parameter.name, situation)) {
      configuration.set(parameter.name, parameter.values.front());
      continue;
    }
    if (!situation.parameter_count || !is_number(*value)) continue;
    const auto all = static_cast<double>(*situation.parameter_count);
    const bool is_bucket = std::find(kBuckets.begin(), kBuckets.end(), parameter.name) != kBuckets.end();
    if (is_bucket && as_number(*value) >= all) {
      configuration.set(parameter.name, smallest_that_holds(parameter, all, *value));
    }
  }
}

}  // namespace krigtune
