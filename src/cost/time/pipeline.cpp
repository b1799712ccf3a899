// 1F1B (Narayanan et al. 2019, "PipeDream"; 2021, section 2.2): stage i of p begins with p - i - 1 forwards, then
// alternates one forward and one backward, then executes the remaining backwards. A task starts when its stage is free
// and its input has arrived; then it sends its result, forward's to the next stage and backward's to the previous one.
// With equal stages (t = forward + backward) and nothing to send, T = (k + p - 1) t. Beyond 2 p micro-steps, every
// further p take as long as the p before.
#include "cost/time/pipeline.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

namespace krigtune::cost {
namespace {

class Pipeline {
 public:
  /// `tasks`: receives each task; may be nullptr.
  Pipeline(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
           std::vector<StageTask>* tasks = nullptr)
      : stages_(stages),
        micro_steps_(static_cast<std::size_t>(micro_steps)),
        send_s_(send_s),
        tasks_(tasks),
        next_(stages.size()),
        free_s_(stages.size()),
        done_s_{std::vector<double>(stages.size() * micro_steps_, -1.0),
                std::vector<double>(stages.size() * micro_steps_, -1.0)} {}

  double run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < stages_.size(); ++i) {
        while (next_[i] < 2 * micro_steps_ && do_next(i)) progress = true;
      }
    }
    double end_s = 0.0;
    for (std::size_t i = 0; i < stages_.size(); ++i) end_s = std::max(end_s, free_s_[i] + stages_[i].rest_s);
    return end_s;
  }

 private:
  struct Task {
    bool backward;
    std::size_t micro_step;
  };

  Task task(std::size_t stage) const {
    const std::size_t n = next_[stage];
    const std::size_t warm_up = std::min(micro_steps_, stages_.size() - stage - 1);
    if (n < warm_up) return {false, n};
    const std::size_t turn = n - warm_up;
    if (turn >= 2 * (micro_steps_ - warm_up)) return {true, n - micro_steps_};
    return {turn % 2 == 1, turn % 2 == 1 ? turn / 2 : warm_up + turn / 2};
  }

  // Returns false if the task's input is not known yet.
  bool do_next(std::size_t stage) {
    const auto [backward, m] = task(stage);
    const bool is_first = stage == 0;
    const bool is_last = stage + 1 == stages_.size();
    double start_s = free_s_[stage];
    if (!(backward ? is_last : is_first)) {
      const std::size_t from = backward ? stage + 1 : stage - 1;
      const double arrived_s = done_s_[backward ? 1 : 0][from * micro_steps_ + m];
      if (arrived_s < 0.0) return false;
      start_s = std::max(start_s, arrived_s);
    }
    const double worked_s = start_s + (backward ? stages_[stage].backward_s : stages_[stage].forward_s);
    const bool sends_on = !(backward ? is_first : is_last);
    free_s_[stage] = worked_s + (sends_on ? send_s_ : 0.0);
    if (tasks_ != nullptr) {
      tasks_->push_back({stage, static_cast<std::int64_t>(m), backward, start_s, worked_s, free_s_[stage]});
    }
    done_s_[backward ? 1 : 0][stage * micro_steps_ + m] = free_s_[stage];
    ++next_[stage];
    return true;
  }

  std::span<const StageTime> stages_;
  std::size_t micro_steps_;
  double send_s_;
  std::vector<StageTask>* tasks_;
  std::vector<std::size_t> next_;              // task, by stage
  std::vector<double> free_s_;                 // by stage
  std::array<std::vector<double>, 2> done_s_;  // forward, backward; by stage and micro-step
};

}  // namespace

double one_forward_one_backward_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s) {
  const auto round = static_cast<std::int64_t>(stages.size());
  if (micro_steps <= 3 * round) return Pipeline(stages, micro_steps, send_s).run();
  const double some_s = Pipeline(stages, 2 * round, send_s).run();
  const double more_s = Pipeline(stages, 3 * round, send_s).run();
  return more_s + static_cast<double>(micro_steps - 3 * round) * (more_s - some_s) / static_cast<double>(round);
}

std::vector<StageTask> one_forward_one_backward(std::span<const StageTime> stages, std::int64_t micro_steps,
                                                double send_s) {
  std::vector<StageTask> tasks;
  Pipeline(stages, micro_steps, send_s, &tasks).run();
  return tasks;
}

double sends(std::size_t stage, std::size_t stages) {
  return (stage > 0 ? 1.0 : 0.0) + (stage + 1 < stages ? 1.0 : 0.0);
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

std::vector<schedule::StageParts> parts_of_stages(const workload::ModelSpec& model,
                                                  std::span<const std::int64_t> layers) {
  std::vector<schedule::StageParts> parts;
  std::int64_t begin = 0;
  for (const std::int64_t own : layers) {
    const bool is_last = parts.size() + 1 == layers.size();
    parts.push_back({own, parts.empty(), is_last, model.dense_layers_in(begin, begin + own)});
    begin += own;
  }
  return parts;
}

}  // namespace krigtune::cost
