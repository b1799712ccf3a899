#include <fmt/format.h>

#include <ostream>

#include "bench/bench_engine.h"
#include "bench/cuda_program.h"
#include "bench/exit_codes.h"
#include "krigtune/engine/gpu_probe.h"

namespace krigtune {
namespace {

class HostTrainer final : public BenchTrainer {
 public:
  HostTrainer(StepPlan plan, const PlannedJob& planned, const TrainingOptions& options, const Clock& clock,
              Processes* processes)
      : trainer_(std::move(plan), planned.job.cluster.emulated_network, clock, options, processes) {}

  StepResult step() override { return trainer_.step(); }
  double now_s() const override { return trainer_.now_s(); }
  const StepPlan& plan() const override { return trainer_.plan(); }
  std::vector<OperationTime> operation_times(std::int64_t rank) const override {
    return trainer_.operation_times(rank);
  }
  void silence(bool silent) override { trainer_.silence(silent); }
  std::int64_t arena_peak_bytes(Place place) const override { return trainer_.arena_peak_bytes(place); }
  std::string parameters_fnv1a64() const override { return trainer_.parameters_fnv1a64(); }

 private:
  Trainer trainer_;
};

int print_probe(bool json, std::ostream& out) {
  const GpuProbe probe = probe_gpus();
  if (json) {
    BenchResult result;
    if (probe.gpus == 0) result.ending = {kNoDevice, "failed", "environment", probe.reason};
    out << json_report(result);
  } else {
    out << (probe.gpus > 0 ? fmt::format("{} GPU(s)\n", probe.gpus) : "no GPU: " + probe.reason + "\n");
  }
  return probe.gpus > 0 ? 0 : kNoDevice;
}

}  // namespace

BenchEngine host_engine() {
  BenchEngine engine;
  engine.make = [](StepPlan plan, const PlannedJob& planned, const TrainingOptions& options, const Clock& clock,
                   Processes* processes) {
    return std::make_unique<HostTrainer>(std::move(plan), planned, options, clock, processes);
  };
  engine.probe = print_probe;
  engine.begin = hand_over_to_cuda;
  return engine;
}

}  // namespace krigtune
