#include <array>

#include "bench/bench_result.h"
#include "krigtune/core/json.h"
#include "krigtune/core/processor.h"

namespace krigtune {
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

Json breakdown_json(const StepBreakdown& breakdown) {
  Json json;
  for (int p = 0; p < kPhaseCount; ++p) {
    json[std::string(to_string(static_cast<Phase>(p))) + "_s"] = breakdown.compute_s[static_cast<std::size_t>(p)];
  }
  for (int a = 0; a < kActivityCount; ++a) {
    json[std::string(to_string(static_cast<Activity>(a))) + "_exposed_s"] =
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
  json["loss_first"] = m.loss_first;  // null where it is no number
  json["loss_last"] = m.loss_last;
  if (!result.measured()) return;
  add_spread(m, json);
  json["samples_per_s"] = result.samples_per_s();
  json["tokens_per_s"] = result.tokens_per_s();
  json["flops_per_s"] = result.flops_per_s();
  json["palm_flops_per_s"] = result.palm_flops_per_s();
  json["hardware_flops_per_s"] = result.hardware_flops_per_s();
  add_communication(result, json);
  json["breakdown"] = breakdown_json(m.breakdown);
}

Json terms_json(const PlaceReport& place) {
  Json terms;
  for (int term = 0; term < kTermCount; ++term) {
    terms[to_string(static_cast<Term>(term))] = place.term_bytes[static_cast<std::size_t>(term)];
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

Json network_json(const ClusterSpec& cluster) {
  if (!cluster.emulated_network) return nullptr;
  constexpr double kMicroseconds = 1e6;
  return {{"name", cluster.emulated_network->name},
          {"latency_us", json_number(cluster.emulated_network->latency_s * kMicroseconds)},
          {"bytes_per_s", json_number(cluster.emulated_network->bytes_per_s)}};
}

// Collectives in "collectives", copies and the host beside them.
void add_activities(const BenchResult& result, Json& json) {
  for (int i = 0; i < kActivityCount; ++i) {
    const auto activity = static_cast<Activity>(i);
    const auto a = static_cast<std::size_t>(i);
    const ActivityUse& use = result.planned->uses[a];
    const double time_s = result.measured() ? result.trained->measurement.breakdown.activities[a].time_s : 0.0;
    Json row = {{"count", use.count}, {"bytes", use.bytes}, {"time_s", time_s}};
    if (i >= kCollectiveKinds) {
      json[to_string(activity)] = row;
      continue;
    }
    row["bus_bytes_per_s"] = result.bus_bytes_per_s(activity);
    json["collectives"][to_string(activity)] = row;
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
  const WireBytes& wire = planned.wire;
  json["wire_bytes"] = {
      {"all_reduce", wire.all_reduce}, {"reduce_scatter", wire.reduce_scatter}, {"all_gather", wire.all_gather}};
  add_activities(result, json);
  json["memory"] = memory_json(planned);
  json["ranks"] = planned.job.cluster.ranks();
  json["emulated_network"] = network_json(planned.job.cluster);
  json["configuration"] = to_json(planned.job.configuration);
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
  if (result.trained) {
    json["arena_peak_bytes"] = result.trained->arena_peak_bytes;
    json["host_arena_peak_bytes"] = result.trained->host_arena_peak_bytes;
    if (!result.trained->parameters_fnv1a64.empty()) json["parameters_fnv1a64"] = result.trained->parameters_fnv1a64;
    if (result.trained->gpu) json["gpu"] = gpu_json(*result.trained->gpu);
  }
  json["process_peak_bytes"] = result.process_peak_bytes;
  return json.dump(2) + "\n";
}

}  // namespace krigtune
