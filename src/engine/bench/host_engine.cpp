#include <fmt/format.h>

#include <ostream>

#include "bench/bench_engine.h"
#include "bench/cuda_program.h"
#include "bench/measure_machine.h"
#include "krigtune/core/bench_exit.h"
#include "krigtune/core/json.h"

namespace krigtune {
namespace {

int print_probe(bool json, std::ostream& out) {
  const GpuProbe probe = probe_gpus();
  const std::string why_not = why_no_gpu_is_used(probe);
  const int exit_code = why_not.empty() ? 0 : BenchExit::kNoDevice;
  if (json) {
    BenchResult result;
    if (exit_code != 0) result.ending = {exit_code, "failed", "environment", why_not};
    out << json_report(result);
  } else if (probe.gpus == 0) {
    out << fmt::format("no GPU: {}\n", why_not);
  } else {
    out << fmt::format("{} GPU(s){}\n", probe.gpus, why_not.empty() ? "" : " that cannot be used: " + why_not);
  }
  return exit_code;
}

int print_machine(const BenchOptions& options, const Clock& clock, std::ostream& out) {
  out << to_json(measure_machine(*options.measure_machine, options.precision, clock)).dump(2) << "\n";
  return 0;
}

}  // namespace

BenchEngine host_engine() {
  BenchEngine engine;
  engine.make = [](StepPlan plan, const PlannedJob& planned, const TrainingOptions& options, const Clock& clock,
                   Processes* processes) {
    return std::make_unique<BenchTrainerOf<Trainer>>(std::move(plan), planned.job.cluster.emulated_network, clock,
                                                     options, processes);
  };
  engine.probe = print_probe;
  engine.measure_machine = print_machine;
  engine.begin = hand_over_to_cuda;
  return engine;
}

}  // namespace krigtune
