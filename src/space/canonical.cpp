// Which knobs mean nothing where, as DeepSpeed reads them (docs/config-json, "ZeRO optimizations"; stages as in
// Rajbhandari et al. 2020): a configuration that differs in such a knob only would be measured twice.
#include "canonical.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace krigtune {
namespace {

struct NoEffect {
  std::string_view knob;  ///< a name, or a prefix that ends in '*'
  Expression where;
};

const std::vector<NoEffect>& rules() {
  constexpr const char* kAlone = "dp == 1";
  static const std::vector<NoEffect> kRules = {
      {"stage3_*", Expression::parse("zero_stage < 3")},
      {"offload_param", Expression::parse("zero_stage < 3")},
      {"sequence_parallel", Expression::parse("tensor_parallel == 1")},
      {"activation_checkpointing_layers", Expression::parse("activation_checkpointing != 'full'")},
      {"stage3_prefetch_bucket_size", Expression::parse(kAlone)},
      // Stage 0 has nothing to gather, stage 3 gathers unit by unit.
      {"allgather_bucket_size", Expression::parse("zero_stage == 0 || zero_stage == 3")},
      {"allgather_bucket_size", Expression::parse(kAlone)},
      {"reduce_bucket_size", Expression::parse(kAlone)},
      {"overlap_comm", Expression::parse(kAlone)},
  };
  return kRules;
}

// In elements: whatever holds all parameters makes one bucket.
constexpr std::array<std::string_view, 2> kBuckets = {"reduce_bucket_size", "allgather_bucket_size"};

bool names(std::string_view pattern, std::string_view name) {
  if (pattern.back() != '*') return pattern == name;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

// Never a smaller bucket than `value`.
Value held_value(const Parameter& bucket, double elems, const Value& value) {
  if (bucket.range) return bucket.range->max < elems ? value : number_value(std::max(elems, bucket.range->min));
  const int smallest = smallest_that_holds(bucket, elems);
  return smallest < 0 ? value : bucket.values[static_cast<std::size_t>(smallest)];
}

}  // namespace

std::vector<const Expression*> conditions_of_no_effect(const std::string& knob) {
  std::vector<const Expression*> conditions;
  for (const NoEffect& rule : rules()) {
    if (names(rule.knob, knob)) conditions.push_back(&rule.where);
  }
  return conditions;
}

bool is_bucket(const std::string& knob) { return std::find(kBuckets.begin(), kBuckets.end(), knob) != kBuckets.end(); }

int smallest_that_holds(const Parameter& bucket, double elems) {
  int smallest = -1;
  for (std::size_t i = 0; i < bucket.values.size(); ++i) {
    if (!is_number(bucket.values[i]) || as_number(bucket.values[i]) < elems) continue;
    const bool smaller =
        smallest < 0 || as_number(bucket.values[i]) < as_number(bucket.values[static_cast<std::size_t>(smallest)]);
    if (smaller) smallest = static_cast<int>(i);
  }
  return smallest;
}

Value first_value(const Parameter& parameter) {
  return parameter.range ? number_value(parameter.range->min) : parameter.values.front();
}

Value canonical_value(const Parameter& knob, const Value& value, bool no_effect,
                      const std::optional<std::int64_t>& parameter_count) {
  if (no_effect) return first_value(knob);
  if (!parameter_count || !is_bucket(knob.name) || !is_number(value)) return value;
  const auto all = static_cast<double>(*parameter_count);
  return as_number(value) < all ? value : held_value(knob, all, value);
}

}  // namespace krigtune
