// Follows plan/zero/zero_gradients.cpp operation by operation: packing, buckets, windows, and where reduced gradients
// go.
#include "step/compressed_gradients.h"

#include <algorithm>

namespace krigtune {

CompressedGradients::CompressedGradients(CostContext& step, std::int64_t micro_steps)
    : step_(step),
      micro_steps_(micro_steps),
      bucket_ends_(bucket_ends(step.tensors, step.knobs.reduce_bucket_elems)),
      under_way_(step.recorder, step.policy.reductions_under_way) {
  const auto tensors = static_cast<std::size_t>(step.tensors.count());
  bucket_of_.resize(tensors);
  reduced_.resize(tensors);
  written_.resize(tensors);
  const std::vector<int>& order = step.tensors.ready_order();
  std::size_t begin = 0;
  for (const std::size_t end : bucket_ends_) {
    for (std::size_t i = begin; i < end; ++i) {
      bucket_of_[static_cast<std::size_t>(order[i])] = static_cast<int>(sizes_.size());
    }
    sizes_.push_back(static_cast<int>(end - begin));
    begin = end;
  }
  missing_ = sizes_;
}

std::vector<std::size_t> CompressedGradients::bucket_ends(const StageTensors& tensors, std::int64_t most_elems) {
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
  ends.push_back(order.size());
  return ends;
}

bool CompressedGradients::reduces_now() const {
  return step_.policy.shards_gradients || micro_step_ + 1 == micro_steps_;
}

// Padding travels with its tensor: it is zeroed.
void CompressedGradients::begin(int t) {
  if (!step_.policy.shards_gradients) return;
  const std::int64_t padding = step_.tensors.padded(t) - step_.tensors.elems(t);
  if (padding == 0) return;
  const auto bytes = static_cast<double>(padding * step_.type_bytes());
  const double seconds = kernel_time_s(step_.machine, OpClass::kMemory, 0.0, bytes);
  step_.cost.memory_bound_s += seconds;
  step_.recorder.append_kernel(seconds);
}

void CompressedGradients::done(int t) {
  if (!reduces_now()) return;
  if (step_.policy.reduces_behind_backward) {
    if (!goes_alone(t)) return;
    written_[static_cast<std::size_t>(t)] = step_.recorder.flush();
    step_.recorder.expect_others();
  } else if (step_.policy.packs) {
    pack(t);
  } else {
    count(t);
  }
}

void CompressedGradients::end_micro_step() {
  if (reduces_now() && step_.policy.reduces_behind_backward) {
    for (const int t : step_.tensors.ready_order()) pack(t);
  }
  if (!members_.empty()) send_open();
  ++micro_step_;
}

bool CompressedGradients::is_last_of_bucket(int t) {
  const auto bucket = static_cast<std::size_t>(bucket_of_[static_cast<std::size_t>(t)]);
  if (--missing_[bucket] > 0) return false;
  missing_[bucket] = sizes_[bucket];
  return true;
}

void CompressedGradients::add_to(Pieces& pieces, int t) {
  pieces.padded_elems += step_.tensors.padded(t);
  if (step_.tensors.tensor(t).is_partial) pieces.partial_elems += step_.tensors.padded(t);
}

// Buckets may be filled in another order than they are sent in: what is in one is known by its number.
void CompressedGradients::count(int t) {
  if (!is_last_of_bucket(t)) return;
  const auto bucket = static_cast<std::size_t>(bucket_of_[static_cast<std::size_t>(t)]);
  const std::size_t begin = bucket == 0 ? 0 : bucket_ends_[bucket - 1];
  Pieces pieces;
  pieces.in_place = true;
  for (std::size_t i = begin; i < bucket_ends_[bucket]; ++i) {
    const int member = step_.tensors.ready_order()[i];
    add_to(pieces, member);
    members_.push_back(member);
  }
  ready_ = step_.recorder.flush();
  reduce(pieces);
  members_.clear();
}

void CompressedGradients::pack(int t) {
  const auto bucket = [&](int tensor) { return bucket_of_[static_cast<std::size_t>(tensor)]; };
  if (!members_.empty() && bucket(members_.front()) != bucket(t)) send_open();
  const bool is_last = is_last_of_bucket(t);
  Pieces alone;
  if (goes_alone(t)) {
    alone.in_place = true;
    add_to(alone, t);
    flush_packs();
    ready_ = step_.policy.reduces_behind_backward ? written_[static_cast<std::size_t>(t)] : step_.recorder.flush();
    members_.push_back(t);
    reduce(alone);
    return members_.clear();
  }
  const auto bytes = static_cast<double>(2 * step_.tensors.padded(t) * step_.type_bytes());
  const double seconds = kernel_time_s(step_.machine, OpClass::kMemory, 0.0, bytes);
  if (step_.policy.packing_stream == Stream::kCompute) {
    step_.cost.memory_bound_s += seconds;
    step_.recorder.append_kernel(seconds);
  } else {
    pack_beside(seconds);
  }
  if (members_.empty()) open_ = {};
  add_to(open_, t);
  members_.push_back(t);
  if (!is_last) return;
  flush_packs();
  ready_ = step_.recorder.flush();
}

void CompressedGradients::pack_beside(double seconds) {
  const double now_s = step_.recorder.compute_s();
  packs_.behind_s = std::max(0.0, packs_.behind_s - (now_s - packs_.last_at_s)) + seconds;
  packs_.last_at_s = now_s;
  packs_.work_s += seconds;
  ++packs_.count;
}

// As two: what can be done before the last gradient is complete, and the rest.
void CompressedGradients::flush_packs() {
  if (packs_.count == 0) return;
  Recorder& to = step_.recorder;
  const std::int32_t written = to.flush();
  const Recorder::Behind free{Stream::kCopy, packed_free_};
  const Stream stream = step_.policy.packing_stream;
  if (packs_.count > 1) to.add_row(stream, packs_.work_s - packs_.behind_s, packs_.count - 1, {free});
  to.add(stream, packs_.behind_s, {{Stream::kCompute, written}, free});
  packs_ = {};
}

void CompressedGradients::send_open() {
  flush_packs();
  const bool complete = missing_[static_cast<std::size_t>(bucket_of_[static_cast<std::size_t>(members_.back())])] ==
                        sizes_[static_cast<std::size_t>(bucket_of_[static_cast<std::size_t>(members_.back())])];
  if (!complete) ready_ = step_.recorder.flush();
  reduce(open_);
  members_.clear();
}

void CompressedGradients::reduce(const Pieces& pieces) {
  Recorder& to = step_.recorder;
  if (pieces.partial_elems > 0) {
    to.add(Stream::kReduce, step_.tensor_collective(OpKind::kAllReduce, pieces.partial_elems * step_.type_bytes()),
           {{Stream::kCompute, ready_}});
  }
  const auto bytes = static_cast<std::int64_t>(static_cast<double>(pieces.padded_elems) * step_.reduced_bytes);
  const std::int32_t reduced =
      to.add(Stream::kReduce, step_.data_collective(step_.policy.reduction, bytes), {{Stream::kCompute, ready_}});
  const Recorder::Behind kept = keep(pieces, reduced);
  under_way_.enter(kept);
  if (kept.stream == Stream::kCopy) packed_free_ = kept.count;
}

// Takes what this rank's optimizer needs to where it stays until the update: what the next one waits for.
Recorder::Behind CompressedGradients::keep(const Pieces& pieces, std::int32_t reduced) {
  const ZeroPolicy& policy = step_.policy;
  Recorder& to = step_.recorder;
  const bool adds = policy.shards_gradients && micro_step_ > 0;
  const bool travels = policy.optimizer_place == Place::kHost;
  Recorder::Behind kept{Stream::kReduce, reduced};
  Recorder::Behind last = kept;
  if (travels || policy.shards_gradients || !pieces.in_place) {
    const std::int64_t elems = step_.updated_elems(pieces.padded_elems);
    const auto flops = static_cast<double>(elems);
    const auto bytes = static_cast<double>((adds ? 3 : 2) * elems * step_.type_bytes());
    if (!travels) {
      kept.count = to.add(Stream::kReduce, kernel_time_s(step_.machine, OpClass::kMemory, flops, bytes),
                          {{Stream::kReduce, reduced}});
      last = kept;
    } else {
      const auto moved = static_cast<double>(2 * elems * step_.type_bytes());
      kept = {Stream::kCopy, to.add(Stream::kCopy, kernel_time_s(step_.machine, OpClass::kCopy, 0.0, moved),
                                    {{Stream::kReduce, reduced}})};
      last = kept;
      if (adds) {
        last = {Stream::kHost,
                to.add(Stream::kHost, kernel_time_s(step_.machine, OpClass::kHost, flops, bytes), {kept})};
      }
    }
  }
  for (const int t : members_) reduced_[static_cast<std::size_t>(t)] = last.count;
  return kept;
}

Recorder::Behind CompressedGradients::reduced(int t) const {
  const ZeroPolicy& policy = step_.policy;
  const bool travels = policy.optimizer_place == Place::kHost;
  const bool adds = policy.shards_gradients && step_.knobs.micro_steps > 1;
  const Stream stream = !travels ? Stream::kReduce : adds ? Stream::kHost : Stream::kCopy;
  return {stream, reduced_[static_cast<std::size_t>(t)]};
}

}  // namespace krigtune
