// Plans of other programs than ours err, and by factors that all configurations share (cost/memory_shape.h). A measured
// peak is one observation of them; a trial that ran without telling its peak says that it needed no more than there is,
// one that ran out of memory that it needed more. What failed for an unknown reason says nothing here: it is shared out
// among the reasons by model/trial_success.cpp.
#include "model/memory_margins.h"

#include <algorithm>
#include <cmath>

#include "krigtune/surrogate/success_model.h"

namespace krigtune {
namespace {

std::optional<MemoryEvidence> evidence_of(const Outcome& outcome, const MemoryVerdict::Spread& planned) {
  using Shows = MemoryEvidence::Shows;
  const auto usable = static_cast<double>(planned.usable.count);
  const auto* measured = std::get_if<Measured>(&outcome);
  if (measured != nullptr && measured->peak_memory && measured->peak_memory->count > 0) {
    return MemoryEvidence{planned.moments, Shows::kPeak, static_cast<double>(measured->peak_memory->count)};
  }
  if (ran(outcome)) return MemoryEvidence{planned.moments, Shows::kRan, usable};
  if (ran_out_of_memory(outcome)) return MemoryEvidence{planned.moments, Shows::kRanOut, usable};
  return std::nullopt;
}

}  // namespace

MemoryMargins::MemoryMargins(const Candidates& candidates, const History& history) {
  if (candidates.filter().is_exact()) return;
  std::vector<MemoryEvidence> evidence;
  double log_stddev = 0.0;
  for (const Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    const std::optional<MemoryVerdict> memory = candidates.memory_of(trial.proposal.configuration);
    if (!memory || !memory->spread || memory->spread->moments.empty()) continue;
    std::optional<MemoryEvidence> shown = evidence_of(*trial.outcome, *memory->spread);
    if (!shown) continue;
    log_stddev = memory->spread->own_log_stddev;
    evidence.push_back(*std::move(shown));
  }
  if (evidence.empty()) return;
  shape_.emplace(log_stddev);
  shape_->learn(evidence);
}

double MemoryMargins::at(const MemoryVerdict& memory) const {
  constexpr double kLeastProbability = 1e-9;
  // Models that state no spread say yes or no.
  if (!memory.spread) return probit(std::clamp(memory.probability_fits, kLeastProbability, 1.0 - kLeastProbability));
  if (!shape_ || memory.spread->moments.empty()) return memory.spread->margin;
  const MemoryShape::LogBytes needed = shape_->needed(memory.spread->moments);
  return (std::log(static_cast<double>(memory.spread->usable.count)) - needed.mean) / needed.stddev;
}

Eigen::VectorXd MemoryMargins::at(const std::vector<std::optional<MemoryVerdict>>& memory) const {
  Eigen::VectorXd margins(static_cast<Eigen::Index>(memory.size()));
  for (Eigen::Index i = 0; i < margins.size(); ++i) {
    const std::optional<MemoryVerdict>& of = memory[static_cast<std::size_t>(i)];
    margins(i) = of ? at(*of) : 0.0;
  }
  return margins;
}

}  // namespace krigtune
