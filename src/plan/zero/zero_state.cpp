// Bytes a parameter with 16-bit parameters and gradients and AdamW (Rajbhandari et al. 2020, section 3.1): 2 + 2 + 12,
// the 12 being fp32 master, first and second moment. In fp32 the optimizer updates the parameters themselves, unless
// they live in another memory than its state.
#include "zero/zero_state.h"

#include <numeric>
#include <utility>

namespace krigtune {
namespace {

std::vector<const char*> moment_names(OptimizerKind optimizer) {
  if (optimizer == OptimizerKind::kSgd) return {"momentum"};
  return {"first moments", "second moments"};
}

}  // namespace

TensorStore::TensorStore(PlanBuilder& builder, const ZeroSetting& setting, Kind kind, const std::vector<int>& of)
    : kind_(std::move(kind)) {
  if (of.empty()) return;
  const std::int64_t parts = kind_.sharded ? setting.ranks() : 1;
  std::int64_t elems = 0;
  for (const int t : of) elems += setting.tensor(t).padded_elems / parts;
  buffer_ = builder.persistent(kind_.name, kind_.term, elems, kind_.type, kind_.place);
  ranges_.resize(static_cast<std::size_t>(setting.tensors()));
  std::int64_t begin = 0;
  for (const int t : of) {
    ranges_[static_cast<std::size_t>(t)] = {buffer_, begin, setting.tensor(t).padded_elems / parts, 0};
    begin += setting.tensor(t).padded_elems / parts;
  }
}

ZeroState::ZeroState(PlanBuilder& builder, const ZeroSetting& all) : setting(all) {
  const ZeroPolicy& policy = setting.policy;
  std::vector<int> every(static_cast<std::size_t>(setting.tensors()));
  std::iota(every.begin(), every.end(), 0);
  const auto store = [&](const char* name, Term term, DType type, Place place, bool sharded,
                         const std::vector<int>& of) {
    return TensorStore(builder, setting, {name, term, type, place, sharded}, of);
  };
  std::vector<int> whole;
  std::vector<int> sharded;
  for (const int t : every) {
    const bool stays = !policy.shards_parameters || setting.tensor(t).elems <= setting.knobs.persistence_elems;
    (stays ? whole : sharded).push_back(t);
  }
  parameters = store("parameters", Term::kParameters, policy.type, Place::kDevice, false, whole);
  parameter_shards = store("parameter shards", Term::kParameters, policy.type, policy.shard_place, true, sharded);

  const Place place = policy.optimizer_place;
  const bool offloads = place == Place::kHost;
  if (!offloads || !policy.shards_gradients) {
    gradients = store("gradients", Term::kGradients, policy.type, Place::kDevice, policy.shards_gradients, every);
  }
  if (offloads) {
    host_gradients = store("host gradients", Term::kGradients, policy.type, place, policy.shards_optimizer, every);
  }
  std::vector<int> mastered;
  for (const int t : every) {
    if (policy.type != DType::kFp32 || home(t).place() != place) mastered.push_back(t);
  }
  masters = store("master parameters", Term::kOptimizerState, DType::kFp32, place, policy.shards_optimizer, mastered);
  for (const char* name : moment_names(policy.optimizer)) {
    moments.push_back(store(name, Term::kOptimizerState, DType::kFp32, place, policy.shards_optimizer, every));
  }
  if (policy.controls) control = builder.persistent("control", Term::kInputs, kControlElementCount);
}

Range ZeroState::own_part(const TensorStore& store, int t) const {
  return store.sharded() ? store.all(t) : setting.own_part(store.all(t));
}

Range ZeroState::updated_part(const TensorStore& store, int t) const {
  return store.sharded() ? store.all(t) : setting.updated_part(store.all(t));
}

std::vector<TensorHome> ZeroState::homes() const {
  std::vector<TensorHome> homes;
  for (int t = 0; t < setting.tensors(); ++t) homes.push_back({t, 0, home(t).sharded(), home(t).all(t)});
  return homes;
}

std::vector<TensorHome> ZeroState::copies() const {
  std::vector<TensorHome> copies;
  for (int t = 0; t < setting.tensors(); ++t) {
    if (masters.has(t)) copies.push_back({t, 0, masters.sharded(), masters.all(t)});
  }
  return copies;
}

}  // namespace krigtune
