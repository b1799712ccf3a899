// A bucket travels once it is complete. Reduced where they are, the gradients of a bucket may be completed in any
// order; packed, they are copied one behind the other, and the first of the next bucket sends the one before.
#include "zero/zero_gradients.h"

#include <algorithm>
#include <cassert>

namespace krigtune {

GradientReduction::GradientReduction(PlanBuilder& builder, const ZeroState& state, const std::vector<int>& ready_order)
    : builder_(builder),
      state_(state),
      setting_(state.setting),
      policy_(state.setting.policy),
      buckets_(setting_.make_buckets(ready_order, setting_.knobs.reduce_bucket_elems)),
      under_way_(builder, policy_.reductions_under_way) {
  const auto tensors = static_cast<std::size_t>(setting_.tensors());
  bucket_of_.resize(tensors);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (const int t : buckets_[b]) bucket_of_[static_cast<std::size_t>(t)] = b;
    missing_.push_back(buckets_[b].size());
  }
  buffer_.assign(tensors, -1);
  written_.assign(tensors, false);
  packed_.assign(policy_.packed_buckets, -1);
}

bool GradientReduction::reduces_now() const {
  return policy_.shards_gradients || micro_step_ + 1 == setting_.knobs.micro_steps;
}

Range GradientReduction::whole(int t) const {
  if (!is_transient()) return state_.gradients.all(t);
  return {buffer_[static_cast<std::size_t>(t)], 0, setting_.tensor(t).padded_elems, 0};
}

Operand GradientReduction::gradient(int t) {
  const auto at = static_cast<std::size_t>(t);
  const ParameterTensor& tensor = setting_.tensor(t);
  const Access access = written_[at] ? Access::kReadWrite : Access::kWrite;
  if (is_transient() && !written_[at]) {
    buffer_[at] = builder_.buffer("gradient " + tensor.name, Term::kReduceBuckets, tensor.padded_elems, policy_.type);
    zero_padding(whole(t), tensor.elems);
  }
  written_[at] = true;
  Operand operand{whole(t), access};
  operand.range.elems = tensor.elems;
  return operand;
}

// Padding travels with its tensor: it must be zero, not what the bytes held before. (Persistent buffers start as
// zeros.)
void GradientReduction::zero_padding(const Range& gradient, std::int64_t elems) {
  if (gradient.elems == elems) return;
  const Range padding{gradient.buffer, gradient.begin_elems + elems, gradient.elems - elems, 0};
  builder_.add(OpKind::kZero, Stream::kCompute, {}, {{padding, Access::kWrite}});
}

void GradientReduction::gradient_done(int t) {
  if (!reduces_now() || policy_.reduces_behind_backward) return;
  if (policy_.packs) {
    pack(t);
  } else {
    count(t);
  }
}

void GradientReduction::end_micro_step() {
  if (reduces_now() && policy_.reduces_behind_backward) {
    for (const Bucket& bucket : buckets_) {
      for (const int t : bucket) pack(t);
    }
  }
  if (!open_.empty()) send_packed();
  if (!policy_.keeps_packed_buckets) packed_.assign(policy_.packed_buckets, -1);
  if (is_transient()) written_.assign(written_.size(), false);
  ++micro_step_;
}

void GradientReduction::count(int t) {
  const std::size_t b = bucket_of_[static_cast<std::size_t>(t)];
  if (--missing_[b] > 0) return;
  missing_[b] = buckets_[b].size();
  std::vector<Piece> pieces;
  for (const int member : buckets_[b]) pieces.push_back({member, whole(member)});
  reduce(pieces);
}

void GradientReduction::pack(int t) {
  const auto bucket = [&](int tensor) { return bucket_of_[static_cast<std::size_t>(tensor)]; };
  if (!open_.empty() && bucket(open_.front().tensor) != bucket(t)) send_packed();
  if (setting_.tensor(t).elems > setting_.knobs.reduce_bucket_elems) return reduce({{t, whole(t)}});
  const Range packed = packed_range(t);
  builder_.add(OpKind::kCopy, policy_.packing_stream, {}, {{whole(t), Access::kRead}, {packed, Access::kWrite}});
  open_.push_back({t, packed});
}

void GradientReduction::send_packed() {
  reduce(open_);
  open_.clear();
  ++turn_;
}

// As large as the knob says, where there are as many gradients; larger by the padding of what is packed.
std::int64_t GradientReduction::bucket_elems() const {
  std::int64_t all = 0;
  std::int64_t fullest = 0;
  for (const Bucket& bucket : buckets_) {
    std::int64_t padded = 0;
    for (const int t : bucket) {
      all += setting_.tensor(t).elems;
      padded += setting_.tensor(t).padded_elems;
    }
    const bool goes_alone = setting_.tensor(bucket.front()).elems > setting_.knobs.reduce_bucket_elems;
    if (!goes_alone) fullest = std::max(fullest, padded);
  }
  return std::max(fullest, std::min(all, setting_.knobs.reduce_bucket_elems));
}

BufferId GradientReduction::make_packed_bucket() {
  constexpr const char* kName = "reduce bucket";
  return policy_.keeps_packed_buckets ? builder_.persistent(kName, Term::kReduceBuckets, bucket_elems(), policy_.type)
                                      : builder_.buffer(kName, Term::kReduceBuckets, bucket_elems(), policy_.type);
}

Range GradientReduction::packed_range(int t) {
  const std::size_t turn = turn_ % policy_.packed_buckets;
  if (packed_[turn] < 0) packed_[turn] = make_packed_bucket();
  const std::int64_t begin = open_.empty() ? 0 : open_.back().whole.begin_elems + open_.back().whole.elems;
  return {packed_[turn], begin, setting_.tensor(t).padded_elems, 0};
}

void GradientReduction::reduce(const std::vector<Piece>& pieces) {
  sum_over_tensor_ranks(pieces);
  std::vector<Operand> wholes;
  for (const Piece& piece : pieces) wholes.push_back({piece.whole, Access::kReadWrite});
  const OpId reduced = builder_.add(policy_.reduction, Stream::kReduce, {}, std::move(wholes));
  const OpId kept = keep(pieces);
  under_way_.enter(kept < 0 ? reduced : kept);
}

void GradientReduction::sum_over_tensor_ranks(const std::vector<Piece>& pieces) {
  const std::vector<bool>& partial = setting_.table.partial_gradients;
  std::vector<Operand> wholes;
  for (const Piece& piece : pieces) {
    const bool is_partial = !partial.empty() && partial[static_cast<std::size_t>(piece.tensor)];
    if (is_partial) wholes.push_back({piece.whole, Access::kReadWrite});
  }
  if (wholes.empty()) return;
  builder_.add_tensor_group(OpKind::kAllReduce, Stream::kReduce, {}, std::move(wholes));
}

// Takes what this rank's optimizer needs to where it stays until the update; -1: it is there.
OpId GradientReduction::keep(const std::vector<Piece>& pieces) {
  const TensorStore& kept = state_.reduced_gradients();
  const bool adds = policy_.shards_gradients && micro_step_ > 0;
  const bool travels = kept.place() == Place::kHost;
  std::vector<Operand> moves;
  std::vector<Operand> sums;
  std::int64_t elems = 0;
  for (const Piece& piece : pieces) {
    const Range from = setting_.updated_part(piece.whole);
    const Range to = state_.updated_part(kept, piece.tensor);
    if (from.buffer == to.buffer) continue;  // reduced where it stays
    moves.push_back({from, Access::kRead});
    moves.push_back({to, adds ? Access::kReadWrite : Access::kWrite});
    elems += to.elems;
  }
  if (moves.empty()) return -1;
  if (!travels) return builder_.add(OpKind::kAccumulate, Stream::kReduce, {}, std::move(moves));
  if (!adds) return builder_.add(OpKind::kCopy, Stream::kCopy, {}, std::move(moves));
  const BufferId arrived =
      builder_.buffer("arrived gradients", Term::kReduceBuckets, elems, policy_.type, Place::kHost);
  std::int64_t begin = 0;
  for (std::size_t i = 1; i < moves.size(); i += 2) {
    const Range landed{arrived, begin, moves[i].range.elems, 0};
    begin += landed.elems;
    sums.push_back({landed, Access::kRead});
    sums.push_back(moves[i]);
    moves[i] = {landed, Access::kWrite};
  }
  const OpId moved = builder_.add(OpKind::kCopy, Stream::kCopy, {}, std::move(moves));
  builder_.add(OpKind::kAccumulate, Stream::kHost, {}, std::move(sums));
  return moved;
}

}  // namespace krigtune
