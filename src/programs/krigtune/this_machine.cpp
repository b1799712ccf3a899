#include "programs/krigtune/this_machine.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "engine/gpu_probe.h"
#include "machine/hardware_file.h"
#include "run/run_directory.h"
#include "runner/local_machine.h"
#include "runner/replay.h"
#include "workload/hardware_tables.h"
#include "workload/rates_cache.h"

namespace krigtune::cli {
namespace {

bool runs_on_gpus(const Context& context, const workload::ClusterSpec& cluster, const engine::GpuProbe& probe) {
  return engine::no_cuda_reason(runner::find_bench(context.console.program)).empty() &&
         probe.gpus >= (cluster.emulated_network ? 1 : cluster.gpus_per_node);
}

// Returns the rates of these GPUs that krigtune doctor --measure kept: of as many as the job has ranks, or of all.
std::optional<workload::KeptRates> kept_rates_of(const workload::ClusterSpec& cluster, const engine::GpuProbe& probe) {
  workload::GpuKey key{probe.name, workload::driver_version(probe.driver_version), cluster.ranks()};
  if (auto kept = workload::kept_rates(cache_directory(), key)) return kept;
  key.ranks = probe.gpus;
  return workload::kept_rates(cache_directory(), key);
}

// Returns these GPUs with the rates of the table and of the session's "hardware"; nothing if the table lacks them.
std::optional<workload::ClusterSpec> stated_gpus(const workload::ClusterSpec& cluster, const engine::GpuProbe& probe) {
  const std::optional<std::string> id = workload::device_id_of(probe.name, Bytes{probe.memory_bytes});
  if (!id) return std::nullopt;
  Json machine = {{"gpus_per_node", cluster.gpus_per_node}, {"gpu", *id}};
  if (Json own = workload::own_hardware(cluster); !own.is_null()) machine["hardware"] = std::move(own);
  return workload::read_cluster(machine, "this machine", "");
}

// Returns the GPUs of the table with the rates that were measured.
workload::ClusterSpec measured_gpus(const workload::MeasuredRates& rates,
                                    const std::optional<workload::ClusterSpec>& stated,
                                    const session::Session& session) {
  const machine::MeasuredHardware fitted = machine::fit_hardware(rates, stated, session.workload->precision);
  workload::ClusterSpec cluster;
  if (stated) cluster = *stated;
  cluster.device = fitted.device;
  if (fitted.intra) {
    const workload::NetworkLevel level = fitted.intra->link.level();
    cluster.network = workload::NodeNetwork{level, level, session.cluster.gpus_per_node};
  } else if (!cluster.network) {
    const workload::NetworkLevel none{"measured-node", workload::Hop::kPci, 0.0, fitted.device.host_bytes_per_s};
    cluster.network = workload::NodeNetwork{none, none, session.cluster.gpus_per_node};
  }
  return cluster;
}

// Uses what the run was begun with, because its proposals follow from that. Returns false if it recorded nothing.
bool recall_gpus(const std::filesystem::path& run_directory, session::Session& session) {
  const std::optional<run::RecordedGpus> recorded = run::recorded_gpus(run_directory);
  if (!recorded) return false;
  session.cluster.device = recorded->cluster.device;
  session.cluster.network = recorded->cluster.network;
  if (!session.memory.limit_gib && recorded->usable_per_rank) session.usable_per_rank = recorded->usable_per_rank;
  return true;
}

// `begun`: the run was begun by a version that recorded nothing and knew no measured rates.
void know_gpus(const Context& context, const engine::GpuProbe& probe, bool begun, session::Session& session) {
  workload::ClusterSpec& cluster = session.cluster;
  const std::optional<workload::KeptRates> kept = begun ? std::nullopt : kept_rates_of(cluster, probe);
  if (!session.memory.limit_gib && probe.memory_bytes > 0) {
    session.usable_per_rank = Bytes{engine::memory_for_plans(probe.memory_bytes, kept ? kept->rates.taken_bytes : 0)};
  }
  std::optional<workload::ClusterSpec> known = stated_gpus(cluster, probe);
  if (kept) {
    known = measured_gpus(kept->rates, known, session);
    context.log.progress(fmt::format(
        "step times are predicted with the rates that krigtune doctor --measure found at {}", kept->measured_at));
  }
  if (!known) {
    context.log.warning(
        fmt::format("no step times are predicted: the table has no GPU '{}'; krigtune doctor --measure "
                    "measures it",
                    probe.name));
    return;
  }
  cluster.device = known->device;
  cluster.network = known->network;
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
      session.workload && runner::traits_of(session.runner).trains_our_step && session.cluster.is_local();
  if (!is_wanted || session.cluster.measured) return;
  const bool begun = !run_directory.empty() && std::filesystem::exists(run::session_path(run_directory));
  if (const engine::GpuProbe probe = engine::probe_gpus(); runs_on_gpus(context, session.cluster, probe)) {
    if (!begun || !recall_gpus(run_directory, session)) know_gpus(context, probe, begun, session);
    return;
  }
  if (begun) {
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
