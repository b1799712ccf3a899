#include "bench/train.h"

#include <cmath>
#include <utility>

#include "bench/trace.h"

namespace krigtune {
namespace {

// Keeps the times of the measured step that was nearest to the median at its time.
class TypicalStep {
 public:
  explicit TypicalStep(std::size_t ranks) : ranks_(ranks) {}

  void look_at(const StepReport& report, const Trainer& trainer) {
    if (report.phase != MeasurePhase::kMeasure) return;
    const double step_time_s = report.result.step_time_s;
    const double median_s = report.provisional_s.value_or(step_time_s);
    if (step_ > 0 && std::abs(step_time_s - median_s) > std::abs(step_time_s_ - median_s)) return;
    step_time_s_ = step_time_s;
    step_ = report.step;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto times = trainer.operation_times(static_cast<std::int64_t>(r));
      ranks_[r].assign(times.begin(), times.end());
    }
  }
  TracedStep traced() const { return {step_, ranks_}; }

 private:
  std::int64_t step_ = 0;
  double step_time_s_ = 0.0;
  std::vector<std::vector<OperationTime>> ranks_;
};

/// What all processes read alike: measuring decides by it.
class TrainersClock final : public Clock {
 public:
  TrainersClock(const Trainer& trainer, const Clock& clock) : trainer_(trainer), clock_(clock) {}
  double now_s() const override { return trainer_.now_s(); }
  std::int64_t unix_us() const override { return clock_.unix_us(); }
  void sleep_until_s(double deadline_s) const override { clock_.sleep_until_s(deadline_s); }

 private:
  const Trainer& trainer_;
  const Clock& clock_;
};

}  // namespace

TrainedJob train(StepPlan plan, const PlannedJob& planned, const BenchOptions& options, const Clock& clock,
                 const TrainingSetting& setting) {
  constexpr double kPartOfTheTime = 0.5;  // what the steps without communication may add
  TrainingOptions training;
  training.seed = options.seed;
  training.fault = setting.fault;
  Trainer trainer(std::move(plan), planned.job.cluster.emulated_network, clock, training, setting.processes);
  const TrainersClock agreed(trainer, clock);
  std::int64_t steps = 0;
  const char* phase = to_string(MeasurePhase::kWarmUp);
  const auto step = [&] {
    StepResult result = trainer.step();
    ++steps;
    if (setting.step_ended) setting.step_ended(phase, steps);
    return result;
  };
  TypicalStep typical(setting.processes == nullptr ? static_cast<std::size_t>(trainer.plan().world()) : 1);
  TrainedJob trained;
  trained.measurement = measure(step, agreed, options.measure, [&](const StepReport& report) {
    if (!options.trace.empty()) typical.look_at(report, trainer);
    phase = to_string(report.phase);
  });
  trained.arena_peak_bytes = trainer.arena_peak_bytes(Place::kDevice);
  trained.host_arena_peak_bytes = trainer.arena_peak_bytes(Place::kHost);
  trained.parameters_fnv1a64 = trainer.parameters_fnv1a64();
  if (!options.trace.empty()) write_trace(options.trace, trainer.plan(), typical.traced());
  if (options.compare_null && !trained.measurement.diverged) {
    trainer.silence(true);
    trained.silent_step_time_s = median_step_time_s(step, agreed, trained.measurement.measured_steps,
                                                    kPartOfTheTime * options.measure.measure_s);
  }
  return trained;
}

}  // namespace krigtune
