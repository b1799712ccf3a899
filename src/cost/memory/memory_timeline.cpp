// A step as a row of parts (embedding, layers, head, and back), each with the profile's bytes beyond what earlier parts
// keep, and on top what ZeRO has gathered and has not yet reduced at that operation:
//
//   live(part, i) = b (kept before the part + moments[i]) + gathered + gradients on their way
#include "memory/memory_timeline.h"

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
  std::int64_t bytes_before = 0;
};

class Timeline {
 public:
  Timeline(const MemoryProfile& profile, const ModelTensors& model, const StageShape& stage, const Workload& workload,
           const Knobs& knobs, const ReductionHabits& habits)
      : profile_(profile),
        model_(model),
        knobs_(knobs),
        one_stream_(knobs.offload_optimizer && knobs.offload_parameters),
        micro_steps_(distinct_micro_steps(workload, knobs)),
        parts_(make_parts(stage)),
        gathered_(model, workload, knobs, uses(), use_count()),
        reduction_(model, workload, knobs, micro_steps_, habits) {
    for (PlacedPart& part : parts_) {
      if (part.groups_before >= 0) part.bytes_before = total_before(part);
    }
    in_flight_bytes_ = kept_of_micro_batch(stage) * (stage.in_flight - 1) * knobs.micro_batch;
  }

  StepPeak run() {
    const bool repeats = gathered_.idle() && reduction_.idle();
    for (micro_step_ = 0; micro_step_ < (repeats ? 1 : micro_steps_); ++micro_step_) {
      const bool quiet = gathered_.idle() && !reduction_.acts();
      for (const PlacedPart& part : parts_) {
        if (quiet) {
          note(part, part.part->highest(), reduction_.bytes());
        } else {
          walk(part);
        }
      }
      const std::int64_t behind = reduction_.end_micro_step();
      if (behind > 0) note(parts_.back(), nothing_, behind);
    }
    return result();
  }

 private:
  std::vector<PlacedPart> make_parts(const StageShape& stage) const {
    const std::int64_t layers = stage.layers;
    const bool full = knobs_.checkpointing == Checkpointing::kFull;
    const std::int64_t size = full ? std::clamp<std::int64_t>(layers, 1, knobs_.checkpoint_layers) : 1;
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
    if (placed.begins_use && !gathered_.idle()) {
      reduction_.release(gathered_.begin_use(reduction_.sent()));
      // What is gathered may be there before anybody has waited for the last reduction; the embedding's comes behind
      // the batch.
      const bool waited = one_stream_ || &part == &profile_.embed_forward;
      note(placed, part.start, waited ? reduction_.bytes() : reduction_.bytes_before_wait());
    }
    for (const int t : part.unread) {
      if (placed.ends_use) gathered_.last_read(model_.tensor_of(placed.unit, t), false);
    }
    auto begins = part.events.begin();
    auto ends = part.events.begin();
    std::int64_t reads_left = part.reads;
    for (int i = 0; i < static_cast<int>(part.moments.size()); ++i) {
      for (; begins != part.events.end() && begins->at == i; ++begins) {
        if (begins->kind == TensorEvent::Kind::kFirstGradient) reduction_.first_gradient(tensor(placed, *begins));
      }
      note(placed, part.moments[static_cast<std::size_t>(i)], reduction_.bytes());
      reduction_.next_operation();
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
      if (while_copied > 0) note(placed, placed.part->carried[static_cast<std::size_t>(event.at)], while_copied);
    }
  }

  int tensor(const PlacedPart& part, const TensorEvent& event) const {
    return model_.tensor_of(part.unit, event.tensor);
  }

  void note(const PlacedPart& part, const MomentBytes& beyond, std::int64_t reduction_bytes) {
    const std::int64_t bytes =
        (part.bytes_before + beyond.total) * knobs_.micro_batch + gathered_.bytes() + reduction_bytes;
    if (bytes <= peak_.bytes) return;
    peak_ = {bytes, &part, &beyond, gathered_.bytes(), reduction_bytes, reduction_.grown_bytes(), micro_step_};
  }

  std::int64_t total_before(const PlacedPart& part) const {
    return profile_.embedding_kept.total + profile_.group_kept.total * part.groups_before +
           profile_.layer_kept.total * part.layers_before;
  }

  MomentBytes before(const PlacedPart& part) const {
    MomentBytes bytes = profile_.embedding_kept;
    bytes += profile_.group_kept * part.groups_before;
    bytes += profile_.layer_kept * part.layers_before;
    return bytes;
  }

  StepPeak result() const {
    StepPeak peak;
    const PlacedPart& part = *peak_.part;
    if (part.groups_before >= 0) peak.bytes += before(part);
    peak.bytes += *peak_.beyond;
    peak.bytes = peak.bytes * knobs_.micro_batch;
    peak.bytes += in_flight_bytes_;
    peak.bytes.add(Term::kGatheredParameters, peak_.gathered_bytes);
    peak.bytes.add(Term::kReduceBuckets, peak_.reduction_bytes - peak_.grown_bytes);
    peak.bytes.add(Term::kGradients, peak_.grown_bytes);
    peak.phase = part.phase;
    peak.at_head = part.unit == model_.head();
    peak.layer = part.unit == 0 || peak.at_head ? -1 : static_cast<std::int64_t>(part.unit) - 1;
    peak.micro_step = peak_.micro_step;
    return peak;
  }

  struct Peak {
    std::int64_t bytes = -1;
    const PlacedPart* part = nullptr;
    const MomentBytes* beyond = nullptr;  ///< of the profile
    std::int64_t gathered_bytes = 0, reduction_bytes = 0, grown_bytes = 0;
    std::int64_t micro_step = 0;
  };

  const MemoryProfile& profile_;
  const ModelTensors& model_;
  const Knobs& knobs_;
  const MomentBytes nothing_;
  bool one_stream_;  ///< parameters come from where gradients go to
  std::int64_t micro_steps_;
  std::vector<PlacedPart> parts_;
  GatheredMemory gathered_;
  ReductionMemory reduction_;
  MomentBytes in_flight_bytes_;  ///< of other micro-batches than the one that is walked
  std::int64_t micro_step_ = 0;
  Peak peak_;
};

}  // namespace

// What a micro-step leaves under way is waited for in the next one, where DeepSpeed's stage 3 lets two reductions
// travel, and each of them may be all of a micro-step's gradients, in the one after that.
std::int64_t distinct_micro_steps(const Workload& workload, const Knobs& knobs) {
  const bool two_travel = workload.dialect == Dialect::kDeepSpeed && knobs.zero_stage == 3 && knobs.overlap_comm;
  return std::min<std::int64_t>(knobs.micro_steps, two_travel ? 3 : 2);
}

StepPeak step_peak(const MemoryProfile& profile, const ModelTensors& model, const StageShape& stage,
                   const Workload& workload, const Knobs& knobs, const ReductionHabits& habits) {
  return Timeline(profile, model, stage, workload, knobs, habits).run();
}

}  // namespace krigtune
