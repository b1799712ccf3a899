// The block "objective".
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "krigtune/core/text.h"
#include "krigtune/runner/metrics.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/tuner/goodput.h"
#include "session/session_blocks.h"

namespace krigtune {
namespace {

constexpr const char* kHowToMeasure =
    "measure the mean squared norm of the gradient with two batch sizes: docs/goodput.md";

const char* direction_text(bool maximize) { return maximize ? "maximize" : "minimize"; }

std::optional<bool> read_direction(JsonObject& block) {
  const std::string word = block.text("direction", "");
  if (word.empty()) return std::nullopt;
  if (word == "maximize" || word == "minimize") return word == "maximize";
  block.fail("direction", fmt::format("unknown direction '{}'", word), suggestion(word, {"maximize", "minimize"}));
}

void refuse_other_direction(JsonObject& block, const std::string& metric, bool maximize,
                            std::optional<bool> direction) {
  if (!direction || *direction == maximize) return;
  block.fail("direction",
             fmt::format("'{}' is to {}, not to {}", metric, direction_text(maximize), direction_text(*direction)),
             "leave the direction out");
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Metric& metric : known_metrics()) names.emplace_back(metric.name);
  return names;
}

Objective own_objective(JsonObject& block, const std::string& metric, std::optional<bool> maximize) {
  if (metric.empty()) block.fail("metric", "is empty", "name a field of the runner's result");
  if (!maximize) {
    block.fail("direction", fmt::format("is missing for the metric '{}'", metric),
               fmt::format("write \"maximize\" or \"minimize\"; known without: {}", join(known_names(), ", ")));
  }
  return {metric, *maximize, metric};
}

GradientNorm read_norm(const Json& json, const std::string& source, const std::string& pointer) {
  JsonObject block(json, source, pointer);
  GradientNorm norm;
  for (const auto& [key, number] : {std::pair{"batch", &norm.batch}, std::pair{"squared_norm", &norm.squared_norm}}) {
    const std::optional<double> given = block.optional_number(key);
    if (!given || !(*given > 0.0)) block.fail(key, "a number above 0 was expected", kHowToMeasure);
    *number = *given;
  }
  block.finish();
  return norm;
}

// A number, or two measurements that it follows from.
double read_noise_scale(JsonObject& block) {
  constexpr const char* kKey = "noise_scale";
  const Json* json = block.find(kKey);
  if (json == nullptr)
    block.fail(kKey, "is missing: goodput needs the gradient noise scale, in sequences", kHowToMeasure);
  if (json->is_number() && json->get<double>() > 0.0) return json->get<double>();
  if (!json->is_array() || json->size() != 2) {
    block.fail(kKey, "sequences above 0, or two measurements [{\"batch\", \"squared_norm\"}, ...] were expected",
               kHowToMeasure);
  }
  const std::string pointer = block.pointer(kKey);
  const auto scale = gradient_noise_scale(read_norm(json->at(0), block.source(), pointer + "/0"),
                                          read_norm(json->at(1), block.source(), pointer + "/1"));
  if (scale) return *scale;
  block.fail(kKey, "these norms are not those of one gradient with noise: the larger batch must have the smaller one",
             "average over more steps, or take batches that are further apart");
}

// Results have krigtune-bench's fields.
bool reports_our_fields(RunnerKind runner) { return is_ours(runner) || runner == RunnerKind::kDeepSpeed; }

// What a runner calls the metric. A program of the user's reports it under its name; in a replayed table it is only a
// label.
std::string field_of(const Metric& metric, RunnerKind runner) {
  return std::string(reports_our_fields(runner) ? metric.field : metric.name);
}

Objective read_goodput(JsonObject& block, const Metric& goodput, RunnerKind runner) {
  Objective objective{std::string(goodput.name), goodput.maximize, std::string(goodput.field)};
  objective.throughput_field = field_of(*find_metric("throughput"), runner);
  objective.gradient_noise = GradientNoise{read_noise_scale(block), 0.0};
  if (const auto batch = block.optional_number("base_batch")) {
    if (!(*batch > 0.0))
      block.fail("base_batch", "must be above 0", "give the sequences of a step of today's training");
    objective.gradient_noise->base_batch = *batch;
  }
  return objective;
}

bool knows_its_batch(const Session& session) {
  return is_ours(session.runner.kind) || session.workload->train_batch_size ||
         session.space.find(kMicroBatch) != nullptr;
}

}  // namespace

Objective read_objective(const Json* json, const std::string& source, const std::string& pointer, RunnerKind runner) {
  const Json empty = Json::object();
  JsonObject block(json == nullptr ? empty : *json, source, pointer);
  const std::string metric = block.text("metric", "throughput");
  const std::optional<bool> maximize = read_direction(block);
  const Metric* known = find_metric(metric);
  if (known != nullptr && known->kind == MetricKind::kGoodput) {
    refuse_other_direction(block, metric, known->maximize, maximize);
    Objective objective = read_goodput(block, *known, runner);
    block.finish();
    return objective;
  }
  for (const char* key : {"noise_scale", "base_batch"}) {
    if (block.has(key)) block.fail(key, fmt::format("is of goodput, not of '{}'", metric), "leave it out");
  }
  block.finish();
  if (known == nullptr) return own_objective(block, metric, maximize);
  refuse_other_direction(block, metric, known->maximize, maximize);
  return {metric, known->maximize, field_of(*known, runner)};
}

void complete_goodput(Session& session, const JsonObject& root) {
  std::optional<GradientNoise>& noise = session.objective.gradient_noise;
  if (!noise) return;
  if (!session.workload) {
    root.fail("objective/metric", "goodput needs to know the batch, which no session without a workload does",
              "add \"workload\"");
  }
  if (!knows_its_batch(session)) {
    root.fail("objective/metric", "goodput needs to know the batch: there is no parameter micro_batch",
              "add \"micro_batch\" to the space, or \"train_batch_size\" to the workload");
  }
  if (session.workload->train_batch_size) {
    session.warnings.emplace_back(
        "train_batch_size keeps the batch, so goodput ranks as throughput does; leave it out to let the batch vary");
  }
  if (noise->base_batch > 0.0) return;
  if (!session.baseline && !session.workload->train_batch_size) {
    root.fail("objective/base_batch", "is missing, and there is no baseline to take it from",
              "give the sequences of a step of today's training");
  }
  noise->base_batch = static_cast<double>(global_batch(session, session.baseline.value_or(Configuration())));
}

}  // namespace krigtune
