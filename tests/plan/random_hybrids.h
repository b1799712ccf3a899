#pragma once
#include <cstdint>
#include <vector>

#include "plan/random_plans.h"
#include "workload/model_presets.h"

namespace krigtune {

/// Makes hybrids of the models of drawn cases: layers of up to four kinds.
class RandomHybrids {
 public:
  explicit RandomHybrids(std::uint64_t seed) : plans_(seed), rng_(seed, 1) {}

  /// Returns the next case that makes a plan.
  PlanCase next() {
    for (;;) {
      PlanCase drawn = plans_.next();
      make_hybrid(drawn.workload.model);
      try {
        schedule::check_knobs(drawn.workload, drawn.cluster, drawn.configuration);
        return drawn;
      } catch (const UserError&) {
        continue;
      }
    }
  }

  void make_hybrid(workload::ModelSpec& model) {
    using workload::FeedForward;
    using workload::Mixer;
    model.layer_kinds = {};
    const int kinds = 1 + number(3);
    for (int i = 0; i < kinds; ++i) {
      workload::LayerKind kind{static_cast<Mixer>(number(3)), static_cast<FeedForward>(number(2))};
      if (kind.mixer == Mixer::kNone && kind.feed_forward == FeedForward::kNone) kind.mixer = Mixer::kMamba;
      model.layer_kinds.of(kind) = 1 + number(2);
    }
    model.layers = model.layer_kinds.sum();
    model.mamba = model.layers_with(Mixer::kMamba) > 0 ? workload::MambaSpec{8, 3, 5, 4, 3, 3} : workload::MambaSpec{};
    model.delta = model.layers_with(Mixer::kDelta) > 0 ? workload::DeltaSpec{4, 8, 3, 5, 3, 3} : workload::DeltaSpec{};
    model.experts = {};
    if (model.layers_with(FeedForward::kExperts) > 0) model.experts = {3, 2, 12, 8 * number(2)};
    if (model.has_experts() && number(1) == 1) model.experts.latent = 12;
    if (model.norm_places == workload::NormPlaces::kShared) model.norm_places = workload::NormPlaces::kPre;
    model.mtp = {};
    if (number(3) == 0) model.mtp = {1 + number(1), number(1) == 1, {}};
    for (const workload::LayersOfKind& of : model.kinds()) {
      if (model.mtp.layers > 0 && number(1) == 1) model.mtp.blocks.of(of.kind) = 1;
    }
    workload::resolve(model);
  }

 private:
  int number(std::uint64_t most) { return static_cast<int>(rng_.below(most + 1)); }

  RandomPlans plans_;
  Rng rng_;
};

}  // namespace krigtune
