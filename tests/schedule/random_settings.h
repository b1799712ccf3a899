#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "krigtune/rng.h"
#include "schedule/setting.h"

namespace krigtune::schedule {

/// A setting with the tensors that it refers to.
struct SettingCase {
  workload::Workload workload;
  std::unique_ptr<StageTensors> tensors;
  std::unique_ptr<Setting> setting;

  std::string text() const {
    const Knobs& k = setting->knobs;
    return "stage " + std::to_string(k.zero_stage) + (setting->policy.packs ? " deepspeed" : " canonical") + ", " +
           std::to_string(tensors->parts().layers) + " layers (" + std::to_string(tensors->parts().others[0]) +
           " of another kind), buckets of " + std::to_string(k.reduce_bucket_elems) + ", prefetch " +
           std::to_string(k.prefetch_elems) + ", live " + std::to_string(k.max_live_elems) + ", persistence " +
           std::to_string(k.persistence_elems) + (k.overlap_comm ? ", overlap" : "");
  }
};

/// Draws small models, stages of a pipeline and knobs.
class RandomSettings {
 public:
  explicit RandomSettings(std::uint64_t seed) : rng_(seed, 0) {}

  SettingCase next() {
    SettingCase drawn;
    drawn.workload.model = {.layers = number({1, 2, 3, 5}),
                            .hidden = 16,
                            .heads = 2,
                            .kv_heads = 2,
                            .ffn_hidden = 64,
                            .vocab = 31,
                            .seq_len = 8};
    drawn.workload.model.tied_embeddings = coin();
    if (number({0, 0, 1}) == 1) drawn.workload.model.norm_places = workload::NormPlaces::kPost;
    if (number({0, 0, 1}) == 1) drawn.workload.model.qk_norm = workload::QkNorm::kHead;
    if (number({0, 0, 1}) == 1) drawn.workload.model.others = {7, 9};
    if (number({0, 0, 1}) == 1) drawn.workload.model.norm_gain = false;
    if (number({0, 0, 1}) == 1) {
      drawn.workload.model.qk_norm = workload::QkNorm::kNone;
      drawn.workload.model.latent = {number({0, 6}), 8, 4, 2, 6};
    }
    if (number({0, 0, 1}) == 1) drawn.workload.model.experts = {4, 2, 24, number({0, 16}), number({0, 1, 2})};
    drawn.workload.model.norm = coin() ? workload::Norm::kLayerNorm : workload::Norm::kRmsNorm;
    drawn.workload.precision = coin() ? workload::Precision::kBf16 : workload::Precision::kFp32;
    drawn.workload.dialect = coin() ? workload::Dialect::kDeepSpeed : workload::Dialect::kCanonical;
    drawn.workload.gradient_clipping = coin() ? 1.0 : 0.0;
    const Knobs knobs = draw_knobs();
    const std::int64_t layers = drawn.workload.model.layers;
    const StageParts parts{layers, number({0, 1, 1}) == 1, number({0, 1, 1}) == 1,
                           drawn.workload.model.other_layers_in(0, layers)};
    drawn.tensors =
        std::make_unique<StageTensors>(unit_tensors(drawn.workload, knobs), parts,
                                       granule_elems(knobs.data_ranks, compute_type(drawn.workload.precision)));
    drawn.setting = std::make_unique<Setting>(Setting{*drawn.tensors, knobs, make_policy(drawn.workload, knobs)});
    return drawn;
  }

 private:
  std::int64_t number(std::initializer_list<std::int64_t> values) { return values.begin()[rng_.below(values.size())]; }
  bool coin() { return rng_.below(2) == 1; }

  Knobs draw_knobs() {
    Knobs knobs;
    knobs.data_ranks = number({1, 2, 4});
    knobs.zero_stage = number({0, 1, 2, 3, 3});
    knobs.micro_steps = number({1, 2, 3});
    knobs.reduce_bucket_elems = number({1, 500, 3'000, 1'000'000});
    knobs.allgather_bucket_elems = number({1, 3'000, 1'000'000});
    knobs.overlap_comm = coin();
    knobs.checkpointing = coin() ? Checkpointing::kFull : Checkpointing::kNone;
    knobs.checkpoint_layers = number({1, 2, 9});
    knobs.offload_optimizer = coin();
    knobs.offload_parameters = knobs.zero_stage == 3 && coin();
    knobs.prefetch_elems = number({0, 700, 5'000, 1'000'000});
    knobs.persistence_elems = number({0, 40, 900});
    knobs.max_live_elems = number({1, 4'000, 1'000'000});
    knobs.max_reuse_elems = number({0, 3'000, 1'000'000});
    return knobs;
  }

  Rng rng_;
};

}  // namespace krigtune::schedule
