#include "cost/time/zero_time.h"

#include <algorithm>

#include "plan/op_operands.h"
#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

constexpr std::int64_t kScalarBytes = 4;
constexpr double kScalarTrafficBytes = 8.0;  // read and written

// Padded elements: those of experts, and all others.
struct SharedElems {
  std::int64_t of_all = 0;
  std::int64_t of_experts = 0;

  void add(const schedule::Setting& setting, std::span<const int> tensors) {
    for (const int t : tensors) (setting.tensors.is_of_experts(t) ? of_experts : of_all) += setting.tensors.padded(t);
  }
  SharedBytes bytes(double each) const {
    const auto of = [each](std::int64_t elems) { return static_cast<std::int64_t>(static_cast<double>(elems) * each); };
    return {of(of_all), of(of_experts)};
  }
};

SharedElems shared_elems(const schedule::Setting& setting, std::span<const int> tensors) {
  SharedElems elems;
  elems.add(setting, tensors);
  return elems;
}

// Among how many ranks the update of a tensor is shared.
std::int64_t sharing_ranks(const schedule::Setting& setting, bool of_experts) {
  if (!setting.policy.shards_optimizer) return 1;
  return of_experts ? setting.knobs.shards_of_expert() : setting.knobs.shard_ranks();
}

// What this rank's optimizer updates of them: of its experts the part that it has among those that share them.
std::int64_t updated_elems(const schedule::Setting& setting, const SharedElems& elems) {
  return setting.updated_elems(elems.of_all) + elems.of_experts / sharing_ranks(setting, true);
}

std::int64_t master_bytes(const schedule::Setting& setting) { return schedule::size_bytes(setting.policy.master_type); }

}  // namespace

// --- parameters

void GatheringTime::gather(std::span<const schedule::GatheredItem* const> items) {
  const schedule::Setting& setting = step_.setting;
  const bool has_second = setting.knobs.secondary_ranks > 1;
  SharedElems elems;
  SharedElems again_elems;  // of the second copy, for the backward pass
  for (const schedule::GatheredItem* item : items)
    (item->is_again && has_second ? again_elems : elems).add(setting, item->tensors);
  Recorder& to = step_.recorder;
  const Recorder::Behind before_use{schedule::Stream::kCompute, to.flush()};
  Recorder::Behind landed = before_use;
  if (setting.policy.shard_place == schedule::Place::kHost) {
    const std::int64_t all_elems = elems.of_all + elems.of_experts + again_elems.of_all + again_elems.of_experts;
    const std::int64_t own_bytes = all_elems / setting.knobs.shard_ranks() * setting.type_bytes();
    const auto bytes = static_cast<double>(2 * own_bytes);  // read and written
    landed = {schedule::Stream::kCopy,
              to.add(schedule::Stream::kCopy, kernel_time_s(step_.machine, workload::OpClass::kCopy, 0.0, bytes),
                     {before_use})};
  }
  const auto each = static_cast<double>(setting.type_bytes());
  const Recorder::Collective collective = step_.data_collective(schedule::OpKind::kAllGather, elems.bytes(each))
                                              .then(step_.gather_again(again_elems.bytes(each)));
  const std::int32_t gathered = to.add(schedule::Stream::kGather, collective, {before_use, landed});
  for (const schedule::GatheredItem* item : items) {
    if (gathered_.size() <= item->slot) gathered_.resize(item->slot + 1);
    gathered_[item->slot] = gathered;
  }
  if (const auto oldest = under_way_.enter({schedule::Stream::kGather, gathered}))
    to.wait_for(oldest->stream, oldest->count);
}

void GatheringTime::use(std::span<const schedule::GatheredItem> items) {
  if (!step_.setting.policy.fetches_tensors && !items.empty()) current_ = gathered_[items.front().slot];
}

void GatheringTime::read(int t) {
  if (!step_.setting.is_sharded(t)) return;
  const bool fetches = step_.setting.policy.fetches_tensors;
  step_.recorder.wait_for(schedule::Stream::kGather, fetches ? gathered_[static_cast<std::size_t>(t)] : current_);
}

// --- gradients

ReductionTime::ReductionTime(CostContext& step)
    : step_(step),
      written_(static_cast<std::size_t>(step.setting.tensors.count())),
      reduced_(static_cast<std::size_t>(step.setting.tensors.count())),
      under_way_(step.setting.policy.reductions_under_way) {}

// Padding is sent with its tensor, so it is zeroed.
void ReductionTime::begin(int t) {
  if (!step_.setting.policy.shards_gradients) return;
  const std::int64_t padding = step_.setting.tensors.padded(t) - step_.setting.tensors.elems(t);
  if (padding == 0) return;
  const auto bytes = static_cast<double>(padding * step_.setting.type_bytes());
  const double seconds = kernel_time_s(step_.machine, workload::OpClass::kMemory, 0.0, bytes);
  step_.cost.memory_bound_s += seconds;
  step_.recorder.append_kernel(seconds);
}

// A gradient that is reduced in place after backward can be sent before the copies of other gradients are done.
void ReductionTime::complete(int t) {
  if (!step_.setting.goes_alone(t)) return;
  written_[static_cast<std::size_t>(t)] = step_.recorder.flush();
  step_.recorder.expect_others();
}

void ReductionTime::pack(const schedule::Reduction&, int t, bool completes) {
  const schedule::Setting& setting = step_.setting;
  const auto bytes = static_cast<double>(2 * setting.tensors.padded(t) * setting.type_bytes());
  const double seconds = kernel_time_s(step_.machine, workload::OpClass::kMemory, 0.0, bytes);
  if (setting.policy.packing_stream == schedule::Stream::kCompute) {
    step_.cost.memory_bound_s += seconds;
    step_.recorder.append_kernel(seconds);
  } else {
    pack_beside(seconds);
  }
  open_is_complete_ = completes;
  if (!completes) return;
  flush_packs();
  ready_ = step_.recorder.flush();
}

void ReductionTime::pack_beside(double seconds) {
  const double now_s = step_.recorder.compute_s();
  packs_.behind_s = std::max(0.0, packs_.behind_s - (now_s - packs_.last_at_s)) + seconds;
  packs_.last_at_s = now_s;
  packs_.work_s += seconds;
  ++packs_.count;
}

// Records two operations: what can be done before the last gradient is complete, and the rest.
void ReductionTime::flush_packs() {
  if (packs_.count == 0) return;
  Recorder& to = step_.recorder;
  const std::int32_t written = to.flush();
  const Recorder::Behind free{schedule::Stream::kCopy, packed_free_};
  const schedule::Stream stream = step_.setting.policy.packing_stream;
  if (packs_.count > 1) to.add_row(stream, packs_.work_s - packs_.behind_s, packs_.count - 1, {free});
  to.add(stream, packs_.behind_s, {{schedule::Stream::kCompute, written}, free});
  packs_ = {};
}

void ReductionTime::set_ready(std::span<const int> tensors, bool packed) {
  if (!step_.setting.policy.packs) {
    ready_ = step_.recorder.flush();
    return;
  }
  flush_packs();
  if (packed) {
    if (!open_is_complete_) ready_ = step_.recorder.flush();
    return;
  }
  ready_ = step_.setting.policy.reduces_behind_backward ? written_[static_cast<std::size_t>(tensors.front())]
                                                        : step_.recorder.flush();
}

void ReductionTime::reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) {
  const schedule::Setting& setting = step_.setting;
  set_ready(tensors, packed);
  const SharedElems elems = shared_elems(setting, tensors);
  std::int64_t partial_elems = 0;
  for (const int t : tensors) {
    if (setting.tensors.is_partial(t)) partial_elems += setting.tensors.padded(t);
  }
  Recorder& to = step_.recorder;
  if (partial_elems > 0) {
    to.add(schedule::Stream::kReduce,
           step_.tensor_collective(schedule::OpKind::kAllReduce, partial_elems * setting.type_bytes()),
           {{schedule::Stream::kCompute, ready_}});
  }
  const SharedBytes bytes = elems.bytes(step_.reduced_bytes);
  std::int32_t reduced = to.add(schedule::Stream::kReduce, step_.data_collective(setting.policy.reduction, bytes),
                                {{schedule::Stream::kCompute, ready_}});
  if (by.sums_copies_now())
    reduced = to.add(schedule::Stream::kReduce, step_.sum_of_copies(bytes), {{schedule::Stream::kReduce, reduced}});
  const bool travels = setting.policy.optimizer_place == schedule::Place::kHost;
  const bool moves = travels || setting.policy.shards_gradients || packed;
  const Recorder::Behind kept = keep(by, tensors, updated_elems(setting, elems), moves, reduced);
  if (const auto oldest = under_way_.enter(kept)) to.wait_for(oldest->stream, oldest->count);
  if (kept.stream == schedule::Stream::kCopy) packed_free_ = kept.count;
}

// Moves the part that this rank's optimizer needs to its place until the update, which the next reduction waits for.
Recorder::Behind ReductionTime::keep(const schedule::Reduction& by, std::span<const int> tensors, std::int64_t elems,
                                     bool moves, std::int32_t reduced) {
  const schedule::Setting& setting = step_.setting;
  Recorder& to = step_.recorder;
  Recorder::Behind kept{schedule::Stream::kReduce, reduced};
  Recorder::Behind last = kept;
  if (moves) {
    const auto flops = static_cast<double>(elems);
    const auto bytes = static_cast<double>((by.adds() ? 3 : 2) * elems * setting.type_bytes());
    if (setting.policy.optimizer_place != schedule::Place::kHost) {
      kept.count =
          to.add(schedule::Stream::kReduce, kernel_time_s(step_.machine, workload::OpClass::kMemory, flops, bytes),
                 {{schedule::Stream::kReduce, reduced}});
      last = kept;
    } else {
      const auto moved = static_cast<double>(2 * elems * setting.type_bytes());
      kept = {schedule::Stream::kCopy,
              to.add(schedule::Stream::kCopy, kernel_time_s(step_.machine, workload::OpClass::kCopy, 0.0, moved),
                     {{schedule::Stream::kReduce, reduced}})};
      last = kept;
      if (by.adds()) {
        last = {schedule::Stream::kHost,
                to.add(schedule::Stream::kHost, kernel_time_s(step_.machine, workload::OpClass::kHost, flops, bytes),
                       {kept})};
      }
    }
  }
  for (const int t : tensors) reduced_[static_cast<std::size_t>(t)] = last.count;
  return kept;
}

Recorder::Behind ReductionTime::reduced(int t) const {
  const schedule::ZeroPolicy& policy = step_.setting.policy;
  const bool travels = policy.optimizer_place == schedule::Place::kHost;
  const bool adds = policy.shards_gradients && step_.setting.knobs.micro_steps > 1;
  const schedule::Stream stream = !travels ? schedule::Stream::kReduce
                                  : adds   ? schedule::Stream::kHost
                                           : schedule::Stream::kCopy;
  return {stream, reduced_[static_cast<std::size_t>(t)]};
}

// --- update

// Adds the next computation of the stream that updates.
void UpdateTime::compute(workload::OpClass on_device, double flops, double bytes) {
  const double seconds = kernel_time_s(step_.machine, on_host() ? workload::OpClass::kHost : on_device, flops, bytes);
  if (on_host()) {
    step_.recorder.add(schedule::Stream::kHost, seconds,
                       {gradients_ready_, {schedule::Stream::kCopy, control_copied_}});
    return;
  }
  if (gradients_ready_.stream != schedule::Stream::kCompute) {
    step_.recorder.wait_for(gradients_ready_.stream, gradients_ready_.count);
  }
  step_.optimizer_s += seconds;
  step_.recorder.append_kernel(seconds);
}

void UpdateTime::wait_for_gradients(std::span<const int> bucket) {
  if (bucket.empty()) return;  // everything in this stage is frozen
  gradients_ready_ = gradients_.reduced(bucket.front());
  for (const int t : bucket) gradients_ready_.count = std::max(gradients_ready_.count, gradients_.reduced(t).count);
}

void UpdateTime::add_norm(std::int64_t elems) {
  const double flops = plan::traits_of(schedule::OpKind::kGradientNorm).flops_per_elem * static_cast<double>(elems);
  compute(workload::OpClass::kOptimizer, flops,
          static_cast<double>(elems * step_.setting.type_bytes()) + kScalarTrafficBytes);
}

void UpdateTime::control() {
  const schedule::Setting& setting = step_.setting;
  const std::vector<int>& all = setting.tensors.ready_order();
  std::int64_t split = 0;
  std::int64_t shared = 0;
  for (const int t : all) {
    const bool counts_once = setting.knobs.tensor_ranks == 1 || setting.tensors.is_split(t);
    (counts_once ? split : shared) += setting.tensors.padded(t);
  }
  wait_for_gradients(all);
  if (split > 0) add_norm(split / setting.knobs.shard_ranks());
  if (shared > 0) add_norm(shared / setting.knobs.shard_ranks());
  Recorder& to = step_.recorder;
  Recorder::Behind summed = done();
  const double copy_s = kernel_time_s(step_.machine, workload::OpClass::kCopy, 0.0, kScalarTrafficBytes);
  if (on_host()) summed = {schedule::Stream::kCopy, to.add(schedule::Stream::kCopy, copy_s, {summed})};
  std::int32_t reduced = to.add(schedule::Stream::kReduce,
                                step_.data_collective(schedule::OpKind::kAllReduce, {kScalarBytes, 0}), {summed});
  if (setting.knobs.tensor_ranks > 1) {
    reduced =
        to.add(schedule::Stream::kReduce, step_.tensor_collective(schedule::OpKind::kAllReduce, kScalarBytes), {});
  }
  to.wait_for(schedule::Stream::kReduce, reduced);
  const double scale_s = kernel_time_s(step_.machine, workload::OpClass::kOptimizer, 0.0, kScalarTrafficBytes);
  step_.optimizer_s += scale_s;
  to.append_kernel(scale_s);
  if (!on_host()) return;
  const std::int32_t scaled = to.flush();
  control_copied_ = to.add(schedule::Stream::kCopy, copy_s, {{schedule::Stream::kCompute, scaled}});
}

void UpdateTime::update(std::span<const int> bucket) {
  wait_for_gradients(bucket);
  const schedule::Setting& setting = step_.setting;
  const schedule::ZeroPolicy& policy = setting.policy;
  std::vector<int> others;
  if (policy.orthogonalizes) {
    for (const int t : bucket) {
      if (setting.tensors.is_matrix(t)) {
        update_matrix(t);
      } else {
        others.push_back(t);
      }
    }
    bucket = others;
    if (others.empty()) return;
  }
  const auto elems = static_cast<double>(updated_elems(setting, shared_elems(setting, bucket)));
  std::int64_t kept_bytes = master_bytes(setting);
  for (int moment = 0; moment < policy.moments; ++moment)
    kept_bytes += schedule::size_bytes(policy.moment_types.at(static_cast<std::size_t>(moment)));
  compute(workload::OpClass::kOptimizer, plan::traits_of(policy.update).flops_per_elem * elems,
          elems * static_cast<double>(2 * kept_bytes + setting.type_bytes()));
}

// As UpdateOperations::update_matrix does it.
void UpdateTime::update_matrix(int t) {
  using schedule::OpKind;
  const schedule::Setting& setting = step_.setting;
  const schedule::UnitTensor& matrix = setting.tensors.kind(t);
  const auto elems = static_cast<double>(updated_elems(setting, shared_elems(setting, std::span(&t, 1))));
  const auto moment_bytes = static_cast<double>(schedule::size_bytes(setting.policy.moment_types.front()));
  const auto direction_bytes = static_cast<double>(schedule::size_bytes(schedule::DType::kBf16));
  const std::int64_t sharing = sharing_ranks(setting, setting.tensors.is_of_experts(t));
  const auto flops_of = [&](OpKind kind) { return plan::traits_of(kind).flops_per_elem * elems; };
  compute(workload::OpClass::kOptimizer, flops_of(OpKind::kMomentum),
          elems * (2.0 * moment_bytes + static_cast<double>(setting.type_bytes())));
  const double products =
      static_cast<double>(matrix.matrices) *
      plan::operands::newton_schulz(matrix.elems / matrix.matrices / matrix.columns, matrix.columns);
  compute(workload::OpClass::kProduct, products / static_cast<double>(sharing),
          elems * (moment_bytes + direction_bytes));
  compute(workload::OpClass::kOptimizer, flops_of(OpKind::kSgdPlain),
          elems * (2.0 * static_cast<double>(master_bytes(setting)) + direction_bytes));
}

// Returns the operations after which the updated values are available.
Recorder::Behind UpdateTime::done() const {
  if (on_host()) return {schedule::Stream::kHost, step_.recorder.count(schedule::Stream::kHost)};
  return {schedule::Stream::kCompute, step_.recorder.flush()};
}

// Values are rounded before they are sent.
void UpdateTime::deliver(schedule::Place to, std::span<const int> mastered) {
  const schedule::Setting& setting = step_.setting;
  const auto count = static_cast<double>(updated_elems(setting, shared_elems(setting, mastered)));
  const auto type_bytes = static_cast<double>(setting.type_bytes());
  const auto from_bytes = static_cast<double>(master_bytes(setting));
  gradients_ready_.count = 0;
  if (setting.policy.optimizer_place == to) {
    return compute(workload::OpClass::kOptimizer, 0.0, count * (from_bytes + type_bytes));
  }
  const bool rounds = setting.policy.type != setting.policy.master_type;
  if (rounds) compute(workload::OpClass::kOptimizer, 0.0, count * (from_bytes + type_bytes));
  const double bytes = count * ((rounds ? type_bytes : from_bytes) + type_bytes);
  delivered_ = step_.recorder.add(schedule::Stream::kCopy,
                                  kernel_time_s(step_.machine, workload::OpClass::kCopy, 0.0, bytes), {done()});
}

void UpdateTime::gather(std::span<const int> whole) {
  const SharedElems elems = shared_elems(step_.setting, whole);
  Recorder& to = step_.recorder;
  const Recorder::Collective collective =
      step_.data_collective(schedule::OpKind::kAllGather, elems.bytes(static_cast<double>(step_.setting.type_bytes())));
  const Recorder::Behind updated = on_host() ? Recorder::Behind{schedule::Stream::kCopy, delivered_} : done();
  const std::int32_t gathered = to.add(schedule::Stream::kGather, collective, {updated});
  if (!step_.setting.knobs.overlap_comm) to.wait_for(schedule::Stream::kGather, gathered);
}

}  // namespace krigtune::cost
