#include "schedule/setting.h"

namespace krigtune::schedule {

Stores stores_of(const ZeroPolicy& policy) {
  const Place optimizer = policy.optimizer_place;
  const bool offloads = optimizer == Place::kHost;
  const bool parts = policy.shards_optimizer;
  Stores stores;
  stores.parameters = {"parameters", Term::kParameters, policy.type, Place::kDevice, false, true, false, true};
  stores.parameter_shards = {
      "parameter shards", Term::kParameters, policy.type, policy.shard_place, true, false, true, true};
  const bool on_device = !offloads || !policy.shards_gradients;
  stores.gradients = {"gradients", Term::kGradients, policy.type, Place::kDevice, policy.shards_gradients,
                      on_device,   on_device};
  stores.host_gradients = {"host gradients", Term::kGradients, policy.type, optimizer, parts, offloads, offloads};
  stores.masters = {"master parameters",
                    Term::kOptimizerState,
                    policy.master_type,
                    optimizer,
                    parts,
                    Setting::needs_master(policy, Place::kDevice),
                    Setting::needs_master(policy, policy.shard_place)};
  const auto add_moments = [&](const char* name) {
    const DType type = policy.moment_types.at(stores.moments.size());
    stores.moments.push_back({name, Term::kOptimizerState, type, optimizer, parts, true, true});
  };
  if (policy.moments == 1) add_moments("momentum");
  if (policy.moments == 2) {
    add_moments("first moments");
    add_moments("second moments");
    stores.moments.back().of_matrices = !policy.orthogonalizes;
  }
  return stores;
}

std::vector<std::size_t> bucket_ends(const StageTensors& tensors, std::int64_t most_elems) {
  std::vector<std::size_t> ends;
  std::int64_t elems = 0;
  const std::vector<int>& order = tensors.ready_order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t next = tensors.elems(order[i]);
    if (i > 0 && elems + next > most_elems) {
      ends.push_back(i);
      elems = 0;
    }
    elems += next;
  }
  if (!order.empty()) ends.push_back(order.size());
  return ends;
}

}  // namespace krigtune::schedule
