// A plan of two layers, or of two groups of two, on one data-parallel rank with one sequence contains everything that
// repeats. Where layers are of several kinds, there is one such plan for each kind: what a layer needs and keeps does
// not depend on its neighbours. In a model of n layers, the memory of part p of a micro-step at
// its operation i is
//
//   embedding_kept + (groups before) group_kept + (layers of its group computed again before) layer_kept + moments[i]
//
// A buffer is in use from its first to its last operation; all of them are of the compute stream.
#include "cost/memory/memory_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cost/context_split.h"
#include "cost/expert_split.h"
#include "cost/knob_keys.h"
#include "cost/weight_gradients.h"
#include "plan/build_plan.h"
#include "schedule/op_kind.h"

namespace krigtune::cost {
namespace {

// Padded elements of the tensors that stay whole, and of those of which each rank has a part.
struct Homes {
  std::int64_t whole_elems = 0;
  std::int64_t sharded_elems = 0;
};

Homes homes_of(const schedule::Setting& setting, bool trained, bool with_matrices = true) {
  Homes homes;
  for (int t = 0; t < setting.tensors.count(); ++t) {
    if (setting.tensors.is_trained(t) != trained) continue;
    if (setting.tensors.is_matrix(t) && !with_matrices) continue;
    (setting.is_sharded(t) ? homes.sharded_elems : homes.whole_elems) += setting.tensors.padded(t);
  }
  return homes;
}

// A late rank's host has received everything, or has rounded everything and sent nothing.
std::int64_t offloaded_transient_bytes(const schedule::Setting& setting, const Homes& homes) {
  const schedule::Knobs& knobs = setting.knobs;
  const schedule::ZeroPolicy& policy = setting.policy;
  const bool accumulates = policy.shards_gradients && knobs.micro_steps > 1;
  const std::int64_t all = homes.whole_elems + homes.sharded_elems;
  const std::int64_t sent =
      homes.whole_elems + (policy.shard_place == schedule::Place::kHost ? 0 : homes.sharded_elems);
  const bool rounds = policy.type != policy.master_type;
  const std::int64_t parts = policy.shards_optimizer ? knobs.shard_ranks() : 1;
  const std::int64_t rounded = rounds ? sent / parts * setting.type_bytes() : 0;
  return std::max(accumulates ? setting.updated_elems(all) * setting.type_bytes() : 0, rounded);
}

}  // namespace

std::int64_t secondary_bytes(const schedule::Setting& setting) {
  if (setting.knobs.secondary_ranks == 1) return 0;
  const std::int64_t elems = homes_of(setting, true).sharded_elems + homes_of(setting, false).sharded_elems;
  return elems / setting.knobs.secondary_ranks * setting.type_bytes();
}

StateBytes state_bytes(const schedule::Setting& setting) {
  const schedule::Knobs& knobs = setting.knobs;
  const schedule::ZeroPolicy& policy = setting.policy;
  const Homes homes = homes_of(setting, true);
  const Homes frozen = homes_of(setting, false);
  StateBytes states;
  const auto elems_of = [](const schedule::Store& store, const Homes& of) {
    return (store.of_whole ? of.whole_elems : 0) + (store.of_sharded ? of.sharded_elems : 0);
  };
  const auto add = [&](const schedule::Store& store) {
    const std::int64_t elems = elems_of(store, store.of_matrices ? homes : homes_of(setting, true, false)) +
                               (store.of_frozen ? elems_of(store, frozen) : 0);
    MomentBytes& at = store.place == schedule::Place::kHost ? states.host : states.device;
    at.add(store.term, elems / (store.parts ? knobs.shard_ranks() : 1) * schedule::size_bytes(store.type));
  };
  const schedule::Stores stores = schedule::stores_of(policy);
  for (const schedule::Store* store :
       {&stores.parameters, &stores.parameter_shards, &stores.gradients, &stores.host_gradients, &stores.masters}) {
    add(*store);
  }
  for (const schedule::Store& moments : stores.moments) add(moments);
  states.device.add(schedule::Term::kParameters, secondary_bytes(setting));
  if (policy.controls) states.device.add(schedule::Term::kInputs, std::int64_t{4} * schedule::kControlElementCount);
  states.device.add(schedule::Term::kInputs, 4 * knobs.micro_steps);

  const bool rounds = policy.type != policy.master_type;
  const std::int64_t type = setting.type_bytes();
  const std::int64_t n = knobs.shard_ranks();
  const bool offloads = policy.optimizer_place == schedule::Place::kHost;
  if (policy.shard_place == schedule::Place::kHost && !offloads && rounds)
    states.rounded_bytes = homes.sharded_elems / n * type;
  if (offloads) states.host_transient_bytes = offloaded_transient_bytes(setting, homes);
  return states;
}

namespace {

using schedule::Unit;

// A part of the plan, by the indices of its operations.
struct PlannedPart {
  Unit unit{};
  schedule::Phase phase{};
  std::int32_t layer = -1;
  std::vector<std::size_t> operations;
};

bool counts(schedule::Term term) {
  return term == schedule::Term::kActivations || term == schedule::Term::kLogits ||
         term == schedule::Term::kWorkspace || term == schedule::Term::kInputs;
}

class ProfileReader {
 public:
  ProfileReader(const plan::StepPlan& plan, schedule::UnitTensors model, const ContextExchange& exchange, Unit kind,
                bool groups)
      : plan_(plan),
        model_(std::move(model)),
        exchange_(exchange),
        kind_(kind),
        groups_(groups),
        restores_(std::ranges::any_of(plan.buffers, is_restored)) {
    find_parts();
    find_lifetimes();
  }

  MemoryProfile read() {
    MemoryProfile profile;
    profile.model = model_;
    const std::int32_t first = groups_ ? 2 : 1;  // of the second group
    BlockProfile& block = profile.of(kind_);
    profile.embedding_kept = at_start(part(kind_, schedule::Phase::kForward, 0));
    block.group_kept = at_start(part(kind_, schedule::Phase::kForward, first));
    block.group_kept -= profile.embedding_kept;
    const MomentBytes& kept = block.group_kept;
    profile.embed_forward = profiled(part(Unit::kEmbedding, schedule::Phase::kForward), {});
    if (const PlannedPart* backward = find_part(Unit::kEmbedding, schedule::Phase::kBackward))
      profile.embed_backward = profiled(*backward, {});
    MomentBytes base = profile.embedding_kept;
    base += kept;
    block.forward[0] = profiled(part(kind_, schedule::Phase::kForward, first), base);
    block.backward[0] = profiled(part(kind_, schedule::Phase::kBackward, first), base);
    block.for_weights = read_for_weights(part(kind_, schedule::Phase::kBackward, first));
    profile.head_for_weights = read_for_weights(part(Unit::kHead, schedule::Phase::kBackward));
    if (const PlannedPart* backward = find_part(Unit::kEmbedding, schedule::Phase::kBackward))
      profile.embedding_for_weights = read_for_weights(*backward);
    if (groups_) read_group(block, base);
    base += kept;
    profile.head_forward = profiled(part(Unit::kHead, schedule::Phase::kForward), base);
    profile.head_backward = profiled(part(Unit::kHead, schedule::Phase::kBackward), base);
    return profile;
  }

 private:
  void read_group(BlockProfile& block, MomentBytes base) {
    block.forward[1] = profiled(part(kind_, schedule::Phase::kForward, 3), base);
    block.recompute[0] = profiled(part(kind_, schedule::Phase::kRecompute, 2), base);
    block.layer_kept = at_start(part(kind_, schedule::Phase::kRecompute, 3));
    block.layer_kept -= base;
    base += block.layer_kept;
    block.recompute[1] = profiled(part(kind_, schedule::Phase::kRecompute, 3), base);
    block.backward[1] = profiled(part(kind_, schedule::Phase::kBackward, 3), base);
  }

  // Tensors of the plan in model order: embedding, layers of one kind, head.
  int unit_tensor(int at) const {
    const auto of = [this](Unit unit) {
      return static_cast<int>(std::count_if(model_.tensors.begin(), model_.tensors.end(),
                                            [unit](const schedule::UnitTensor& t) { return t.unit == unit; }));
    };
    const int embedding = of(Unit::kEmbedding);
    const int head = of(Unit::kHead);
    const auto behind_blocks = static_cast<int>(plan_.tensors.size()) - head;
    if (at < embedding) return at;
    if (at >= behind_blocks) return static_cast<int>(model_.tensors.size()) - head + at - behind_blocks;
    int first = embedding;
    for (std::size_t kind = 0; kind < schedule::kind_index(kind_); ++kind) first += of(schedule::kBlocks.at(kind));
    return first + (at - embedding) % of(kind_);
  }

  // The recomputation of selective checkpointing is a part of the backward pass, and so is that of the blocks of
  // further tokens.
  schedule::Phase phase_of(const plan::Operation& operation) const {
    const bool is_apart = groups_ && operation.layer >= 0;
    return operation.phase == schedule::Phase::kRecompute && !is_apart ? schedule::Phase::kBackward : operation.phase;
  }

  // Embedding and head belong to no layer: the embedding comes before all blocks, and again after them.
  Unit unit_of(const plan::Operation& operation, bool blocks_seen, bool backward_seen) const {
    if (operation.layer >= 0) return kind_;
    const bool before_blocks = operation.phase == schedule::Phase::kForward && !blocks_seen;
    return before_blocks || backward_seen ? Unit::kEmbedding : Unit::kHead;
  }

  void find_parts() {
    bool blocks_seen = false;
    bool backward_seen = false;  // of a block
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const plan::Operation& operation = plan_.operations[i];
      if (operation.stream != schedule::Stream::kCompute || operation.phase == schedule::Phase::kOptimizer) continue;
      const Unit unit = unit_of(operation, blocks_seen, backward_seen);
      const schedule::Phase phase = phase_of(operation);
      blocks_seen = blocks_seen || unit == kind_;
      backward_seen = backward_seen || (unit == kind_ && phase != schedule::Phase::kForward);
      const bool continues = !parts_.empty() && parts_.back().unit == unit && parts_.back().phase == phase &&
                             parts_.back().layer == operation.layer;
      if (!continues) parts_.push_back({unit, phase, operation.layer, {}});
      parts_.back().operations.push_back(i);
    }
  }

  void find_lifetimes() {
    first_.assign(plan_.buffers.size(), -1);
    last_.assign(plan_.buffers.size(), -1);
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      for (const plan::Operand& operand : plan_.operations[i].operands) {
        const auto b = static_cast<std::size_t>(operand.range.buffer);
        if (first_[b] < 0) first_[b] = static_cast<std::int64_t>(i);
        last_[b] = static_cast<std::int64_t>(i);
      }
    }
  }

  const PlannedPart& part(Unit unit, schedule::Phase phase, std::int32_t layer = -1) const {
    return *find_part(unit, phase, layer);
  }
  // Returns null if the plan has none: a frozen embedding has no backward.
  const PlannedPart* find_part(Unit unit, schedule::Phase phase, std::int32_t layer = -1) const {
    const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const PlannedPart& p) {
      return p.unit == unit && p.phase == phase && p.layer == layer;
    });
    return found == parts_.end() ? nullptr : &*found;
  }

  // Returns the buffers whose first access is at or before operation `from` and whose last access is at or after `to`.
  MomentBytes live_at(std::size_t from, std::size_t to) const {
    MomentBytes bytes;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const plan::Buffer& buffer = plan_.buffers[b];
      if (buffer.persistent || !counts(buffer.term)) continue;
      if (first_[b] <= static_cast<std::int64_t>(from) && last_[b] >= static_cast<std::int64_t>(to)) {
        bytes.add(buffer.term, buffer.bytes());
      }
    }
    return bytes;
  }

  // The plan gathers nothing, so these are weights that were quantised.
  static bool is_restored(const plan::Buffer& buffer) { return buffer.term == schedule::Term::kGatheredParameters; }

  std::int64_t restored_at(std::size_t operation) const {
    std::int64_t bytes = 0;
    const auto at = static_cast<std::int64_t>(operation);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (is_restored(plan_.buffers[b]) && first_[b] <= at && last_[b] >= at) bytes += plan_.buffers[b].bytes();
    }
    return bytes;
  }

  // Returns the values that are read by operations which only make gradients of weights, each once. A buffer may
  // have several values one after the other, which would all be kept until these operations.
  MomentBytes read_for_weights(const PlannedPart& part) const {
    MomentBytes bytes;
    std::set<std::tuple<plan::BufferId, std::int64_t, std::int64_t>> seen;  // buffer, beginning, operation that wrote
    for (const std::size_t i : part.operations) {
      const plan::Operation& operation = plan_.operations[i];
      if (!only_makes_weight_gradients(plan_, operation)) continue;
      for (const plan::Operand& operand : operation.operands) {
        const plan::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.range.buffer)];
        if (operand.access != plan::Access::kRead || buffer.persistent || !counts(buffer.term)) continue;
        const std::int64_t written = written_before(i, operand.range.buffer);
        if (!seen.insert({operand.range.buffer, operand.range.begin_elems, written}).second) continue;
        bytes.add(buffer.term, operand.range.elems * schedule::size_bytes(buffer.type));
      }
    }
    return bytes;
  }

  // Returns the last operation before operation `i` that writes into the buffer; -1 if there is none.
  std::int64_t written_before(std::size_t i, plan::BufferId buffer) const {
    for (auto at = static_cast<std::int64_t>(i) - 1; at >= 0; --at) {
      for (const plan::Operand& operand : plan_.operations[static_cast<std::size_t>(at)].operands) {
        if (operand.range.buffer == buffer && operand.access != plan::Access::kRead) return at;
      }
    }
    return -1;
  }

  // Returns the memory that earlier parts have left.
  MomentBytes at_start(const PlannedPart& part) const {
    return live_at(part.operations.front() - 1, part.operations.front());
  }

  ProfiledPart profiled(const PlannedPart& part, const MomentBytes& base) const {
    ProfiledPart result;
    if (part.operations.front() > 0) {
      result.start = at_start(part);
      result.start -= base;
    }
    std::map<std::pair<int, TensorEvent::Kind>, int> last;  // by tensor
    for (const std::size_t i : part.operations) {
      const auto at = static_cast<int>(result.moments.size());
      if (restores_) result.restored_bytes.push_back(restored_at(i));
      result.moments.push_back(live_at(i, i));
      result.moments.back() -= base;
      result.moments.back().add(schedule::Term::kWorkspace, exchange_buffer_bytes(exchange_, plan_.operations[i]));
      result.carried.push_back(live_at(i, i + 1));
      result.carried.back() -= base;
      for (const plan::Operand& operand : plan_.operations[i].operands)
        note(operand, at, part.unit == Unit::kEmbedding && part.phase == schedule::Phase::kBackward, result, last);
    }
    for (const auto& [of, at] : last) {
      result.events.push_back({at, of.first, of.second});
      result.reads += of.second == TensorEvent::Kind::kLastRead ? 1 : 0;
    }
    std::stable_sort(result.events.begin(), result.events.end(),
                     [](const TensorEvent& a, const TensorEvent& b) { return a.at < b.at; });
    result.find_peak();
    for (std::size_t t = 0; t < model_.tensors.size(); ++t) {
      const bool is_read = last.contains({static_cast<int>(t), TensorEvent::Kind::kLastRead});
      if (model_.tensors[t].unit == part.unit && !is_read) result.unread.push_back(static_cast<int>(t));
    }
    return result;
  }

  void note(const plan::Operand& operand, int at, bool in_embed_backward, ProfiledPart& to,
            std::map<std::pair<int, TensorEvent::Kind>, int>& last) const {
    const schedule::Term term = plan_.buffers[static_cast<std::size_t>(operand.range.buffer)].term;
    if (term != schedule::Term::kParameters && term != schedule::Term::kGradients) return;
    const int tensor = unit_tensor(plan_.tensor_at(term, operand.range.begin_elems));
    using Kind = TensorEvent::Kind;
    if (term == schedule::Term::kGradients && !last.contains({tensor, Kind::kLastGradient})) {
      to.events.push_back({at, tensor, Kind::kFirstGradient});
    }
    if (term == schedule::Term::kGradients) last[{tensor, Kind::kLastGradient}] = at;
    // With sharded parameters, backward of the embedding also keeps its unit gathered.
    const bool is_embedding = model_.tensors[static_cast<std::size_t>(tensor)].unit == Unit::kEmbedding;
    if (term == schedule::Term::kParameters || (is_embedding && in_embed_backward))
      last[{tensor, Kind::kLastRead}] = at;
  }

  const plan::StepPlan& plan_;
  schedule::UnitTensors model_;
  ContextExchange exchange_;
  Unit kind_;  ///< of all layers of the plan
  bool groups_;
  bool restores_;  ///< some weights are quantised
  std::vector<PlannedPart> parts_;
  std::vector<std::int64_t> first_, last_;  ///< operation that touches it, by buffer
};

}  // namespace

void MomentBytes::add(schedule::Term term, std::int64_t bytes) {
  (*this)[term] += bytes;
  total += bytes;
}

MomentBytes& MomentBytes::operator+=(const MomentBytes& other) {
  for (std::size_t t = 0; t < terms.size(); ++t) terms[t] += other.terms[t];
  total += other.total;
  return *this;
}

MomentBytes& MomentBytes::operator-=(const MomentBytes& other) {
  for (std::size_t t = 0; t < terms.size(); ++t) terms[t] -= other.terms[t];
  total -= other.total;
  return *this;
}

MomentBytes operator*(MomentBytes bytes, std::int64_t times) {
  for (std::int64_t& term : bytes.terms) term *= times;
  bytes.total *= times;
  return bytes;
}

MomentBytes MomentBytes::divided(std::int64_t parts, std::int64_t by) const {
  MomentBytes result;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    result.add(static_cast<schedule::Term>(t), (terms[t] * parts + by - 1) / by);
  }
  return result;
}

void ProfiledPart::find_peak() {
  const auto highest = std::max_element(moments.begin(), moments.end(),
                                        [](const MomentBytes& a, const MomentBytes& b) { return a.total < b.total; });
  peak = static_cast<std::size_t>(highest - moments.begin());
}

MomentBytes MemoryProfile::kept_by(const schedule::StageParts& stage, std::int64_t group_layers) const {
  const auto groups = [group_layers](std::int64_t layers) { return (layers + group_layers - 1) / group_layers; };
  MomentBytes kept = embedding_kept;
  for (const Unit block : schedule::kBlocks) {
    const std::int64_t first = stage.first_of(block);
    kept += of(block).group_kept * (groups(first + stage.layers_of(block)) - groups(first));
  }
  return kept;
}

MomentBytes MemoryProfile::kept_for_weights(const schedule::StageParts& stage) const {
  MomentBytes kept;
  for (const Unit block : schedule::kBlocks) kept += of(block).for_weights * stage.layers_of(block);
  if (stage.embedding) kept += embedding_for_weights;
  if (stage.head) kept += head_for_weights;
  return kept;
}

namespace {

// Reads the layers of one kind, which have that unit; `of_rank`: what one rank has of the job; `exchange`: of a
// sequence.
MemoryProfile read_profile(const workload::Workload& of_rank, const schedule::UnitTensors& model,
                           const ContextExchange& exchange, const workload::LayerKind& kind, Unit unit,
                           const schedule::Knobs& knobs) {
  const bool groups = knobs.checkpointing == schedule::Checkpointing::kFull;
  workload::Workload small = of_rank;
  small.model = workload::with_layers_of(of_rank.model, kind, groups ? 4 : 2);
  small.dialect = workload::Dialect::kCanonical;
  small.train_batch_size.reset();
  small.gradient_clipping = 0.0;
  workload::ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = knobs.tensor_ranks;
  schedule::Knobs of_group = of_profile(knobs);
  of_group.context_ranks = of_group.expert_ranks = of_group.head_ranks = 1;  // `of_rank` has the rank's share
  const plan::StepPlan plan = plan::build_plan(small, cluster, of_group);
  return ProfileReader(plan, model, exchange, unit, groups).read();
}

}  // namespace

MemoryProfile profile_memory(const workload::Workload& workload, const schedule::Knobs& knobs) {
  const schedule::UnitTensors model = schedule::unit_tensors(workload, knobs);
  const workload::Workload of_rank = experts_of_rank(share_of_rank(workload, knobs), knobs);
  constexpr std::int64_t kAnyNode = 1;  // only bytes are asked for
  const ContextExchange exchange = context_exchange(workload, of_profile(knobs), kAnyNode);
  const std::vector<workload::LayersOfKind> kinds = workload.model.kinds();
  MemoryProfile profile = read_profile(of_rank, model, exchange, kinds.back().kind, Unit::kBlock, knobs);
  for (std::size_t kind = 0; kind + 1 < kinds.size(); ++kind) {
    const Unit unit = schedule::block_unit(kind, kinds.size());
    profile.of(unit) = read_profile(of_rank, model, exchange, kinds[kind].kind, unit, knobs).of(unit);
  }
  return profile;
}

std::shared_ptr<const MemoryProfile> ProfileCache::of(const schedule::Knobs& knobs) {
  const schedule::Knobs own = of_profile(knobs);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = profiles_.find(own); found != profiles_.end()) return found->second;
  }
  auto made = std::make_shared<const MemoryProfile>(profile_memory(workload_, own));
  const std::lock_guard lock(mutex_);
  return profiles_.emplace(own, std::move(made)).first->second;
}

}  // namespace krigtune::cost
