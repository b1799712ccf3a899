// krigtune plan --clusters as a user calls it.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"

namespace krigtune::plan_clusters_test {

constexpr const char* kSession = R"({
  "workload": {"model": {"preset": "llama-3-8b"}, "precision": "bf16", "train_batch_size": 128, "framework": "fsdp"},
  "space": {"zero_stage": [2, 3], "micro_batch": [1, 2, 4], "activation_checkpointing": ["none", "full"]},
  "runner": {"kind": "none"}})";

constexpr const char* kClusters = R"({
  "clusters": [
    {"gpu": "h100-80gb", "gpus_per_node": 8, "network": "ib-ndr-400", "nodes": [1, 2, 4], "price_per_gpu_hour": 2.5},
    {"gpu": "l40s-48gb", "gpus_per_node": 8, "price_per_gpu_hour": 0.9},
    {"gpu": "a100-80gb", "gpus_per_node": 8},
  ],
  "currency": "EUR", "tokens": 1e10})";

class PlanClusters : public testing::Test {
 protected:
  Said plan(const std::vector<std::string>& more, const std::string& clusters = kClusters) {
    std::vector<std::string> words = {"plan", directory_.write("job.json", kSession).string(), "--clusters",
                                      directory_.write("clusters.json", clusters).string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_krigtune(words);
  }
  TemporaryDirectory directory_;
};

TEST_F(PlanClusters, PrintsARowForEachSizeAndTheAnswers) {
  const Said said = plan({"--by", "2w"});
  ASSERT_EQ(said.code, 0) << said.err;
  for (const char* text : {"10 billion tokens in all", "price (EUR)", "4 x 8", "l40s-48gb", "\n  cheapest: row ",
                           "\n  fastest: row 3 (h100-80gb, 4 x 8): ", "\n  cheapest in 14 d: row ",
                           "\n  a faster network: row 4 (l40s-48gb, 8): 1.", "more a GPU-hour",
                           "every row keeps the batch of 128 sequences", "80 % of 270 published runs of dense models",
                           "no price, because the file has no \"price_per_gpu_hour\" of a100-80gb"}) {
    std::string folded = said.out;  // lines are broken at blanks
    for (std::size_t at = 0; (at = folded.find("\n    ", at)) != std::string::npos;) folded.replace(at, 5, " ");
    EXPECT_NE(folded.find(text), std::string::npos) << text << "\n" << said.out;
  }
}

TEST_F(PlanClusters, HaveASecondOpinionWherePublishedRunsAreNear) {
  const Said said = plan({}, R"({"clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8}], "tokens": 1e9})");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("\nSecond opinion\n  row 1: the nearest published run ("), std::string::npos) << said.out;
  EXPECT_EQ(plan({}).out.find("Second opinion"), std::string::npos) << "32 GPUs and L40S are in no table";
  // Published runs of Llama 3 8B are on one node of H100s, and none on L40S.
  const std::string csv = (directory_ / "near.csv").string();
  const Json json = parse_json(plan({"--json", "--csv", csv}).out, "plan");
  const CsvTable table = parse_csv(read_text(csv), "near.csv");
  const auto reached = static_cast<std::size_t>(table.column("published_reached"));
  const Json& near = json["clusters"][0]["best"]["second_opinion"];
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(std::stod(table.rows[0][reached]), near[0]["reached"].get<double>());
  EXPECT_EQ(json["clusters"][3]["best"]["second_opinion"], Json::array());
  EXPECT_EQ(table.rows[3][reached], "");
}

TEST_F(PlanClusters, FilesAndDocumentAgree) {
  const std::string csv = (directory_ / "c.csv").string();
  const std::string html = (directory_ / "c.html").string();
  const Said said = plan({"--json", "--csv", csv, "--html", html});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json json = parse_json(said.out, "plan");
  const CsvTable table = parse_csv(read_text(csv), "c.csv");
  ASSERT_EQ(json["clusters"].size(), 5U);
  ASSERT_EQ(table.rows.size(), 5U);
  double cheapest = 1e300;
  for (std::size_t i = 0; i < 5; ++i) {
    const Json& row = json["clusters"][i];
    const auto field = [&](const char* name) { return table.rows[i][static_cast<std::size_t>(table.column(name))]; };
    const Json& best = row["best"];
    ASSERT_FALSE(best.is_null()) << row.dump();
    EXPECT_EQ(field("gpus"), row["gpus"].dump());
    EXPECT_EQ(std::stod(field("days")), best["days"]["value"].get<double>());
    EXPECT_EQ(std::stod(field("tokens_per_s_low")), best["tokens_per_s"]["low"].get<double>());
    EXPECT_EQ(std::stod(field("mfu")), best["mfu"]["value"].get<double>());
    EXPECT_EQ(field("micro_batch"), best["configuration"]["micro_batch"].dump());
    EXPECT_NEAR(std::stod(field("gpu_hours")), best["days"]["value"].get<double>() * 24.0 * row["gpus"].get<double>(),
                1e-6);
    if (i == 4) {
      EXPECT_TRUE(best["price"].is_null());
      EXPECT_EQ(field("price"), "");
    } else {
      const double price = best["price"]["value"].get<double>();
      EXPECT_NEAR(price, std::stod(field("gpu_hours")) * row["price_per_gpu_hour"].get<double>(), 1e-6 * price);
      cheapest = std::min(cheapest, price);
    }
  }
  const auto row = json["cheapest"].get<std::size_t>();
  EXPECT_EQ(json["clusters"][row - 1]["best"]["price"]["value"], cheapest);
  EXPECT_EQ(json["html"], html);
  EXPECT_NE(read_text(html).find("Time against price"), std::string::npos);
}

TEST_F(PlanClusters, ARowIsWhatPlanPrintsOfThatClusterAlone) {
  const Json fleet = parse_json(plan({"--json"}).out, "plan");
  Json session = parse_json(kSession, "s");
  session["cluster"] = parse_json(R"({"gpu": "l40s-48gb", "gpus_per_node": 8})", "c");
  const Said said = run_krigtune({"plan", directory_.write("alone.json", session.dump()).string(), "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json alone = parse_json(said.out, "plan");
  const Json& best = alone["best"][alone["analysed"].get<std::size_t>()];
  EXPECT_EQ(fleet["clusters"][3]["best"]["configuration"], best["configuration"]);
  EXPECT_EQ(fleet["clusters"][3]["best"]["predicted_step_time_s"], best["predicted_step_time_s"]);
}

TEST_F(PlanClusters, ADeadlineThatNothingMeetsNamesTheNearest) {
  const Said said = plan({"--by", "1h"});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("no cluster is done in 60 min; the nearest is row 3 (h100-80gb, 4 x 8) with "),
            std::string::npos)
      << said.err;
  EXPECT_NE(said.out.find("cheapest in 60 min: no cluster is done"), std::string::npos) << said.out;
}

TEST_F(PlanClusters, WhereNothingFitsSaysSoForEachSize) {
  const Said said = plan({}, R"({"clusters": [{"gpu": "rtx4090-24gb", "gpus_per_node": [1, 2]}], "tokens": 1e9})");
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.out.find("row 2 (rtx4090-24gb, 2): no configuration fits: the smallest peak"), std::string::npos)
      << said.out;
  EXPECT_NE(said.err.find("no cluster has a configuration that fits"), std::string::npos) << said.err;
}

TEST_F(PlanClusters, RefusesBadInputInOneLine) {
  const auto expect_refused = [&](const Said& said, const std::string& text) {
    EXPECT_EQ(said.code, 2) << text;
    EXPECT_EQ(said.out, "");
    EXPECT_NE(said.err.find(text), std::string::npos) << said.err;
    EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
  };
  expect_refused(plan({"--by", "14"}), "--by: '14' is not a time; write for example 14d, 36h or 2w");
  expect_refused(plan({"--by", "-3d"}), "--by: '-3d' is not a time");
  expect_refused(plan({"--tokens", "-1"}), "--tokens");
  expect_refused(plan({"--trace", "t.json"}), "--trace: is about one cluster");
  expect_refused(plan({}, R"({"clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8}]})"), "says no amount of data");
  expect_refused(plan({}, R"({"clusters": [{"gpu": "h200", "gpus_per_nod": 8}], "tokens": 1e9})"),
                 "/clusters/0/gpus_per_nod: unknown key");
  expect_refused(run_krigtune({"plan", directory_.write("job.json", kSession).string(), "--by", "3d"}),
                 "--by: is about several clusters; name them: --clusters FILE, or \"clusters\" in the session");
  // 24 GPUs never divide 128 sequences, and there is no other size.
  expect_refused(plan({}, R"({"clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8, "nodes": 3, "network": "eth-100"}],
                   "tokens": 1e9})"),
                 "batch not divisible");
}

TEST_F(PlanClusters, CountsWhatTheSessionStatesOfTheWholeRun) {
  const Json bare = parse_json(plan({"--json"}).out, "plan");
  Json session = parse_json(kSession, "s");
  session["run"] = parse_json(R"({"evaluation_share": 0.02, "data_wait_share": 0.01, "checkpoint_s": 30,
                                  "checkpoint_every_s": 600, "power_w": 900})",
                              "run");
  Json clusters = parse_json(kClusters, "c");
  clusters["clusters"][1]["power_w"] = 500;
  const std::vector<std::string> words = {"plan", directory_.write("run.json", session.dump()).string(), "--clusters",
                                          directory_.write("power.json", clusters.dump()).string()};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const Said said = run_krigtune(as_json);
  ASSERT_EQ(said.code, 0) << said.err;
  const Json json = parse_json(said.out, "plan");
  for (std::size_t i = 0; i < 5; ++i) {
    const Json& best = json["clusters"][i]["best"];
    const Json& steps = bare["clusters"][i]["best"];
    const double factor = 1.03 * (1.0 + 30.0 / 600.0);
    const double days = factor * steps["days"]["value"].get<double>();
    EXPECT_NEAR(best["days"]["value"].get<double>(), days, 1e-9 * days);
    EXPECT_NEAR(best["days"]["high"].get<double>(), factor * steps["days"]["high"].get<double>(), 1e-9 * days);
    if (i < 4) {
      EXPECT_NEAR(best["price"]["value"].get<double>(), factor * steps["price"]["value"].get<double>(), 1e-6);
    }
    const double watts = i == 3 ? 500.0 : 900.0;
    EXPECT_NEAR(best["whole_run"]["energy_kwh"].get<double>(),
                days * 24.0 * json["clusters"][i]["gpus"].get<double>() * watts / 1000.0, 1e-6 * days * watts);
  }
  const std::string text = run_krigtune(words).out;
  EXPECT_NE(text.find(", checkpoints "), std::string::npos) << text;
  EXPECT_NE(text.find(" kWh"), std::string::npos) << text;
}

TEST_F(PlanClusters, ThatTheSessionListsArePlannedWithoutAFile) {
  Json session = parse_json(kSession, "s");
  session.update(parse_json(kClusters, "c"));
  session["cluster"] = parse_json(R"({"gpu": "h200-141gb", "gpus_per_node": 8})", "c");
  const std::string file = directory_.write("own.json", session.dump()).string();
  const Said said = run_krigtune({"plan", file, "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json own = parse_json(said.out, "plan");
  EXPECT_EQ(own["clusters"], parse_json(plan({"--json"}).out, "plan")["clusters"]);
  const std::string other =
      directory_.write("one.json", R"({"clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8}]})").string();
  const Json one = parse_json(run_krigtune({"plan", file, "--json", "--clusters", other}).out, "plan");
  EXPECT_EQ(one["clusters"].size(), 1U) << "the file counts, with the session's tokens";
  EXPECT_EQ(one["tokens"], own["tokens"]);
  const Json alone = parse_json(run_krigtune({"plan", file, "--json", "--clusters", "none"}).out, "plan");
  EXPECT_FALSE(alone.contains("clusters"));
  EXPECT_EQ(alone["whole_run"]["tokens"], own["tokens"]);
  // What --show-config prints is a session with the same clusters.
  const std::string shown = directory_.write("shown.json", run_krigtune({"plan", file, "--show-config"}).out).string();
  const Json again = parse_json(run_krigtune({"plan", shown, "--json"}).out, "plan");
  ASSERT_EQ(again["clusters"].size(), own["clusters"].size());
  for (std::size_t i = 0; i < own["clusters"].size(); ++i)
    EXPECT_EQ(again["clusters"][i]["best"]["days"], own["clusters"][i]["best"]["days"]);
}

TEST_F(PlanClusters, TokensOfTheCommandLineReplaceThoseOfTheFile) {
  const Json ten = parse_json(plan({"--json"}).out, "plan");
  const Json twenty = parse_json(plan({"--json", "--tokens", "2e10"}).out, "plan");
  EXPECT_EQ(twenty["tokens"], 20'000'000'000);
  EXPECT_DOUBLE_EQ(twenty["clusters"][0]["best"]["days"]["value"].get<double>(),
                   2.0 * ten["clusters"][0]["best"]["days"]["value"].get<double>());
}

}  // namespace krigtune::plan_clusters_test
