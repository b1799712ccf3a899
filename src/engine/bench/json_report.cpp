#include <unistd.h>

#include <array>

#include "bench/bench_result.h"
#include "krigtune/core/json.h"

namespace krigtune {
namespace {

constexpr int kSchemaVersion = 1;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Json header(const BenchResult& result) {
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

void add_speed(const BenchResult& result, Json& json) {
  for (const char* field : {"step_time_s", "step_time_sem_s", "step_time_low_s", "step_time_high_s", "step_time_p10_s",
                            "step_time_p90_s", "steps", "measured_steps", "samples_per_s", "tokens_per_s",
                            "flops_per_s", "exposed_comm_s", "loss_first", "loss_last"}) {
    json[field] = nullptr;
  }
  if (!result.trained) return;
  const Measurement& m = result.trained->measurement;
  json["steps"] = m.steps;
  json["measured_steps"] = m.measured_steps;
  json["loss_first"] = m.loss_first;  // null where it is no number
  json["loss_last"] = m.loss_last;
  if (!result.measured()) return;
  json["step_time_s"] = m.step_time_s;
  json["step_time_sem_s"] = m.step_time_sem_s;
  json["step_time_low_s"] = m.step_time_interval_s.low;
  json["step_time_high_s"] = m.step_time_interval_s.high;
  json["step_time_p10_s"] = m.step_time_p10_s;
  json["step_time_p90_s"] = m.step_time_p90_s;
  json["samples_per_s"] = result.samples_per_s();
  json["tokens_per_s"] = result.tokens_per_s();
  json["flops_per_s"] = result.flops_per_s();
  json["exposed_comm_s"] = m.exposed_comm_s;
}

Json memory_json(const PlannedJob& planned) {
  Json terms;
  for (int term = 0; term < kTermCount; ++term) {
    terms[to_string(static_cast<Term>(term))] = planned.memory.term_bytes[static_cast<std::size_t>(term)];
  }
  return {{"limit_bytes", planned.limit.count},
          {"missing_bytes", planned.missing_bytes()},
          {"terms", terms},
          {"fragmentation_bytes", planned.memory.fragmentation_bytes},
          {"peak_at", planned.memory.peak_at}};
}

Json network_json(const ClusterSpec& cluster) {
  if (!cluster.emulated_network) return nullptr;
  constexpr double kMicroseconds = 1e6;
  return {{"name", cluster.emulated_network->name},
          {"latency_us", json_number(cluster.emulated_network->latency_s * kMicroseconds)},
          {"bytes_per_s", json_number(cluster.emulated_network->bytes_per_s)}};
}

Json collectives_json(const PlannedJob& planned) {
  Json json;
  for (const CollectiveUse& use : planned.collectives) {
    json[use.name] = {
        {"count", use.count}, {"bytes", use.bytes}, {"time_s", use.time_s}, {"bus_bytes_per_s", use.bus_bytes_per_s()}};
  }
  return json;
}

void add_plan(const BenchResult& result, Json& json) {
  for (const char* field :
       {"planned_peak_bytes", "wire_bytes", "memory", "collectives", "ranks", "emulated_network", "configuration"}) {
    json[field] = nullptr;
  }
  if (!result.planned) return;
  const PlannedJob& planned = *result.planned;
  json["planned_peak_bytes"] = planned.memory.peak_bytes;
  for (const CollectiveUse& use : planned.collectives) json["wire_bytes"][use.name] = use.wire_bytes;
  json["memory"] = memory_json(planned);
  json["collectives"] = collectives_json(planned);
  json["ranks"] = planned.job.cluster.ranks();
  json["emulated_network"] = network_json(planned.job.cluster);
  json["configuration"] = to_json(planned.job.configuration);
}

}  // namespace

std::string json_report(const BenchResult& result) {
  Json json = header(result);
  json["device"] = result.device;
  add_speed(result, json);
  add_plan(result, json);
  json["arena_peak_bytes"] = nullptr;
  json["parameters_fnv1a64"] = nullptr;
  if (result.trained) {
    json["arena_peak_bytes"] = result.trained->arena_peak_bytes;
    json["parameters_fnv1a64"] = result.trained->parameters_fnv1a64;
  }
  json["process_peak_bytes"] = result.process_peak_bytes;
  return json.dump(2) + "\n";
}

}  // namespace krigtune
