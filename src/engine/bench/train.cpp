#include "bench/train.h"

#include <cmath>
#include <utility>

#include "bench/trace.h"

namespace krigtune {
namespace {

// Keeps the times of the measured step that was nearest to the median at its time.
class TypicalStep {
 public:
  void look_at(const StepReport& report, const BenchTrainer& trainer) {
    if (report.phase != MeasurePhase::kMeasure) return;
    const double step_time_s = report.result.step_time_s;
    const double median_s = report.provisional_s.value_or(step_time_s);
    if (!ranks_.empty() && std::abs(step_time_s - median_s) > std::abs(step_time_s_ - median_s)) return;
    step_time_s_ = step_time_s;
    step_ = report.step;
    ranks_.resize(static_cast<std::size_t>(trainer.plan().world()));
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r] = trainer.operation_times(static_cast<std::int64_t>(r));
  }
  TracedStep traced() const { return {step_, ranks_}; }

 private:
  std::int64_t step_ = 0;
  double step_time_s_ = 0.0;
  std::vector<std::vector<OperationTime>> ranks_;
};

}  // namespace

TrainedJob train(BenchTrainer& trainer, const std::function<StepResult()>& step, const Clock& clock,
                 const BenchOptions& options, bool writes) {
  constexpr double kPartOfTheTime = 0.5;  // what the steps without communication may add
  TypicalStep typical;
  TrainedJob trained;
  trained.measurement = measure(step, clock, options.measure, [&](const StepReport& report) {
    if (!options.trace.empty()) typical.look_at(report, trainer);
  });
  trained.arena_peak_bytes = trainer.arena_peak_bytes(Place::kDevice);
  trained.host_arena_peak_bytes = trainer.arena_peak_bytes(Place::kHost);
  trained.parameters_fnv1a64 = trainer.parameters_fnv1a64();
  if (!options.trace.empty() && writes) write_trace(options.trace, trainer.plan(), typical.traced());
  if (options.compare_null && !trained.measurement.diverged) {
    trainer.silence(true);
    trained.silent_step_time_s =
        median_step_time_s(step, clock, trained.measurement.measured_steps, kPartOfTheTime * options.measure.measure_s);
  }
  return trained;
}

}  // namespace krigtune
