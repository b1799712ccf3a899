// The session file as a JSON Schema. Its blocks are those that their readers read; what has no fixed keys stands here.
#include "krigtune/tuner/session_schema.h"

#include <fmt/format.h>

#include "krigtune/core/block.h"
#include "krigtune/space/well_known.h"
#include "session/session_blocks.h"

namespace krigtune {
namespace {

constexpr const char* kParameter = "#/definitions/parameter";

std::string meaning_of(const WellKnownParameter& parameter) {
  const std::string unit = *parameter.unit == '\0' ? "" : fmt::format(" ({})", parameter.unit);
  const std::string no_effect = *parameter.no_effect == '\0' ? "" : fmt::format("; no effect: {}", parameter.no_effect);
  return fmt::format("{}{}{}; default {}, for example {}", parameter.meaning, unit, no_effect,
                     to_string(parameter.default_value), parameter.default_range);
}

Json space_schema() {
  Json schema = schema::map({{"$ref", kParameter}}, "What may vary: a parameter a key, in the order of all tables");
  schema["minProperties"] = 1;
  schema["properties"] = Json::object();
  for (const WellKnownParameter& parameter : well_known_parameters()) {
    schema["properties"][parameter.name] = {{"description", meaning_of(parameter)},
                                            {"allOf", Json::array({{{"$ref", kParameter}}})}};
  }
  return schema;
}

}  // namespace

Json session_schema() {
  const Json constraints =
      schema::list(schema::not_empty(schema::text()),
                   "conditions that every configuration meets, as in \"micro_batch * seq_len <= 65536\"");
  const Json fixed = schema::map(
      schema::scalar(),
      "Parameters of one value: predictions, constraints and exports know them, the search does not vary them");
  const Json baseline = schema::map(
      schema::scalar(), "Trial 0, what you use today; keys left out take their defaults; null: none is run");
  const Json root =
      schema::object("A session of krigtune: what is trained, where, what may vary, and how a trial is run",
                     {{"$schema", schema::text("this schema, for editors")},
                      {"workload", workload_schema()},
                      {"cluster", cluster_schema()},
                      {"space", space_schema(), true},
                      {"fixed", fixed},
                      {"baseline", baseline},
                      {"constraints", constraints},
                      {"objective", objective_schema()},
                      {"runner", runner_schema()},
                      {"budget", budget_schema()},
                      {"grid", grid_schema()},
                      {"stagewise", stagewise_schema()},
                      {"memory", memory_schema()}});
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "krigtune session"}};
  schema.update(root);
  schema["definitions"] = {{"parameter", parameter_schema()}};
  return schema;
}

}  // namespace krigtune
