#pragma once
#include "step/compressed_gathering.h"
#include "step/compressed_gradients.h"

namespace krigtune {

/// The end of the step: clipping and loss scaling, the update bucket by bucket, and updated parameters on their way:
/// plan/zero's OptimizerStep, without buffers.
class CompressedOptimizer {
 public:
  CompressedOptimizer(CostContext& step, const CompressedGradients& gradients, const CompressedGathering& parameters)
      : step_(step), gradients_(gradients), parameters_(parameters) {}
  void add();

 private:
  /// Neighbours in ready order, by where they live.
  struct Bucket {
    std::size_t begin = 0, end = 0;
    std::array<std::int64_t, 2> mastered_elems{};  ///< by place of the parameters
    std::int64_t updated_elems = 0;
    std::int64_t gathered_elems = 0;  ///< whole on every rank
  };

  std::vector<std::size_t> bucket_ends() const;
  Bucket bucket_of(std::size_t begin, std::size_t end) const;
  void control();
  void add_norm(std::int64_t elems);
  void compute(OpClass on_device, double flops, double bytes);
  void wait_for_gradients(const Bucket& bucket);
  void update(const Bucket& bucket);
  void deliver(Place to, std::int64_t elems);
  void gather(std::int64_t elems);
  bool on_host() const { return step_.policy.optimizer_place == Place::kHost; }
  Recorder::Behind done() const;

  CostContext& step_;
  const CompressedGradients& gradients_;
  const CompressedGathering& parameters_;
  Recorder::Behind gradients_ready_{Stream::kCompute, 0};  ///< of the current bucket
  std::int32_t control_copied_ = 0;
  std::int32_t delivered_ = 0;  ///< by copies
};

}  // namespace krigtune
