#include "report/memory_advice.h"

#include <algorithm>
#include <array>
#include <vector>

#include "space/well_known.h"

namespace krigtune::report {
namespace {

// A parameter whose smaller (or larger) values need less memory.
struct Ordered {
  const char* name;
  bool lower_needs_less;
  double end;  ///< the last value in this direction
  const char* advice;
};
constexpr std::array kOrdered = {Ordered{space::kMicroBatch, true, 1.0, "a lower micro_batch"},
                                 Ordered{space::kZeroStage, false, 3.0, "a higher zero_stage"}};

// Parameters that are worth adding if the space lacks them.
constexpr std::array kToAdd = {space::kTensorParallel, space::kCheckpointing, space::kOffloadOptimizer};

double extreme(const space::Parameter& parameter, bool lowest) {
  double value = space::as_number(parameter.values.front());
  for (const space::Value& other : parameter.values) {
    value = lowest ? std::min(value, space::as_number(other)) : std::max(value, space::as_number(other));
  }
  return value;
}

bool can_go_further(const space::Space& space, const Ordered& knob) {
  const space::Parameter* parameter = space.find(knob.name);
  if (parameter == nullptr || parameter->values.empty() || !space::is_number(parameter->values.front())) return false;
  const double reached = extreme(*parameter, knob.lower_needs_less);
  return knob.lower_needs_less ? reached > knob.end : reached < knob.end;
}

std::string listed(const std::vector<std::string>& ways) {
  std::string text;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    text += i == 0 ? "" : i + 1 == ways.size() ? " or " : ", ";
    text += ways[i];
  }
  return text;
}

}  // namespace

std::string memory_advice(const session::Session& session) {
  std::vector<std::string> ways;
  for (const Ordered& knob : kOrdered) {
    if (can_go_further(session.space, knob)) ways.emplace_back(knob.advice);
  }
  if (session.workload) {
    for (const char* name : kToAdd) {
      const bool is_useless = name == std::string_view(space::kTensorParallel) && session.cluster.ranks() == 1;
      if (!is_useless && session.space.find(name) == nullptr && !session.space.facts().fixed.has(name))
        ways.emplace_back(name);
    }
  }
  if (ways.empty()) ways.emplace_back("configurations that need less memory");
  std::string text = "let the space contain " + listed(ways);
  if (!session.cluster.is_local()) return text + ", or use more GPUs";
  return text + (session.usable_per_rank ? ", or raise the memory limit (/memory/limit_gib)" : "");
}

}  // namespace krigtune::report
