// Walks the schedule with whole blocks instead of operations as long as no other stream interacts with them.
//
// Any number of micro-steps without communication over the data ranks form one segment. The others are equal from the
// second one on: only a few of the k are executed, and the time between the ends of the first and the second is used
// for those that are left out.
#include "cost/time/compressed_step.h"

#include <algorithm>
#include <array>
#include <limits>

#include "cost/time/zero_time.h"

namespace krigtune::cost {
namespace {

using schedule::kBlocks;
using schedule::Part;
using schedule::Unit;

// On CPU ranks a collective of the tensor group leaves cores to other work, so it is not part of a segment.
bool fuses_collectives(const StepSetting& setting) {
  return setting.knobs.tensor_ranks == 1 || setting.machine.cores == std::numeric_limits<double>::infinity();
}

// Returns whether all micro-steps except the last communicate nothing over the data ranks.
bool is_quiet(const StepSetting& setting) {
  return !setting.policy.shards_gradients && !setting.policy.shards_parameters && fuses_collectives(setting);
}

// Three if the last one differs from those before it, because it gathers nothing ahead, or is the only one to reduce or
// to sum over copies.
std::int64_t executed_micro_steps(const StepSetting& setting) {
  const schedule::ZeroPolicy& policy = setting.policy;
  if (is_quiet(setting)) return 1;
  const bool gathers_across = policy.shards_parameters && policy.prefetches && !policy.fetches_tensors;
  const bool sums_last = setting.knobs.copies > 1 && !policy.sums_copies_every_time;
  const bool last_differs = gathers_across || sums_last || !policy.shards_gradients;
  return std::min<std::int64_t>(setting.knobs.micro_steps, last_differs ? 3 : 2);
}

class Step final : public schedule::PartSink {
 public:
  Step(const StepSetting& setting, const schedule::StageTensors& tensors, std::vector<TimedOperation>& scratch)
      : rules_(clock_rules(setting.machine, setting.spans.data, setting.spans.tensor)),
        model_(setting.model),
        setting_{tensors, setting.knobs, setting.policy},
        recorder_(setting.machine.issue_s, lane_of(setting.machine, schedule::Group::kTensor), scratch),
        step_{setting.machine, setting_, setting.spans, setting.reduced_bytes, recorder_},
        quiet_(is_quiet(setting)),
        executed_(executed_micro_steps(setting)),
        gradients_(step_),
        parameters_(step_),
        walk_(setting_, executed_, parameters_, gradients_) {
    if (!fuses_collectives(setting)) recorder_.expect_others();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  CompressedTimes run() {
    const std::int64_t k = setting_.knobs.micro_steps;
    if (quiet_ && k > 1) add_quiet_micro_steps(k - 1);
    for (std::int64_t m = 0; m < executed_; ++m) {
      sums_at_marks_.push_back(sums());
      add_micro_step(quiet_ ? k - 1 : m);
    }
    sums_at_marks_.push_back(sums());
    UpdateTime update(step_, gradients_);
    schedule::walk_update(setting_, update);
    recorder_.flush();
    return times();
  }

  // The batch is loaded before the embedding is gathered.
  void begin(const Part& part) override {
    appended_ = 0;
    if (!walk_.gathering().active() || !part.is(Unit::kEmbedding, schedule::Phase::kForward)) return;
    const std::vector<TemplateOperation>& operations = model_.pass(part.unit, PassKind::kForward).operations;
    for (; appended_ < operations.size() && operations[appended_].reads.empty(); ++appended_) {
      recorder_.append(operations[appended_].segment);
    }
  }

  void add(const Part& part) override {
    if (part.begins_use && walk_.gathering().active()) parameters_.use(walk_.gathering().current());
    const Pass& pass = model_.pass(part.unit, kind_of(part));
    const bool reduces = part.phase == schedule::Phase::kBackward && walk_.reduction().reduces_now();
    const bool meets =
        pass.cost.tensor_comm_s + pass.cost.context_comm_s + pass.cost.expert_comm_s > 0.0 && recorder_.in_flight();
    if (!walk_.gathering().active() && !reduces && !meets) return recorder_.append(pass.all);
    for (std::size_t i = appended_; i < pass.operations.size(); ++i) {
      add_operation(pass.operations[i], part, reduces);
    }
    if (reduces) gradients_.end_unit();
  }

 private:
  struct Sums {
    PassCost cost;
    double data_comm_s = 0.0;
    double data_wire_bytes = 0.0;
  };
  Sums sums() const { return {step_.cost, step_.data_comm_s, step_.data_wire_bytes}; }

  PassKind backward_kind(std::int64_t micro_step) const {
    return micro_step > 0 && !setting_.policy.shards_gradients ? PassKind::kBackwardAgain : PassKind::kBackward;
  }

  PassKind kind_of(const Part& part) const {
    if (part.phase == schedule::Phase::kForward) return PassKind::kForward;
    return part.phase == schedule::Phase::kRecompute ? PassKind::kRecompute : backward_;
  }

  // One micro-step in isolation.
  StepSegment quiet(PassKind backward) {
    const schedule::StageParts& parts = setting_.tensors.parts();
    StepSegment all;
    const auto add = [&](Unit unit, PassKind kind, double times) {
      const Pass& pass = model_.pass(unit, kind);
      all.append(repeated(pass.all, times));
    };
    if (parts.embedding) add(Unit::kEmbedding, PassKind::kForward, 1.0);
    for (const Unit block : kBlocks) add(block, PassKind::kForward, static_cast<double>(parts.layers_of(block)));
    if (parts.head) add(Unit::kHead, PassKind::kForward, 1.0);
    if (parts.head) add(Unit::kHead, backward, 1.0);
    add_groups(backward, all);
    if (parts.embedding) add(Unit::kEmbedding, backward, 1.0);
    return all;
  }

  // Recomputation and backward of all layers, from the last group to the first. Groups of layers of one kind that are
  // equal are added together.
  void add_groups(PassKind backward, StepSegment& all) {
    const schedule::StageParts& parts = setting_.tensors.parts();
    const std::int64_t size = schedule::layers_of_group(parts, setting_.knobs);
    std::int64_t end = parts.layers;
    while (end > 0) {
      const std::int64_t begin = (end - 1) / size * size;
      std::int64_t equal = 1;
      const Unit last = parts.unit_of(end - 1);
      if (end - begin == size && begin >= parts.first_of(last)) equal = (begin - parts.first_of(last)) / size + 1;
      all.append(repeated(group_of(begin, end, backward), static_cast<double>(equal)));
      end = begin - (equal - 1) * size;
    }
  }

  // Recomputation of the layers [begin, end), and their backward.
  StepSegment group_of(std::int64_t begin, std::int64_t end, PassKind backward) {
    const schedule::StageParts& parts = setting_.tensors.parts();
    StepSegment group;
    const auto add = [&](Unit block, PassKind kind) {
      const std::int64_t layers = parts.layers_in(block, begin, end);
      group.append(repeated(model_.pass(block, kind).all, static_cast<double>(layers)));
    };
    for (const Unit block : kBlocks) add(block, PassKind::kRecompute);
    for (auto block = kBlocks.rbegin(); block != kBlocks.rend(); ++block) add(*block, backward);
    return group;
  }

  PassCost micro_step_cost(PassKind backward) const {
    const schedule::StageParts& parts = setting_.tensors.parts();
    PassCost cost;
    for (const PassKind kind : {PassKind::kForward, PassKind::kRecompute, backward}) {
      if (parts.embedding) cost.add(model_.pass(Unit::kEmbedding, kind).cost, 1.0);
      for (const Unit block : kBlocks)
        cost.add(model_.pass(block, kind).cost, static_cast<double>(parts.layers_of(block)));
      if (parts.head) cost.add(model_.pass(Unit::kHead, kind).cost, 1.0);
    }
    return cost;
  }

  void add_quiet_micro_steps(std::int64_t count) {
    recorder_.append(quiet(PassKind::kBackward));
    step_.cost.add(micro_step_cost(PassKind::kBackward), 1.0);
    if (count == 1) return;
    recorder_.append(repeated(quiet(PassKind::kBackwardAgain), static_cast<double>(count - 1)));
    step_.cost.add(micro_step_cost(PassKind::kBackwardAgain), static_cast<double>(count - 1));
  }

  void add_micro_step(std::int64_t m) {
    backward_ = backward_kind(m);
    step_.cost.add(micro_step_cost(backward_), 1.0);
    walk_.micro_step(*this);
    recorder_.mark();
  }

  void add_operation(const TemplateOperation& operation, const Part& part, bool reduces) {
    const schedule::StageTensors& tensors = setting_.tensors;
    if (walk_.gathering().active()) {
      for (const int t : operation.reads) parameters_.read(tensors.index(t, part.layer));
    }
    if (reduces) {
      for (const int t : operation.begins) gradients_.begin(tensors.index(t, part.layer));
    }
    if (operation.collective) {
      recorder_.append_collective(
          operation.segment, {operation.link_s, operation.core_s, lane_of(step_.machine, schedule::Group::kTensor)});
    } else {
      recorder_.append(operation.segment);
    }
    if (!reduces) return;
    for (const int t : operation.ends) {
      // The gradient that the head adds to a token table in this stage is complete with the embedding's.
      const bool is_heads_table = part.unit == Unit::kHead && t == 0 && !tensors.copies_table();
      if (!is_heads_table) gradient_done(tensors.index(t, part.layer));
    }
  }

  void gradient_done(int t) {
    if (setting_.policy.reduces_behind_backward) gradients_.complete(t);
    walk_.reduction().done(t);
  }

  CompressedTimes times() {
    const std::vector<ClockTotals> reached = run_clock_totals(recorder_.operations(), rules_, recorder_.marks());
    CompressedTimes times;
    times.totals = reached.back();
    times.cost = step_.cost;
    times.optimizer_s = step_.optimizer_s;
    times.data_comm_s = step_.data_comm_s;
    times.data_wire_bytes = step_.data_wire_bytes;
    double fused_comm_s = recorder_.work().fused_comm_s;
    const std::int64_t k = setting_.knobs.micro_steps;
    if (!quiet_ && executed_ > 1) {
      const ClockTotals& from = reached[0];
      const ClockTotals& to = reached[1];
      times.micro_step_s = to.span_s - from.span_s;
      const double more = static_cast<double>(k - executed_);
      add_difference(times.totals, from, to, more);
      add_backlog(times, more);
      add_difference(times, sums_at_marks_[1], sums_at_marks_[2], more);
      fused_comm_s += more * (recorder_.work_at_marks()[1].fused_comm_s - recorder_.work_at_marks()[0].fused_comm_s);
    } else if (!quiet_) {
      times.micro_step_s = reached[0].span_s;
    } else {
      const StepSegment one = quiet(k > 1 ? PassKind::kBackwardAgain : PassKind::kBackward);
      times.micro_step_s = std::max(one.work_s, one.issue_s);
    }
    times.backward_s = times.micro_step_s * backward_share();
    times.weights_s = times.backward_s * weights_share();
    times.totals.kernels_s -= fused_comm_s;
    times.totals.exposed_comm_s += fused_comm_s;
    return times;
  }

  // Returns the sum of a time over the passes of all units.
  template <class Seconds>
  double sum_s(PassKind kind, Seconds seconds_of) const {
    const schedule::StageParts& parts = setting_.tensors.parts();
    const auto of = [&](Unit unit) { return seconds_of(model_.pass(unit, kind)); };
    double sum_s = (parts.embedding ? of(Unit::kEmbedding) : 0.0) + (parts.head ? of(Unit::kHead) : 0.0);
    for (const Unit block : kBlocks) sum_s += static_cast<double>(parts.layers_of(block)) * of(block);
    return sum_s;
  }
  double work_s(PassKind kind) const {
    return sum_s(kind, [](const Pass& pass) { return pass.all.work_s; });
  }

  double backward_share() const {
    const double backward_s = work_s(PassKind::kRecompute) + work_s(PassKind::kBackward);
    return backward_s / (backward_s + work_s(PassKind::kForward));
  }

  // Returns the part of backward in operations that only make gradients of weights.
  double weights_share() const {
    const double backward_s = work_s(PassKind::kRecompute) + work_s(PassKind::kBackward);
    return sum_s(PassKind::kBackward, [](const Pass& pass) { return pass.weights_s; }) / backward_s;
  }

  // Work of other streams may take longer than the first micro-steps show: it accumulates until windows, or the end of
  // the step, wait for it.
  void add_backlog(CompressedTimes& times, double more) const {
    const Recorder::Work& from = recorder_.work_at_marks()[0];
    const Recorder::Work& to = recorder_.work_at_marks()[1];
    const double first_s = to.lanes_s[0] - from.lanes_s[0];
    const double second_s = to.lanes_s[1] - from.lanes_s[1];
    double busiest_s = rules_.lanes_share ? first_s + second_s : std::max(first_s, second_s);
    for (const schedule::Stream stream : {schedule::Stream::kGather, schedule::Stream::kReduce}) {
      const auto at = static_cast<std::size_t>(stream);
      busiest_s = std::max(busiest_s, to.streams_s[at] - from.streams_s[at]);
    }
    double copies_s = 0.0;
    for (const schedule::Stream stream : {schedule::Stream::kCopy, schedule::Stream::kHost}) {
      const auto at = static_cast<std::size_t>(stream);
      copies_s = std::max(copies_s, to.streams_s[at] - from.streams_s[at]);
    }
    const double backlog_s = std::max({0.0, busiest_s - times.micro_step_s, copies_s - times.micro_step_s});
    times.micro_step_s += backlog_s;
    times.totals.span_s += more * backlog_s;
    if (copies_s > busiest_s) {
      times.totals.exposed_copies_s += more * backlog_s;
    } else {
      times.totals.exposed_comm_s += more * backlog_s;
    }
  }

  static void add_difference(ClockTotals& totals, const ClockTotals& from, const ClockTotals& to, double times) {
    totals.span_s += times * (to.span_s - from.span_s);
    totals.kernels_s += times * (to.kernels_s - from.kernels_s);
    totals.exposed_comm_s += times * (to.exposed_comm_s - from.exposed_comm_s);
    totals.exposed_copies_s += times * (to.exposed_copies_s - from.exposed_copies_s);
    totals.idle_s += times * (to.idle_s - from.idle_s);
  }

  static void add_difference(CompressedTimes& sum, const Sums& from, const Sums& to, double times) {
    sum.cost.add(to.cost, times);
    sum.cost.add(from.cost, -times);
    sum.data_comm_s += times * (to.data_comm_s - from.data_comm_s);
    sum.data_wire_bytes += times * (to.data_wire_bytes - from.data_wire_bytes);
  }

  ClockRules rules_;
  const StepTemplate& model_;
  schedule::Setting setting_;
  Recorder recorder_;
  CostContext step_;
  bool quiet_;  ///< all micro-steps but the last communicate nothing over the data ranks
  std::int64_t executed_;
  ReductionTime gradients_;
  GatheringTime parameters_;
  schedule::Walk walk_;
  PassKind backward_{};       ///< of the micro-step
  std::size_t appended_ = 0;  ///< number of operations of the part that come before its use
  std::vector<Sums> sums_at_marks_;
};

}  // namespace

CompressedTimes time_step(const StepSetting& setting, const schedule::StageTensors& tensors,
                          std::vector<TimedOperation>& scratch) {
  return Step(setting, tensors, scratch).run();
}

}  // namespace krigtune::cost
