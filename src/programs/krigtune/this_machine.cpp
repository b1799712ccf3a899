#include "programs/krigtune/this_machine.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "engine/gpu_probe.h"
#include "run/run_directory.h"
#include "runner/local_machine.h"
#include "runner/replay.h"
#include "workload/hardware_tables.h"

namespace krigtune::cli {
namespace {

bool runs_on_gpus(const workload::ClusterSpec& cluster, const engine::GpuProbe& probe) {
  return engine::no_cuda_reason().empty() && probe.gpus >= (cluster.emulated_network ? 1 : cluster.gpus_per_node);
}

// Uses the rates in the table and in the session's "hardware": only krigtune doctor --measure measures those of GPUs.
void know_gpus(const Context& context, const engine::GpuProbe& probe, session::Session& session) {
  workload::ClusterSpec& cluster = session.cluster;
  if (!session.memory.limit_gib && probe.memory_bytes > 0) {
    const double for_plans = engine::kMemoryForPlans * static_cast<double>(probe.memory_bytes);
    session.usable_per_rank = Bytes{static_cast<std::int64_t>(for_plans)};
  }
  const std::optional<std::string> id = workload::device_id_of(probe.name, Bytes{probe.memory_bytes});
  if (!id) {
    context.log.warning(fmt::format("no step times are predicted: the table has no GPU '{}'", probe.name));
    return;
  }
  Json machine = {{"gpus_per_node", cluster.gpus_per_node}, {"gpu", *id}};
  if (Json own = workload::own_hardware(cluster); !own.is_null()) machine["hardware"] = std::move(own);
  const workload::ClusterSpec named = workload::read_cluster(machine, "this machine", "");
  cluster.device = named.device;
  cluster.network = named.network;
}

// Uses the CPU ranks of the session's "hardware". Returns false, with a warning, if it has no measurement for this job.
bool is_in_hardware(const Context& context, session::Session& session) {
  workload::ClusterSpec& cluster = session.cluster;
  if (!cluster.hardware) return false;
  const workload::Precision precision = session.workload->precision;
  if (const workload::MeasuredMachine* machine = cluster.hardware->measured(cluster.ranks(), precision)) {
    cluster.measured = *machine;
    return true;
  }
  if (cluster.hardware->local.empty()) return false;
  context.log.warning(
      fmt::format("\"hardware\" was not measured for {} CPU ranks in {}: this machine is measured now; "
                  "krigtune doctor --measure --session {} writes it for this session",
                  cluster.ranks(), workload::to_string(precision), session.file.string()));
  return false;
}

}  // namespace

void know_this_machine(const Context& context, session::Session& session, const std::filesystem::path& run_directory) {
  const bool is_wanted =
      session.workload && runner::is<runner::BenchSpec>(session.runner) && session.cluster.is_local();
  if (!is_wanted || session.cluster.measured) return;
  if (const engine::GpuProbe probe = engine::probe_gpus(); runs_on_gpus(session.cluster, probe)) {
    return know_gpus(context, probe, session);
  }
  if (!run_directory.empty() && std::filesystem::exists(run::session_path(run_directory))) {
    session.cluster.measured = run::recorded_machine(run_directory);
    return;
  }
  if (is_in_hardware(context, session)) return;
  const std::filesystem::path bench = runner::find_bench(context.console.program);
  if (bench.empty()) return;
  runner::LocalMachineOptions options;
  options.bench = bench;
  options.cache = cache_directory();
  options.say = [&log = context.log](const std::string& text) { log.progress(text); };
  try {
    session.cluster.measured =
        runner::local_machine(session.cluster.ranks(), session.workload->precision, options, context.console.clock);
  } catch (const EnvironmentError& error) {
    context.log.warning(error.what());
  }
}

}  // namespace krigtune::cli
