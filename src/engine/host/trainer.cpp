#include "krigtune/engine/trainer.h"

#include <algorithm>
#include <stdexcept>

#include "host/training_ranks.h"
#include "krigtune/core/hash.h"

namespace krigtune {

struct Trainer::Impl {
  Impl(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock, const TrainingOptions& options,
       Processes* processes)
      : ranks(std::move(plan), network, clock, options, processes) {}

  TrainingRanks ranks;
};

Trainer::Trainer(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock,
                 TrainingOptions options, Processes* processes)
    : impl_(std::make_unique<Impl>(std::move(plan), network, clock, options, processes)) {}

Trainer::~Trainer() = default;

StepResult Trainer::step() { return impl_->ranks.step(); }

double Trainer::now_s() const { return impl_->ranks.now_s(); }

std::vector<float> Trainer::parameters(std::int64_t tensor_rank) const { return impl_->ranks.parameters(tensor_rank); }

std::string Trainer::parameters_fnv1a64() const {
  const std::vector<float> all = parameters();
  Fnv1a64 hash;
  hash.add(all.data(), all.size() * sizeof(float));
  return hash.hex();
}

std::int64_t Trainer::arena_peak_bytes(Place place) const { return impl_->ranks.arena_peak_bytes(place); }

}  // namespace krigtune
