// Two rules.
//
// Memory: what ran out of memory tells of all that needs at least as much: a larger or equal micro-batch, no smaller
// buckets, no more recomputation, the same ZeRO stage, or 0 in place of 1, or 2 in place of 3, and all else equal.
// Stages 0 and 1 need not hold more than 2 and 3, which in every micro-step have a bucket beside the gradients that
// they accumulate. For the same reason 2 and 3 without accumulation are not compared with more micro-steps. What is
// offloaded must be equal: host memory may have been what was short. Tensor and pipeline ranks too: they change what is
// kept and for how long. Peaks measured by others and the plan's own follow this order but for a per cent
// (tests/tuner/baselines_test.cpp). A failure of another kind tells nothing.
//
// Stages: stage 2 and 3 are left out where a lower stage ran with all else equal. They compute the same and send at
// least as much (stage 2 reduces in every micro-step, stage 3 gathers parameters besides; Rajbhandari et al. 2020,
// section 7); what they save is memory, which pays only by a larger micro-batch or less recomputation, and these are
// still run. Stage 1 is not left out: it sends as much as stage 0, and its optimizer step is shared. Only where the
// objective is speed.
#include "search/grid_pruning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "krigtune/core/text.h"
#include "krigtune/runner/metrics.h"
#include "krigtune/space/parameter_names.h"
#include "search/strategies.h"

namespace krigtune {
namespace {

enum class Demand { kEqual, kGrows, kStates, kActivations };

constexpr std::array<std::pair<std::string_view, Demand>, 8> kDemands{{
    {kMicroBatch, Demand::kGrows},
    {kZeroStage, Demand::kStates},
    {kReduceBucket, Demand::kGrows},
    {kAllgatherBucket, Demand::kGrows},
    {kPrefetch, Demand::kGrows},
    {kPersistence, Demand::kGrows},
    {kMaxLive, Demand::kGrows},
    {kCheckpointing, Demand::kActivations},
}};

Demand demand_of(const Parameter& parameter) {
  const auto found =
      std::find_if(kDemands.begin(), kDemands.end(), [&](const auto& entry) { return entry.first == parameter.name; });
  return found == kDemands.end() ? Demand::kEqual : found->second;
}

// full 0, selective 1, none 2; others are only equal to themselves.
int kept_activations(const Value& value) {
  constexpr std::array<std::string_view, 3> kWords{"full", "selective", "none"};
  const auto* word = std::get_if<std::string>(&value);
  const auto found = word == nullptr ? kWords.end() : std::find(kWords.begin(), kWords.end(), *word);
  return found == kWords.end() ? -1 : static_cast<int>(found - kWords.begin());
}

bool demands_at_least(Demand demand, const Value& value, const Value& other) {
  if (same_value(value, other)) return true;
  const bool are_numbers = is_number(value) && is_number(other);
  switch (demand) {
    case Demand::kEqual:
      return false;
    case Demand::kGrows:
      return are_numbers && as_number(value) > as_number(other);
    case Demand::kStates:
      return are_numbers && as_number(other) - as_number(value) == 1.0 && as_number(other) != 2.0;
    case Demand::kActivations:
      return kept_activations(other) >= 0 && kept_activations(value) > kept_activations(other);
  }
  return false;
}

double number_of(const Configuration& configuration, const char* name, double fallback) {
  const Value* value = configuration.find(name);
  return value != nullptr && is_number(*value) ? as_number(*value) : fallback;
}

bool shares_gradients(const Configuration& configuration) { return number_of(configuration, kZeroStage, 0.0) >= 2.0; }
bool accumulates(const Configuration& configuration) { return number_of(configuration, kAccumulation, 1.0) > 1.0; }

}  // namespace

GridPruning::GridPruning(const Space& space, const Objective& objective, const GridOptions& options,
                         const History& history)
    : space_(space) {
  if (!options.prune) return;
  for (const Trial& trial : history) {
    if (!counts(trial) || !trial.outcome) continue;
    if (std::holds_alternative<OutOfMemory>(*trial.outcome)) out_of_memory_.push_back(&trial.proposal.configuration);
    const bool has_run =
        std::holds_alternative<Measured>(*trial.outcome) || std::holds_alternative<Bounded>(*trial.outcome);
    if (has_run && find_metric(objective.metric) != nullptr) ran_.push_back(&trial.proposal.configuration);
  }
}

GridPruning::Verdict GridPruning::operator()(const Configuration& configuration) const {
  const auto is_beyond = [&](const Configuration* other) { return needs_at_least(configuration, *other); };
  if (std::any_of(out_of_memory_.begin(), out_of_memory_.end(), is_beyond)) return Verdict::kTooLarge;
  if (!shares_gradients(configuration)) return Verdict::kRun;
  const auto is_above = [&](const Configuration* other) { return only_stage_differs(configuration, *other); };
  return std::any_of(ran_.begin(), ran_.end(), is_above) ? Verdict::kCannotWin : Verdict::kRun;
}

// What exists in one of the two only has no effect in the other.
bool GridPruning::needs_at_least(const Configuration& configuration, const Configuration& other) const {
  if (shares_gradients(configuration) && accumulates(other) && !accumulates(configuration)) return false;
  for (const Parameter& parameter : space_.parameters()) {
    const Value* value = configuration.find(parameter.name);
    const Value* known = other.find(parameter.name);
    if (value == nullptr || known == nullptr || is_derived(parameter)) continue;
    if (!demands_at_least(demand_of(parameter), *value, *known)) return false;
  }
  return true;
}

bool GridPruning::only_stage_differs(const Configuration& configuration, const Configuration& other) const {
  for (const Parameter& parameter : space_.parameters()) {
    const Value* value = configuration.find(parameter.name);
    const Value* known = other.find(parameter.name);
    if (value == nullptr || known == nullptr) continue;
    const bool is_stage = parameter.name == kZeroStage;
    if (is_stage ? !is_number(*known) || as_number(*known) >= as_number(*value) : !same_value(*value, *known)) {
      return false;
    }
  }
  return true;
}

// The kept batch sets it.
bool GridPruning::is_derived(const Parameter& parameter) const {
  return parameter.name == kAccumulation && space_.facts().accumulation_follows();
}

std::string pruned_text(const Candidates& candidates, const GridPruning& pruning, const History& history) {
  if (!candidates.listed()) return "";
  const std::vector<bool> open = unseen(candidates, *candidates.to_score(history, 0), history);
  int too_large = 0;
  int cannot_win = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!open[i]) continue;
    const GridPruning::Verdict verdict = pruning(candidates[i]);
    too_large += verdict == GridPruning::Verdict::kTooLarge ? 1 : 0;
    cannot_win += verdict == GridPruning::Verdict::kCannotWin ? 1 : 0;
  }
  std::vector<std::string> reasons;
  if (too_large > 0) reasons.push_back(fmt::format("{} need the memory of one that ran out of it", too_large));
  if (cannot_win > 0) reasons.push_back(fmt::format("{} are of a higher ZeRO stage than one that runs", cannot_win));
  if (reasons.empty()) return "";
  return fmt::format("{} of {} configurations skipped: {}", too_large + cannot_win, candidates.size(),
                     join(reasons, ", "));
}

}  // namespace krigtune
