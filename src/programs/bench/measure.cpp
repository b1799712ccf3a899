// When a measurement begins and ends.
//
// Warm-up takes at least three steps and the requested time. It then continues until the medians of the last five steps
// and of the five before them differ by less than 1 %, or by less than twice the standard error of such a difference
// (on a noisy machine, 1 % would be reached only by luck). It is given up after 20 steps, or half the measuring time,
// beyond the requested time.
//
// Disturbed steps, whose operations were timed with events between them, show where time goes and are not samples of
// the step time.
//
// The measurement ends once half the 95 % interval of the median is within the target, when the time is over, or when
// the interval no longer shrinks. Four times as many independent steps halve the interval. So from 80 steps on, it is
// compared with its value at a quarter of the steps: if it is still more than 90 % of that, the remaining variation is
// drift, which more steps do not reduce. (NVIDIA's nvbench stops in the same way when its noise estimate settles above
// the target.)
#include "programs/bench/measure.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "programs/bench/bench_result.h"

namespace krigtune::bench {
namespace {

constexpr std::int64_t kLeastWarmupSteps = 3;
constexpr std::int64_t kMostWarmupSteps = 20;  // beyond those that fill the requested time
constexpr std::size_t kWindow = 5;
constexpr double kSteady = 0.01;
constexpr std::size_t kLeastSteps = 10;
constexpr std::size_t kLeastForProvisional = 3;
// Before that, nobody can end the measurement early. Another program can slow a few steps down as one, so their spread
// does not show it.
constexpr std::size_t kLeastForProvisionalSem = 5;
constexpr double kLeastForProvisionalSemS = 1.0;  // or half of the time of the measurement, if that is shorter
constexpr double kMinute = 60.0;

// Returns whether the last two windows of the sample agree.
bool is_steady(const StepTimes& times) {
  if (times.size() < 2 * kWindow) return false;
  const StepTimes now = times.part(times.size() - kWindow, kWindow);
  const StepTimes before = times.part(times.size() - 2 * kWindow, kWindow);
  const double change = std::abs(now.median() - before.median());
  const double noise = std::hypot(now.independent_sem(), before.independent_sem());
  return change <= std::max(kSteady * before.median(), 2.0 * noise);
}

class Session {
 public:
  Session(const std::function<engine::StepResult()>& step, const Clock& clock, const MeasureOptions& options,
          const OnStep& on_step)
      : step_(step), clock_(clock), options_(options), on_step_(on_step) {}

  Measurement run() {
    if (options_.steps) {
      run_exactly(*options_.steps);
    } else {
      warm_up();
      run_until_precise();
    }
    if (result_.diverged) result_.stopped = Stopped::kDiverged;
    return summary();
  }

 private:
  // If there are few steps, warm-up must leave some of them to measure.
  void run_exactly(std::int64_t steps) {
    const std::int64_t warmup = std::min(kLeastWarmupSteps, steps / 4);
    while (result_.steps < steps && !result_.diverged) {
      take_step(result_.steps < warmup ? MeasurePhase::kWarmUp : MeasurePhase::kMeasure);
    }
    result_.stopped = Stopped::kStepsAreDone;
  }

  void warm_up() {
    const double asked_until_s = clock_.now_s() + options_.warmup_s;
    const double given_up_s = asked_until_s + options_.measure_s / 2.0;
    while (!result_.diverged) {
      const double now_s = clock_.now_s();
      if (result_.steps >= kLeastWarmupSteps && now_s >= asked_until_s) {
        result_.steady = is_steady(warmup_);
        if (result_.steady || result_.steps >= kMostWarmupSteps || now_s >= given_up_s) return;
      }
      take_step(MeasurePhase::kWarmUp);
    }
  }

  void run_until_precise() {
    measuring_since_s_ = clock_.now_s();
    const double end_s = measuring_since_s_ + options_.measure_s;
    while (!result_.diverged) {
      take_step(MeasurePhase::kMeasure);
      if (is_known()) return;
      if (clock_.now_s() < end_s) continue;
      result_.stopped = Stopped::kTimeIsOver;
      return;
    }
  }

  void take_step(MeasurePhase phase) {
    const engine::StepResult now = step_();
    if (result_.steps == 0) result_.loss_first = now.loss;
    ++result_.steps;
    result_.loss_last = now.loss;
    result_.diverged = !std::isfinite(now.loss);
    StepReport report{phase, result_.steps, now};
    if (phase == MeasurePhase::kMeasure) {
      (now.disturbed ? disturbed_ : times_).add(now.step_time_s);
      exposed_.add(now.exposed_comm_s);
      median_kernels_.add(now.median_rank_kernels_s);
      slowest_kernels_.add(now.slowest_rank_kernels_s);
      breakdowns_.add(now.breakdown);
      if (times_.size() >= kLeastForProvisional) report.provisional_s = times_.median();
      if (on_step_) report.provisional_sem_s = provisional_sem_s();
      report.measured_steps = static_cast<std::int64_t>(times_.size());
    } else if (!now.disturbed) {
      warmup_.add(now.step_time_s);
    }
    if (on_step_) on_step_(report);
  }

  // For few steps the interval is wider than the standard error suggests, so use the interval.
  std::optional<double> provisional_sem_s() {
    if (times_.size() < std::max(kLeastForProvisionalSem, next_provisional_)) return std::nullopt;
    if (clock_.now_s() < measuring_since_s_ + std::min(kLeastForProvisionalSemS, options_.measure_s / 2.0)) {
      return std::nullopt;
    }
    next_provisional_ = times_.size() + 1 + times_.size() / 10;
    const Interval interval = times_.median_interval();
    constexpr double kStandardErrorsWide = 4.0;  // width of a 95 % interval
    return std::max(times_.median_sem(), (interval.high - interval.low) / kStandardErrorsWide);
  }

  // Computing the interval takes a pass over all steps, so it is done after every step first, later each time their
  // number has grown by a fiftieth.
  bool is_known() {
    if (times_.size() < std::max(kLeastSteps, next_look_)) return false;
    next_look_ = times_.size() + 1 + times_.size() / 50;
    const Interval interval = times_.median_interval();
    const double half = (interval.high - interval.low) / 2.0;
    widths_.push_back({times_.size(), half});
    if (half <= options_.target * times_.median()) return stop(Stopped::kPrecise);
    if (no_longer_shrinks(half)) return stop(Stopped::kNoLongerShrinks);
    return false;
  }

  bool stop(Stopped why) {
    result_.stopped = why;
    return true;
  }

  bool no_longer_shrinks(double half) const {
    constexpr std::size_t kLeast = 80;
    constexpr double kShrunk = 0.9;
    if (times_.size() < kLeast) return false;
    const std::size_t then = times_.size() / 4;
    const auto at = std::find_if(widths_.begin(), widths_.end(), [&](const Width& w) { return w.steps >= then; });
    return half >= kShrunk * at->half;
  }

  // Disturbed steps count only where there are no others.
  Measurement summary() {
    if (times_.size() == 0) times_ = disturbed_;
    result_.measured_steps = static_cast<std::int64_t>(times_.size());
    if (times_.size() == 0) return result_;
    result_.step_time_s = times_.median();
    result_.step_time_sem_s = times_.median_sem();
    result_.step_time_interval_s = times_.median_interval();
    result_.step_time_p10_s = times_.quantile(0.1);
    result_.step_time_p90_s = times_.quantile(0.9);
    result_.step_time_mean_s = times_.mean();
    result_.step_time_mad_s = times_.mad();
    result_.autocorrelation_time = times_.autocorrelation_time();
    result_.outliers = times_.outliers();
    result_.drift_per_step_s = times_.drift_per_step_s();
    const double steps_per_minute = times_.mean() > 0.0 ? kMinute / times_.mean() : 0.0;
    result_.drift_per_minute =
        times_.median() > 0.0 ? result_.drift_per_step_s * steps_per_minute / times_.median() : 0.0;
    result_.exposed_comm_s = exposed_.median();
    result_.median_rank_kernels_s = median_kernels_.median();
    result_.slowest_rank_kernels_s = slowest_kernels_.median();
    result_.breakdown = breakdowns_.median();
    return result_;
  }

  struct Width {
    std::size_t steps;
    double half;
  };

  const std::function<engine::StepResult()>& step_;
  const Clock& clock_;
  const MeasureOptions& options_;
  const OnStep& on_step_;
  Measurement result_;
  StepTimes warmup_;
  StepTimes times_;
  StepTimes disturbed_;
  StepTimes exposed_;
  StepTimes median_kernels_;
  StepTimes slowest_kernels_;
  BreakdownSamples breakdowns_;
  std::vector<Width> widths_;
  std::size_t next_look_ = 0;
  double measuring_since_s_ = 0.0;
  std::size_t next_provisional_ = 0;
};

}  // namespace

const char* to_string(MeasurePhase phase) { return phase == MeasurePhase::kWarmUp ? "warm-up" : "measure"; }

const char* to_string(Stopped stopped) {
  switch (stopped) {
    case Stopped::kPrecise:
      return "precise";
    case Stopped::kNoLongerShrinks:
      return "no_longer_shrinks";
    case Stopped::kTimeIsOver:
      return "time";
    case Stopped::kStepsAreDone:
      return "steps";
    case Stopped::kDiverged:
      return "diverged";
  }
  assert(false);
  return "";
}

Measurement measure(const std::function<engine::StepResult()>& step, const Clock& clock, const MeasureOptions& options,
                    const OnStep& on_step) {
  return Session(step, clock, options, on_step).run();
}

double median_step_time_s(const std::function<engine::StepResult()>& step, const Clock& clock, std::int64_t most_steps,
                          double seconds) {
  constexpr int kUnmeasured = 2;
  for (int i = 0; i < kUnmeasured; ++i) step();
  const double end_s = clock.now_s() + seconds;
  StepTimes times;
  StepTimes disturbed;
  do {
    const engine::StepResult now = step();
    (now.disturbed ? disturbed : times).add(now.step_time_s);
  } while (static_cast<std::int64_t>(times.size()) < most_steps && clock.now_s() < end_s);
  return times.size() > 0 ? times.median() : disturbed.median();
}

}  // namespace krigtune::bench
