#include <gtest/gtest.h>

#include <set>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "session/session.h"

namespace krigtune::show_config_test {

constexpr const char* kBenchSession = R"({
  "workload": {"model": {"preset": "gpt2-124m", "layers": 2, "seq_len": 16}, "train_batch_size": 8},
  "cluster": "local",
  "space": {"zero_stage": [0, 1], "micro_batch": {"min": 1, "max": 4, "scale": "log2"}},
  "baseline": {"zero_stage": 1},
  "budget": {"hours": null}
})";

class ShowConfig : public testing::Test {
 protected:
  Json shown(std::vector<std::string> arguments, const cli::Environment& environment = {}) const {
    arguments.insert(arguments.end(), {"--show-config", "--json"});
    const Said said = run_with(environment, arguments);
    EXPECT_EQ(said.code, 0) << said.err;
    return parse_json(said.out, "show-config");
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      names.insert(entry.path().string());
    }
    return names;
  }

  TemporaryDirectory directory_;
  std::string replay_ = replay_session(directory_).string();
  std::string bench_ = directory_.write("bench.json", kBenchSession).string();
};

TEST_F(ShowConfig, IsItselfASessionFileThatMeansTheSame) {
  for (const std::string& session : {replay_, bench_}) {
    const Said said = run_krigtune({"tune", session, "--show-config"});
    EXPECT_EQ(said.code, 0) << said.err;
    const auto again = directory_.write("again.json", said.out);
    EXPECT_EQ(session::resolved(session::load_session(again)).dump(2),
              session::resolved(session::load_session(session)).dump(2));
  }
}

TEST_F(ShowConfig, SaysOfEachValueWhereItCameFrom) {
  const Json origins = shown({"tune", bench_, "--trials", "5"}, {{"KRIGTUNE_HOURS", "2"}})["origins"];
  const std::map<std::string, std::string> wanted = {
      {"/workload/model/layers", "session file"},
      {"/workload/model/hidden", "derived"},    // from the preset
      {"/workload/model/kv_heads", "derived"},  // from heads
      {"/workload/precision", "default"},
      {"/cluster/gpus_per_node", "derived"},  // from "local"
      {"/space/zero_stage", "session file"},
      {"/baseline/zero_stage", "session file"},
      {"/baseline/micro_batch", "default"},
      {"/baseline/gradient_accumulation_steps", "derived"},
      {"/objective/metric", "default"},
      {"/objective/direction", "derived"},
      {"/budget/trials", "command line: --trials"},
      {"/budget/hours", "environment: KRIGTUNE_HOURS"},
      {"/budget/patience", "default"},
      {"/runner/timeout_s", "default"},
      {"/memory/limit_gib", "default"},
  };
  for (const auto& [pointer, origin] : wanted) EXPECT_EQ(origins.value(pointer, "is not there"), origin) << pointer;
  EXPECT_EQ(shown({"plan", bench_})["origins"]["/budget/hours"], "session file") << "null, but written down";
  EXPECT_EQ(shown({"plan", replay_})["origins"]["/runner/columns/micro_batch"], "session file");
}

TEST_F(ShowConfig, PutsTheOriginBehindTheValueAndTheRunsOwnSettingsAbove) {
  const std::string text = run_krigtune({"tune", replay_, "--show-config", "--seed", "7"}).out;
  EXPECT_EQ(text.rfind("// " + replay_ + " as krigtune ", 0), 0U) << text;
  EXPECT_NE(text.find("\n// --strategy bayes  // default\n// --seed 7  // command line: --seed\n"), std::string::npos);
  EXPECT_NE(text.find("\n    \"trials\": 8,  // session file\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n    \"patience\": null,  // default\n"), std::string::npos) << text;
}

TEST_F(ShowConfig, ShowsEachLeafOfTheSessionOnceInBothForms) {
  const Json json = shown({"compare", replay_});
  EXPECT_EQ(json["schema_version"], 1);
  std::size_t leaves = 0;
  const Json flat = json["session"].flatten();
  for (const auto& [pointer, origin] : json["origins"].items()) {
    EXPECT_TRUE(json["session"].contains(Json::json_pointer(pointer))) << pointer;
    ++leaves;
  }
  const std::string text = run_krigtune({"compare", replay_, "--show-config"}).out;
  const std::string body = text.substr(text.find("\n{"));
  std::size_t comments = 0;
  for (std::size_t at = body.find("  // "); at != std::string::npos; at = body.find("  // ", at + 1)) ++comments;
  EXPECT_EQ(comments, leaves);
  EXPECT_GT(leaves, 15U);
}

TEST_F(ShowConfig, OfComparisonNamesItsStrategiesAndItsTable) {
  const std::string out = (directory_ / "run").string();
  ASSERT_EQ(run_krigtune({"tune", replay_, "--out", out}).code, 0);
  const Json json = shown({"compare", replay_, "--from", out, "--seeds", "3"});
  EXPECT_EQ(json["options"]["seeds"]["value"], 3);
  EXPECT_EQ(json["options"]["seeds"]["origin"], "command line: --seeds");
  EXPECT_EQ(json["options"]["jobs"]["origin"], "default");
  EXPECT_EQ(json["origins"]["/runner/table"], "command line: --from");
}

TEST_F(ShowConfig, WritesNothingAndStartsNothing) {
  const auto before = files();
  // krigtune-bench does not exist here: a command that looked for it would fail.
  for (const char* command : {"plan", "tune", "compare"}) {
    EXPECT_EQ(run_krigtune({command, bench_, "--show-config"}).code, 0) << command;
  }
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(std::filesystem::exists("runs"));
}

TEST_F(ShowConfig, StillRefusesABadSession) {
  const std::string bad = directory_.write("bad.json", R"({"space": {"a": [1]}, "budget": {"trials": 0}})").string();
  const Said said = run_krigtune({"plan", bad, "--show-config"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
}

}  // namespace krigtune::show_config_test
