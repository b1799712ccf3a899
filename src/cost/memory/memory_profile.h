#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "schedule/setting.h"
#include "schedule/tensors.h"

namespace krigtune::cost {

/// Bytes in use by term, and their sum.
struct MomentBytes {
  std::array<std::int64_t, schedule::kTermCount> terms{};
  std::int64_t total = 0;

  std::int64_t& operator[](schedule::Term term) { return terms[static_cast<std::size_t>(term)]; }
  std::int64_t operator[](schedule::Term term) const { return terms[static_cast<std::size_t>(term)]; }
  void add(schedule::Term term, std::int64_t bytes);
  MomentBytes& operator+=(const MomentBytes& other);
  MomentBytes& operator-=(const MomentBytes& other);
  friend MomentBytes operator*(MomentBytes bytes, std::int64_t times);
  MomentBytes divided(std::int64_t parts, std::int64_t by) const;  ///< `parts` of `by` equal parts, rounded up
};

/// An event of tensor `tensor` of UnitTensors in a part of a micro-step, at its operation `at`.
struct TensorEvent {
  enum class Kind : std::uint8_t { kLastRead, kFirstGradient, kLastGradient };
  int at = 0;
  int tensor = 0;
  Kind kind{};
};

/// The operations of one unit of the model in one direction. `moments` has the bytes during each operation, beyond what
/// earlier parts keep.
struct ProfiledPart {
  std::vector<MomentBytes> moments;
  std::vector<MomentBytes> carried;  ///< the same between an operation and the next one
  MomentBytes start;                 ///< the same before the first operation
  /// Quantised weights that each operation has restored, whatever the micro-batch; empty if there are none.
  std::vector<std::int64_t> restored_bytes;
  std::vector<TensorEvent> events;  ///< in order of `at`
  std::vector<int> unread;          ///< tensors of the unit that the part does not read
  std::int64_t reads = 0;           ///< number of events that are last reads
  std::size_t peak = 0;             ///< index of the largest moment

  const MomentBytes& highest() const { return moments[peak]; }
  std::int64_t restored_at(int at) const {
    return restored_bytes.empty() ? 0 : restored_bytes[static_cast<std::size_t>(at)];
  }
  void find_peak();
};

/// What the layers of one kind need and keep.
struct BlockProfile {
  // [0]: the first layer of a group that is recomputed together; [1]: the other layers.
  std::array<ProfiledPart, 2> forward, recompute, backward;
  MomentBytes group_kept;  ///< kept by a group of layers (without groups, by a layer) from forward to backward
  MomentBytes layer_kept;  ///< kept by a recomputed layer until its backward
  /// Kept by a layer from the gradients of its inputs to those of its weights, where they are made apart.
  MomentBytes for_weights;
};

/// Memory of one micro-step with one sequence, without parameters and their gradients, in parts that repeat from layer
/// to layer. It is read from a plan of a few layers, so that the plan is the only source. All bytes but those of
/// restored weights are proportional to the micro-batch.
struct MemoryProfile {
  schedule::UnitTensors model;
  ProfiledPart embed_forward, head_forward, head_backward, embed_backward;
  std::array<BlockProfile, workload::kMostKinds> blocks;  ///< in the order of schedule::kBlocks
  MomentBytes embedding_kept;                             ///< kept from the embedding on
  MomentBytes embedding_for_weights, head_for_weights;    ///< as BlockProfile::for_weights

  const BlockProfile& of(schedule::Unit block) const { return blocks.at(schedule::kind_index(block)); }
  BlockProfile& of(schedule::Unit block) { return blocks.at(schedule::kind_index(block)); }

  /// Returns what all layers of a stage keep until backward, in groups of `group_layers`, and the embedding.
  MomentBytes kept_by(const schedule::StageParts& stage, std::int64_t group_layers) const;
  /// Returns what a stage keeps from the gradients of its inputs to those of its weights, where they are made apart:
  /// the inputs of its products, and the gradients of their outputs.
  MomentBytes kept_for_weights(const schedule::StageParts& stage) const;
};

/// Makes the profile for what of_profile (cost/knob_keys.h) leaves of the knobs.
MemoryProfile profile_memory(const workload::Workload& workload, const schedule::Knobs& knobs);

/// The memory of one rank that is always in use.
struct StateBytes {
  MomentBytes device;
  MomentBytes host;
  /// On the device at the end of the step: parameters that are being copied to the host.
  std::int64_t rounded_bytes = 0;
  std::int64_t host_transient_bytes = 0;  ///< upper limit of bytes that are being copied to or from the device
};

/// Returns the bytes of a rank's part of the second copy of sharded parameters (Knobs::secondary_ranks), in the model's
/// type; 0 without one.
std::int64_t secondary_bytes(const schedule::Setting& setting);

/// Returns the bytes of schedule::Stores and of a second copy of parameters, exact for krigtune-bench.
StateBytes state_bytes(const schedule::Setting& setting);

/// The memory profiles of one workload, each computed only once. Thread-safe.
class ProfileCache {
 public:
  explicit ProfileCache(workload::Workload workload) : workload_(std::move(workload)) {}
  std::shared_ptr<const MemoryProfile> of(const schedule::Knobs& knobs);

 private:
  workload::Workload workload_;
  std::mutex mutex_;                                                          // guards the members below
  std::map<schedule::Knobs, std::shared_ptr<const MemoryProfile>> profiles_;  ///< by of_profile
};

}  // namespace krigtune::cost
