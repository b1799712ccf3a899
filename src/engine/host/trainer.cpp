#include "krigtune/engine/trainer.h"

#include <algorithm>
#include <stdexcept>

#include "host/training_ranks.h"
#include "krigtune/core/hash.h"

namespace krigtune {

struct Trainer::Impl {
  Impl(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock, const TrainingOptions& options)
      : ranks(std::move(plan), network, clock, options) {}

  TrainingRanks ranks;
};

Trainer::Trainer(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock,
                 TrainingOptions options)
    : impl_(std::make_unique<Impl>(std::move(plan), network, clock, options)) {}

Trainer::~Trainer() = default;

StepResult Trainer::step() { return impl_->ranks.step(); }

std::vector<float> Trainer::parameters() const {
  const StepPlan& plan = impl_->ranks.plan();
  const std::int64_t holders = plan.parameters_sharded ? plan.ranks : 1;
  std::vector<float> all;
  for (const ParameterTensor& tensor : plan.tensors) {
    const auto end = static_cast<std::ptrdiff_t>(all.size()) + tensor.elems;
    for (std::int64_t rank = 0; rank < holders; ++rank) {
      const float* part = impl_->ranks.parameters(rank) + tensor.begin_elems / holders;
      all.insert(all.end(), part, part + tensor.padded_elems / holders);
    }
    all.resize(static_cast<std::size_t>(end));  // drops the padding
  }
  return all;
}

std::string Trainer::parameters_fnv1a64() const {
  const std::vector<float> all = parameters();
  Fnv1a64 hash;
  hash.add(all.data(), all.size() * sizeof(float));
  return hash.hex();
}

std::int64_t Trainer::arena_peak_bytes() const { return impl_->ranks.arena_peak_bytes(); }

}  // namespace krigtune
