#include <fmt/format.h>

#include "bench/bench_result.h"

namespace krigtune {
namespace {

constexpr double kGiga = 1e9;  // as in nccl-tests: GB = 1e9 bytes
constexpr double kMilli = 1e3;
constexpr double kMicro = 1e6;

std::string header(const PlannedJob& planned) {
  const ModelSpec& model = planned.job.workload.model;
  const ClusterSpec& cluster = planned.job.cluster;
  std::string text =
      fmt::format("# krigtune-bench {}: {} CPU ranks, threads of one process\n", KRIGTUNE_VERSION, cluster.ranks());
  text += fmt::format("# model: {} layers, hidden {}, {} heads, vocabulary {}, {} tokens a sequence, {} parameters\n",
                      model.layers, model.hidden, model.heads, model.vocab, model.seq_len, parameter_count(model));
  text += fmt::format("# configuration: {}\n", planned.job.configuration.text());
  text += fmt::format("# batch: {} sequences a step\n", planned.samples);
  if (cluster.emulated_network && cluster.emulated_network->nodes) {
    text += fmt::format("# network: EMULATED '{}', rings over {} nodes of {} ranks\n", cluster.emulated_network->name,
                        cluster.nodes, cluster.gpus_per_node);
  } else if (cluster.emulated_network) {
    text += fmt::format("# network: EMULATED '{}', {:g} us + bytes / ({:g} GB/s) a collective\n",
                        cluster.emulated_network->name, cluster.emulated_network->latency_s * kMicro,
                        cluster.emulated_network->bytes_per_s / kGiga);
  } else {
    text += "# network: the memory of this machine\n";
  }
  return text;
}

std::string memory(const PlannedJob& planned) {
  std::string text =
      fmt::format("#\n# memory of a rank: {} planned of {} allowed, most of it in use in {}\n",
                  to_string(Bytes{planned.memory.peak_bytes}), to_string(planned.limit), planned.memory.peak_at);
  text += fmt::format("# {:<24}{:>16}\n", "term", "bytes");
  for (int term = 0; term < kTermCount; ++term) {
    const std::int64_t bytes = planned.memory.term_bytes[static_cast<std::size_t>(term)];
    if (bytes > 0) text += fmt::format("  {:<24}{:>16}\n", to_string(static_cast<Term>(term)), bytes);
  }
  text += fmt::format("  {:<24}{:>16}\n", "between buffers", planned.memory.fragmentation_bytes);
  text += fmt::format("  {:<24}{:>16}\n", "planned peak", planned.memory.peak_bytes);
  return text;
}

std::string collectives(const PlannedJob& planned) {
  std::string text = fmt::format("#\n# {:<18}{:>8}{:>16}{:>16}{:>14}{:>14}\n", "collectives a step", "count",
                                 "size (B)", "sent (B)", "time (us)", "busbw (GB/s)");
  for (const CollectiveUse& use : planned.collectives) {
    text += fmt::format("  {:<18}{:>8}{:>16}{:>16}{:>14.1f}{:>14.3f}\n", use.name, use.count, use.bytes, use.wire_bytes,
                        use.time_s * kMicro, use.bus_bytes_per_s() / kGiga);
  }
  return text;
}

std::string speed(const BenchResult& result) {
  const TrainedJob& trained = *result.trained;
  const Measurement& m = trained.measurement;
  const bool emulated = result.planned->job.cluster.emulated_network.has_value();
  std::string text = fmt::format("#\n# {} steps, {} of them measured{}\n", m.steps, m.measured_steps,
                                 emulated ? ", over an emulated network" : "");
  text += fmt::format("  step time (ms)    median {:.3f}, 95 % interval {:.3f} to {:.3f}, p10 {:.3f}, p90 {:.3f}\n",
                      m.step_time_s * kMilli, m.step_time_interval_s.low * kMilli, m.step_time_interval_s.high * kMilli,
                      m.step_time_p10_s * kMilli, m.step_time_p90_s * kMilli);
  text += fmt::format("  exposed comm (ms) {:.3f}\n", m.exposed_comm_s * kMilli);
  text += fmt::format("  samples/s         {:.3f}\n", result.samples_per_s());
  text += fmt::format("  tokens/s          {:.1f}\n", result.tokens_per_s());
  text += fmt::format("  GFLOP/s a rank    {:.3f}\n", result.flops_per_s() / kGiga);
  text += fmt::format("  loss              {:.4f} at first, {:.4f} at last\n", m.loss_first, m.loss_last);
  text += fmt::format("  memory (B)        arena {}, whole process {}\n", trained.arena_peak_bytes,
                      result.process_peak_bytes);
  text += fmt::format("  parameters        fnv1a64 {}\n", trained.parameters_fnv1a64);
  return text;
}

}  // namespace

std::string text_report(const BenchResult& result) {
  if (!result.planned) return "";
  std::string text = header(*result.planned) + memory(*result.planned) + collectives(*result.planned);
  if (result.measured()) text += speed(result);
  return text;
}

}  // namespace krigtune
