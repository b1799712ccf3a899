// 1F1B (Narayanan et al. 2019, "PipeDream"; 2021, section 2.2): stage i of p begins with p - i - 1 forwards, then
// alternates one forward and one backward, then executes the remaining backwards. A task starts when its stage is free
// and its input has arrived; then it sends its result, forward's to the next stage and backward's to the previous one.
// With equal stages (t = forward + backward) and nothing to send, T = (k + p - 1) t. Beyond 2 p micro-steps, every
// further p take as long as the p before.
//
// Interleaved 1F1B (Narayanan et al. 2021, section 2.2; Megatron-LM, core/pipeline_parallel/schedules.py): each rank
// has v stages. Micro-steps come in groups of g = p: forwards take the whole group through the rank's first stage, then
// through its second one, and so on, backwards through the last stage first. Rank r begins with
//
//   min(k v, 2 (p - r - 1) + (v - 1) g)
//
// forwards. With equal stages T = (k + (p - 1) / v) t, where t is the time of a rank for one micro-step. PyTorch
// (torch/distributed/pipelining/schedules.py) takes g = k / max(1, k / p), which need not be p. Megatron-LM sends
// beside the work (overlap_p2p_comm), but published steps are as slow as if a stage waited for what it sends
// (docs/accuracy.md). Ranks with less to do run ahead of the busiest one at first, so the first groups can be faster
// than that rank; all others take its time.
#include "cost/pipeline.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "cost/pipeline_order.h"

namespace krigtune::cost {
namespace {

// The numbers of a schedule.
struct Order {
  std::size_t ranks;
  std::size_t stages_of_rank;
  std::size_t micro_steps;
  std::size_t group;  ///< micro-steps that pass a stage before the rank goes on to its next stage

  std::size_t passes() const { return micro_steps * stages_of_rank; }

  std::size_t warm_up(std::size_t rank) const {
    const std::size_t behind = ranks - rank - 1;
    return std::min(passes(), stages_of_rank == 1 ? behind : 2 * behind + (stages_of_rank - 1) * group);
  }
};

Order order_of(std::size_t stages, std::int64_t micro_steps, std::int64_t stages_of_rank) {
  const auto of_rank = static_cast<std::size_t>(stages_of_rank);
  const auto steps = static_cast<std::size_t>(micro_steps);
  const std::size_t ranks = stages / of_rank;
  const std::size_t groups = std::max<std::size_t>(1, steps / ranks);
  assert(of_rank == 1 || steps % groups == 0);
  return {ranks, of_rank, steps, of_rank == 1 ? ranks : steps / groups};
}

class Pipeline {
 public:
  /// `tasks`: receives each task; may be nullptr.
  Pipeline(std::span<const StageTime> stages, const Order& order, double send_s,
           std::vector<StageTask>* tasks = nullptr)
      : stages_(stages),
        order_(order),
        send_s_(send_s),
        tasks_(tasks),
        next_(order.ranks),
        free_s_(order.ranks),
        done_s_{std::vector<double>(stages.size() * order.micro_steps, -1.0),
                std::vector<double>(stages.size() * order.micro_steps, -1.0)} {}

  double run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < order_.ranks; ++i) {
        while (next_[i] < 2 * order_.passes() && do_next(i)) progress = true;
      }
    }
    double end_s = 0.0;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      assert(next_[i % order_.ranks] == 2 * order_.passes());
      end_s = std::max(end_s, free_s_[i % order_.ranks] + stages_[i].rest_s);
    }
    return end_s;
  }

 private:
  struct Task {
    bool backward;
    std::size_t micro_step;
    std::size_t stage;
  };

  // The n-th pass of a rank in one direction.
  Task pass(std::size_t rank, bool backward, std::size_t n) const {
    const std::size_t v = order_.stages_of_rank;
    if (v == 1) return {backward, n, rank};
    const std::size_t of_group = n % (order_.group * v);
    const std::size_t turn = of_group / order_.group;
    const std::size_t micro_step = n / (order_.group * v) * order_.group + of_group % order_.group;
    return {backward, micro_step, (backward ? v - 1 - turn : turn) * order_.ranks + rank};
  }

  Task task(std::size_t rank) const {
    const std::size_t n = next_[rank];
    const std::size_t warm_up = order_.warm_up(rank);
    if (n < warm_up) return pass(rank, false, n);
    const std::size_t turn = n - warm_up;
    if (turn >= 2 * (order_.passes() - warm_up)) return pass(rank, true, n - order_.passes());
    return turn % 2 == 1 ? pass(rank, true, turn / 2) : pass(rank, false, warm_up + turn / 2);
  }

  // Returns false if the task's input is not known yet.
  bool do_next(std::size_t rank) {
    const auto [backward, m, stage] = task(rank);
    const bool is_first = stage == 0;
    const bool is_last = stage + 1 == stages_.size();
    double start_s = free_s_[rank];
    if (!(backward ? is_last : is_first)) {
      const std::size_t from = backward ? stage + 1 : stage - 1;
      const double arrived_s = done_s_[backward ? 1 : 0][from * order_.micro_steps + m];
      if (arrived_s < 0.0) return false;
      start_s = std::max(start_s, arrived_s);
    }
    const double worked_s = start_s + (backward ? stages_[stage].backward_s : stages_[stage].forward_s);
    const bool sends_on = !(backward ? is_first : is_last);
    free_s_[rank] = worked_s + (sends_on ? send_s_ : 0.0);
    if (tasks_ != nullptr) {
      tasks_->push_back({stage, static_cast<std::int64_t>(m), backward, start_s, worked_s, free_s_[rank]});
    }
    done_s_[backward ? 1 : 0][stage * order_.micro_steps + m] = free_s_[rank];
    ++next_[rank];
    return true;
  }

  std::span<const StageTime> stages_;
  Order order_;
  double send_s_;
  std::vector<StageTask>* tasks_;
  std::vector<std::size_t> next_;              // task, by rank
  std::vector<double> free_s_;                 // by rank
  std::array<std::vector<double>, 2> done_s_;  // forward, backward; by stage and micro-step
};

// The time of a micro-step on the rank that has most to do.
double busiest_s(std::span<const StageTime> stages, const PipelineShape& shape, double send_s) {
  std::vector<double> sums_s(static_cast<std::size_t>(shape.ranks));
  for (std::size_t rank = 0; rank < sums_s.size(); ++rank) sums_s[rank] = send_s * sends(rank, shape);
  for (std::size_t i = 0; i < stages.size(); ++i)
    sums_s[shape.rank_of(i)] += stages[i].forward_s + stages[i].backward_s;
  return *std::ranges::max_element(sums_s);
}

// Executes the lists of passes of all ranks.
class ListedPipeline {
 public:
  /// `group`: as in passes_of_rank. `tasks`: receives each task; may be nullptr.
  ListedPipeline(std::span<const StageTime> stages, const PipelineShape& shape, std::size_t micro_steps,
                 std::size_t group, double send_s, std::vector<StageTask>* tasks = nullptr)
      : stages_(stages), shape_(shape), micro_steps_(micro_steps), send_s_(send_s), tasks_(tasks) {
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    lists_ = passes_of_ranks(shape, micro_steps, group);
    next_.assign(ranks, 0);
    free_s_.assign(ranks, 0.0);
    began_s_.assign(ranks, -1.0);
    for (std::vector<double>& done : done_s_) done.assign(stages.size() * micro_steps, -1.0);
  }

  /// Returns the time to the end of the last rank, or, with `from_own_beginning`, the longest one of a rank.
  double run(bool from_own_beginning) {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
        while (next_[rank] < lists_[rank].size() && do_next(rank)) progress = true;
      }
    }
    double longest_s = 0.0;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      assert(next_[rank] == lists_[rank].size());
      const double from_s = from_own_beginning ? began_s_[rank] : 0.0;
      longest_s = std::max(longest_s, free_s_[rank] + stages_[rank].rest_s - from_s);
    }
    return longest_s;
  }

 private:
  double& done_s(PassWork work, std::size_t stage, std::size_t micro_step) {
    return done_s_[static_cast<std::size_t>(work)][stage * micro_steps_ + micro_step];
  }

  // Returns when a pass may begin; negative if that is not known yet.
  double ready_s(const StagePass& pass) {
    const bool is_last = pass.stage + 1 == stages_.size();
    switch (pass.work) {
      case PassWork::kForward:
        return pass.stage == 0 ? 0.0 : done_s(PassWork::kForward, pass.stage - 1, pass.micro_step);
      case PassWork::kBackward:
        return is_last ? done_s(PassWork::kForward, pass.stage, pass.micro_step)
                       : done_s(PassWork::kBackward, pass.stage + 1, pass.micro_step);
      case PassWork::kWeights:
        return done_s(PassWork::kBackward, pass.stage, pass.micro_step);
    }
    return 0.0;
  }

  double work_s(const StagePass& pass) const {
    const StageTime& stage = stages_[pass.stage];
    if (pass.work == PassWork::kForward) return stage.forward_s;
    if (!schedule::splits_backward(shape_.schedule)) return stage.backward_s;
    if (pass.work == PassWork::kWeights) return stage.weights_s;
    return pass.whole ? stage.backward_s : stage.backward_s - stage.weights_s;
  }

  bool sends_on(const StagePass& pass) const {
    if (pass.work == PassWork::kWeights) return false;
    const bool forward = pass.work == PassWork::kForward;
    if (forward ? pass.stage + 1 == stages_.size() : pass.stage == 0) return false;
    return shape_.rank_of(forward ? pass.stage + 1 : pass.stage - 1) != shape_.rank_of(pass.stage);
  }

  // Does the next pass of a rank, or the next two if they are a pair. Returns false if an input is not known yet.
  bool do_next(std::size_t rank) {
    const std::size_t first = next_[rank];
    const std::size_t end = first + (lists_[rank][first].with_next ? 2 : 1);
    double start_s = free_s_[rank];
    double worked_s = 0.0;
    double sent_s = 0.0;
    for (std::size_t i = first; i < end; ++i) {
      const StagePass& pass = lists_[rank][i];
      const double arrived_s = ready_s(pass);
      if (arrived_s < 0.0) return false;
      start_s = std::max(start_s, arrived_s);
      worked_s += work_s(pass);
      if (sends_on(pass)) sent_s += send_s_;
    }
    if (first == 0) began_s_[rank] = start_s;
    worked_s += start_s;
    free_s_[rank] = worked_s + sent_s;
    next_[rank] = end;
    for (std::size_t i = first; i < end; ++i) {
      const StagePass& pass = lists_[rank][i];
      done_s(pass.work, pass.stage, pass.micro_step) = free_s_[rank];
      if (tasks_ == nullptr) continue;
      tasks_->push_back({pass.stage, static_cast<std::int64_t>(pass.micro_step), pass.work != PassWork::kForward,
                         start_s, worked_s, free_s_[rank], pass.work == PassWork::kWeights});
    }
    return true;
  }

  std::span<const StageTime> stages_;
  PipelineShape shape_;
  std::size_t micro_steps_;
  double send_s_;
  std::vector<StageTask>* tasks_;
  std::vector<std::vector<StagePass>> lists_;  // by rank
  std::vector<std::size_t> next_;              // by rank
  std::vector<double> free_s_, began_s_;       // by rank
  std::array<std::vector<double>, 3> done_s_;  // by PassWork; by stage and micro-step
};

bool is_one_forward_one_backward(const PipelineShape& shape) {
  return shape.schedule == schedule::PipelineSchedule::kOneForwardOneBackward;
}

// Micro-steps after which a schedule repeats itself.
std::size_t group_of(const PipelineShape& shape, std::int64_t micro_steps) {
  if (schedule::is_vee(shape.schedule)) return static_cast<std::size_t>(shape.ranks);
  return order_of(static_cast<std::size_t>(shape.ranks * shape.stages_of_rank), micro_steps, shape.stages_of_rank)
      .group;
}

// Groups in which a schedule comes to its rhythm. That of a block that is repeated takes long to lay out, and has one
// after the first 2 p micro-steps.
std::size_t groups_to_rhythm(const PipelineShape& shape) { return repeats_blocks(shape.schedule) ? 3 : 5; }

}  // namespace

PipelineShape pipeline_shape(const schedule::Knobs& knobs) {
  if (knobs.pipeline_ranks == 1) return {};
  return {knobs.pipeline_ranks, knobs.virtual_stages, knobs.pipeline_schedule};
}

std::size_t PipelineShape::rank_of(std::size_t stage) const {
  const auto count = static_cast<std::size_t>(ranks);
  const bool turns = schedule::is_vee(schedule) && stage >= count;
  return turns ? 2 * count - 1 - stage : stage % count;
}

double pipeline_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
                  const PipelineShape& shape, bool overlaps_steps) {
  if (is_one_forward_one_backward(shape))
    return one_forward_one_backward_s(stages, micro_steps, send_s, shape.stages_of_rank);
  const bool apart = overlaps_steps && schedule::splits_backward(shape.schedule);
  const std::size_t group = group_of(shape, micro_steps);
  const auto step_s = [&](std::size_t steps) { return ListedPipeline(stages, shape, steps, group, send_s).run(apart); };
  const auto steps = static_cast<std::size_t>(micro_steps);
  const std::size_t groups = groups_to_rhythm(shape);
  if (steps <= (groups + 1) * group) return step_s(steps);
  const double some_s = step_s(groups * group);
  const double more_s = step_s((groups + 1) * group);
  const double each_s = std::max((more_s - some_s) / static_cast<double>(group), busiest_s(stages, shape, send_s));
  return more_s + static_cast<double>(steps - (groups + 1) * group) * each_s;
}

std::vector<StageTask> pipeline_tasks(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
                                      const PipelineShape& shape) {
  if (is_one_forward_one_backward(shape))
    return one_forward_one_backward(stages, micro_steps, send_s, shape.stages_of_rank);
  std::vector<StageTask> tasks;
  ListedPipeline(stages, shape, static_cast<std::size_t>(micro_steps), group_of(shape, micro_steps), send_s, &tasks)
      .run(false);
  return tasks;
}

double one_forward_one_backward_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
                                  std::int64_t stages_of_rank) {
  Order order = order_of(stages.size(), micro_steps, stages_of_rank);
  const std::size_t steps = order.micro_steps;
  const std::size_t round = order.group;
  constexpr std::size_t kFewTasks = 2048;  // a few microseconds
  const bool is_short = stages_of_rank > 1 && 2 * steps * stages.size() <= kFewTasks;
  if (steps <= 3 * round || is_short) return Pipeline(stages, order, send_s).run();
  order.micro_steps = 2 * round;
  const double some_s = Pipeline(stages, order, send_s).run();
  order.micro_steps = 3 * round;
  const double more_s = Pipeline(stages, order, send_s).run();
  double each_s = (more_s - some_s) / static_cast<double>(round);
  const PipelineShape shape{static_cast<std::int64_t>(order.ranks), stages_of_rank};
  if (stages_of_rank > 1) each_s = std::max(each_s, busiest_s(stages, shape, send_s));
  return more_s + static_cast<double>(steps - 3 * round) * each_s;
}

std::vector<StageTask> one_forward_one_backward(std::span<const StageTime> stages, std::int64_t micro_steps,
                                                double send_s, std::int64_t stages_of_rank) {
  std::vector<StageTask> tasks;
  Pipeline(stages, order_of(stages.size(), micro_steps, stages_of_rank), send_s, &tasks).run();
  return tasks;
}

InFlight in_flight(std::int64_t rank, std::int64_t ranks, std::int64_t micro_steps, std::int64_t stages_of_rank) {
  const Order order = order_of(static_cast<std::size_t>(ranks * stages_of_rank), micro_steps, stages_of_rank);
  const std::size_t passes = std::min(order.passes(), order.warm_up(static_cast<std::size_t>(rank)) + 1);
  const std::size_t of_groups = order.group * order.stages_of_rank;
  const std::size_t of_first = passes / of_groups * order.group + std::min(order.group, passes % of_groups);
  return {static_cast<std::int64_t>(passes), static_cast<std::int64_t>(of_first), stages_of_rank};
}

InFlight in_flight(std::int64_t rank, std::int64_t micro_steps, const PipelineShape& shape, double weights_share) {
  if (is_one_forward_one_backward(shape)) return in_flight(rank, shape.ranks, micro_steps, shape.stages_of_rank);
  if (shape.schedule == schedule::PipelineSchedule::kGpipe) return {micro_steps, micro_steps};
  const std::size_t group = group_of(shape, micro_steps);
  // After these a rank keeps no more.
  const std::size_t steps = std::min(static_cast<std::size_t>(micro_steps), (groups_to_rhythm(shape) - 1) * group);
  InFlight now{0, 0, shape.stages_of_rank};
  InFlight most;
  double most_kept = -1.0;
  for (const StagePass& pass : passes_of_rank(shape, static_cast<std::size_t>(rank), steps, group)) {
    const bool is_forward = pass.work == PassWork::kForward;
    const std::int64_t more = is_forward ? 1 : pass.work == PassWork::kBackward ? -1 : 0;
    now.passes += more;
    if (pass.stage == static_cast<std::size_t>(rank)) now.of_first += more;
    if (!is_forward && !pass.whole) now.waiting += pass.work == PassWork::kBackward ? 1 : -1;
    const double kept = static_cast<double>(now.passes) + weights_share * static_cast<double>(now.waiting);
    if (kept <= most_kept) continue;
    most_kept = kept;
    most = now;
  }
  return most;
}

double sends(std::size_t rank, const PipelineShape& shape) {
  if (!schedule::is_vee(shape.schedule))
    return sends(rank, static_cast<std::size_t>(shape.ranks), shape.stages_of_rank);
  return rank == 0 || rank + 1 == static_cast<std::size_t>(shape.ranks) ? 2.0 : 4.0;
}

double sends(std::size_t rank, std::size_t ranks, std::int64_t stages_of_rank) {
  const double all = 2.0 * static_cast<double>(stages_of_rank);
  return all - (rank == 0 ? 1.0 : 0.0) - (rank + 1 == ranks ? 1.0 : 0.0);
}

std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages, bool even, double head_layers) {
  assert(stages >= 1 && stages <= layers);
  std::vector<std::int64_t> result(static_cast<std::size_t>(stages), layers / stages);
  const auto spread = [&](std::int64_t rest, std::int64_t over) {
    for (std::int64_t i = 0; i < over; ++i)
      result[static_cast<std::size_t>(i)] = rest / over + (i < rest % over ? 1 : 0);
  };
  spread(layers, stages);
  if (even || stages == 1) return result;
  std::int64_t best = 1;
  double fastest = std::numeric_limits<double>::infinity();
  for (std::int64_t last = layers / stages + 1; last >= 1; --last) {
    if (layers - last < stages - 1) continue;
    const std::int64_t others = (layers - last + stages - 2) / (stages - 1);
    const double slowest = std::max(static_cast<double>(others), static_cast<double>(last) + head_layers);
    if (slowest < fastest) {
      fastest = slowest;
      best = last;
    }
  }
  spread(layers - best, stages - 1);
  result.back() = best;
  return result;
}

std::vector<std::int64_t> interleaved_layers(std::int64_t layers, std::int64_t stages, std::int64_t further_tokens) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(stages), layers / stages);
  const std::int64_t missing = stages - layers % stages;
  if (layers % stages == 0) return result;
  if (missing > 2 + further_tokens) {
    for (std::int64_t i = 0; i < layers % stages; ++i) ++result[static_cast<std::size_t>(i)];
    return result;
  }
  for (std::int64_t& of_stage : result) ++of_stage;
  const std::int64_t of_last = further_tokens == 0 ? 1 : std::min({missing, 2 + further_tokens, result.back()});
  result.back() -= of_last;
  result.front() -= missing - of_last;
  return result;
}

std::int64_t layers_of_rank(std::span<const std::int64_t> stages, std::int64_t rank, const PipelineShape& shape) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (shape.rank_of(i) == static_cast<std::size_t>(rank)) sum += stages[i];
  }
  return sum;
}

std::vector<schedule::StageParts> parts_of_ranks(const workload::ModelSpec& model, std::span<const std::int64_t> layers,
                                                 const PipelineShape& shape) {
  std::vector<schedule::StageParts> parts;
  const std::size_t last = shape.rank_of(layers.size() - 1);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(shape.ranks); ++rank)
    parts.push_back({0, rank == 0, rank == last});
  std::int64_t begin = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    schedule::StageParts& of = parts[shape.rank_of(stage)];
    of.layers += layers[stage];
    const workload::OtherLayers others = model.other_layers_in(begin, begin + layers[stage]);
    for (std::size_t kind = 0; kind < others.size(); ++kind) of.others.at(kind) += others.at(kind);
    begin += layers[stage];
  }
  return parts;
}

}  // namespace krigtune::cost
