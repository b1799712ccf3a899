#pragma once
#include <cstddef>
#include <vector>

#include "schedule/tensors.h"
#include "schedule/zero_policy.h"

namespace krigtune::schedule {

/// The inputs of every decision of the schedule: the tensors, the knobs and the policy.
struct Setting {
  const StageTensors& tensors;  ///< must outlive it
  Knobs knobs;
  ZeroPolicy policy;

  /// Returns whether each data rank holds only a part of the parameter, so that it is gathered for every use.
  bool is_sharded(int t) const { return policy.shards_parameters && tensors.elems(t) > knobs.persistence_elems; }
  /// Returns the memory in which the parameter lives.
  Place home(int t) const { return is_sharded(t) ? policy.shard_place : Place::kDevice; }
  /// Returns whether the optimizer updates a copy, because the parameter has another type or lives in another memory
  /// than the optimizer's state.
  bool has_master(int t) const { return needs_master(policy, home(t)); }
  static bool needs_master(const ZeroPolicy& policy, Place home) {
    return policy.type != policy.master_type || home != policy.optimizer_place;
  }
  /// Returns how many of `padded` elements this rank's optimizer updates.
  std::int64_t updated_elems(std::int64_t padded) const {
    return policy.shards_optimizer ? padded / knobs.shard_ranks() : padded;
  }
  /// Returns whether the gradient is larger than a bucket and is therefore reduced in place.
  bool goes_alone(int t) const { return tensors.elems(t) > knobs.reduce_bucket_elems; }
  std::int64_t type_bytes() const { return size_bytes(policy.type); }
};

/// Values of tensors side by side in one persistent buffer: whole tensors, or this rank's part of each.
struct Store {
  const char* name = "";
  Term term{};
  DType type = DType::kFp32;
  Place place = Place::kDevice;
  bool parts = false;       ///< contains 1 / N of each tensor
  bool of_whole = false;    ///< contains tensors whose parameters are whole on every rank
  bool of_sharded = false;  ///< contains tensors whose parameters are sharded
  bool of_frozen = false;   ///< contains frozen tensors beside the trained ones
  bool of_matrices = true;  ///< contains the matrices of blocks (StageTensors::is_matrix) beside other tensors
};

/// Where parameters, gradients and the optimizer's state are stored between steps.
///
/// With 16 bits and AdamW a parameter takes 2 + 2 + 12 bytes (Rajbhandari et al. 2020, section 3.1). The 12 bytes are
/// the fp32 master and the first and second moment. Each part is divided by N if the stage shards it.
struct Stores {
  Store parameters;        ///< whole parameters, used directly
  Store parameter_shards;  ///< the sharded parameters
  Store gradients;         ///< on the device: whole until they are reduced, or the reduced parts
  Store host_gradients;    ///< reduced gradients of an offloaded optimizer
  Store masters;           ///< values that the optimizer updates, see Setting::has_master
  std::vector<Store> moments;
};
Stores stores_of(const ZeroPolicy& policy);

/// Returns buckets of neighbours in `tensors.ready_order()` that travel together: for each bucket, its end in that
/// order. Tensors are not split; one larger than `most_elems` is a bucket of its own.
std::vector<std::size_t> bucket_ends(const StageTensors& tensors, std::int64_t most_elems);

}  // namespace krigtune::schedule
