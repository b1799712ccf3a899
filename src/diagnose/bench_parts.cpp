#include "diagnose/bench_parts.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace krigtune::diagnose {
namespace {

struct BenchPart {
  const char* field;  ///< of "breakdown"
  const char* name;
  Limit limit;
  const char* meaning;
};

constexpr const char* kWork = "kernels of the forward and the backward pass: useful work";
constexpr const char* kExposed = "ranks communicate while no kernel runs";
constexpr const char* kHostSide = "copies or host work while no kernel runs";
constexpr BenchPart kBenchParts[] = {
    {"forward_s", "forward", Limit::kCompute, kWork},
    {"recompute_s", "recompute", Limit::kCompute, kWork},
    {"backward_s", "backward", Limit::kCompute, kWork},
    {"optimizer_s", "optimizer", Limit::kMemoryBandwidth, "the optimizer, limited by memory bandwidth"},
    {"all_reduce_exposed_s", "all_reduce, exposed", Limit::kCommunication, kExposed},
    {"reduce_scatter_exposed_s", "reduce_scatter, exposed", Limit::kCommunication, kExposed},
    {"all_gather_exposed_s", "all_gather, exposed", Limit::kCommunication, kExposed},
    {"copies_exposed_s", "copies", Limit::kCopies, kHostSide},
    {"host_work_exposed_s", "host work", Limit::kCopies, kHostSide},
    {"waiting_s", "waiting for other ranks", Limit::kStraggler, "rank 0 waits for slower ranks"},
    {"idle_s", "nothing", Limit::kHost,
     "nothing runs: threads are waking up or have no core, or kernels are not issued yet"},
};

double number(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

std::string text(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void check_measured(const Json& document, const std::string& source) {
  const bool is_result = document.is_object() && text(document, "program").rfind("krigtune-bench", 0) == 0;
  if (!is_result) {
    throw UserError(source + ": this is not a result of krigtune-bench --json",
                    "name a run directory, or a result, or give --trace or --log");
  }
  const auto breakdown = document.find("breakdown");
  if (breakdown != document.end() && breakdown->is_object() && number(*breakdown, "span_s") > 0.0) return;
  const std::string message = text(document, "message");
  throw UserError(fmt::format("{}: nothing was measured, its status is '{}'{}", source, text(document, "status"),
                              message.empty() ? "" : ": " + message),
                  text(document, "status") == "oom" ? "choose a configuration that needs less memory" : "");
}

void add_remarks(const Json& document, MeasuredParts& measured) {
  const Json breakdown = document.value("breakdown", Json::object());
  std::vector<std::string>& remarks = measured.remarks;
  const double peak = number(document, "process_peak_bytes");
  if (peak > 0.0)
    remarks.push_back(fmt::format("the process took {}", to_string(Bytes{static_cast<std::int64_t>(peak)})));
  const Json memory = document.value("memory", Json::object());
  const double planned = number(document, "planned_peak_bytes");
  const double limit = memory.is_object() ? number(memory, "limit_bytes") : 0.0;
  if (planned > 0.0 && limit > 0.0) {
    remarks.push_back(fmt::format("a rank's plan takes {} of {}{}",
                                  to_string(Bytes{static_cast<std::int64_t>(planned)}),
                                  to_string(Bytes{static_cast<std::int64_t>(limit)}),
                                  number(breakdown, "recompute_s") > 0.0 ? ", with recomputation" : ""));
  }
  const double slowest = number(document, "slowest_rank_kernels_s");
  const double median = number(document, "median_rank_kernels_s");
  if (median > 0.0 && slowest >= (1.0 + Thresholds().straggler) * median) {
    remarks.push_back(fmt::format("kernels of the slowest rank take {}, of the median rank {}", duration_text(slowest),
                                  duration_text(median)));
  }
  const Json gpu = document.value("gpu", Json());
  if (gpu.is_object() && gpu.contains("throttle_reasons") && gpu["throttle_reasons"].is_array() &&
      !gpu["throttle_reasons"].empty()) {
    std::vector<std::string> reasons;
    for (const Json& reason : gpu["throttle_reasons"])
      reasons.push_back(reason.is_string() ? reason : Json(reason.dump()));
    remarks.push_back("the GPU was slowed down: " + join(reasons, ", "));
  }
  const Json network = document.value("emulated_network", Json());
  if (network.is_object()) remarks.push_back("the network is emulated: " + text(network, "name"));
}

}  // namespace

MeasuredParts parts_of_bench(const Json& document, const std::string& source) {
  check_measured(document, source);
  const Json& breakdown = document["breakdown"];
  MeasuredParts measured;
  measured.subject = "step of rank 0";
  measured.span_s = number(breakdown, "span_s");
  for (const BenchPart& part : kBenchParts) {
    const double seconds = number(breakdown, part.field);
    if (seconds > 0.0) measured.parts.push_back({part.name, seconds, std::nullopt, part.limit, part.meaning});
  }
  const Json collectives = document.value("collectives", Json::object());
  for (Part& part : measured.parts) {
    const std::string kind = part.name.substr(0, part.name.find(','));
    if (part.limit != Limit::kCommunication || !collectives.is_object() || !collectives.contains(kind)) continue;
    part.all_s = number(collectives[kind], "time_s");
  }
  add_remarks(document, measured);
  return measured;
}

}  // namespace krigtune::diagnose
