// Each row of a fleet is the plan of one session, and the rest follows by arithmetic.
#include "fleet/fleet.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"
#include "fleet/choice.h"
#include "session/memory_filter.h"

namespace krigtune::fleet_test {

constexpr const char* kSession = R"({
  "workload": {"model": {"preset": "llama-3-8b"}, "precision": "bf16", "train_batch_size": 128, "framework": "deepspeed"},
  "cluster": {"gpus_per_node": 8, "gpu": "a100-40gb"},
  "space": {"zero_stage": [1, 3], "micro_batch": [1, 2, 4], "tensor_parallel": [1, 2, 4, 8],
            "activation_checkpointing": ["none", "full"]},
  "baseline": {"zero_stage": 3, "micro_batch": 1, "activation_checkpointing": "full"},
  "memory": {"limit_gib": 30},
  "runner": {"kind": "none"}})";

fleet::Fleet fleet_of(const std::string& clusters, const std::string& session = kSession) {
  const Json json = parse_json(session, "s");
  const session::ClustersFile file = session::read_clusters(parse_json(clusters, "c"), "c", ".");
  return fleet::study_fleet({json, "s", "."}, file, {.threads = 2});
}

constexpr const char* kTwo = R"({"clusters": [
  {"gpu": "h100-80gb", "gpus_per_node": 8, "network": "ib-ndr-400", "nodes": [1, 2, 3], "price_per_gpu_hour": 2},
  {"gpu": "l40s-48gb", "gpus_per_node": [1, 8], "price_per_gpu_hour": 1}], "tokens": 1e10})";

TEST(Fleet, HasThePlanOfEachClusterByItself) {
  const fleet::Fleet fleet = fleet_of(kTwo);
  ASSERT_EQ(fleet.plans.size(), 5U);
  for (const std::size_t row : {0U, 1U}) {
    // The same by hand: a session with this cluster, and the fastest of all configurations that surely fit.
    Json json = parse_json(kSession, "s");
    json["cluster"] = {{"gpu", "h100-80gb"}, {"gpus_per_node", 8}, {"nodes", row + 1}, {"network", "ib-ndr-400"}};
    json["memory"] = Json::object();
    json["baseline"] = nullptr;
    const session::Session session = session::read_session(json, "s", ".");
    const session::MemoryFilter filter(session);
    const forecast::Forecaster forecaster(session, filter);
    double fastest = 0.0;
    std::string text;
    session.space.for_each([&](const space::Configuration& configuration) {
      const forecast::Forecast forecast = forecaster(configuration);
      if (!forecast.cost || forecast.memory->verdict != plan::Verdict::kFits) return true;
      if (forecast.samples_per_s > fastest) text = configuration.text();
      fastest = std::max(fastest, forecast.samples_per_s);
      return true;
    });
    ASSERT_TRUE(fleet.plans[row].best) << fleet.plans[row].why_not;
    const fleet::BestOfCluster& best = *fleet.plans[row].best;
    EXPECT_EQ(best.candidate.configuration.text(), text);
    EXPECT_EQ(best.sequences, 128);
    EXPECT_DOUBLE_EQ(best.tokens_per_s.value, fastest * 8192.0);
    // Ten billion tokens at two a GPU-hour.
    const double hours = 1e10 / (fastest * 8192.0) / 3600.0;
    EXPECT_NEAR(best.days.value, hours / 24.0, 1e-9 * hours);
    EXPECT_NEAR(best.price->value, hours * 8.0 * static_cast<double>(row + 1) * 2.0, 1e-6 * hours);
    EXPECT_GE(best.network_gain.value(), 1.0);
  }
}

TEST(Fleet, KeepsTheBatchOnEverySizeOrSaysThatNoneDoes) {
  const fleet::Fleet fleet = fleet_of(kTwo);
  // 24 GPUs: replicas of 3, 6, 12 or 24 never divide 128 sequences.
  EXPECT_FALSE(fleet.plans[2].best);
  EXPECT_NE(fleet.plans[2].why_not.find("batch not divisible"), std::string::npos) << fleet.plans[2].why_not;
  for (const fleet::ClusterPlan& plan : fleet.plans) {
    if (!plan.best) continue;
    const space::Configuration& best = plan.best->candidate.configuration;
    const std::int64_t replicas = plan.cluster.ranks() / best.integer("tensor_parallel", 1);
    EXPECT_EQ(replicas * best.integer("micro_batch", 1) * best.integer("gradient_accumulation_steps", 1), 128);
  }
}

TEST(Fleet, SaysWhatDoesNotFitAndByHowMuch) {
  const fleet::Fleet fleet = fleet_of(kTwo);
  const fleet::ClusterPlan& one_card = fleet.plans[3];
  EXPECT_FALSE(one_card.best);
  EXPECT_EQ(one_card.why_not.rfind("no configuration fits: the smallest peak of a rank is ", 0), 0U)
      << one_card.why_not;
  ASSERT_TRUE(fleet.plans[4].best) << fleet.plans[4].why_not;
  EXPECT_GT(fleet.plans[4].best->network_gain.value(), 1.01) << "cards on PCIe wait for each other";
  // The limit of the session is that of its own machine.
  EXPECT_GT(fleet.plans[4].usable->count, from_gib(40.0).count);
}

TEST(Fleet, ATrainingThatFailuresNeverLetEndIsNoAnswer) {
  std::string session = kSession;
  session.insert(session.find('{') + 1,
                 R"("run": {"failures_per_gpu_day": 200, "checkpoint_s": 60, "restart_s": 600},)");
  const fleet::Fleet fleet =
      fleet_of(R"({"clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8}], "tokens": 1e10})", session);
  EXPECT_FALSE(fleet.plans[0].best);
  EXPECT_TRUE(fleet.plans[0].never_ends);
  EXPECT_NE(fleet.plans[0].why_not.find("200 failures a GPU and day"), std::string::npos) << fleet.plans[0].why_not;
}

TEST(Fleet, EfficiencyIsThatOfAGpuBesideTheSmallestSize) {
  const fleet::Fleet fleet = fleet_of(kTwo);
  EXPECT_EQ(fleet.plans[0].best->efficiency, 1.0);
  EXPECT_DOUBLE_EQ(fleet.plans[1].best->efficiency,
                   fleet.plans[1].best->tokens_per_s.value / fleet.plans[0].best->tokens_per_s.value / 2.0);
  EXPECT_EQ(fleet.plans[4].best->efficiency, 1.0) << "the first of its own cluster that fits";
}

TEST(Fleet, OfASessionThatNoClusterCanReadIsItsError) {
  Json json = parse_json(kSession, "s");
  json["workload"]["modell"] = 1;
  const session::ClustersFile file = session::read_clusters(parse_json(kTwo, "c"), "c", ".");
  try {
    fleet::study_fleet({json, "s", "."}, file, {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("s: /workload/modell: unknown key", 0), 0U) << error.what();
  }
  json.erase("workload");
  EXPECT_THROW(fleet::study_fleet({json, "s", "."}, file, {}), UserError);
}

TEST(Fleet, OfABenchSessionIsPredictedForTheSameProgram) {
  const fleet::Fleet fleet =
      fleet_of(R"({"clusters": [{"gpu": "h100-80gb", "gpus_per_node": 2}], "tokens": 1e6})",
               R"({"workload": {"model": {"preset": "gpt2-124m"}, "precision": "bf16", "train_batch_size": 8},
          "space": {"micro_batch": [1, 2, 4]}})");
  EXPECT_EQ(fleet.session.workload->framework, workload::Framework::kKrigtune);
  ASSERT_TRUE(fleet.plans[0].best);
  EXPECT_FALSE(fleet.plans[0].best->price);
  EXPECT_FALSE(fleet.has_prices());
}

// A fleet of rows with these days and prices (0: none), each on one GPU.
fleet::Fleet rows_of(const std::vector<std::pair<double, double>>& rows) {
  fleet::Fleet fleet;
  for (const auto& [days, price] : rows) {
    fleet::ClusterPlan& plan = fleet.plans.emplace_back();
    plan.best.emplace();
    plan.best->days = {days, 0.9 * days, 1.5 * days};
    if (price > 0.0) plan.best->price = fleet::Estimate{price, price, price};
  }
  return fleet;
}

TEST(Choice, TheFrontIsWhatNoOtherRowBeatsInBoth) {
  const fleet::Fleet fleet = rows_of({{10, 100}, {5, 300}, {7, 200}, {8, 250}, {5, 310}, {20, 100}, {3, 0}});
  const fleet::Choice choice = fleet::choose(fleet, std::nullopt);
  EXPECT_EQ(choice.cheapest, 0U);
  EXPECT_EQ(choice.fastest, 6U) << "without a price, but the fastest";
  EXPECT_EQ(choice.front, (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_FALSE(choice.in_time);
}

TEST(Choice, ADeadlineIsMetAsPredictedAndSurely) {
  const fleet::Fleet fleet = rows_of({{10, 100}, {5, 300}, {7, 200}});
  const fleet::Choice choice = fleet::choose(fleet, 8.0);
  EXPECT_EQ(choice.in_time, 2U);
  EXPECT_EQ(choice.surely_in_time, 1U) << "7 days may become 10.5";
  EXPECT_FALSE(choice.nearest);
  const fleet::Choice late = fleet::choose(fleet, 4.0);
  EXPECT_FALSE(late.in_time);
  EXPECT_EQ(late.nearest, 1U);
}

TEST(Choice, WithoutPricesTheFewestGpuHoursAreTaken) {
  fleet::Fleet fleet = rows_of({{10, 0}, {4, 0}});
  fleet.plans[0].best->gpu_hours = 1920.0;
  fleet.plans[1].best->gpu_hours = 3072.0;
  const fleet::Choice choice = fleet::choose(fleet, 12.0);
  EXPECT_FALSE(choice.cheapest);
  EXPECT_TRUE(choice.front.empty());
  EXPECT_EQ(choice.in_time, 0U);
}

// docs/session.md: "default: krigtune, which is krigtune-bench, with the runner bench; otherwise deepspeed".
TEST(Fleet, PlansTheFrameworkOfTheSessionsOwnRunner) {
  const auto framework_with = [](const std::optional<Json>& runner) {
    Json json = parse_json(kSession, "s");
    json["workload"].erase("framework");
    json.erase("runner");
    if (runner) json["runner"] = *runner;
    const workload::ClusterSpec cluster = workload::read_cluster(json["cluster"], "s", "/cluster", ".");
    return fleet::session_on({json, "s", "."}, cluster).workload->framework;
  };
  EXPECT_EQ(framework_with(std::nullopt), workload::Framework::kKrigtune);
  EXPECT_EQ(framework_with(Json{{"kind", "bench"}}), workload::Framework::kKrigtune);
  EXPECT_EQ(framework_with(Json{{"kind", nullptr}}), workload::Framework::kKrigtune) << "null: the default";
  EXPECT_EQ(framework_with(Json::object()), workload::Framework::kKrigtune);
  EXPECT_EQ(framework_with(Json{{"kind", "none"}}), workload::Framework::kDeepSpeed);
  EXPECT_EQ(framework_with(Json{{"kind", "command"}}), workload::Framework::kDeepSpeed);
}

TEST(Choice, OfNothingIsNothing) {
  fleet::Fleet fleet;
  fleet.plans.emplace_back();
  const fleet::Choice choice = fleet::choose(fleet, 1.0);
  EXPECT_FALSE(choice.fastest || choice.cheapest || choice.nearest);
}

}  // namespace krigtune::fleet_test
