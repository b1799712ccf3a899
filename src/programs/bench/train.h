#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "engine/host/processes.h"
#include "engine/trainer.h"
#include "programs/bench/bench_result.h"
#include "programs/bench/fault.h"
#include "programs/bench/gpu_watch.h"
#include "programs/bench/heartbeat.h"
#include "programs/bench/options.h"
#include "programs/bench/rank_device.h"

namespace krigtune::bench {

/// The trainer of a planned job as the program uses it; Trainer documents the functions. If the job has several
/// processes, all of them must make every call.
class BenchTrainer {
 public:
  virtual ~BenchTrainer() = default;
  virtual engine::StepResult step() = 0;
  virtual double now_s() const = 0;
  virtual const plan::StepPlan& plan() const = 0;
  virtual std::vector<plan::OperationTime> operation_times(std::int64_t rank) const = 0;
  virtual void silence(bool silent) = 0;
  virtual std::int64_t arena_peak_bytes(schedule::Place place) = 0;
  virtual std::string parameters_fnv1a64() = 0;
  virtual std::vector<engine::PacedCollective> pacing() const = 0;
  virtual std::optional<engine::GpuMemoryUse> memory_use() const = 0;
  virtual std::vector<std::string> notes() const = 0;
};

/// Makes a BenchTrainer of a class T that has the same functions. T may lack the last three.
template <class T>
class BenchTrainerOf final : public BenchTrainer {
 public:
  template <class... Arguments>
  explicit BenchTrainerOf(Arguments&&... arguments) : trainer_(std::forward<Arguments>(arguments)...) {}

  engine::StepResult step() override { return trainer_.step(); }
  double now_s() const override { return trainer_.now_s(); }
  const plan::StepPlan& plan() const override { return trainer_.plan(); }
  std::vector<plan::OperationTime> operation_times(std::int64_t rank) const override {
    return trainer_.operation_times(rank);
  }
  void silence(bool silent) override { trainer_.silence(silent); }
  std::int64_t arena_peak_bytes(schedule::Place place) override { return trainer_.arena_peak_bytes(place); }
  std::string parameters_fnv1a64() override { return trainer_.parameters_fnv1a64(); }
  std::vector<engine::PacedCollective> pacing() const override {
    if constexpr (requires { trainer_.pacing(); }) return trainer_.pacing();
    return {};
  }
  std::optional<engine::GpuMemoryUse> memory_use() const override {
    if constexpr (requires { trainer_.memory_use(); }) return trainer_.memory_use();
    return std::nullopt;
  }
  std::vector<std::string> notes() const override {
    if constexpr (requires { trainer_.notes(); }) return trainer_.notes();
    return {};
  }

 private:
  T trainer_;
};

/// The machine of a rank.
struct RankMachine {
  std::string processor;          ///< named as the system or the driver names it
  std::int64_t memory_bytes = 0;  ///< for this rank
};

/// An engine that executes plans, as the program uses it.
struct BenchEngine {
  using Make = std::function<std::unique_ptr<BenchTrainer>(plan::StepPlan plan, const PlannedJob& planned,
                                                           const engine::TrainingOptions& options, const Clock& clock,
                                                           engine::Processes* processes)>;
  const char* program = "krigtune-bench";
  const char* device = "cpu";
  bool rank_is_a_process =
      false;  ///< a job of several ranks that is started alone is started again, one process per rank
  Make make;
  /// GiB that a rank may use if nobody sets a limit. Null: see memory_limit_per_rank.
  std::function<double()> memory_gib;
  /// The GPU of this process, to be watched during measured steps. Null, or a null result, if there is nothing to
  /// watch.
  std::function<std::unique_ptr<GpuSensor>(engine::Processes* processes)> gpu_sensor;
  /// Executes --probe and returns the exit code.
  std::function<int(bool json, std::ostream& out)> probe;
  /// Executes --measure-machine and returns the exit code.
  std::function<int(const BenchOptions& options, const Clock& clock, std::ostream& out)> measure_machine;
  /// For --measure-rates: the ranks of this process, the sizes to measure, and rank 0's machine.
  MakeRankDevices rank_devices;
  std::function<RateSizes()> rate_sizes;
  std::function<RankMachine(engine::Processes* processes, const JobRanks& job)> rank_machine;
  /// Called before a run. An exit code other than 0 ends it. May hand the run over to another program.
  std::function<BenchEnding(const BenchOptions& options, const std::vector<std::string>& arguments)> begin;
};

/// The engine for CPU ranks. It hands jobs that belong on GPUs over to krigtune-bench-cuda.
BenchEngine host_engine();

/// This process's part in the run.
struct TrainingPart {
  engine::Processes* processes = nullptr;  ///< null: the process is alone
  Heartbeat* heartbeat = nullptr;          ///< null: nobody watches
  std::optional<Fault> fault{};            ///< set by tests
};

/// Trains and measures a planned job as the options require, and writes the trace if one was requested. All processes
/// must call it; process 0 gets the numbers to report. Throws what the engine throws.
TrainedJob train(const BenchEngine& engine, plan::StepPlan plan, const PlannedJob& planned, const BenchOptions& options,
                 const Clock& clock, const TrainingPart& part = {});

}  // namespace krigtune::bench
