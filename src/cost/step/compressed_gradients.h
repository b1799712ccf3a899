#pragma once
#include <vector>

#include "step/step_context.h"

namespace krigtune {

/// How gradients are summed over the data ranks bucket by bucket: plan/zero's GradientReduction, without buffers.
class CompressedGradients {
 public:
  /// For `micro_steps` of them.
  CompressedGradients(CostContext& step, std::int64_t micro_steps);

  /// The next operation is the first to write the gradient in this micro-step.
  void begin(int t);
  /// It is complete: its bucket travels once it is full.
  void done(int t);
  void end_micro_step();
  /// A unit's backward ends.
  void end_unit() { flush_packs(); }

  bool reduces_now() const;
  /// Behind which the optimizer finds the reduced gradient.
  Recorder::Behind reduced(int t) const;
  /// Whole tensors in the order in which they become ready; a tensor larger than the bucket is a bucket of its own.
  /// By bucket, where it ends in that order.
  static std::vector<std::size_t> bucket_ends(const StageTensors& tensors, std::int64_t most_elems);

 private:
  /// Neighbours that travel together.
  struct Pieces {
    std::int64_t padded_elems = 0;
    std::int64_t partial_elems = 0;
    std::size_t first = 0;  ///< in members_
    bool in_place = false;  ///< of gradients, on the device
  };

  void count(int t);
  void pack(int t);
  void pack_beside(double seconds);
  void flush_packs();
  void send_open();
  void add_to(Pieces& pieces, int t);
  void reduce(const Pieces& pieces);
  Recorder::Behind keep(const Pieces& pieces, std::int32_t reduced);
  bool is_last_of_bucket(int t);
  bool goes_alone(int t) const { return step_.tensors.elems(t) > step_.knobs.reduce_bucket_elems; }

  CostContext& step_;
  std::int64_t micro_steps_;
  std::vector<std::size_t> bucket_ends_;
  std::vector<int> bucket_of_;         ///< by tensor
  std::vector<int> missing_;           ///< by bucket
  std::vector<int> sizes_;             ///< likewise: tensors
  std::vector<std::int32_t> written_;  ///< by tensor: compute operations behind which it was complete
  std::vector<std::int32_t> reduced_;  ///< by tensor
  std::vector<int> members_;           ///< of what is open
  Pieces open_;
  /// Copies into the packed bucket beside the compute stream that are not recorded yet.
  struct Packs {
    int count = 0;
    double work_s = 0.0;
    double behind_s = 0.0;  ///< what is left of them when the last gradient is complete, where nothing else delays them
    double last_at_s = 0.0;  ///< when that was, in seconds of the compute stream
  };
  Packs packs_;
  UnderWay under_way_;
  std::int32_t ready_ = 0;        ///< compute operations behind which the open bucket is complete
  std::int32_t packed_free_ = 0;  ///< copies behind which the packed bucket may be filled again
  std::int64_t micro_step_ = 0;
};

}  // namespace krigtune
