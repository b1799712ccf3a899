#include "programs/bench/rates_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/processor.h"
#include "programs/bench/local_launch.h"

namespace krigtune::bench {
namespace {

/// The machine of a process: its name, and a number that differs between machines that run at the same time.
struct MachineName {
  std::array<char, 256> host{};
  std::array<char, 64> boot{};

  friend bool operator==(const MachineName&, const MachineName&) = default;
};

template <std::size_t N>
void put_text(const std::string& text, std::array<char, N>& into) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), into.data());
}

MachineName this_machine_name() {
  constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";  // random(4)
  MachineName name;
  put_text(host_name(), name.host);
  std::error_code none;
  if (std::filesystem::exists(kBootId, none)) put_text(read_text(kBootId), name.boot);
  return name;
}

JobRanks by_machines(engine::Processes& processes) {
  const std::vector<MachineName> said = engine::all_say(processes.control(), this_machine_name());
  std::vector<MachineName> machines;
  JobRanks job;
  for (const MachineName& name : said) {
    const auto known = std::find(machines.begin(), machines.end(), name);
    job.nodes.push_back(static_cast<int>(known - machines.begin()));
    if (known != machines.end()) continue;
    machines.push_back(name);
    job.hosts.emplace_back(name.host.data());
  }
  return job;
}

// World rank r is on node r / gpus_per_node, as in plans.
JobRanks by_cluster(const workload::ClusterSpec& cluster, engine::Processes* processes) {
  JobRanks job;
  std::vector<MachineName> said(static_cast<std::size_t>(cluster.ranks()), this_machine_name());
  if (processes != nullptr) said = engine::all_say(processes->control(), this_machine_name());
  for (std::int64_t rank = 0; rank < cluster.ranks(); ++rank) {
    job.nodes.push_back(static_cast<int>(rank / cluster.gpus_per_node));
    if (rank % cluster.gpus_per_node == 0) job.hosts.emplace_back(said[static_cast<std::size_t>(rank)].host.data());
  }
  return job;
}

/// One process's part of the measurement.
class RatesRun {
 public:
  RatesRun(const BenchEngine& engine, const BenchOptions& options, const engine::Launch& launch, const Clock& clock)
      : engine_(engine), options_(options), launch_(launch), clock_(clock), heartbeat_(options.heartbeat, clock) {}

  BenchEnding run(const std::function<void(engine::Processes*, const Beat&)>& on_hang) {
    heartbeat_.beat("init", 0);
    const Watchdog watchdog(heartbeat_, options_.hang_s, clock_,
                            [&](const Beat& last) { on_hang(processes_.get(), last); });
    try {
      processes_ = engine::connect(launch_, clock_);
      measure();
      return {};
    } catch (...) {
      BenchEnding ending = ending_of_current_exception(processes_.get());
      if (processes_ && ending.exit_code != BenchExit::kCommunication) processes_->abort(ending.exit_code);
      return ending;
    }
  }

  const workload::MeasuredRates& rates() const { return rates_; }

 private:
  void measure() {
    const workload::ClusterSpec cluster = cluster_of(options_);
    const bool stated = !options_.config.empty();
    if (stated) check_cluster(cluster, launch_);
    const JobRanks job = job_ranks(cluster, stated, processes_.get());
    RankGroups groups(job, processes_.get(), clock_);
    const RankWorld world{job, groups, processes_.get(), clock_, cluster.emulated_network};
    const auto devices = engine_.rank_devices(world);
    std::int64_t step = 0;
    rates_ = measure_rates(world, devices, engine_.rate_sizes(),
                           [&](const std::string& what) { heartbeat_.beat(what, ++step); });
    rates_.version = KRIGTUNE_VERSION;
    rates_.device = engine_.device;
    const RankMachine machine = engine_.rank_machine(processes_.get(), job);
    rates_.processor = machine.processor;
    rates_.memory_bytes = machine.memory_bytes;
    rates_.taken_bytes = devices.front()->taken_bytes();
    rates_.started_by = launch_.kind == engine::Launch::Kind::kAlone ? "alone" : launch_.by;
    if (cluster.emulated_network) rates_.emulated_network = cluster.emulated_network->name;
  }

  const BenchEngine& engine_;
  const BenchOptions& options_;
  const engine::Launch& launch_;
  const Clock& clock_;
  Heartbeat heartbeat_;
  std::unique_ptr<engine::Processes> processes_;
  workload::MeasuredRates rates_;
};

}  // namespace

JobRanks job_ranks(const workload::ClusterSpec& cluster, bool cluster_is_stated, engine::Processes* processes) {
  return processes == nullptr || cluster_is_stated ? by_cluster(cluster, processes) : by_machines(*processes);
}

int run_rates(const BenchEngine& engine, const BenchOptions& options, const engine::Launch& launch, const Clock& clock,
              std::ostream& out, std::ostream& err) {
  RatesRun run(engine, options, launch, clock);
  const BenchEnding ending = run.run([&](engine::Processes* processes, const Beat& last) {
    err << fmt::format("{}: no progress for {:g} s while measuring {}\n", engine.program, options.hang_s, last.phase)
        << std::flush;
    if (processes != nullptr) processes->abort(BenchExit::kHang);
    std::_Exit(BenchExit::kHang);
  });
  if (ending.exit_code != 0) {
    err << fmt::format("{}: rank {}: {}\n", engine.program, launch.rank, ending.message) << std::flush;
  } else if (launch.rank == 0) {
    out << (options.json ? workload::to_json(run.rates()).dump(2) + "\n" : workload::rates_text(run.rates()))
        << std::flush;
  }
  return ending.exit_code;
}

}  // namespace krigtune::bench
