#include "zero/zero_state.h"

namespace krigtune {

TensorStore::TensorStore(PlanBuilder& builder, const schedule::Setting& setting, const schedule::Store& kind)
    : kind_(kind) {
  const schedule::StageTensors& tensors = setting.tensors;
  const std::int64_t parts = kind.parts ? setting.knobs.data_ranks : 1;
  std::int64_t elems = 0;
  ranges_.resize(static_cast<std::size_t>(tensors.count()));
  for (int t = 0; t < tensors.count(); ++t) {
    if (!(setting.is_sharded(t) ? kind.of_sharded : kind.of_whole)) continue;
    ranges_[static_cast<std::size_t>(t)] = {0, elems, tensors.padded(t) / parts, 0};
    elems += tensors.padded(t) / parts;
  }
  if (elems == 0) return;
  buffer_ = builder.persistent(kind.name, kind.term, elems, kind.type, kind.place);
  for (Range& range : ranges_) {
    if (range.buffer == 0) range.buffer = buffer_;
  }
}

ZeroState::ZeroState(PlanBuilder& builder, const schedule::Setting& of)
    : ZeroState(builder, of, schedule::stores_of(of.policy)) {}

ZeroState::ZeroState(PlanBuilder& builder, const schedule::Setting& of, const schedule::Stores& stores)
    : setting(of),
      parameters(builder, of, stores.parameters),
      parameter_shards(builder, of, stores.parameter_shards),
      gradients(builder, of, stores.gradients),
      host_gradients(builder, of, stores.host_gradients),
      masters(builder, of, stores.masters) {
  for (const schedule::Store& store : stores.moments) moments.emplace_back(builder, of, store);
  if (of.policy.controls) control = builder.persistent("control", Term::kInputs, kControlElementCount);
}

Range ZeroState::own_part(const Range& whole) const {
  const std::int64_t part = whole.elems / setting.knobs.data_ranks;
  return {whole.buffer, whole.begin_elems, part, part};
}

Range ZeroState::updated_part(const Range& whole) const {
  return setting.policy.shards_optimizer ? own_part(whole) : whole;
}

Range ZeroState::own_part(const TensorStore& store, int t) const {
  return store.sharded() ? store.all(t) : own_part(store.all(t));
}

Range ZeroState::updated_part(const TensorStore& store, int t) const {
  return store.sharded() ? store.all(t) : updated_part(store.all(t));
}

std::vector<TensorHome> ZeroState::homes() const {
  std::vector<TensorHome> homes;
  for (int t = 0; t < setting.tensors.count(); ++t) homes.push_back({t, 0, home(t).sharded(), home(t).all(t)});
  return homes;
}

std::vector<TensorHome> ZeroState::copies() const {
  std::vector<TensorHome> copies;
  for (int t = 0; t < setting.tensors.count(); ++t) {
    if (masters.has(t)) copies.push_back({t, 0, masters.sharded(), masters.all(t)});
  }
  return copies;
}

}  // namespace krigtune
