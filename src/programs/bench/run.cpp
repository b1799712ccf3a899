#include "programs/bench/run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <ostream>

#include "core/error.h"
#include "core/processor.h"
#include "engine/host/training_ranks.h"
#include "plan/build_plan.h"
#include "plan/trace.h"
#include "programs/bench/bench_result.h"
#include "programs/bench/check.h"
#include "programs/bench/fault.h"
#include "programs/bench/heartbeat.h"
#include "programs/bench/local_launch.h"
#include "programs/bench/options.h"
#include "programs/bench/rates_run.h"
#include "programs/bench/train.h"

namespace krigtune::bench {
namespace {

std::int64_t process_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr std::int64_t kKibibyte = 1024;
  return usage.ru_maxrss * kKibibyte;
}

/// This process's part of a run.
class BenchRun {
 public:
  BenchRun(const BenchEngine& engine, const BenchOptions& options, const engine::Launch& launch, const Clock& clock,
           BenchResult& result)
      : engine_(engine),
        options_(options),
        launch_(launch),
        clock_(clock),
        result_(result),
        heartbeat_(launch.rank == 0 ? options.heartbeat : "", clock) {}

  /// `on_hang` ends the process; see Watchdog.
  void run(const std::function<void(engine::Processes*, const Beat&)>& on_hang) {
    heartbeat_.beat("init", 0);
    // Rank 0 prints the result, so the other ranks give it time for that before they end.
    const double limit_s = options_.hang_s + (launch_.rank == 0 ? 0.0 : 2.0 + 0.1 * options_.hang_s);
    const Watchdog watchdog(heartbeat_, limit_s, clock_, [&](const Beat& last) { on_hang(processes_.get(), last); });
    try {
      processes_ = engine::connect(launch_, clock_);
      check_world();
      std::optional<plan::StepPlan> plan = prepare();
      result_.ending = agreed_ending(result_.ending, processes_.get());
      if (result_.ending.exit_code != 0) return;
      result_.trained =
          train(engine_, std::move(*plan), *result_.planned, options_, clock_, {processes_.get(), &heartbeat_, fault_});
      result_.ending = ending_of(result_.trained->measurement);
      if (result_.ending.exit_code == 0 && !result_.trained->lost.empty()) {
        result_.ending = {BenchExit::kEnvironmentLacks, "ok", "", result_.trained->lost};
      }
    } catch (const engine::MemoryMissing&) {
      result_.ending = ending_of_current_exception(nullptr);
    } catch (...) {
      result_.ending = ending_of_current_exception(processes_.get());
      alone_ = true;
    }
  }

  /// Returns whether this process failed for a reason that the others do not know.
  bool is_alone() const { return alone_ && result_.ending.exit_code != BenchExit::kCommunication; }
  /// Returns why heartbeats were lost after the first one; see Heartbeat.
  std::string lost_heartbeats() const { return heartbeat_.lost(); }
  /// Ends the other processes too. Call it after this process has printed its message.
  void end_all() {
    if (alone_ && processes_) processes_->abort(result_.ending.exit_code);
  }

 private:
  void check_world() const {
    if (!processes_ || processes_->size() == launch_.size) return;
    throw EnvironmentError(fmt::format("{} has started {} processes, but only {} find one another", launch_.by,
                                       launch_.size, processes_->size()),
                           "is it the mpirun of the MPI that krigtune-bench was built with?");
  }

  std::optional<double> limit_gib(const workload::MemorySpec& memory) const {
    const bool set = options_.memory_limit_gib || memory.limit_gib || !engine_.memory_gib;
    return set ? options_.memory_limit_gib : engine_.memory_gib();
  }

  // Returns nothing if there is nothing to train; the result then has the ending.
  std::optional<plan::StepPlan> prepare() {
    try {
      if (const auto text = process_environment()("KRIGTUNE_BENCH_FAULT")) fault_ = fault_from(*text);
      if (const std::string lost = heartbeat_.lost(); !lost.empty()) {
        throw EnvironmentError(fmt::format("cannot write '{}': {}", options_.heartbeat.string(), lost),
                               "see --heartbeat");
      }
      if (launch_.rank == 0 && !options_.trace.empty()) plan::check_trace_file(options_.trace);
      const TrainingJob job = load_job(options_.config);
      check_trained(job);
      check_cluster(job.cluster, launch_);
      plan::StepPlan plan = plan::build_plan(job.workload, job.cluster, job.configuration);
      result_.planned = plan_job(job, plan, limit_gib(job.memory));
      if (result_.planned->missing_bytes() > 0) {
        result_.ending = out_of_memory(*result_.planned);
        return std::nullopt;
      }
      return plan;
    } catch (...) {
      result_.ending = ending_of_current_exception(nullptr);
      return std::nullopt;
    }
  }

  const BenchEngine& engine_;
  const BenchOptions& options_;
  const engine::Launch& launch_;
  const Clock& clock_;
  BenchResult& result_;
  Heartbeat heartbeat_;
  std::optional<Fault> fault_;
  std::unique_ptr<engine::Processes> processes_;
  bool alone_ = false;  ///< this process failed, and the others do not know why
};

BenchResult result_of(const BenchEngine& engine) {
  BenchResult result;
  result.program = engine.program;
  result.device = engine.device;
  return result;
}

// Returns the result of a run that begins. Throws UserError if KRIGTUNE_VECTOR_UNIT names a unit that the processor
// lacks.
BenchResult result_of(const BenchEngine& engine, const BenchOptions& options) {
  BenchResult result = result_of(engine);
  result.seed = options.seed;
  result.vector_unit = to_string(chosen_vector_unit());
  return result;
}

void say_ending(const BenchResult& result, std::ostream& err) {
  if (!result.ending.message.empty()) err << result.program << ": " << result.ending.message << "\n";
}

void report(BenchResult& result, bool json, std::ostream& out, std::ostream& err) {
  result.process_peak_bytes = process_peak_bytes();
  out << (json ? json_report(result) : text_report(result)) << std::flush;
  if (result.trained) {
    for (const std::string& note : result.trained->notes) err << result.program << ": " << note << "\n";
  }
  say_ending(result, err);
}

[[noreturn]] void end_hanging(const BenchEngine& engine, const BenchOptions& options, int rank,
                              engine::Processes* processes, const Beat& last, std::ostream& out, std::ostream& err) {
  BenchResult result = result_of(engine, options);
  result.ending = {
      BenchExit::kHang, "failed", "hang",
      fmt::format("no step has ended for {:g} s, in phase '{}' after step {}", options.hang_s, last.phase, last.step)};
  if (rank == 0) report(result, options.json, out, err);
  err << std::flush;
  if (processes != nullptr) processes->abort(BenchExit::kHang);
  std::_Exit(BenchExit::kHang);
}

int run_job(const BenchEngine& engine, const BenchOptions& options, const engine::Launch& launch, const Clock& clock,
            std::ostream& out, std::ostream& err) {
  BenchResult result = result_of(engine, options);
  BenchRun run(engine, options, launch, clock, result);
  run.run([&](engine::Processes* processes, const Beat& last) {
    end_hanging(engine, options, launch.rank, processes, last, out, err);
  });
  if (launch.rank == 0) {
    report(result, options.json, out, err);
    if (const std::string lost = run.lost_heartbeats(); !lost.empty() && result.ending.exit_code == 0) {
      err << fmt::format("{}: heartbeats are missing in '{}': {}\n", engine.program, options.heartbeat.string(), lost)
          << std::flush;
    }
  } else if (run.is_alone()) {
    err << fmt::format("{}: rank {}: {}\n", engine.program, launch.rank, result.ending.message) << std::flush;
  }
  run.end_all();
  return result.ending.exit_code;
}

// Every rank checks, so that all end with the same code. One of them prints the findings.
int check_as_rank(const BenchOptions& options, int rank, std::ostream& out) {
  std::ostream nowhere(nullptr);
  return check_config(options, rank == 0 ? out : nowhere);
}

}  // namespace

int run_bench(const BenchEngine& engine, const std::vector<std::string>& arguments, const Clock& clock,
              std::ostream& out, std::ostream& err) {
  BenchResult result = result_of(engine);
  // Also needed if the command line is invalid.
  bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  bool measures_rates = false;  // then the output is not a training result
  engine::Launch launch;
  try {
    const BenchOptions options = parse_options(arguments);
    json = options.json;
    measures_rates = options.measure_rates;
    if (options.help) return out << help_text(), 0;
    if (options.version) return out << engine.program << " " << KRIGTUNE_VERSION << "\n", 0;
    if (options.check) {
      launch = engine::launch_from(process_environment());
      return check_as_rank(options, launch.rank, out);
    }
    if (options.probe) return engine.probe(options.json, out);
    result = result_of(engine, options);
    if (options.measure_machine) return engine.measure_machine(options, clock, out);
    launch = engine::launch_from(process_environment());
    if (engine.rank_is_a_process && launch.kind == engine::Launch::Kind::kAlone) {
      if (const auto code = run_as_ranks(cluster_of(options), arguments, clock, err)) return *code;
    }
    result.ending = engine.begin(options, arguments);
    if (result.ending.exit_code == 0) {
      if (launch.rank == 0) say_ending(result, err);
      if (options.measure_rates) return run_rates(engine, options, launch, clock, out, err);
      return run_job(engine, options, launch, clock, out, err);
    }
  } catch (...) {
    result.ending = ending_of_current_exception(nullptr);
  }
  if (measures_rates) {
    say_ending(result, err);
  } else if (launch.rank == 0) {
    report(result, json, out, err);
  }
  return result.ending.exit_code;
}

}  // namespace krigtune::bench
