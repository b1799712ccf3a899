#include "bench/measure.h"

#include <algorithm>
#include <cmath>

namespace krigtune {
namespace {

constexpr std::int64_t kLeastWarmupSteps = 3;
constexpr std::size_t kLeastSteps = 10;

class Session {
 public:
  Session(const std::function<StepResult()>& step, const Clock& clock, const MeasureOptions& options)
      : step_(step), clock_(clock), options_(options) {}

  Measurement run() {
    if (options_.steps) {
      run_exactly(*options_.steps);
    } else {
      warm_up();
      run_until_precise();
    }
    return summary();
  }

 private:
  // With few steps, warm-up must leave something to measure.
  void run_exactly(std::int64_t steps) {
    const std::int64_t warmup = std::min(kLeastWarmupSteps, steps / 4);
    while (result_.steps < steps && !result_.diverged) take_step(result_.steps >= warmup);
  }

  void warm_up() {
    const double start_s = clock_.now_s();
    while (!result_.diverged && (result_.steps < kLeastWarmupSteps || clock_.now_s() - start_s < options_.warmup_s)) {
      take_step(false);
    }
  }

  void run_until_precise() {
    const double end_s = clock_.now_s() + options_.measure_s;
    while (!result_.diverged) {
      take_step(true);
      if (precise() || clock_.now_s() >= end_s) return;
    }
  }

  void take_step(bool measured) {
    const StepResult now = step_();
    if (result_.steps == 0) result_.loss_first = now.loss;
    ++result_.steps;
    result_.loss_last = now.loss;
    result_.diverged = !std::isfinite(now.loss);
    if (!measured) return;
    times_.add(now.step_time_s);
    exposed_.add(now.exposed_comm_s);
    all_reduce_.add(now.collectives.all_reduce_s);
    reduce_scatter_.add(now.collectives.reduce_scatter_s);
    all_gather_.add(now.collectives.all_gather_s);
  }

  bool precise() const {
    if (times_.size() < kLeastSteps) return false;
    const Interval interval = times_.median_interval();
    return (interval.high - interval.low) / 2.0 <= options_.target * times_.median();
  }

  Measurement summary() {
    result_.measured_steps = static_cast<std::int64_t>(times_.size());
    if (times_.size() == 0) return result_;
    result_.step_time_s = times_.median();
    result_.step_time_sem_s = times_.median_sem();
    result_.step_time_interval_s = times_.median_interval();
    result_.step_time_p10_s = times_.quantile(0.1);
    result_.step_time_p90_s = times_.quantile(0.9);
    result_.exposed_comm_s = exposed_.median();
    result_.collectives = {all_reduce_.median(), reduce_scatter_.median(), all_gather_.median()};
    return result_;
  }

  const std::function<StepResult()>& step_;
  const Clock& clock_;
  const MeasureOptions& options_;
  Measurement result_;
  StepTimes times_;
  StepTimes exposed_;
  StepTimes all_reduce_;
  StepTimes reduce_scatter_;
  StepTimes all_gather_;
};

}  // namespace

Measurement measure(const std::function<StepResult()>& step, const Clock& clock, const MeasureOptions& options) {
  return Session(step, clock, options).run();
}

}  // namespace krigtune
