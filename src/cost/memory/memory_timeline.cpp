// A step is a sequence of parts (embedding, layers, head, and back). Each part needs the profile's bytes beyond what
// earlier parts keep, plus what ZeRO has gathered and has not yet reduced at that operation:
//
//   live(part, i) = b (kept before the part + moments[i]) + gathered + gradients on their way
#include "cost/memory/memory_timeline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>
namespace krigtune::cost {

// --- parameters

void GatheredMemory::gather(std::span<const schedule::GatheredItem* const> items) {
  for (const schedule::GatheredItem* item : items) {
    if (slots_.size() <= item->slot) slots_.resize(item->slot + 1);
    slots_[item->slot] = {.counted = true, .behind = sent_};
    bytes_ += item->elems * setting_.type_bytes();
  }
}

void GatheredMemory::let_go(const schedule::GatheredItem& item) { release(item); }

void GatheredMemory::release(const schedule::GatheredItem& item) {
  if (std::exchange(slots_[item.slot].counted, false)) bytes_ -= item.elems * setting_.type_bytes();
}

std::size_t GatheredMemory::reductions_over(std::span<const schedule::GatheredItem> current) const {
  if (setting_.policy.optimizer_place != schedule::Place::kHost ||
      setting_.policy.shard_place != schedule::Place::kHost)
    return 0;
  std::size_t over = 0;
  for (const schedule::GatheredItem& item : current) over = std::max(over, slots_[item.slot].behind);
  return over;
}

void GatheredMemory::last_read(std::span<const schedule::GatheredItem> current, int tensor, bool is_last) {
  for (const schedule::GatheredItem& item : current) {
    const bool is_read = setting_.policy.fetches_tensors ? item.tensors.front() == tensor : is_last;
    if (is_read && !item.stays) release(item);
  }
}

// --- gradients

bool ReductionMemory::is_idle(const schedule::ZeroPolicy& policy) {
  return !policy.shards_gradients && !policy.packs && !policy.grows_gradients;
}

ReductionMemory::ReductionMemory(const schedule::Setting& setting)
    : setting_(setting), policy_(setting.policy), packed_(setting.policy.packed_buckets) {}

void ReductionMemory::start(const schedule::Reduction& by) {
  if (!policy_.packs) return;
  bucket_bytes_ = by.packed_bucket_elems() * setting_.type_bytes();
  packed_sends_ = by.packed_buckets_sent();
  if (policy_.keeps_packed_buckets && packed_sends_ > 0) bytes_ = bucket_bytes_;
}

void ReductionMemory::first_gradient(int t) {
  if (!policy_.shards_gradients && !policy_.grows_gradients) return;
  const std::int64_t bytes = setting_.tensors.padded(t) * setting_.type_bytes();
  bytes_ += bytes;
  if (!policy_.shards_gradients) grown_bytes_ += bytes;
}

void ReductionMemory::pack(const schedule::Reduction& by, int t, bool) {
  if (policy_.keeps_packed_buckets) return;
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    if (packed_[i].here || !(policy_.whole_packed_buckets || i == by.open_bucket())) continue;
    packed_[i] = {true, entered_.size()};
    bytes_ += bucket_bytes_;
  }
  most_while_copied_ = std::max(most_while_copied_, bytes_);
  bytes_ -= transient_bytes(t);
}

std::int64_t ReductionMemory::most_while_copied() { return std::exchange(most_while_copied_, 0); }

void ReductionMemory::reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) {
  if (packed) return send_packed(by, tensors);
  std::int64_t held_bytes = 0;
  for (const int t : tensors) held_bytes += transient_bytes(t);
  enter(held_bytes);
}

void ReductionMemory::send_packed(const schedule::Reduction& by, std::span<const int> tensors) {
  std::int64_t held_bytes = 0;
  for (const int t : tensors) held_bytes += policy_.keeps_packed_buckets ? transient_bytes(t) : 0;
  Packed& packed = packed_[by.open_bucket()];
  packed.entry = entered_.size();
  // The bucket is not filled again in this micro-step, so whatever waits for this reduction frees it.
  const bool is_last = ++sends_ + packed_.size() > packed_sends_;
  if (is_last && std::exchange(packed.here, false)) held_bytes += bucket_bytes_;
  enter(held_bytes);
}

void ReductionMemory::enter(std::int64_t held_bytes) {
  entered_.push_back(held_bytes);
  const std::size_t width = policy_.reductions_under_way;
  if (entered_.size() > width) release(entered_.size() - width);
}

void ReductionMemory::release(std::size_t count) {
  while (released_ < count) {
    just_released_bytes_ += entered_[released_];
    bytes_ -= entered_[released_++];
  }
}

void ReductionMemory::end_micro_step() {
  if (!policy_.keeps_packed_buckets) release_packed();
  sends_ = 0;
}

// Whatever waits for the bucket's last reduction frees it.
void ReductionMemory::release_packed() {
  for (Packed& packed : packed_) {
    if (!packed.here) continue;
    const bool is_sent = packed.entry < entered_.size();
    if (!is_sent || packed.entry < released_) {
      bytes_ -= bucket_bytes_;
    } else {
      entered_[packed.entry] += bucket_bytes_;
    }
    packed.here = false;
  }
}

namespace {

using schedule::Part;
using schedule::Unit;

class Timeline final : public schedule::PartSink {
 public:
  Timeline(const MemoryProfile& profile, const schedule::Setting& setting, const InFlight& in_flight)
      : profile_(profile),
        setting_(setting),
        idle_(!setting.policy.shards_parameters && ReductionMemory::is_idle(setting.policy)),
        micro_steps_(idle_ ? 1 : distinct_micro_steps(setting.policy, setting.knobs)),
        gathered_(setting),
        reduction_(setting) {
    const schedule::StageParts& stage = setting.tensors.parts();
    const std::int64_t size = schedule::layers_of_group(stage, setting.knobs);
    groups_ = (stage.layers + size - 1) / size;
    // The passes of one micro-batch through all stages of the rank are walked.
    const std::int64_t others = std::max<std::int64_t>(0, in_flight.passes - in_flight.stages_of_rank);
    const auto passed = [&](std::int64_t groups) {
      return (groups * others + in_flight.stages_of_rank - 1) / in_flight.stages_of_rank;
    };
    in_flight_bytes_ = profile.embedding_kept * std::max<std::int64_t>(0, in_flight.of_first - 1);
    for (const Unit block : schedule::kBlocks) {
      begins_.at(schedule::kind_index(block)) = (stage.first_of(block) + size - 1) / size;
      const std::int64_t behind = (stage.first_of(block) + stage.layers_of(block) + size - 1) / size;
      in_flight_bytes_ += profile.of(block).group_kept * passed(behind - begins_.at(schedule::kind_index(block)));
    }
    in_flight_bytes_ += profile.kept_for_weights(stage).divided(in_flight.waiting, in_flight.stages_of_rank);
    in_flight_bytes_ = in_flight_bytes_ * setting.knobs.micro_batch;
  }

  StepPeak run() {
    if (idle_) return run_quietly();
    walk_.emplace(setting_, micro_steps_, gathered_, reduction_);
    reduction_.start(walk_->reduction());
    for (micro_step_ = 0; micro_step_ < micro_steps_; ++micro_step_) {
      quiet_ = !walk_->gathering().active() && !acts();
      walk_->micro_step(*this);
      const std::int64_t behind = reduction_.most_while_copied();
      if (behind > 0) note(walk_->parts().back(), nothing_, behind);
    }
    return result();
  }

  void begin(const Part& part) override {
    if (part.begins_use) gathered_.before_use(reduction_.sent());
    bytes_before_ = 0;
    if (part.unit == Unit::kEmbedding) return;
    const Before before = before_part(part);
    bytes_before_ = profile_.embedding_kept.total;
    for (std::size_t kind = 0; kind < profile_.blocks.size(); ++kind) {
      bytes_before_ += profile_.blocks[kind].group_kept.total * before.groups[kind] +
                       profile_.blocks[kind].layer_kept.total * before.layers[kind];
    }
  }

  void add(const Part& part) override {
    if (quiet_) return note_whole(part, reduction_.bytes());
    if (part.begins_use && walk_->gathering().active()) note_gathered(part);
    const ProfiledPart& operations = profiled(part);
    for (const int t : operations.unread) {
      if (part.ends_use) last_read(part, t, false);
    }
    auto begins = operations.events.begin();
    auto ends = operations.events.begin();
    std::int64_t reads_left = operations.reads;
    for (int i = 0; i < static_cast<int>(operations.moments.size()); ++i) {
      for (; begins != operations.events.end() && begins->at == i; ++begins) {
        if (begins->kind == TensorEvent::Kind::kFirstGradient) begin_gradient(part, begins->tensor);
      }
      note(part, operations.moments[static_cast<std::size_t>(i)], reduction_.bytes(), operations.restored_at(i));
      reduction_.next_operation();
      for (; ends != operations.events.end() && ends->at == i; ++ends) end_event(part, *ends, reads_left);
    }
  }

 private:
  // If nothing is gathered or in flight, every micro-step equals the first one.
  StepPeak run_quietly() {
    parts_ = schedule::parts_of(setting_.tensors, setting_.knobs);
    for (const Part& part : parts_) {
      begin(part);
      note_whole(part, 0);
    }
    return result();
  }

  // Returns whether the number of bytes changes within this micro-step.
  bool acts() const {
    const schedule::ZeroPolicy& policy = setting_.policy;
    const bool packs_now = policy.packs && !policy.reduces_behind_backward && walk_->reduction().reduces_now();
    return policy.shards_gradients || policy.grows_gradients || packs_now;
  }

  // Gathered parameters may arrive before anything has waited for the last reduction; the embedding's arrive after the
  // batch.
  void note_gathered(const Part& part) {
    reduction_.release(gathered_.reductions_over(walk_->gathering().current()));
    const schedule::ZeroPolicy& policy = setting_.policy;
    const bool one_stream =
        policy.optimizer_place == schedule::Place::kHost && policy.shard_place == schedule::Place::kHost;
    const bool waited = one_stream || part.is(Unit::kEmbedding, schedule::Phase::kForward);
    note(part, profiled(part).start, waited ? reduction_.bytes() : reduction_.bytes_before_wait());
  }

  void begin_gradient(const Part& part, int tensor) {
    const int t = setting_.tensors.index(tensor, part.layer);
    if (walk_->reduction().begin(t)) reduction_.first_gradient(t);
  }

  void last_read(const Part& part, int tensor, bool is_last) {
    gathered_.last_read(walk_->gathering().current(), setting_.tensors.index(tensor, part.layer), is_last);
  }

  void end_event(const Part& part, const TensorEvent& event, std::int64_t& reads_left) {
    if (event.kind == TensorEvent::Kind::kLastRead) {
      if (part.ends_use) last_read(part, event.tensor, --reads_left == 0);
    } else if (event.kind == TensorEvent::Kind::kLastGradient) {
      // If the embedding is in this stage, the gradient of a tied table is complete with the embedding's.
      const bool is_head_of_tied = part.unit == Unit::kHead && event.tensor == 0 && setting_.tensors.tied();
      if (is_head_of_tied && !setting_.tensors.copies_table()) return;
      walk_->reduction().done(setting_.tensors.index(event.tensor, part.layer));
      const std::int64_t while_copied = reduction_.most_while_copied();
      if (while_copied > 0) note(part, profiled(part).carried[static_cast<std::size_t>(event.at)], while_copied);
    }
  }

  const ProfiledPart& profiled(const Part& part) const {
    const bool forward = part.phase == schedule::Phase::kForward;
    if (part.unit == Unit::kEmbedding) return forward ? profile_.embed_forward : profile_.embed_backward;
    if (part.unit == Unit::kHead) return forward ? profile_.head_forward : profile_.head_backward;
    const BlockProfile& block = profile_.of(part.unit);
    const auto& of_block = forward                                     ? block.forward
                           : part.phase == schedule::Phase::kRecompute ? block.recompute
                                                                       : block.backward;
    return of_block[part.in_group == 0 ? 0 : 1];
  }

  // What earlier parts keep: groups, which keep what their first layer's kind does, and recomputed layers of the part's
  // own group.
  struct Before {
    std::array<std::int64_t, workload::kMostKinds> groups{}, layers{};  // by kind
  };
  Before before_part(const Part& part) const {
    const schedule::StageParts& stage = setting_.tensors.parts();
    const std::int64_t groups = part.unit == Unit::kHead ? groups_ : part.group;
    const bool again = part.phase != schedule::Phase::kForward && part.in_group > 0;
    Before before;
    for (const Unit block : schedule::kBlocks) {
      const std::size_t kind = schedule::kind_index(block);
      const std::int64_t behind = block == Unit::kBlock ? groups_ : begins_.at(kind + 1);
      before.groups.at(kind) = std::max<std::int64_t>(0, std::min(groups, behind) - begins_.at(kind));
      if (again) before.layers.at(kind) = stage.layers_in(block, part.layer - part.in_group, part.layer);
    }
    return before;
  }

  // Notes moments of the part that has begun last.
  void note(const Part& part, const MomentBytes& beyond, std::int64_t reduction_bytes,
            std::int64_t restored_bytes = 0) {
    const std::int64_t gathered_bytes = gathered_.bytes() + restored_bytes;
    const std::int64_t bytes =
        (bytes_before_ + beyond.total) * setting_.knobs.micro_batch + gathered_bytes + reduction_bytes;
    if (bytes <= peak_.bytes) return;
    peak_ = {bytes, &part, &beyond, gathered_bytes, reduction_bytes, reduction_.grown_bytes(), micro_step_};
  }

  // If nothing begins or ends within the part. With restored weights its highest moment depends on the micro-batch.
  void note_whole(const Part& part, std::int64_t reduction_bytes) {
    const ProfiledPart& operations = profiled(part);
    if (operations.restored_bytes.empty()) return note(part, operations.highest(), reduction_bytes);
    for (std::size_t i = 0; i < operations.moments.size(); ++i) {
      note(part, operations.moments[i], reduction_bytes, operations.restored_bytes[i]);
    }
  }

  StepPeak result() const {
    StepPeak peak;
    const Part& part = *peak_.part;
    if (part.unit != Unit::kEmbedding) {
      peak.bytes += profile_.embedding_kept;
      const Before before = before_part(part);
      for (std::size_t kind = 0; kind < profile_.blocks.size(); ++kind) {
        peak.bytes += profile_.blocks[kind].group_kept * before.groups[kind];
        peak.bytes += profile_.blocks[kind].layer_kept * before.layers[kind];
      }
    }
    peak.bytes += *peak_.beyond;
    peak.bytes = peak.bytes * setting_.knobs.micro_batch;
    peak.bytes += in_flight_bytes_;
    peak.bytes.add(schedule::Term::kGatheredParameters, peak_.gathered_bytes);
    peak.bytes.add(schedule::Term::kReduceBuckets, peak_.reduction_bytes - peak_.grown_bytes);
    peak.bytes.add(schedule::Term::kGradients, peak_.grown_bytes);
    peak.phase = part.phase;
    peak.at_head = part.unit == Unit::kHead;
    peak.layer = part.layer;
    peak.micro_step = peak_.micro_step;
    return peak;
  }

  struct Peak {
    std::int64_t bytes = -1;
    const Part* part = nullptr;
    const MomentBytes* beyond = nullptr;  ///< of the profile
    std::int64_t gathered_bytes = 0, reduction_bytes = 0, grown_bytes = 0;
    std::int64_t micro_step = 0;
  };

  const MemoryProfile& profile_;
  const schedule::Setting& setting_;
  const MomentBytes nothing_;
  bool idle_;  ///< nothing is gathered or in flight in any micro-step
  std::int64_t micro_steps_;
  std::int64_t groups_ = 0;  ///< number of groups of layers that are recomputed together
  std::array<std::int64_t, workload::kMostKinds> begins_{};  ///< of each kind, the first group that begins with it
  GatheredMemory gathered_;
  ReductionMemory reduction_;
  std::optional<schedule::Walk> walk_;
  std::vector<Part> parts_;      ///< if there is no walk
  bool quiet_ = false;           ///< nothing is gathered, and nothing begins or ends, in this micro-step
  MomentBytes in_flight_bytes_;  ///< of the micro-batches that are not walked
  std::int64_t micro_step_ = 0;
  std::int64_t bytes_before_ = 0;  ///< bytes that parts before the last begun one keep
  Peak peak_;
};

}  // namespace

// The next micro-step waits for what a micro-step leaves in flight. DeepSpeed's stage 3 allows two reductions in
// flight, each of which may contain all gradients of a micro-step, so there it is the one after that.
std::int64_t distinct_micro_steps(const schedule::ZeroPolicy& policy, const schedule::Knobs& knobs) {
  const bool two_travel = policy.keeps_packed_buckets && policy.reductions_under_way == 2;
  return std::min<std::int64_t>(knobs.micro_steps, two_travel ? 3 : 2);
}

StepPeak step_peak(const MemoryProfile& profile, const schedule::Setting& setting, const InFlight& in_flight) {
  return Timeline(profile, setting, in_flight).run();
}

}  // namespace krigtune::cost
