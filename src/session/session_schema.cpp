// The session file as a JSON Schema. The schemas of the blocks come from their readers; objects without fixed keys are
// written here.
#include "session/session_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/block.h"
#include "core/text.h"
#include "session/clusters.h"
#include "session/objectives.h"
#include "session/session_blocks.h"
#include "session/whole_run.h"
#include "space/well_known.h"

namespace krigtune::session {
namespace {

constexpr const char* kParameter = "#/definitions/parameter";

std::string meaning_of(const space::WellKnownParameter& parameter) {
  const std::string unit = *parameter.unit == '\0' ? "" : fmt::format(" ({})", parameter.unit);
  const std::string no_effect = *parameter.no_effect == '\0' ? "" : fmt::format("; no effect: {}", parameter.no_effect);
  return fmt::format("{}{}{}; default {}, for example {}", parameter.meaning, unit, no_effect,
                     space::to_string(parameter.default_value), parameter.default_range);
}

Json space_schema() {
  Json schema =
      schema::map({{"$ref", kParameter}}, "The parameters that may vary, one key each; tables list them in this order");
  schema["minProperties"] = 1;
  schema["properties"] = Json::object();
  for (const space::WellKnownParameter& parameter : space::well_known_parameters()) {
    schema["properties"][parameter.name] = {{"description", meaning_of(parameter)},
                                            {"allOf", Json::array({{{"$ref", kParameter}}})}};
  }
  return schema;
}

}  // namespace

Json session_schema() {
  const Json constraints =
      schema::list(schema::not_empty(schema::text()),
                   "conditions that every configuration must satisfy, such as \"micro_batch * seq_len <= 65536\"");
  const Json fixed = schema::map(
      schema::scalar(),
      "Parameters with a fixed value: predictions, constraints and exports use it, and the search does not vary it");
  const Json baseline = schema::map(
      schema::scalar(),
      "Trial 0, the configuration that you use today; missing keys have their defaults; null: no baseline is run");
  Json root = schema::object("A session of krigtune: what is trained, where, what may vary, and how a trial is run",
                             {{"$schema", schema::text("this schema, for editors")},
                              {"workload", workload::workload_schema()},
                              {"framework", workload::framework_schema()},
                              {"cluster", workload::cluster_schema()},
                              {"space", space_schema(), true},
                              {"fixed", fixed},
                              {"baseline", baseline},
                              {"constraints", constraints},
                              {"objective", objective_schema()},
                              {"objectives", objectives_schema()},
                              {"limits", limits_schema()},
                              {"prefer", prefer_schema()},
                              {"runner", runner::runner_schema()},
                              {"executor", executor::executor_schema()},
                              {"budget", budget_schema()},
                              {"grid", grid_schema()},
                              {"stagewise", stagewise_schema()},
                              {"memory", workload::memory_schema()},
                              {"run", run_schema()}});
  root["properties"].update(clusters_schema()["properties"]);
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "krigtune session"}};
  schema.update(root);
  schema["definitions"] = {{"parameter", space::parameter_schema()}};
  return schema;
}

std::string clusters_schema_text() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "krigtune clusters"}};
  schema.update(clusters_schema());
  schema["properties"]["$schema"] = schema::text("this schema, for editors");
  schema["required"] = {"clusters"};
  return schema.dump(2) + "\n";
}

// docs/session.md: what users need to know about the session file. Its tables are made from the schema.
namespace {

constexpr const char* kIntroduction = R"(# The session file

A session says what is trained, where, what may vary, and how a trial is run. It is a JSON file; `//` comments and trailing
commas are allowed. Only `space` is required. `krigtune init` writes a session for this machine, and `krigtune plan SESSION`
checks one. `krigtune init --schema > session.schema.json` writes the JSON Schema with which an editor completes keys
(`"$schema": "session.schema.json"`).

If something is wrong (an unknown key, a wrong type, a range without values, constraints that no configuration satisfies),
krigtune prints one line with the file, the place as a JSON pointer, and the fix. It exits with code 2 before it writes or
starts anything.

## Which value counts

1. The command line (`--trials 5`).
2. The environment: `KRIGTUNE_` and the option's name in capitals, with `_` for `-` (`KRIGTUNE_TRIALS=5`). `--help-all` shows
   which options have such a variable. An empty variable counts as unset, and krigtune warns of an unknown one. Options for a
   single call (`--fresh`, `--try`, `--json`, those of `tell`) have no variable.
3. The session file.
4. The default.

`--show-config` (of `plan`, `tune` and `compare`) prints the session with every default and, after each value, where it came
from. The output is a session file.

)";

constexpr const char* kConditions = R"(## Conditions

`constraints` and `when` are conditions over the parameters and facts of the job:

```
||   &&   == != <= >= < >   + -   * / %   ! -   ( ) min(a, b, ...) max(a, b, ...)      loosest first
names, numbers (1, 2.5, 1e6), true, false, 'text'
```

A constraint does not apply to a configuration in which one of its parameters does not exist (because its `when` is false).
Division by zero and comparing a text with a number evaluate to false.

| fact | meaning |
|---|---|
)";

// Whether the keys of a nested block are described here.
enum class Nested { kHere, kElsewhere };

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string names_text(const Json& names) {
  std::vector<std::string> words;
  for (const Json& name : names) {
    if (!name.is_null()) words.push_back(code(name.get<std::string>()));
  }
  return join(words, ", ");
}

// Returns " above 0", " from 1 to 100".
std::string limits_in_schema(const Json& schema) {
  NumberLimits limits;
  limits.low_included = !schema.contains("exclusiveMinimum");
  limits.high_included = !schema.contains("exclusiveMaximum");
  limits.low = schema.value(limits.low_included ? "minimum" : "exclusiveMinimum", limits.low);
  limits.high = schema.value(limits.high_included ? "maximum" : "exclusiveMaximum", limits.high);
  const std::string text = limits.text();
  return text.empty() ? "" : " " + text;
}

// Returns "integer from 1 to 8", "`a`, `b`", "`local`, or an object".
std::string kind_in_schema(const Json& schema) {
  if (schema.contains("enum")) return names_text(schema["enum"]);
  if (schema.contains("const")) return code(schema["const"].get<std::string>());
  if (schema.contains("anyOf")) {
    std::vector<std::string> kinds;
    for (const Json& shape : schema["anyOf"]) {
      if (!shape.contains("type") || shape["type"] != "null") kinds.push_back(kind_in_schema(shape));
    }
    return join(kinds, " or ");
  }
  if (!schema.contains("type")) return "";
  const Json& type = schema["type"];
  const std::string name = type.is_array() ? type.front().get<std::string>() : type.get<std::string>();
  if (name == "number" || name == "integer") return name + limits_in_schema(schema);
  return name == "null" ? "" : name == "array" ? "list" : name == "string" ? "text" : name;
}

// `prefix`: put before the keys if the block is nested in another one: "stragglers/".
std::string rows_of(const Json& block, const std::string& prefix, Nested nested) {
  std::string text;
  for (const auto& [key, schema] : block["properties"].items()) {
    const bool required = block.contains("required") &&
                          std::find(block["required"].begin(), block["required"].end(), key) != block["required"].end();
    const std::string fallback = schema.contains("default") ? code(schema["default"].dump())
                                 : required                 ? "required"
                                                            : "";
    text += fmt::format("| `{}{}` | {} | {} | {} |\n", prefix, key, kind_in_schema(schema), fallback,
                        escaped(schema.value("description", "")));
    if (nested == Nested::kHere && schema.contains("properties")) text += rows_of(schema, prefix + key + "/", nested);
  }
  return text;
}

std::string table_of(const Json& block, Nested nested = Nested::kElsewhere) {
  return "| key | type | default | meaning |\n|---|---|---|---|\n" + rows_of(block, "", nested);
}

std::string section(const std::string& title, const Json& block, Nested nested = Nested::kElsewhere) {
  return fmt::format("### {}\n\n{}.\n\n{}\n", title, block.value("description", ""), table_of(block, nested));
}

// `name`: the block that has several kinds.
std::string sections_of_kinds(const char* name, const Json& schema) {
  std::string text;
  for (const Json& kind : schema["allOf"]) {
    const Json& block = kind["then"];
    const Json& word = block["properties"]["kind"];
    const std::string of_kind =
        word.contains("const") ? word["const"].get<std::string>() : word["enum"].front().get<std::string>();
    text += section(fmt::format("`{}` of kind `{}`", name, of_kind), block, Nested::kHere);
  }
  return text;
}

std::string facts() {
  std::string text;
  for (const space::KnownFact& fact : space::known_facts())
    text += fmt::format("| `{}` | {} |\n", fact.name, escaped(fact.meaning));
  return text;
}

}  // namespace

std::string session_reference() {
  const Json blocks = session_schema()["properties"];
  const Json parameter = space::parameter_schema();
  const Json& cluster = blocks["cluster"]["anyOf"][1];
  std::string text = kIntroduction;
  text += "## Blocks\n\n" + table_of(session_schema()) + "\n";
  text += section("`workload`", blocks["workload"]);
  text += section("`workload/model`", blocks["workload"]["properties"]["model"]);
  text += section("`cluster`", cluster);
  text += section("`cluster/emulate_network`", cluster["properties"]["emulate_network"]["anyOf"][1]);
  const Json& hardware = cluster["properties"]["hardware"]["anyOf"][1];
  text += section("`cluster/hardware`", hardware);
  for (const auto& [key, map] : hardware["properties"].items()) {
    if (!map.contains("additionalProperties")) continue;  // a program writes "local"
    text += section("`cluster/hardware/" + key + "/ID`", map["additionalProperties"]);
  }
  text +=
      "### `space`\n\nEach key is a parameter: a list of its values, a range, or a list with a scale or a condition. "
      "Known\nparameters: [parameters.md](parameters.md).\n\n";
  text += "A range:\n\n" + table_of(parameter["anyOf"][3]) + "\nA list:\n\n" + table_of(parameter["anyOf"][4]) + "\n";
  text += section("`objective`", blocks["objective"]) + sections_of_kinds("runner", blocks["runner"]);
  text += sections_of_kinds("executor", blocks["executor"]);
  text += section("`budget`", blocks["budget"]) + section("`grid`", blocks["grid"]);
  text += section("`stagewise`", blocks["stagewise"]);
  text += section("`memory`", blocks["memory"]);
  text += section("`run`", blocks["run"]);
  text += section("`clusters`, each entry", blocks["clusters"]["items"]);
  return text + kConditions + facts();
}

}  // namespace krigtune::session
