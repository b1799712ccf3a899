// What a session fixes, what it leaves to its framework, and what it says under another name.
#include <fmt/format.h>

#include <algorithm>

#include "krigtune/cost/framework.h"
#include "krigtune/schedule/knobs.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"
#include "session/session_blocks.h"

namespace krigtune {
namespace {

bool is_named(const Space& space, const std::string& name) {
  return space.facts().fixed.has(name) || space.find(name) != nullptr;
}

// Whether any configuration has more than one tensor-parallel rank.
bool splits_layers(const Space& space) {
  if (space.facts().fixed.integer(kTensorParallel, 1) > 1) return true;
  const Parameter* parameter = space.find(kTensorParallel);
  return parameter != nullptr && (parameter->values.size() > 1 || as_number(parameter->values[0]) > 1.0);
}

bool is_of_kind(const Value& value, const Value& other) {
  return is_number(value) ? is_number(other) : value.index() == other.index();
}

bool states_attention(const JsonObject& root) {
  const Json& workload = root.value().at("workload");
  return workload.at("model").is_object() && workload.at("model").contains("attention");
}

}  // namespace

Configuration read_fixed(JsonObject& root) {
  const Json* json = root.find("fixed");
  return json == nullptr ? Configuration() : configuration_from_json(*json, root.source(), root.pointer("fixed"));
}

void check_fixed(const Session& session, const JsonObject& root) {
  const Configuration& fixed = session.space.facts().fixed;
  if (!session.workload || fixed.empty()) return;
  const JsonObject block(root.value().at("fixed"), root.source(), root.pointer("fixed"));
  Workload workload = *session.workload;
  workload.train_batch_size.reset();  // whether the batch can be kept is a question to the whole configuration
  for (const auto& [name, value] : fixed) {
    const WellKnownParameter* known = find_well_known(name);
    if (known == nullptr && !traits_of(session.runner).only_what_is_modelled) continue;
    if (known != nullptr && !is_of_kind(value, known->default_value)) {
      block.fail(name, fmt::format("{} is no value of it", to_json(value).dump()),
                 fmt::format("write one as {}", to_json(known->default_value).dump()));
    }
    at_key(block, name, [&, &name = name, &value = value] {
      return read_knobs(workload, session.cluster, {{name, value}});
    });
  }
}

std::vector<Assumption> assumptions_of(const Session& session, const JsonObject& root) {
  std::vector<Assumption> assumptions;
  if (!session.workload || session.workload->framework == Framework::kKrigtune) return assumptions;
  for (const auto& [name, value] : traits_of(session.workload->framework).usual) {
    const bool splits_tokens = name == "sequence_parallel";
    if (is_named(session.space, name) || (splits_tokens && !splits_layers(session.space))) continue;
    assumptions.push_back({name, value, splits_tokens ? "where tensor_parallel > 1" : ""});
  }
  if (!states_attention(root) && session.workload->model.attention == Attention::kFlash) {
    assumptions.push_back(
        {"attention", std::string("flash"), "write \"attention\": \"eager\" in the model where it is not"});
  }
  return assumptions;
}

std::vector<std::string> unknown_parameters(const Space& space) {
  std::vector<std::string> names;
  for (const std::string& name : unplanned_parameters(space)) {
    if (find_well_known(name) == nullptr) names.push_back(name);
  }
  return names;
}

std::vector<std::string> other_names(const Space& space) {
  std::vector<std::string> remarks;
  for (const std::string& name : unknown_parameters(space)) {
    const std::string known(well_known_name(name));
    if (known.empty() || is_named(space, known)) continue;
    remarks.push_back(
        fmt::format("'{}' looks like {}: call it {}, and what it does to memory and time is predicted "
                    "(docs/parameters.md lists the names)",
                    name, known, known));
  }
  return remarks;
}

}  // namespace krigtune
