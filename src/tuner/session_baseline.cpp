#include <fmt/format.h>

#include <algorithm>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "krigtune/plan/build_plan.h"
#include "session_blocks.h"

namespace krigtune {
namespace {

constexpr const char* kAccumulation = "gradient_accumulation_steps";

// What build_plan reads of a configuration.
const std::vector<std::string>& planned_names() {
  static const std::vector<std::string> kNames{"zero_stage",         "micro_batch",           kAccumulation,
                                               "reduce_bucket_size", "allgather_bucket_size", "overlap_comm"};
  return kNames;
}

// DeepSpeed's defaults: deepspeed/runtime/zero/config.py, with micro_batch and overlap_comm as krigtune-bench has them.
const Configuration& default_values() {
  static const Configuration kDefaults{
      {"zero_stage", std::int64_t{0}},
      {"micro_batch", std::int64_t{1}},
      {kAccumulation, std::int64_t{1}},
      {"reduce_bucket_size", std::int64_t{500'000'000}},
      {"allgather_bucket_size", std::int64_t{500'000'000}},
      {"overlap_comm", false},
      {"contiguous_gradients", true},
      {"round_robin_gradients", false},
      {"stage3_prefetch_bucket_size", std::int64_t{50'000'000}},
      {"stage3_param_persistence_threshold", std::int64_t{100'000}},
      {"stage3_max_live_parameters", std::int64_t{1'000'000'000}},
      {"stage3_max_reuse_distance", std::int64_t{1'000'000'000}},
      {"offload_optimizer", std::string("none")},
      {"offload_param", std::string("none")},
      {"activation_checkpointing", std::string("none")},
      {"tensor_parallel", std::int64_t{1}},
      {"pipeline_parallel", std::int64_t{1}},
  };
  return kDefaults;
}

Value default_value(const Parameter& parameter, bool well_known) {
  const Value* known = well_known ? default_values().find(parameter.name) : nullptr;
  return known != nullptr ? *known : parameter.values.front();
}

// The point that `given` means, its other parameters at their defaults.
Configuration filled_in(const Space& space, const Configuration& given) {
  Configuration point;
  for (const Parameter& parameter : space.parameters()) {
    const Value* value = given.find(parameter.name);
    // With a batch size to keep, the accumulation follows from the micro-batch.
    if (value == nullptr && parameter.name == kAccumulation && space.facts().train_batch_size) continue;
    point.set(parameter.name, value != nullptr ? *value : default_value(parameter, space.facts().well_known));
  }
  return point;
}

void check_names(const Space& space, const Configuration& given, const JsonObject& root) {
  const std::vector<std::string> columns = space.columns();
  for (const auto& [name, value] : given) {
    if (std::find(columns.begin(), columns.end(), name) != columns.end()) continue;
    root.fail("baseline/" + name, "is no parameter of the space", suggestion(name, columns));
  }
}

// Derived values are not asked for, but where they are given they must be the derived ones.
void check_derived(const Configuration& given, const Configuration& completed, const JsonObject& root) {
  const Value* stated = given.find(kAccumulation);
  const Value* derived = completed.find(kAccumulation);
  if (stated == nullptr || derived == nullptr || same_value(*stated, *derived)) return;
  root.fail(fmt::format("baseline/{}", kAccumulation),
            fmt::format("is {}, but train_batch_size makes it {}", to_string(*stated), to_string(*derived)),
            "leave it out");
}

// What `compute` complains of, at the place in the session that it is about.
template <class Compute>
auto at(const JsonObject& root, const std::string& key, Compute compute) {
  try {
    return compute();
  } catch (const UserError& error) {
    root.fail(key, error.what(), "");
  }
}

void check_plan(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration,
                const JsonObject& root, const std::string& key) {
  at(root, key, [&] { return build_plan(workload, cluster, configuration).arena_bytes; });
}

void set_default_baseline(Session& session) {
  Configuration point = filled_in(session.space, {});
  std::string reason;
  const Exclusion exclusion = session.space.complete(point);
  if (exclusion != Exclusion::kNone) {
    reason = to_string(exclusion);
  } else if (session.usable_per_rank &&
             build_plan(*session.workload, session.cluster, point).arena_bytes > session.usable_per_rank->count) {
    reason = "it does not fit in memory";
  }
  if (reason.empty()) {
    session.baseline = point;
  } else {
    session.warnings.push_back(fmt::format(
        "no baseline is run: {} with every parameter at its default; give \"baseline\" to compare with", reason));
  }
}

void set_stated_baseline(Session& session, const Json& json, JsonObject& root) {
  const Configuration given = configuration_from_json(json, root.source(), root.pointer("baseline"));
  check_names(session.space, given, root);
  Configuration point = filled_in(session.space, given);
  const Exclusion exclusion = at(root, "baseline", [&] { return session.space.complete(point); });
  if (exclusion != Exclusion::kNone) {
    root.fail("baseline", fmt::format("{} ({})", to_string(exclusion), point.text()),
              "choose a micro_batch whose product with the ranks divides train_batch_size, or write null");
  }
  check_derived(given, point, root);
  if (session.usable_per_rank) check_plan(*session.workload, session.cluster, point, root, "baseline");
  session.baseline = point;
}

}  // namespace

void read_baseline(Session& session, JsonObject& root) {
  const Json* json = root.find("baseline");
  const bool is_null = json == nullptr && root.value().contains("baseline");
  if (is_null) return;
  if (session.runner.kind == RunnerKind::kReplay) {
    if (json != nullptr)
      session.warnings.push_back("no baseline is run with the runner replay: \"baseline\" is ignored");
    return;
  }
  if (json == nullptr) {
    set_default_baseline(session);
  } else {
    set_stated_baseline(session, *json, root);
  }
}

std::vector<std::string> unplanned_parameters(const Space& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters()) {
    const auto& planned = planned_names();
    if (std::find(planned.begin(), planned.end(), parameter.name) == planned.end()) names.push_back(parameter.name);
  }
  return names;
}

void check_planned_parameters(const Session& session, const JsonObject& root) {
  for (const std::string& name : unplanned_parameters(session.space)) {
    const bool well_known = default_values().has(name);
    root.fail("space/" + name, fmt::format("krigtune-bench does not {} '{}'", well_known ? "execute" : "know", name),
              well_known ? "leave it out: known: " + join(planned_names(), ", ") : suggestion(name, planned_names()));
  }
  // The batch is left open: each value by itself, the others at what cannot be the reason of a refusal.
  Workload workload = *session.workload;
  workload.train_batch_size.reset();
  check_plan(workload, session.cluster, {}, root, "workload");
  for (const Parameter& parameter : session.space.parameters()) {
    for (const Value& value : parameter.values) {
      check_plan(workload, session.cluster, {{parameter.name, value}}, root, "space/" + parameter.name);
    }
  }
}

}  // namespace krigtune
