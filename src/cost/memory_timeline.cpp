// A step as a row of parts (embedding, layers, head, and back), each with the profile's bytes beyond what earlier parts
// keep, and on top what ZeRO has gathered and has not yet reduced at that operation:
//
//   live(part, i) = b (kept before the part + moments[i]) + gathered + gradients on their way
#include "memory_timeline.h"

#include <algorithm>

namespace krigtune {
namespace {

struct PlacedPart {
  const ProfiledPart* part;
  Phase phase;
  std::size_t unit;
  std::int64_t groups_before;  ///< -1: nothing before it counts
  std::int64_t layers_before;  ///< of its group, computed again
  bool begins_use;
  bool ends_use;
};

class Timeline {
 public:
  Timeline(const MemoryProfile& profile, const ModelTensors& model, const StageShape& stage, const Workload& workload,
           const Knobs& knobs, const ReductionHabits& habits)
      : profile_(profile),
        model_(model),
        knobs_(knobs),
        micro_steps_(std::min<std::int64_t>(knobs.micro_steps, 2)),
        parts_(make_parts(stage)),
        gathered_(model, workload, knobs, uses(), use_count()),
        reduction_(model, workload, knobs, micro_steps_, habits) {
    in_flight_bytes_ = kept_of_micro_batch(stage) * (stage.in_flight - 1) * knobs.micro_batch;
  }

  StepPeak run() {
    const bool idle = gathered_.idle() && reduction_.idle();
    for (std::int64_t m = 0; m < (idle ? 1 : micro_steps_); ++m) {
      peak_micro_step_ = m;
      for (const PlacedPart& part : parts_) {
        if (idle) {
          note(part, part.part->peak, part.part->highest().total * knobs_.micro_batch, 0, 0);
        } else {
          walk(part);
        }
      }
      const std::int64_t behind = reduction_.end_micro_step();
      if (behind > 0) note_total(parts_.back(), 0, behind, 0, behind, true);
    }
    return result();
  }

 private:
  std::vector<PlacedPart> make_parts(const StageShape& stage) const {
    const std::int64_t layers = stage.layers;
    const bool full = knobs_.checkpointing == Checkpointing::kFull;
    const std::int64_t size = full ? std::min(knobs_.checkpoint_layers, layers) : 1;
    const auto unit = [](std::int64_t layer) { return static_cast<std::size_t>(layer) + 1; };
    const auto head = unit(layers);
    std::vector<PlacedPart> parts;
    parts.reserve(3 * static_cast<std::size_t>(layers) + 4);
    if (stage.has_embedding) parts.push_back({&profile_.embed_forward, Phase::kForward, 0, -1, 0, true, true});
    for (std::int64_t l = 0; l < layers; ++l) {
      const ProfiledPart& part = profile_.forward[l % size == 0 ? 0 : 1];
      parts.push_back({&part, Phase::kForward, unit(l), l / size, 0, true, true});
    }
    const std::int64_t groups = (layers + size - 1) / size;
    if (stage.has_head) {
      parts.push_back({&profile_.head_forward, Phase::kForward, head, groups, 0, true, true});
      parts.push_back({&profile_.head_backward, Phase::kBackward, head, groups, 0, true, true});
    }
    for (std::int64_t g = groups - 1; g >= 0; --g) {
      const std::int64_t begin = g * size;
      const std::int64_t end = std::min(begin + size, layers);
      for (std::int64_t l = begin; full && l < end; ++l) {
        const ProfiledPart& part = profile_.recompute[l == begin ? 0 : 1];
        parts.push_back({&part, Phase::kRecompute, unit(l), g, l - begin, true, l + 1 < end});
      }
      for (std::int64_t l = end - 1; l >= begin; --l) {
        const ProfiledPart& part = profile_.backward[l == begin ? 0 : 1];
        parts.push_back({&part, Phase::kBackward, unit(l), g, l - begin, !full || l + 1 < end, true});
      }
    }
    if (stage.has_embedding) parts.push_back({&profile_.embed_backward, Phase::kBackward, 0, -1, 0, true, true});
    return parts;
  }

  MomentBytes kept_of_micro_batch(const StageShape& stage) const {
    const std::int64_t size = knobs_.checkpointing == Checkpointing::kFull ? knobs_.checkpoint_layers : 1;
    MomentBytes kept = profile_.embedding_kept;
    kept += profile_.group_kept * ((stage.layers + size - 1) / size);
    return kept;
  }

  std::size_t use_count() const {
    return static_cast<std::size_t>(
        std::count_if(parts_.begin(), parts_.end(), [](const PlacedPart& p) { return p.begins_use; }));
  }

  std::vector<std::size_t> uses() const {
    std::vector<std::size_t> uses;
    if (knobs_.zero_stage < 3) return uses;
    for (std::int64_t m = 0; m < micro_steps_; ++m) {
      for (const PlacedPart& part : parts_) {
        if (part.begins_use) uses.push_back(part.unit);
      }
    }
    return uses;
  }

  void walk(const PlacedPart& placed) {
    const ProfiledPart& part = *placed.part;
    if (placed.begins_use) reduction_.release(gathered_.begin_use(reduction_.sent()));
    auto begins = part.events.begin();
    auto ends = part.events.begin();
    std::int64_t reads_left = part.reads;
    for (int i = 0; i < static_cast<int>(part.moments.size()); ++i) {
      for (; begins != part.events.end() && begins->at == i; ++begins) {
        if (begins->kind == TensorEvent::Kind::kFirstGradient) reduction_.first_gradient(tensor(placed, *begins));
      }
      const auto at = static_cast<std::size_t>(i);
      note(placed, at, part.moments[at].total * knobs_.micro_batch, gathered_.bytes(), reduction_.bytes());
      for (; ends != part.events.end() && ends->at == i; ++ends) end_event(placed, *ends, reads_left);
    }
  }

  void end_event(const PlacedPart& placed, const TensorEvent& event, std::int64_t& reads_left) {
    const int t = tensor(placed, event);
    if (event.kind == TensorEvent::Kind::kLastRead) {
      if (placed.ends_use) gathered_.last_read(t, --reads_left == 0);
    } else if (event.kind == TensorEvent::Kind::kLastGradient) {
      // The gradient of a tied table is complete with the embedding's.
      if (model_.tied && t == 0 && placed.unit == model_.head()) return;
      const std::int64_t while_copied = reduction_.gradient_done(t);
      const auto at = static_cast<std::size_t>(event.at);
      if (while_copied > 0) {
        note(placed, at, placed.part->carried_bytes[at] * knobs_.micro_batch, gathered_.bytes(), while_copied);
      }
    }
  }

  int tensor(const PlacedPart& part, const TensorEvent& event) const {
    return model_.tensor_of(part.unit, event.tensor);
  }

  void note(const PlacedPart& part, std::size_t at, std::int64_t activation_bytes, std::int64_t gathered_bytes,
            std::int64_t reduction_bytes) {
    if (part.groups_before >= 0) activation_bytes += before(part).total * knobs_.micro_batch;
    note_total(part, at, activation_bytes + gathered_bytes + reduction_bytes, gathered_bytes, reduction_bytes, false);
  }

  void note_total(const PlacedPart& part, std::size_t at, std::int64_t total_bytes, std::int64_t gathered_bytes,
                  std::int64_t reduction_bytes, bool behind) {
    if (total_bytes <= most_bytes_) return;
    most_bytes_ = total_bytes;
    peak_part_ = &part;
    peak_at_ = at;
    peak_gathered_ = gathered_bytes;
    peak_reduction_ = reduction_bytes;
    peak_behind_ = behind;
    micro_step_of_peak_ = peak_micro_step_;
  }

  MomentBytes before(const PlacedPart& part) const {
    MomentBytes bytes = profile_.embedding_kept;
    bytes += profile_.group_kept * part.groups_before;
    bytes += profile_.layer_kept * part.layers_before;
    return bytes;
  }

  StepPeak result() const {
    StepPeak peak;
    const PlacedPart& part = *peak_part_;
    if (!peak_behind_) {
      peak.bytes = part.part->moments[peak_at_];
      if (part.groups_before >= 0) peak.bytes += before(part);
      peak.bytes = peak.bytes * knobs_.micro_batch;
    }
    peak.bytes += in_flight_bytes_;
    peak.bytes.add(Term::kGatheredParameters, peak_gathered_);
    peak.bytes.add(Term::kReduceBuckets, peak_reduction_);
    peak.phase = part.phase;
    peak.at_head = part.unit == model_.head();
    peak.layer = part.unit == 0 || peak.at_head ? -1 : static_cast<std::int64_t>(part.unit) - 1;
    peak.micro_step = micro_step_of_peak_;
    return peak;
  }

  const MemoryProfile& profile_;
  const ModelTensors& model_;
  const Knobs& knobs_;
  std::int64_t micro_steps_;
  std::vector<PlacedPart> parts_;
  GatheredMemory gathered_;
  ReductionMemory reduction_;
  MomentBytes in_flight_bytes_;  ///< of other micro-batches than the one that is walked
  std::int64_t most_bytes_ = -1;
  const PlacedPart* peak_part_ = nullptr;
  std::size_t peak_at_ = 0;
  std::int64_t peak_gathered_ = 0, peak_reduction_ = 0;
  std::int64_t peak_micro_step_ = 0, micro_step_of_peak_ = 0;
  bool peak_behind_ = false;
};

}  // namespace

StepPeak step_peak(const MemoryProfile& profile, const ModelTensors& model, const StageShape& stage,
                   const Workload& workload, const Knobs& knobs, const ReductionHabits& habits) {
  return Timeline(profile, model, stage, workload, knobs, habits).run();
}

}  // namespace krigtune
