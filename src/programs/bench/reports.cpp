#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/json.h"
#include "core/processor.h"
#include "core/text.h"
#include "plan/op_traits.h"
#include "programs/bench/bench_result.h"

namespace krigtune::bench {
namespace {

constexpr int kSchemaVersion = 1;
constexpr std::array kOfTheSpeed = {"step_time_s",
                                    "step_time_sem_s",
                                    "step_time_low_s",
                                    "step_time_high_s",
                                    "step_time_p10_s",
                                    "step_time_p90_s",
                                    "step_time_mean_s",
                                    "step_time_mad_s",
                                    "autocorrelation_time",
                                    "outliers",
                                    "drift_per_step_s",
                                    "drift_per_minute",
                                    "steps",
                                    "measured_steps",
                                    "steady",
                                    "stopped",
                                    "samples_per_s",
                                    "tokens_per_s",
                                    "flops_per_s",
                                    "palm_flops_per_s",
                                    "hardware_flops_per_s",
                                    "exposed_comm_s",
                                    "communication_s",
                                    "overlap_fraction",
                                    "step_time_without_communication_s",
                                    "exposed_comm_difference_s",
                                    "contention_s",
                                    "median_rank_kernels_s",
                                    "slowest_rank_kernels_s",
                                    "breakdown",
                                    "loss_first",
                                    "loss_last"};

Json json_header(const BenchResult& result) {
  const BenchEnding& ending = result.ending;
  Json json = {{"schema_version", kSchemaVersion},
               {"program", result.program},
               {"version", KRIGTUNE_VERSION},
               {"host", host_name()},
               {"seed", result.seed},
               {"status", ending.status},
               {"reason", ending.reason}};
  json["message"] = ending.message.empty() ? Json(nullptr) : Json(ending.message);
  return json;
}

void add_spread(const Measurement& m, Json& json) {
  json["step_time_s"] = m.step_time_s;
  json["step_time_sem_s"] = m.step_time_sem_s;
  json["step_time_low_s"] = m.step_time_interval_s.low;
  json["step_time_high_s"] = m.step_time_interval_s.high;
  json["step_time_p10_s"] = m.step_time_p10_s;
  json["step_time_p90_s"] = m.step_time_p90_s;
  json["step_time_mean_s"] = m.step_time_mean_s;
  json["step_time_mad_s"] = m.step_time_mad_s;
  json["autocorrelation_time"] = m.autocorrelation_time;
  json["outliers"] = m.outliers;
  json["drift_per_step_s"] = m.drift_per_step_s;
  json["drift_per_minute"] = m.drift_per_minute;
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

void add_communication(const BenchResult& result, Json& json) {
  const Measurement& m = result.trained->measurement;
  json["exposed_comm_s"] = m.exposed_comm_s;
  json["communication_s"] = m.breakdown.communication_s();
  json["overlap_fraction"] = m.breakdown.overlap_fraction();
  json["step_time_without_communication_s"] = optional_json(result.trained->silent_step_time_s);
  const std::optional<double> difference_s = result.exposed_by_difference_s();
  json["exposed_comm_difference_s"] = optional_json(difference_s);
  json["contention_s"] = difference_s ? Json(*difference_s - m.exposed_comm_s) : Json(nullptr);
}

Json breakdown_json(const plan::StepBreakdown& breakdown) {
  Json json;
  for (int p = 0; p < schedule::kPhaseCount; ++p) {
    json[std::string(schedule::to_string(static_cast<schedule::Phase>(p))) + "_s"] =
        breakdown.compute_s[static_cast<std::size_t>(p)];
  }
  for (int a = 0; a < plan::kActivityCount; ++a) {
    json[std::string(plan::to_string(static_cast<plan::Activity>(a))) + "_exposed_s"] =
        breakdown.activities[static_cast<std::size_t>(a)].exposed_s;
  }
  json["waiting_s"] = breakdown.waiting_s;
  json["idle_s"] = breakdown.idle_s;
  json["span_s"] = breakdown.span_s;
  return json;
}

void add_speed(const BenchResult& result, Json& json) {
  for (const char* field : kOfTheSpeed) json[field] = nullptr;
  if (!result.trained) return;
  const Measurement& m = result.trained->measurement;
  json["steps"] = m.steps;
  json["measured_steps"] = m.measured_steps;
  json["steady"] = m.steady;
  json["stopped"] = to_string(m.stopped);
  json["loss_first"] = m.loss_first;  // null if not finite
  json["loss_last"] = m.loss_last;
  if (!result.measured()) return;
  add_spread(m, json);
  json["samples_per_s"] = result.samples_per_s();
  json["tokens_per_s"] = result.tokens_per_s();
  json["flops_per_s"] = result.flops_per_s();
  json["palm_flops_per_s"] = result.palm_flops_per_s();
  json["hardware_flops_per_s"] = result.hardware_flops_per_s();
  add_communication(result, json);
  json["median_rank_kernels_s"] = m.median_rank_kernels_s;
  json["slowest_rank_kernels_s"] = m.slowest_rank_kernels_s;
  json["breakdown"] = breakdown_json(m.breakdown);
}

Json terms_json(const plan::PlaceReport& place) {
  Json terms;
  for (int term = 0; term < schedule::kTermCount; ++term) {
    terms[schedule::to_string(static_cast<schedule::Term>(term))] = place.term_bytes[static_cast<std::size_t>(term)];
  }
  return terms;
}

Json memory_json(const PlannedJob& planned) {
  return {{"limit_bytes", planned.limit.count},
          {"missing_bytes", planned.missing_bytes()},
          {"terms", terms_json(planned.memory)},
          {"fragmentation_bytes", planned.memory.fragmentation_bytes},
          {"peak_at", planned.memory.peak_at},
          {"host_terms", terms_json(planned.memory.host)},
          {"host_fragmentation_bytes", planned.memory.host.fragmentation_bytes}};
}

Json gpu_json(const GpuUse& gpu) {
  return {{"name", gpu.name.empty() ? Json(nullptr) : Json(gpu.name)},
          {"sm_clock_mhz_median", optional_json(gpu.sm_clock_mhz_median)},
          {"sm_clock_mhz_min", optional_json(gpu.sm_clock_mhz_min)},
          {"power_w_mean", optional_json(gpu.power_w_mean)},
          {"temperature_c_max", optional_json(gpu.temperature_c_max)},
          {"throttle_reasons", gpu.throttle_reasons ? Json(*gpu.throttle_reasons) : Json(nullptr)}};
}

Json gpu_memory_json(const engine::GpuMemoryUse& use) {
  return {{"total_bytes", use.total_bytes},
          {"context_bytes", use.context_bytes},
          {"communicators_bytes", use.communicators_bytes},
          {"rest_bytes", use.rest_bytes},
          {"beside_arena_bytes", use.beside_arena_bytes()}};
}

Json pacing_json(const std::vector<engine::PacedCollective>& pacing) {
  Json rows = Json::array();
  for (const engine::PacedCollective& one : pacing) {
    rows.push_back({{"collective", plan::to_string(one.kind)},
                    {"wire_bytes", one.wire_bytes},
                    {"stated_s", one.stated_s},
                    {"copies_s", one.copies_s},
                    {"held_s", one.held_s}});
  }
  return rows;
}

Json network_json(const workload::ClusterSpec& cluster) {
  if (!cluster.emulated_network) return nullptr;
  constexpr double kMicroseconds = 1e6;
  return {{"name", cluster.emulated_network->name},
          {"latency_us", json_number(cluster.emulated_network->latency_s * kMicroseconds)},
          {"bytes_per_s", json_number(cluster.emulated_network->bytes_per_s)},
          {"pacing", nullptr}};
}

// Collectives are in "collectives", copies and host work beside them.
void add_activities(const BenchResult& result, Json& json) {
  for (int i = 0; i < plan::kActivityCount; ++i) {
    const auto activity = static_cast<plan::Activity>(i);
    const auto a = static_cast<std::size_t>(i);
    const ActivityUse& use = result.planned->uses[a];
    const double time_s = result.measured() ? result.trained->measurement.breakdown.activities[a].time_s : 0.0;
    Json row = {{"count", use.count}, {"bytes", use.bytes}, {"time_s", time_s}};
    if (i >= plan::kCollectiveKinds) {
      json[plan::to_string(activity)] = row;
      continue;
    }
    row["bus_bytes_per_s"] = result.bus_bytes_per_s(activity);
    json["collectives"][plan::to_string(activity)] = row;
  }
}

void add_plan(const BenchResult& result, Json& json) {
  for (const char* field : {"planned_peak_bytes", "planned_host_bytes", "wire_bytes", "memory", "collectives", "copies",
                            "host_work", "ranks", "emulated_network", "configuration"}) {
    json[field] = nullptr;
  }
  if (!result.planned) return;
  const PlannedJob& planned = *result.planned;
  json["planned_peak_bytes"] = planned.memory.peak_bytes;
  json["planned_host_bytes"] = planned.memory.host.peak_bytes;
  const plan::WireBytes& wire = planned.wire;
  json["wire_bytes"] = {
      {"all_reduce", wire.all_reduce}, {"reduce_scatter", wire.reduce_scatter}, {"all_gather", wire.all_gather}};
  add_activities(result, json);
  json["memory"] = memory_json(planned);
  json["ranks"] = planned.job.cluster.ranks();
  json["emulated_network"] = network_json(planned.job.cluster);
  json["configuration"] = space::to_json(planned.job.configuration);
}

}  // namespace

std::string json_report(const BenchResult& result) {
  Json json = json_header(result);
  json["device"] = result.device;
  json["vector_unit"] = result.vector_unit.empty() ? Json(nullptr) : Json(result.vector_unit);
  add_speed(result, json);
  add_plan(result, json);
  json["arena_peak_bytes"] = nullptr;
  json["host_arena_peak_bytes"] = nullptr;
  json["parameters_fnv1a64"] = nullptr;
  json["gpu"] = nullptr;
  json["gpu_memory"] = nullptr;
  json["notes"] = Json::array();
  if (result.trained) {
    if (result.trained->gpu_memory) json["gpu_memory"] = gpu_memory_json(*result.trained->gpu_memory);
    json["notes"] = result.trained->notes;
    if (!result.trained->pacing.empty()) json["emulated_network"]["pacing"] = pacing_json(result.trained->pacing);
    json["arena_peak_bytes"] = result.trained->arena_peak_bytes;
    json["host_arena_peak_bytes"] = result.trained->host_arena_peak_bytes;
    if (!result.trained->parameters_fnv1a64.empty()) json["parameters_fnv1a64"] = result.trained->parameters_fnv1a64;
    if (result.trained->gpu) json["gpu"] = gpu_json(*result.trained->gpu);
  }
  json["process_peak_bytes"] = result.process_peak_bytes;
  return json.dump(2) + "\n";
}

namespace {

constexpr double kGiga = 1e9;  // as in nccl-tests: GB = 1e9 bytes
constexpr double kMilli = 1e3;
constexpr double kMicro = 1e6;
constexpr double kPercent = 100.0;

std::string text_header(const BenchResult& result) {
  const PlannedJob& planned = *result.planned;
  const workload::ModelSpec& model = planned.job.workload.model;
  const workload::ClusterSpec& cluster = planned.job.cluster;
  const bool cpu = std::string_view(result.device) == "cpu";
  std::string text = fmt::format("# {} {}: {}\n", result.program, KRIGTUNE_VERSION,
                                 counted(cluster.ranks(), cpu ? "CPU rank" : "GPU rank"));
  text += fmt::format("# model: {}, hidden {}, {}, vocabulary {}, {} tokens a sequence, {} parameters\n",
                      counted(model.layers, "layer"), model.hidden, counted(model.heads, "head"), model.vocab,
                      model.seq_len, workload::parameter_count(model));
  text += fmt::format("# configuration: {}\n", planned.job.configuration.text());
  text += fmt::format("# batch: {} a step\n", counted(planned.samples, "sequence"));
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

std::string terms(const plan::PlaceReport& place) {
  std::string text = fmt::format("# {:<24}{:>16}{:>10}\n", "term", "bytes", "of peak");
  const auto row = [&](const char* name, std::int64_t bytes) {
    const double part = static_cast<double>(bytes) / static_cast<double>(place.peak_bytes);
    text += fmt::format("  {:<24}{:>16}{:>8.1f} %\n", name, bytes, part * kPercent);
  };
  for (int term = 0; term < schedule::kTermCount; ++term) {
    const std::int64_t bytes = place.term_bytes[static_cast<std::size_t>(term)];
    if (bytes > 0) row(schedule::to_string(static_cast<schedule::Term>(term)), bytes);
  }
  row("between buffers", place.fragmentation_bytes);
  row("planned peak", place.peak_bytes);
  return text;
}

std::string memory(const PlannedJob& planned) {
  std::string text =
      fmt::format("#\n# memory of a rank: {} planned of {} allowed; the peak is in {}\n",
                  to_string(Bytes{planned.memory.peak_bytes}), to_string(planned.limit), planned.memory.peak_at);
  text += terms(planned.memory);
  if (planned.memory.host.peak_bytes > 0) {
    text += fmt::format("#\n# offloaded to the host: {} planned a rank\n",
                        to_string(Bytes{planned.memory.host.peak_bytes}));
    text += terms(planned.memory.host);
  }
  return text;
}

std::string activities(const BenchResult& result) {
  std::string text = fmt::format("#\n# {:<18}{:>8}{:>14}{:>14}{:>12}{:>14}{:>14}\n", "a step of rank 0", "count",
                                 "size (B)", "sent (B)", "time (us)", "exposed (us)", "busbw (GB/s)");
  for (int i = 0; i < plan::kActivityCount; ++i) {
    const auto a = static_cast<std::size_t>(i);
    const ActivityUse& use = result.planned->uses[a];
    if (i >= plan::kCollectiveKinds && use.count == 0) continue;
    const auto activity = static_cast<plan::Activity>(i);
    const plan::ActivityTime time =
        result.measured() ? result.trained->measurement.breakdown.activities[a] : plan::ActivityTime{};
    text += fmt::format("  {:<18}{:>8}{:>14}{:>14}{:>12.1f}{:>14.1f}", plan::to_string(activity), use.count, use.bytes,
                        use.wire_bytes, time.time_s * kMicro, time.exposed_s * kMicro);
    text += i < plan::kCollectiveKinds ? fmt::format("{:>14.3f}\n", result.bus_bytes_per_s(activity) / kGiga) : "\n";
  }
  return text;
}

// Lists the phases, the waits in each of them, and their sum.
std::string where_it_went(const BenchResult& result) {
  const plan::StepBreakdown& breakdown = result.trained->measurement.breakdown;
  std::string text = fmt::format("#\n# {:<32}{:>12}{:>10}{:>12}\n", "where the step of rank 0 went", "time (ms)",
                                 "of step", "GFLOP/s");
  const auto row = [&](const std::string& name, double time_s, double flops) {
    if (time_s <= 0.0) return;
    text += fmt::format("  {:<32}{:>12.3f}{:>8.1f} %", name, time_s * kMilli, time_s / breakdown.span_s * kPercent);
    text += flops > 0.0 ? fmt::format("{:>12.2f}\n", flops / time_s / kGiga) : "\n";
  };
  for (int p = 0; p < schedule::kPhaseCount; ++p) {
    const auto phase = static_cast<std::size_t>(p);
    row(schedule::to_string(static_cast<schedule::Phase>(p)), breakdown.compute_s[phase],
        result.planned->product_flops[phase]);
  }
  for (int a = 0; a < plan::kActivityCount; ++a) {
    row(std::string(plan::to_string(static_cast<plan::Activity>(a))) + ", exposed",
        breakdown.activities[static_cast<std::size_t>(a)].exposed_s, 0.0);
  }
  row("waiting for other ranks", breakdown.waiting_s, 0.0);
  row("idle", breakdown.idle_s, 0.0);
  row("the step", breakdown.span_s, 0.0);
  return text;
}

const char* why(const Measurement& m) {
  switch (m.stopped) {
    case Stopped::kPrecise:
      return "ended when the median was known well enough";
    case Stopped::kNoLongerShrinks:
      return "ended because the interval no longer shrank: step times drift";
    case Stopped::kTimeIsOver:
      return "ended by the time limit";
    case Stopped::kStepsAreDone:
    case Stopped::kDiverged:
      return "as many as requested";
  }
  return "";
}

std::string step_times(const Measurement& m) {
  std::string text =
      fmt::format("  step time (ms)    median {:.3f}, 95 % interval {:.3f} to {:.3f} (+- {:.2f} %)\n",
                  m.step_time_s * kMilli, m.step_time_interval_s.low * kMilli, m.step_time_interval_s.high * kMilli,
                  (m.step_time_interval_s.high - m.step_time_interval_s.low) / 2.0 / m.step_time_s * kPercent);
  text +=
      fmt::format("                    mean {:.3f}, p10 {:.3f}, p90 {:.3f}, MAD {:.3f}\n", m.step_time_mean_s * kMilli,
                  m.step_time_p10_s * kMilli, m.step_time_p90_s * kMilli, m.step_time_mad_s * kMilli);
  const auto steps = static_cast<double>(m.measured_steps);
  text +=
      fmt::format("                    {} outliers, drift {:+.2f} % over these steps, worth {:.1f} independent ones\n",
                  m.outliers, m.drift_per_step_s * steps / m.step_time_s * kPercent, steps / m.autocorrelation_time);
  return text;
}

std::string communication(const BenchResult& result) {
  const Measurement& m = result.trained->measurement;
  std::string text = fmt::format(
      "  exposed comm (ms) {:.3f}, with waiting for others, the largest of all ranks; {:.1f} % of rank 0's {:.3f} "
      "hidden\n",
      m.exposed_comm_s * kMilli, m.breakdown.overlap_fraction() * kPercent, m.breakdown.communication_s() * kMilli);
  if (const auto difference_s = result.exposed_by_difference_s()) {
    text += fmt::format("                    {:.3f} by difference to {:.3f} without communication; contention {:.3f}\n",
                        *difference_s * kMilli, *result.trained->silent_step_time_s * kMilli,
                        (*difference_s - m.exposed_comm_s) * kMilli);
  }
  return text;
}

std::string gpu_line(const GpuUse& gpu) {
  std::vector<std::string> parts;
  if (gpu.sm_clock_mhz_median && gpu.sm_clock_mhz_min) {
    parts.push_back(fmt::format("SM clock {:.0f} MHz (least {:.0f})", *gpu.sm_clock_mhz_median, *gpu.sm_clock_mhz_min));
  }
  if (gpu.power_w_mean) parts.push_back(fmt::format("{:.0f} W", *gpu.power_w_mean));
  if (gpu.temperature_c_max) parts.push_back(fmt::format("{:.0f} C at most", *gpu.temperature_c_max));
  if (gpu.throttle_reasons && !gpu.throttle_reasons->empty()) {
    parts.push_back(fmt::format("slowed by {}", fmt::join(*gpu.throttle_reasons, ", ")));
  }
  return fmt::format("  GPU of rank 0     {}: {}\n", gpu.name.empty() ? "unnamed" : gpu.name,
                     parts.empty() ? "nothing could be read" : fmt::format("{}", fmt::join(parts, ", ")));
}

std::string gpu_memory_line(const engine::GpuMemoryUse& use) {
  return fmt::format("  GPU memory (B)    {} beside the arena: context {}, communicators {}, the rest {}; of {}\n",
                     use.beside_arena_bytes(), use.context_bytes, use.communicators_bytes, use.rest_bytes,
                     use.total_bytes);
}

std::string pacing_lines(const std::vector<engine::PacedCollective>& pacing) {
  std::string text;
  for (const engine::PacedCollective& one : pacing) {
    text += fmt::format("  pacing            {} that sends {}: {:.1f} us, stated {:.1f}, copies alone {:.1f}\n",
                        plan::to_string(one.kind), to_string(Bytes{one.wire_bytes}), one.held_s * kMicro,
                        one.stated_s * kMicro, one.copies_s * kMicro);
  }
  return text;
}

std::string speed(const BenchResult& result) {
  const TrainedJob& trained = *result.trained;
  const Measurement& m = trained.measurement;
  const bool emulated = result.planned->job.cluster.emulated_network.has_value();
  std::string text = fmt::format("#\n# {} steps, {} of them measured{}: {}\n", m.steps, m.measured_steps,
                                 emulated ? ", over an emulated network" : "", why(m));
  text += step_times(m) + communication(result);
  text += fmt::format("  samples/s         {:.3f}\n", result.samples_per_s());
  text += fmt::format("  tokens/s          {:.1f}\n", result.tokens_per_s());
  text += fmt::format(
      "  GFLOP/s a rank    {:.3f} of the model (causal), {:.3f} as PaLM counts, {:.3f} of the hardware\n",
      result.flops_per_s() / kGiga, result.palm_flops_per_s() / kGiga, result.hardware_flops_per_s() / kGiga);
  text += fmt::format("  loss              {:.4f} first, {:.4f} last\n", m.loss_first, m.loss_last);
  text += fmt::format("  memory (B)        arena {}, host arena {}, whole process {}\n", trained.arena_peak_bytes,
                      trained.host_arena_peak_bytes, result.process_peak_bytes);
  if (trained.gpu) text += gpu_line(*trained.gpu);
  if (trained.gpu_memory) text += gpu_memory_line(*trained.gpu_memory);
  text += pacing_lines(trained.pacing);
  if (!trained.parameters_fnv1a64.empty()) {
    text += fmt::format("  parameters        fnv1a64 {}\n", trained.parameters_fnv1a64);
  }
  return text;
}

}  // namespace

std::string text_report(const BenchResult& result) {
  if (!result.planned) return "";
  std::string text = text_header(result) + memory(*result.planned);
  text += activities(result);
  if (result.measured()) text += where_it_went(result) + speed(result);
  return text;
}

}  // namespace krigtune::bench
