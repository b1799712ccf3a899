// Converts the decisions of schedule::Walk to operations on buffers.
//
// The squared norm of all gradients is the sum over ranks of the squares of each rank's own part, tensor by tensor, in
// every stage. So it is bitwise the same number regardless of where gradients are stored. Values that all t
// tensor-parallel ranks have count 1/t (Shoeybi et al. 2019, as in Megatron's clip_grads.py).
#include "plan/zero_operations.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
namespace krigtune::plan {

TensorStore::TensorStore(PlanBuilder& builder, const schedule::Setting& setting, const schedule::Store& kind)
    : kind_(kind) {
  const schedule::StageTensors& tensors = setting.tensors;
  const std::int64_t parts = kind.parts ? setting.knobs.data_ranks : 1;
  std::int64_t elems = 0;
  ranges_.resize(static_cast<std::size_t>(tensors.count()));
  for (int t = 0; t < tensors.count(); ++t) {
    if (!(setting.is_sharded(t) ? kind.of_sharded : kind.of_whole)) continue;
    if (!tensors.is_trained(t) && !kind.of_frozen) continue;
    if (tensors.is_matrix(t) && !kind.of_matrices) continue;
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
  if (of.policy.controls)
    control = builder.persistent("control", schedule::Term::kInputs, schedule::kControlElementCount);
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

namespace {

schedule::Stream computing_stream(schedule::Place place) {
  return place == schedule::Place::kHost ? schedule::Stream::kHost : schedule::Stream::kCompute;
}

const std::string& name_of(const schedule::ParameterTable& table, int t) {
  return table.tensors[static_cast<std::size_t>(t)].name;
}

}  // namespace

// --- parameters

ParameterOperations::ParameterOperations(PlanBuilder& builder, const ZeroState& state,
                                         const schedule::ParameterTable& table)
    : builder_(builder),
      state_(state),
      table_(table),
      current_(static_cast<std::size_t>(state.setting.tensors.count())),
      under_way_(state.setting.policy.gathers_under_way) {}

BufferId& ParameterOperations::buffer_of(const schedule::GatheredItem& item) {
  if (buffer_.size() <= item.slot) buffer_.resize(item.slot + 1, -1);
  return buffer_[item.slot];
}

// Parameters released after the previous use may pass their memory on to those gathered now.
void ParameterOperations::gather(std::span<const schedule::GatheredItem* const> items) {
  const schedule::Setting& setting = state_.setting;
  const bool fetches_from_host = state_.parameter_shards.place() == schedule::Place::kHost;
  const OpId before_use = builder_.last_compute();
  std::vector<Operand> copies;
  std::vector<Operand> operands;
  for (const schedule::GatheredItem* item : items) {
    BufferId& buffer = buffer_of(*item);
    buffer = builder_.buffer("gathered " + name_of(table_, item->tensors.front()), schedule::Term::kGatheredParameters,
                             item->elems, setting.policy.type);
    std::int64_t begin = 0;
    for (const int t : item->tensors) {
      const Range whole{buffer, begin, setting.tensors.padded(t), 0};
      const Operand shard{state_.parameter_shards.all(t), Access::kRead};
      const Range landed = state_.own_part(whole);
      begin += whole.elems;
      if (fetches_from_host) copies.insert(copies.end(), {shard, {landed, Access::kWrite}});
      operands.push_back(fetches_from_host ? Operand{landed, Access::kRead} : shard);
      operands.push_back({whole, Access::kWrite});
    }
  }
  if (fetches_from_host)
    builder_.add(schedule::OpKind::kCopy, schedule::Stream::kCopy, {}, std::move(copies), 1.0, {before_use});
  const OpId gathered =
      builder_.add(schedule::OpKind::kAllGather, schedule::Stream::kGather, {}, std::move(operands), 1.0, {before_use});
  builder_.hold_compute_for(under_way_.enter(gathered).value_or(-1));
}

void ParameterOperations::let_go(const schedule::GatheredItem& item) { buffer_of(item) = -1; }

void ParameterOperations::use(std::span<const schedule::GatheredItem> items) {
  for (const int t : used_) current_[static_cast<std::size_t>(t)] = {};
  used_.clear();
  for (const schedule::GatheredItem& item : items) {
    std::int64_t begin = 0;
    for (const int t : item.tensors) {
      const std::int64_t padded = state_.setting.tensors.padded(t);
      current_[static_cast<std::size_t>(t)] = {buffer_of(item), begin, padded, 0};
      begin += padded;
      used_.push_back(t);
    }
  }
}

Operand ParameterOperations::parameter(int t) const {
  const bool is_whole = state_.parameters.has(t);
  Operand operand{is_whole ? state_.parameters.all(t) : current_[static_cast<std::size_t>(t)], Access::kRead};
  assert(operand.range.buffer >= 0 && "the tensor is not of this use's unit");
  operand.range.elems = state_.setting.tensors.elems(t);
  return operand;
}

// --- gradients

GradientOperations::GradientOperations(PlanBuilder& builder, const ZeroState& state,
                                       const schedule::ParameterTable& table)
    : builder_(builder),
      state_(state),
      policy_(state.setting.policy),
      table_(table),
      under_way_(policy_.reductions_under_way),
      buffer_(static_cast<std::size_t>(state.setting.tensors.count()), -1),
      packed_(policy_.packed_buckets, -1) {}

Range GradientOperations::whole(int t) const {
  if (!is_transient()) return state_.gradients.all(t);
  return {buffer_[static_cast<std::size_t>(t)], 0, state_.setting.tensors.padded(t), 0};
}

Operand GradientOperations::gradient(int t, bool is_first) {
  const std::int64_t elems = state_.setting.tensors.elems(t);
  if (is_transient() && is_first) {
    buffer_[static_cast<std::size_t>(t)] =
        builder_.buffer("gradient " + name_of(table_, t), schedule::Term::kReduceBuckets,
                        state_.setting.tensors.padded(t), policy_.type);
    zero_padding(whole(t), elems);
  }
  Operand operand{whole(t), is_first ? Access::kWrite : Access::kReadWrite};
  operand.range.elems = elems;
  return operand;
}

// Padding is sent with its tensor, so it must be zero instead of the previous contents of the bytes. (Persistent
// buffers start as zeros.)
void GradientOperations::zero_padding(const Range& gradient, std::int64_t elems) {
  if (gradient.elems == elems) return;
  const Range padding{gradient.buffer, gradient.begin_elems + elems, gradient.elems - elems, 0};
  builder_.add(schedule::OpKind::kZero, schedule::Stream::kCompute, {}, {{padding, Access::kWrite}});
}

BufferId GradientOperations::make_packed_bucket(std::int64_t elems) {
  constexpr const char* kName = "reduce bucket";
  return policy_.keeps_packed_buckets ? builder_.persistent(kName, schedule::Term::kReduceBuckets, elems, policy_.type)
                                      : builder_.buffer(kName, schedule::Term::kReduceBuckets, elems, policy_.type);
}

void GradientOperations::pack(const schedule::Reduction& by, int t, bool) {
  BufferId& bucket = packed_[by.open_bucket()];
  if (bucket < 0) bucket = make_packed_bucket(by.packed_bucket_elems());
  const std::int64_t begin = open_.empty() ? 0 : open_.back().whole.begin_elems + open_.back().whole.elems;
  const Range packed{bucket, begin, state_.setting.tensors.padded(t), 0};
  builder_.add(schedule::OpKind::kCopy, policy_.packing_stream, {},
               {{whole(t), Access::kRead}, {packed, Access::kWrite}});
  open_.push_back({t, packed});
}

void GradientOperations::reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) {
  std::vector<Piece> pieces = packed ? std::exchange(open_, {}) : std::vector<Piece>{};
  for (const int t : tensors) {
    if (!packed) pieces.push_back({t, whole(t)});
  }
  sum_over_tensor_ranks(pieces);
  std::vector<Operand> wholes;
  for (const Piece& piece : pieces) wholes.push_back({piece.whole, Access::kReadWrite});
  const OpId reduced = builder_.add(policy_.reduction, schedule::Stream::kReduce, {}, std::move(wholes));
  const OpId kept = keep(pieces, by.adds());
  builder_.hold_compute_for(under_way_.enter(kept < 0 ? reduced : kept).value_or(-1));
}

void GradientOperations::end_micro_step() {
  if (!policy_.keeps_packed_buckets) std::fill(packed_.begin(), packed_.end(), -1);
}

void GradientOperations::sum_over_tensor_ranks(const std::vector<Piece>& pieces) {
  std::vector<Operand> wholes;
  for (const Piece& piece : pieces) {
    if (state_.setting.tensors.is_partial(piece.tensor)) wholes.push_back({piece.whole, Access::kReadWrite});
  }
  if (wholes.empty()) return;
  builder_.add_tensor_group(schedule::OpKind::kAllReduce, schedule::Stream::kReduce, {}, std::move(wholes));
}

// Moves the part that this rank's optimizer needs to its place until the update; returns -1 if it is already there.
OpId GradientOperations::keep(const std::vector<Piece>& pieces, bool adds) {
  const TensorStore& kept = state_.reduced_gradients();
  std::vector<Operand> moves;
  std::int64_t elems = 0;
  for (const Piece& piece : pieces) {
    const Range from = state_.updated_part(piece.whole);
    const Range to = state_.updated_part(kept, piece.tensor);
    if (from.buffer == to.buffer) continue;  // reduced where it stays
    moves.push_back({from, Access::kRead});
    moves.push_back({to, adds ? Access::kReadWrite : Access::kWrite});
    elems += to.elems;
  }
  if (moves.empty()) return -1;
  if (kept.place() != schedule::Place::kHost) {
    return builder_.add(schedule::OpKind::kAccumulate, schedule::Stream::kReduce, {}, std::move(moves));
  }
  if (!adds) return builder_.add(schedule::OpKind::kCopy, schedule::Stream::kCopy, {}, std::move(moves));
  const BufferId arrived =
      builder_.buffer("arrived gradients", schedule::Term::kReduceBuckets, elems, policy_.type, schedule::Place::kHost);
  std::vector<Operand> sums;
  std::int64_t begin = 0;
  for (std::size_t i = 1; i < moves.size(); i += 2) {
    const Range landed{arrived, begin, moves[i].range.elems, 0};
    begin += landed.elems;
    sums.push_back({landed, Access::kRead});
    sums.push_back(moves[i]);
    moves[i] = {landed, Access::kWrite};
  }
  const OpId moved = builder_.add(schedule::OpKind::kCopy, schedule::Stream::kCopy, {}, std::move(moves));
  builder_.add(schedule::OpKind::kAccumulate, schedule::Stream::kHost, {}, std::move(sums));
  return moved;
}

// --- update

BufferId UpdateOperations::scalar(schedule::Place place) {
  return builder_.buffer("squared norm", schedule::Term::kInputs, 1, schedule::DType::kFp32, place);
}

void UpdateOperations::control() {
  const schedule::Place place = state_.reduced_gradients().place();
  const BufferId own_sum = scalar(place);
  add_norms(writes(own_sum, 1), computing_stream(place));
  BufferId sum = own_sum;
  if (place != schedule::Place::kDevice) {
    sum = scalar(schedule::Place::kDevice);
    builder_.add(schedule::OpKind::kCopy, schedule::Stream::kCopy, {}, {reads(own_sum, 1), writes(sum, 1)});
  }
  builder_.add(schedule::OpKind::kAllReduce, schedule::Stream::kReduce, {}, {updates(sum, 1)});
  if (state_.setting.knobs.tensor_ranks > 1) {
    builder_.add_tensor_group(schedule::OpKind::kAllReduce, schedule::Stream::kReduce, {}, {updates(sum, 1)});
  }
  builder_.add(schedule::OpKind::kLossScale, schedule::Stream::kCompute, {},
               {reads(sum, 1), updates(state_.control, schedule::kControlElementCount)});
  control_ = state_.control;
  if (policy_.optimizer_place == schedule::Place::kDevice) return;
  control_ = builder_.buffer("host control", schedule::Term::kInputs, schedule::kControlElementCount,
                             schedule::DType::kFp32, schedule::Place::kHost);
  builder_.add(
      schedule::OpKind::kCopy, schedule::Stream::kCopy, {},
      {reads(state_.control, schedule::kControlElementCount), writes(control_, schedule::kControlElementCount)});
}

void UpdateOperations::add_norms(const Operand& sum, schedule::Stream stream) {
  std::vector<Operand> split = {sum};
  std::vector<Operand> shared = {sum};
  const std::int64_t tensor_ranks = state_.setting.knobs.tensor_ranks;
  for (int t = 0; t < state_.setting.tensors.count(); ++t) {
    if (!state_.setting.tensors.is_trained(t)) continue;
    const bool counts_once = tensor_ranks == 1 || state_.setting.tensors.is_split(t);
    (counts_once ? split : shared).push_back({state_.own_part(state_.reduced_gradients(), t), Access::kRead});
  }
  const bool has_split = split.size() > 1;
  if (has_split) builder_.add(schedule::OpKind::kGradientNorm, stream, {}, std::move(split));
  if (shared.size() == 1) return;
  if (has_split) shared.front().access = Access::kReadWrite;
  builder_.add(schedule::OpKind::kGradientNorm, stream, {}, std::move(shared), 1.0 / static_cast<double>(tensor_ranks));
}

void UpdateOperations::update(std::span<const int> bucket) {
  std::vector<Operand> operands;
  for (const int t : bucket) {
    if (policy_.orthogonalizes && state_.setting.tensors.is_matrix(t)) {
      update_matrix(t);
      continue;
    }
    operands.push_back(updated(t));
    operands.push_back(gradient(t));
    for (const TensorStore& moments : state_.moments) operands.push_back({moments.all(t), Access::kReadWrite});
  }
  if (operands.empty()) return;
  if (control_ >= 0) operands.push_back(reads(control_, schedule::kControlElementCount));
  builder_.add(policy_.update, computing_stream(policy_.optimizer_place), {}, std::move(operands));
}

Operand UpdateOperations::updated(int t) const {
  return {state_.updated_part(state_.masters.has(t) ? state_.masters : state_.home(t), t), Access::kReadWrite};
}

Operand UpdateOperations::gradient(int t) const {
  return {state_.updated_part(state_.reduced_gradients(), t), Access::kRead};
}

// Muon (Jordan et al. 2024): the momentum, its nearest orthogonal matrix in 16 bits, and the step along that. The ranks
// that share a matrix share the work evenly, as frameworks do by giving each of them whole matrices.
void UpdateOperations::update_matrix(int t) {
  const schedule::Setting& setting = state_.setting;
  const schedule::UnitTensor& matrix = setting.tensors.kind(t);
  const schedule::Stream stream = computing_stream(policy_.optimizer_place);
  const Range momentum = state_.moments.front().all(t);
  std::vector<Operand> accumulated = {{momentum, Access::kReadWrite}, gradient(t)};
  const Operand value = updated(t);
  const BufferId direction = builder_.buffer("orthogonal update", schedule::Term::kWorkspace, value.range.elems,
                                             schedule::DType::kBf16, policy_.optimizer_place);
  std::vector<Operand> step = {value, reads(direction, value.range.elems)};
  if (control_ >= 0) {
    for (std::vector<Operand>* operands : {&accumulated, &step})
      operands->push_back(reads(control_, schedule::kControlElementCount));
  }
  builder_.add(schedule::OpKind::kMomentum, stream, {}, std::move(accumulated));
  const Shape shape{.rows = matrix.elems / matrix.matrices / matrix.columns,
                    .inner = matrix.columns,
                    .outer = policy_.shards_optimizer ? setting.knobs.shard_ranks() : 1,
                    .groups = matrix.matrices};
  builder_.add(schedule::OpKind::kOrthogonalize, stream, shape,
               {{momentum, Access::kRead}, writes(direction, value.range.elems)});
  builder_.add(schedule::OpKind::kSgdPlain, stream, {}, std::move(step));
}

void UpdateOperations::deliver(schedule::Place to, std::span<const int> mastered) {
  const schedule::Place from = policy_.optimizer_place;
  std::vector<Operand> pairs;
  for (const int t : mastered) {
    pairs.push_back({state_.masters.all(t), Access::kRead});
    pairs.push_back({state_.updated_part(state_.home(t), t), Access::kWrite});
  }
  if (from != to && policy_.type != policy_.master_type) pairs = round(std::move(pairs));
  builder_.add(schedule::OpKind::kCopy, from == to ? computing_stream(to) : schedule::Stream::kCopy, {},
               std::move(pairs));
}

// Values are rounded before they are sent, which halves the bytes.
std::vector<Operand> UpdateOperations::round(std::vector<Operand> pairs) {
  const schedule::Place place = policy_.optimizer_place;
  std::int64_t elems = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) elems += pairs[i].range.elems;
  const BufferId rounded =
      builder_.buffer("rounded parameters", schedule::Term::kParameters, elems, policy_.type, place);
  std::vector<Operand> rounding;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const Range range{rounded, begin, pairs[i].range.elems, 0};
    begin += range.elems;
    rounding.push_back(pairs[i]);
    rounding.push_back({range, Access::kWrite});
    pairs[i] = {range, Access::kRead};
  }
  builder_.add(schedule::OpKind::kCopy, computing_stream(place), {}, std::move(rounding));
  return pairs;
}

void UpdateOperations::gather(std::span<const int> whole) {
  std::vector<Operand> operands;
  for (const int t : whole) {
    operands.push_back({state_.own_part(state_.parameters, t), Access::kRead});
    operands.push_back({state_.parameters.all(t), Access::kWrite});
  }
  const OpId gathered = builder_.add(schedule::OpKind::kAllGather, schedule::Stream::kGather, {}, std::move(operands));
  if (!state_.setting.knobs.overlap_comm) builder_.hold_compute_for(gathered);
}

// --- the whole of ZeRO

ZeroOperations::ZeroOperations(PlanBuilder& builder, const schedule::Setting& setting,
                               const schedule::ParameterTable& table)
    : setting_(setting),
      builder_(builder),
      state_(builder, setting),
      parameters_(builder, state_, table),
      gradients_(builder, state_, table),
      walk_(setting, setting.knobs.micro_steps, parameters_, gradients_) {}

void ZeroOperations::update() {
  UpdateOperations operations(builder_, state_);
  schedule::walk_update(setting_, operations);
}

// The limit for gathered parameters: the current use's unit and those gathered ahead, at least one unit with
// prefetching.
Windows ZeroOperations::windows() const {
  const schedule::ZeroPolicy& policy = setting_.policy;
  const auto limit = [](std::size_t width) {
    return width == schedule::ZeroPolicy::kNoLimit ? -1 : static_cast<std::int64_t>(width);
  };
  const std::int64_t largest = walk_.gathering().largest_elems();
  const std::int64_t ahead = policy.prefetches ? std::max(setting_.knobs.prefetch_elems, largest) : 0;
  const std::int64_t gathered = largest + std::min(ahead, setting_.knobs.max_live_elems);
  return {limit(policy.reductions_under_way), limit(policy.gathers_under_way), policy.fetches_tensors ? -1 : gathered};
}

}  // namespace krigtune::plan
