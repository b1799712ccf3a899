#include "memory/state_memory.h"

#include <algorithm>

#include "krigtune/schedule/op_kind.h"

namespace krigtune {
namespace {

// Padded elements of the tensors that stay whole, and of those of which each rank has a part.
struct Homes {
  std::int64_t whole_elems = 0;
  std::int64_t sharded_elems = 0;
};

Homes homes_of(const schedule::Setting& setting) {
  Homes homes;
  for (int t = 0; t < setting.tensors.count(); ++t) {
    (setting.is_sharded(t) ? homes.sharded_elems : homes.whole_elems) += setting.tensors.padded(t);
  }
  return homes;
}

}  // namespace

StateBytes state_bytes(const schedule::Setting& setting) {
  const Knobs& knobs = setting.knobs;
  const ZeroPolicy& policy = setting.policy;
  const Homes homes = homes_of(setting);
  StateBytes states;
  const auto add = [&](const schedule::Store& store) {
    const std::int64_t elems = (store.of_whole ? homes.whole_elems : 0) + (store.of_sharded ? homes.sharded_elems : 0);
    MomentBytes& at = store.place == Place::kHost ? states.host : states.device;
    at.add(store.term, elems / (store.parts ? knobs.data_ranks : 1) * size_bytes(store.type));
  };
  const schedule::Stores stores = schedule::stores_of(policy);
  for (const schedule::Store* store :
       {&stores.parameters, &stores.parameter_shards, &stores.gradients, &stores.host_gradients, &stores.masters}) {
    add(*store);
  }
  for (const schedule::Store& moments : stores.moments) add(moments);
  if (policy.controls) states.device.add(Term::kInputs, std::int64_t{4} * kControlElementCount);
  states.device.add(Term::kInputs, 4 * knobs.micro_steps);

  const bool rounds = policy.type != DType::kFp32;
  const std::int64_t type = setting.type_bytes();
  const std::int64_t n = knobs.data_ranks;
  const bool offloads = policy.optimizer_place == Place::kHost;
  if (policy.shard_place == Place::kHost && !offloads && rounds) states.rounded_bytes = homes.sharded_elems / n * type;
  if (offloads) {
    // Whoever is late on the host holds all that has come, or all that has been rounded and not yet been sent.
    const bool accumulates = policy.shards_gradients && knobs.micro_steps > 1;
    const std::int64_t all = homes.whole_elems + homes.sharded_elems;
    const std::int64_t sent = homes.whole_elems + (policy.shard_place == Place::kHost ? 0 : homes.sharded_elems);
    const std::int64_t rounded = rounds ? sent / (policy.shards_optimizer ? n : 1) * type : 0;
    states.host_transient_bytes = std::max(accumulates ? setting.updated_elems(all) * type : 0, rounded);
  }
  return states;
}

}  // namespace krigtune
