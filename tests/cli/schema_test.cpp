// The JSON Schema of sessions and their reader agree, in both directions. `test_cli_schema --write-reference DOCS`
// writes session.md and clusters.schema.json there.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "cli/cli_fixtures.h"
#include "cli/example_sessions.h"
#include "core/json.h"
#include "session/session.h"
#include "session/session_schema.h"
#include "trial/process.h"
#include "user_error.h"

namespace krigtune {
namespace {

constexpr const char* kPython = "/usr/bin/python3";
constexpr const char* kUnlikely = "zzzzzzzzzzzz";  // similar to no key and no name

std::string refusal(const Json& session) {
  return user_error_of([&] { session::read_session(session, "s", KRIGTUNE_BAD_SESSIONS); });
}

std::set<std::string> names_in(const std::string& list) {
  std::set<std::string> names;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    names.insert(list.substr(begin, end - begin));
    begin = end + 2;
  }
  return names;
}

/// Where an object of the schema is, in a session that has it.
struct Place {
  std::string in_schema;
  std::string session;
  std::string in_session;
};

constexpr const char* kTrained =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "cluster": {"emulate_network": {"latency_us": 1, "bytes_per_s": 1}},
        "space": {"zero_stage": [0]}, "baseline": null, "objective": {}, "runner": {}, "executor": {}, "budget": {}, "grid": {},
        "stagewise": {}, "memory": {}, "run": {}})";
constexpr const char* kNodes =
    R"({"workload": {"model": {"preset": "gpt2-124m"}},
        "cluster": {"nodes": 2, "emulate_network": {"intra": "nvlink4", "inter": "eth-25"}}, "space": {"zero_stage": [0]}})";
constexpr const char* kOwnHardware =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "space": {"zero_stage": [0]},
        "cluster": {"hardware": {"gpus": {"g": {"like": "l4-24gb"}}, "links": {"l": {"like": "pcie4"}}}}})";
constexpr const char* kListed =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "space": {"zero_stage": [0]}, "runner": {"kind": "none"},
        "clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8}]})";
constexpr const char* kClusters =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "space": {"zero_stage": [0]}, "runner": {"kind": "none"},
        "clusters": [{"gpu": "g", "gpus_per_node": 8,
                      "hardware": {"gpus": {"g": {"like": "l4-24gb"}}, "links": {"l": {"like": "pcie4"}}}}]})";
constexpr const char* kRanges =
    R"({"space": {"a": {"min": 1, "max": 2}, "b": {"values": [1]}}, "runner": {"kind": "none"}})";
constexpr const char* kSpoken =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "cluster": {"gpus_per_node": 8, "gpu": "h100-80gb"},
        "space": {"zero_stage": [0]}})";
constexpr const char* kReplay =
    R"({"space": {"a": [1]}, "runner": {"kind": "replay", "table": "table.csv", "value": {"column": "speed"},
        "status": "status"}})";

constexpr const char* kGoodput =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "space": {"micro_batch": [1, 2]}, "baseline": null,
        "runner": {"kind": "none"}, "objective": {"metric": "goodput", "base_batch": 8,
        "noise_scale": [{"batch": 8, "squared_norm": 3}, {"batch": 16, "squared_norm": 2}]}})";

constexpr const char* kSeveral =
    R"({"workload": {"model": {"preset": "gpt2-124m"}}, "space": {"micro_batch": [1, 2]}, "baseline": null,
        "runner": {"kind": "none"}, "objectives": [{"metric": "goodput", "base_batch": 8,
        "noise_scale": [{"batch": 8, "squared_norm": 3}, {"batch": 16, "squared_norm": 2}]}, {"metric": "latency"}]})";

constexpr const char* kMeasured =
    R"({"space": {"a": [1, 2]}, "runner": {"kind": "command", "argv": ["run", "{a}"],
        "measure": {"loss": {"wall": "loss"}}, "checks": [{"regex": "x", "equals": "1"}]}})";

// Returns a value that the schema accepts, for a required key.
Json any_value_of(const Json& schema) {
  const Json& shape = schema.contains("anyOf") ? schema["anyOf"][0] : schema;
  if (shape.contains("const")) return shape["const"];
  return shape["type"] == "array" ? Json::array({"x"}) : Json("x");
}

// Adds the keys of each kind of a block that has several kinds, in a session with only the required keys.
void add_kinds(const std::string& name, std::vector<Place>& places) {
  const Json kinds = session::session_schema()["properties"][name]["allOf"];
  for (std::size_t i = 1; i < kinds.size(); ++i) {  // kTrained has the first one
    const Json& block = kinds[i]["then"];
    Json session = parse_json(kSpoken, "s");
    for (const Json& key : block["required"]) {
      session[name][key.get<std::string>()] = any_value_of(block["properties"][key.get<std::string>()]);
    }
    const std::string at = "/properties/" + name + "/allOf/" + std::to_string(i) + "/then";
    places.push_back({at, session.dump(), "/" + name});
    for (const auto& [key, within] : block["properties"].items()) {
      if (!within.contains("properties")) continue;
      Json with = session;
      with[name][key] = Json::object();
      places.push_back({at + "/properties/" + key, with.dump(), "/" + name + "/" + key});
    }
  }
}

const std::vector<Place>& places() {
  static const std::vector<Place> kPlaces = [] {
    std::vector<Place> all = {
        {"", kTrained, ""},
        {"/properties/workload", kTrained, "/workload"},
        {"/properties/workload/properties/model", kTrained, "/workload/model"},
        {"/properties/workload/properties/model/properties/experts", kTrained, "/workload/model/experts"},
        {"/properties/workload/properties/model/properties/others", kTrained, "/workload/model/others"},
        {"/properties/workload/properties/model/properties/latent_attention", kTrained,
         "/workload/model/latent_attention"},
        {"/properties/workload/properties/model/properties/layer_kinds", kTrained, "/workload/model/layer_kinds"},
        {"/properties/workload/properties/model/properties/mamba", kTrained, "/workload/model/mamba"},
        {"/properties/workload/properties/model/properties/delta", kTrained, "/workload/model/delta"},
        {"/properties/workload/properties/model/properties/mtp", kTrained, "/workload/model/mtp"},
        {"/properties/workload/properties/model/properties/mtp/properties/blocks", kTrained,
         "/workload/model/mtp/blocks"},
        {"/properties/workload/properties/training", kTrained, "/workload/training"},
        {"/properties/workload/properties/training/properties/lora", kTrained, "/workload/training/lora"},
        {"/properties/workload/properties/training/properties/state_types", kTrained, "/workload/training/state_types"},
        {"/properties/workload/properties/training/properties/precise", kTrained, "/workload/training/precise"},
        {"/properties/cluster/anyOf/1", kTrained, "/cluster"},
        {"/properties/cluster/anyOf/1/properties/emulate_network/anyOf/1", kTrained, "/cluster/emulate_network"},
        {"/properties/cluster/anyOf/1/properties/emulate_network/anyOf/2", kNodes, "/cluster/emulate_network"},
        {"/properties/cluster/anyOf/1/properties/hardware/anyOf/1", kOwnHardware, "/cluster/hardware"},
        {"/properties/cluster/anyOf/1/properties/hardware/anyOf/1/properties/gpus/additionalProperties", kOwnHardware,
         "/cluster/hardware/gpus/g"},
        {"/properties/cluster/anyOf/1/properties/hardware/anyOf/1/properties/links/additionalProperties", kOwnHardware,
         "/cluster/hardware/links/l"},
        {"/properties/objective", kGoodput, "/objective"},
        {"/properties/objective/properties/noise_scale/anyOf/1/items", kGoodput, "/objective/noise_scale/0"},
        {"/properties/objectives/items", kSeveral, "/objectives/0"},
        {"/properties/objectives/items/properties/noise_scale/anyOf/1/items", kSeveral, "/objectives/0/noise_scale/0"},
        {"/properties/runner/allOf/0/then", kTrained, "/runner"},
        {"/properties/executor/allOf/0/then", kTrained, "/executor"},
        {"/properties/runner/allOf/2/then/properties/value/anyOf/1", kReplay, "/runner/value"},
        {"/properties/runner/allOf/3/then/properties/measure/additionalProperties", kMeasured, "/runner/measure/loss"},
        {"/properties/runner/allOf/3/then/properties/checks/items", kMeasured, "/runner/checks/0"},
        {"/properties/budget", kTrained, "/budget"},
        {"/properties/grid", kTrained, "/grid"},
        {"/properties/stagewise", kTrained, "/stagewise"},
        {"/properties/memory", kTrained, "/memory"},
        {"/properties/run", kTrained, "/run"},
        {"/properties/clusters/items", kListed, "/clusters/0"},
        {"/properties/clusters/items/properties/hardware/anyOf/1", kClusters, "/clusters/0/hardware"},
        {"/properties/clusters/items/properties/hardware/anyOf/1/properties/gpus/additionalProperties", kClusters,
         "/clusters/0/hardware/gpus/g"},
        {"/properties/clusters/items/properties/hardware/anyOf/1/properties/links/additionalProperties", kClusters,
         "/clusters/0/hardware/links/l"},
        {"/definitions/parameter/anyOf/3", kRanges, "/space/a"},
        {"/definitions/parameter/anyOf/4", kRanges, "/space/b"},
    };
    for (const char* name : {"runner", "executor"}) add_kinds(name, all);
    return all;
  }();
  return kPlaces;
}

// Calls visit(pointer, object) for every object of the schema that lists all its keys.
void for_each_closed_object(const Json& schema, const Json::json_pointer& at,
                            const std::function<void(const std::string&, const Json&)>& visit) {
  if (schema.is_object() && schema.contains("additionalProperties") && schema["additionalProperties"] == false) {
    visit(at.to_string(), schema);
  }
  if (schema.is_object()) {
    for (const auto& [key, part] : schema.items()) for_each_closed_object(part, at / key, visit);
  } else if (schema.is_array()) {
    for (std::size_t i = 0; i < schema.size(); ++i) for_each_closed_object(schema[i], at / i, visit);
  }
}

const Place* place_of(const std::string& in_schema, const Json& object) {
  for (const Place& place : places()) {
    if (in_schema == place.in_schema) return &place;
  }
  // All columns have the same shape, so one is enough.
  const bool is_column = object["properties"].contains("column") && object["properties"].contains("times");
  return is_column ? place_of("/properties/runner/allOf/2/then/properties/value/anyOf/1", Json::object()) : nullptr;
}

TEST(SessionSchema, IsWhatStandsInTheDocumentation) {
  EXPECT_EQ(read_text(KRIGTUNE_DOCS "/session.md"), session::session_reference())
      << "rewrite it: test_cli_schema --write-reference docs";
}

TEST(ClustersSchema, IsWhatStandsInTheDocumentation) {
  EXPECT_EQ(read_text(KRIGTUNE_DOCS "/clusters.schema.json"), session::clusters_schema_text())
      << "rewrite it: test_cli_schema --write-reference docs";
}

TEST(SessionSchema, IsPrintedByInit) {
  const Said said = run_krigtune({"init", "--schema"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.err, "");
  EXPECT_EQ(said.out, session::session_schema().dump(2) + "\n");
}

TEST(SessionSchema, HasTheKeysOfEveryBlockThatTheReaderHas) {
  std::set<std::string> seen;
  for_each_closed_object(
      session::session_schema(), Json::json_pointer(), [&](const std::string& pointer, const Json& object) {
        SCOPED_TRACE(pointer);
        const Place* place = place_of(pointer, object);
        ASSERT_NE(place, nullptr) << "add it to places()";
        seen.insert(place->in_schema);
        Json session = parse_json(place->session, "s");
        session[Json::json_pointer(place->in_session)][kUnlikely] = 1;
        const std::string line = refusal(session);
        const std::string begin = "s: " + place->in_session + "/" + kUnlikely + ": unknown key; known: ";
        ASSERT_EQ(line.rfind(begin, 0), 0U) << line;
        std::set<std::string> keys;
        for (const auto& [key, value] : object["properties"].items()) keys.insert(key);
        EXPECT_EQ(names_in(line.substr(begin.size())), keys);
      });
  EXPECT_EQ(seen.size(), places().size()) << "a place that the schema does not have";
}

TEST(SessionSchema, HasTheNamesThatTheReaderKnows) {
  std::size_t enums = 0;
  for_each_closed_object(session::session_schema(), Json::json_pointer(),
                         [&](const std::string& pointer, const Json& object) {
                           const Place* place = place_of(pointer, object);
                           if (place == nullptr) return;
                           for (const auto& [key, value] : object["properties"].items()) {
                             Json names = value.value("enum", Json());
                             if (value.contains("anyOf")) names = value["anyOf"][0].value("enum", Json());
                             if (!names.is_array() || names.size() < 2) continue;
                             SCOPED_TRACE(pointer + "/" + key);
                             Json session = parse_json(place->session, "s");
                             session[Json::json_pointer(place->in_session)][key] = kUnlikely;
                             const std::string line = refusal(session);
                             const std::size_t known = line.find("known: ");
                             std::set<std::string> wanted;
                             for (const Json& name : names) {
                               if (name.is_string()) wanted.insert(name.get<std::string>());
                             }
                             if (wanted.size() < 2) continue;
                             ASSERT_NE(known, std::string::npos) << line;
                             EXPECT_EQ(names_in(line.substr(known + 7)), wanted);
                             ++enums;
                           }
                         });
  EXPECT_GE(enums, 9U);
}

TEST(SessionSchema, DescribesEveryKey) {
  for_each_closed_object(session::session_schema(), Json::json_pointer(),
                         [](const std::string& pointer, const Json& object) {
                           for (const auto& [key, value] : object["properties"].items()) {
                             EXPECT_FALSE(value.value("description", "").empty()) << pointer << "/" << key;
                           }
                         });
}

/// Whole sessions under the schema, validated by Python's jsonschema (Debian: python3-jsonschema).
class Validation : public testing::Test {
 protected:
  void SetUp() override {
    if (python({"-c", "import jsonschema"}) != 0)
      GTEST_SKIP() << kPython << " has no jsonschema: apt-get install python3-jsonschema";
    schema_ = directory_.write("schema.json", session::session_schema().dump()).string();
  }

  int python(std::vector<std::string> arguments) const {
    trial::ProcessSpec spec;
    spec.argv = {kPython};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.stdout_file = directory_ / "out";
    spec.stderr_file = directory_ / "err";
    return trial::run_process(spec, SystemClock()).exit_code;
  }

  /// Returns "valid" or the error for each session.
  std::vector<std::string> verdicts(const std::vector<Json>& sessions) const {
    std::vector<std::string> arguments = {KRIGTUNE_TEST_DIR "/cli/validate_sessions.py", schema_};
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      arguments.push_back(directory_.write(std::to_string(i) + ".json", sessions[i].dump()).string());
    }
    EXPECT_EQ(python(arguments), 0) << read_text(directory_ / "err");
    std::vector<std::string> lines;
    std::istringstream out(read_text(directory_ / "out"));
    for (std::string line; std::getline(out, line);) lines.push_back(line);
    return lines;
  }

  TemporaryDirectory directory_;
  std::string schema_;
};

TEST_F(Validation, AcceptsEveryGoodSession) {
  std::vector<Json> sessions;
  std::vector<std::string> names;
  for (const ExampleSession& example : example_sessions()) {
    names.push_back(example.name);
    sessions.push_back(parse_json(example.text, example.name));
    EXPECT_EQ(refusal(sessions.back()), "no error") << example.name;
  }
  const std::vector<std::string> said = verdicts(sessions);
  ASSERT_EQ(said.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(said[i], "valid") << names[i];
}

// Sessions in tests/golden/bad_sessions with "// schema: cannot tell" are invalid because of arithmetic or of other
// files.
TEST_F(Validation, RefusesEverySessionThatIsBadByItsStructure) {
  std::vector<Json> sessions;
  std::vector<std::string> names;
  std::vector<bool> may_pass;
  for (const auto& entry : std::filesystem::directory_iterator(KRIGTUNE_BAD_SESSIONS)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = read_text(entry.path());
    try {
      sessions.push_back(parse_json(text, "s"));
    } catch (const UserError&) {
      continue;  // not JSON
    }
    names.push_back(entry.path().filename().string());
    may_pass.push_back(text.find("\n// schema: cannot tell\n") != std::string::npos);
  }
  const std::vector<std::string> said = verdicts(sessions);
  ASSERT_EQ(said.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(said[i] == "valid", may_pass[i]) << names[i] << ": " << said[i];
  }
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--write-reference") {
    const std::filesystem::path docs = argv[2];
    krigtune::write_atomically(docs / "session.md", krigtune::session::session_reference());
    krigtune::write_atomically(docs / "clusters.schema.json", krigtune::session::clusters_schema_text());
    return 0;
  }
  return RUN_ALL_TESTS();
}
