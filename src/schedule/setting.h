#pragma once
#include <cstddef>
#include <vector>

#include "schedule/tensors.h"
#include "schedule/zero_policy.h"

namespace krigtune::schedule {

/// What every part of the schedule decides by: whose tensors, which knobs, which policy.
struct Setting {
  const StageTensors& tensors;  ///< must outlive it
  Knobs knobs;
  ZeroPolicy policy;

  /// Each data rank holds a part of the parameter, and it is gathered for every use.
  bool is_sharded(int t) const { return policy.shards_parameters && tensors.elems(t) > knobs.persistence_elems; }
  /// Where the parameter lives.
  Place home(int t) const { return is_sharded(t) ? policy.shard_place : Place::kDevice; }
  /// The optimizer updates an fp32 copy: the parameter is of another type, or lives in another memory than its state.
  bool has_master(int t) const { return needs_master(policy, home(t)); }
  static bool needs_master(const ZeroPolicy& policy, Place home) {
    return policy.type != DType::kFp32 || home != policy.optimizer_place;
  }
  /// Of `padded` elements, those that this rank's optimizer updates.
  std::int64_t updated_elems(std::int64_t padded) const {
    return policy.shards_optimizer ? padded / knobs.data_ranks : padded;
  }
  /// Larger than a bucket: its gradient is reduced where it is.
  bool goes_alone(int t) const { return tensors.elems(t) > knobs.reduce_bucket_elems; }
  std::int64_t type_bytes() const { return size_bytes(policy.type); }
};

/// Values of tensors side by side in one persistent buffer: whole, or of each the part that this rank owns.
struct Store {
  const char* name = "";
  Term term{};
  DType type = DType::kFp32;
  Place place = Place::kDevice;
  bool parts = false;       ///< of each tensor 1 / N
  bool of_whole = false;    ///< it holds tensors whose parameters are whole on every rank
  bool of_sharded = false;  ///< it holds tensors whose parameters are sharded
};

/// Where parameters, gradients and the optimizer's state live from step to step.
///
/// In bytes a parameter with 16 bits and AdamW: 2 + 2 + 12 (Rajbhandari et al. 2020, section 3.1), the 12 being fp32
/// master, first and second moment; each part is divided by N where its stage shards it.
struct Stores {
  Store parameters;        ///< whole: computed with as they are
  Store parameter_shards;  ///< the others
  Store gradients;         ///< on the device: whole until they are reduced, or the reduced parts
  Store host_gradients;    ///< reduced, of an offloaded optimizer
  Store masters;           ///< fp32 values that the optimizer updates, see Setting::has_master
  std::vector<Store> moments;
};
Stores stores_of(const ZeroPolicy& policy);

/// Neighbours in `tensors.ready_order()` that travel together: by bucket, where it ends in that order. Whole tensors;
/// one that is larger than `most_elems` is a bucket of its own.
std::vector<std::size_t> bucket_ends(const StageTensors& tensors, std::int64_t most_elems);

}  // namespace krigtune::schedule
