#include "programs/bench/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "plan/trace.h"
#include "programs/bench/cuda_program.h"
#include "programs/bench/measure_machine.h"

namespace krigtune::bench {
namespace {

// Keeps the operation times of the measured step whose time was nearest to the median at that moment.
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
  plan::TracedStep traced() const { return {step_, ranks_}; }

 private:
  std::int64_t step_ = 0;
  double step_time_s_ = 0.0;
  std::vector<std::vector<plan::OperationTime>> ranks_;
};

/// The trainer's time is the same in all processes, so they take the same decisions while measuring.
class TrainersClock final : public Clock {
 public:
  TrainersClock(const BenchTrainer& trainer, const Clock& clock) : trainer_(trainer), clock_(clock) {}
  double now_s() const override { return trainer_.now_s(); }
  std::int64_t unix_us() const override { return clock_.unix_us(); }
  void sleep_until_s(double deadline_s) const override { clock_.sleep_until_s(deadline_s); }

 private:
  const BenchTrainer& trainer_;
  const Clock& clock_;
};

bool is_of_this_process(const Fault& fault, const engine::Processes* processes, const plan::StepPlan& plan) {
  return processes == nullptr ? fault.rank < plan.world() : fault.rank == processes->rank();
}

/// Trains, reports each step to the heartbeat, and fails where a fault is injected.
class WatchedTrainer {
 public:
  WatchedTrainer(BenchTrainer& trainer, const TrainingPart& part) : trainer_(trainer), heartbeat_(part.heartbeat) {
    if (part.fault && is_of_this_process(*part.fault, part.processes, trainer.plan())) fault_ = part.fault;
  }

  void enter(const std::string& phase) {
    if (phase == phase_) return;
    phase_ = phase;
    beat();
  }
  engine::StepResult step() {
    if (fault_) inject(*fault_, steps_);
    const engine::StepResult result = trainer_.step();
    ++steps_;
    if (heartbeat_ != nullptr) heartbeat_->beat(phase_, steps_, {{"loss", result.loss}});
    return result;
  }

  void tell(const std::map<std::string, double>& provisional) const {
    if (heartbeat_ != nullptr && !provisional.empty()) heartbeat_->beat(phase_, steps_, provisional);
  }

 private:
  void beat() const {
    if (heartbeat_ != nullptr) heartbeat_->beat(phase_, steps_);
  }

  BenchTrainer& trainer_;
  Heartbeat* heartbeat_;
  std::optional<Fault> fault_;  ///< if it concerns this process
  std::string phase_;
  std::int64_t steps_ = 0;
};

std::unique_ptr<GpuWatch> watch_gpu(const BenchEngine& engine, engine::Processes* processes) {
  auto sensor = engine.gpu_sensor ? engine.gpu_sensor(processes) : nullptr;
  return sensor ? std::make_unique<GpuWatch>(std::move(sensor)) : nullptr;
}

// Returns why the trace could not be written, or nothing. The measurement remains valid.
std::string loss_of_trace(const std::filesystem::path& file, const plan::StepPlan& plan, const plan::TracedStep& step) {
  try {
    plan::write_trace(file, plan, step);
    return "";
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

engine::TrainingOptions training_options(const BenchOptions& options) {
  engine::TrainingOptions training;
  training.seed = options.seed;
  training.steps = options.measure.steps;
  training.time_every_step = !options.trace.empty();
  training.graph = options.graph;
  return training;
}

}  // namespace

TrainedJob train(const BenchEngine& engine, plan::StepPlan plan, const PlannedJob& planned, const BenchOptions& options,
                 const Clock& clock, const TrainingPart& part) {
  // Fetching more parameters from a GPU and hashing them byte by byte would take longer than the measurement.
  constexpr std::int64_t kMostHashedParameters = 100'000'000;
  constexpr double kPartOfTheTime = 0.5;  // limit for the time of the steps without communication
  const auto made = engine.make(std::move(plan), planned, training_options(options), clock, part.processes);
  BenchTrainer& trainer = *made;
  WatchedTrainer watched(trainer, part);
  const TrainersClock common(trainer, clock);
  const auto step = [&] { return watched.step(); };
  const bool first = part.processes == nullptr || part.processes->rank() == 0;
  TypicalStep typical;
  TrainedJob trained;
  auto gpu = first ? watch_gpu(engine, part.processes) : nullptr;
  watched.enter(to_string(MeasurePhase::kWarmUp));
  trained.measurement = measure(step, common, options.measure, [&](const StepReport& report) {
    if (!options.trace.empty()) typical.look_at(report, trainer);
    watched.enter(to_string(report.phase));
    if (gpu && report.phase == MeasurePhase::kWarmUp) gpu->forget();
    if (part.heartbeat != nullptr) watched.tell(provisional_results(planned, report));
  });
  if (gpu) trained.gpu = gpu->use_now();
  gpu.reset();
  trained.gpu_memory = trainer.memory_use();
  trained.arena_peak_bytes = trainer.arena_peak_bytes(schedule::Place::kDevice);
  trained.host_arena_peak_bytes = trainer.arena_peak_bytes(schedule::Place::kHost);
  if (workload::parameter_count(planned.job.workload.model) <= kMostHashedParameters) {
    trained.parameters_fnv1a64 = trainer.parameters_fnv1a64();
  }
  if (first && !options.trace.empty()) trained.lost = loss_of_trace(options.trace, trainer.plan(), typical.traced());
  if (options.compare_null && !trained.measurement.diverged) {
    watched.enter("without communication");
    trainer.silence(true);
    trained.silent_step_time_s = median_step_time_s(step, common, trained.measurement.measured_steps,
                                                    kPartOfTheTime * options.measure.measure_s);
  }
  trained.pacing = trainer.pacing();
  trained.notes = trainer.notes();
  return trained;
}

namespace {

int print_probe(bool json, std::ostream& out) {
  const engine::GpuProbe probe = engine::probe_gpus();
  const std::string why_not = why_no_gpu_is_used(probe);
  const int exit_code = why_not.empty() ? 0 : BenchExit::kNoDevice;
  if (json) {
    BenchResult result;
    if (exit_code != 0) result.ending = {exit_code, "failed", "environment", why_not};
    out << json_report(result);
  } else if (probe.gpus == 0) {
    out << fmt::format("no GPU: {}\n", why_not);
  } else {
    out << fmt::format("{}{}\n", counted(probe.gpus, "GPU"), why_not.empty() ? "" : " that cannot be used: " + why_not);
  }
  return exit_code;
}

int print_machine(const BenchOptions& options, const Clock& clock, std::ostream& out) {
  out << workload::to_json(measure_machine(*options.measure_machine, options.precision, clock)).dump(2) << "\n";
  return 0;
}

}  // namespace

BenchEngine host_engine() {
  BenchEngine engine;
  engine.make = [](plan::StepPlan plan, const PlannedJob& planned, const engine::TrainingOptions& options,
                   const Clock& clock, engine::Processes* processes) {
    schedule::refuse_nccl_knobs(plan.nccl, "the ranks run on processors");
    return std::make_unique<BenchTrainerOf<engine::Trainer>>(std::move(plan), planned.job.cluster.emulated_network,
                                                             clock, options, processes);
  };
  engine.probe = print_probe;
  engine.measure_machine = print_machine;
  engine.rank_devices = make_host_devices;
  engine.rate_sizes = host_rate_sizes;
  engine.rank_machine = [](engine::Processes* /*processes*/, const JobRanks& job) {
    const workload::MachineKey key = workload::machine_key(1, workload::Precision::kFp32);
    workload::ClusterSpec node;
    node.gpus_per_node = std::count(job.nodes.begin(), job.nodes.end(), 0);
    return RankMachine{key.processor, workload::memory_limit_per_rank({}, node).count};
  };
  engine.begin = hand_over_to_cuda;
  return engine;
}

}  // namespace krigtune::bench
