#include "session/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

#include "forecast/learning_rate.h"
#include "search/fixtures.h"
#include "user_error.h"

namespace krigtune::goodput_test {

constexpr const char* kModel =
    R"("model": {"layers": 2, "hidden": 64, "heads": 2, "vocab": 128, "seq_len": 32}, "precision": "bf16")";

// Eight GPUs; batches of 8 to 8 * 64 * 64 sequences.
std::string text_of(const std::string& objective, const std::string& workload_more = "",
                    const std::string& runner = R"({"kind": "simulate"})") {
  return std::string(R"({"workload": {)") + kModel + workload_more +
         R"(}, "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb"},
            "space": {"zero_stage": [0, 1], "micro_batch": {"min": 1, "max": 64, "scale": "log2"},
                      "gradient_accumulation_steps": {"min": 1, "max": 64, "scale": "log2"}},
            "baseline": {"zero_stage": 1, "micro_batch": 4, "gradient_accumulation_steps": 8},
            "objective": )" +
         objective + R"(, "runner": )" + runner + "}";
}

session::Session read(const std::string& text) {
  return session::read_session(parse_json(text, "s.json"), "s.json", ".");
}

session::Session goodput_session(const std::string& more = "", const std::string& workload_more = "") {
  return read(text_of(R"({"metric": "goodput", "noise_scale": 4000)" + more + "}", workload_more));
}

space::Configuration of(std::int64_t micro_batch, std::int64_t accumulation) {
  return {{"zero_stage", std::int64_t{1}}, {"micro_batch", micro_batch}, {"gradient_accumulation_steps", accumulation}};
}

TEST(Goodput, EfficiencyIsOneAtTheBaseBatchAndFallsAsPolluxSays) {
  const session::GradientNoise noise{4000.0, 256.0};
  EXPECT_DOUBLE_EQ(session::statistical_efficiency(noise, 256.0), 1.0);
  EXPECT_DOUBLE_EQ(session::statistical_efficiency(noise, 8256.0), 4256.0 / 12256.0);
  EXPECT_GT(session::statistical_efficiency(noise, 128.0), 1.0);
  // Far below the noise scale every sample counts fully; far above it, only the number of steps counts.
  EXPECT_NEAR(session::statistical_efficiency({1e12, 256.0}, 512.0), 1.0, 1e-9);
  EXPECT_NEAR(session::statistical_efficiency({1e-6, 256.0}, 512.0), 0.5, 1e-8);
}

// A step of a + b M seconds: d/dM [M / (a + b M) / (phi + M)] = 0 at M = sqrt(a phi / b).
TEST(Goodput, IsLargestWhereTheMarginalGainVanishes) {
  const session::GradientNoise noise{4000.0, 256.0};
  const double a = 0.5;
  const double b = 2e-3;
  double best_batch = 0.0;
  double best = 0.0;
  for (double batch = 1.0; batch <= 8192.0; batch += 1.0) {
    const double goodput = batch / (a + b * batch) * session::statistical_efficiency(noise, batch);
    if (goodput > best) best_batch = batch;
    best = std::max(best, goodput);
  }
  EXPECT_EQ(best_batch, std::sqrt(a * noise.noise_scale / b));
}

// E g(B) = |G|^2 + S / B exactly.
TEST(Goodput, TheNoiseScaleFollowsFromTwoBatches) {
  const double squared_gradient = 0.3;
  const double trace = 1200.0;
  const auto norm = [&](double batch) { return session::GradientNorm{batch, squared_gradient + trace / batch}; };
  ASSERT_TRUE(session::gradient_noise_scale(norm(256), norm(2048)));
  EXPECT_NEAR(*session::gradient_noise_scale(norm(256), norm(2048)), 4000.0, 1e-6);
  EXPECT_NEAR(*session::gradient_noise_scale(norm(2048), norm(256)), 4000.0, 1e-6);
  EXPECT_FALSE(session::gradient_noise_scale({256, 1.0}, {2048, 1.1}));  // grows with the batch
  EXPECT_FALSE(session::gradient_noise_scale({256, 8.0}, {2048, 0.9}));  // falls faster than noise can
  EXPECT_FALSE(session::gradient_noise_scale({256, 1.0}, {256, 1.0}));
  const session::Session session = read(text_of(R"({"metric": "goodput", "noise_scale":
      [{"batch": 256, "squared_norm": 4.9875}, {"batch": 2048, "squared_norm": 0.8859375}]})"));
  EXPECT_NEAR(session.objective.gradient_noise->noise_scale, 4000.0, 1e-9);
}

TEST(Goodput, TakesItsBaseBatchFromTheBaseline) {
  EXPECT_EQ(goodput_session().objective.gradient_noise->base_batch, 256.0);  // 4 * 8 * 8
  EXPECT_EQ(goodput_session(R"(, "base_batch": 100)").objective.gradient_noise->base_batch, 100.0);
  const session::Session kept = goodput_session("", R"(, "train_batch_size": 256)");
  ASSERT_EQ(kept.warnings.size(), 1U);
  EXPECT_NE(kept.warnings[0].find("train_batch_size keeps the batch"), std::string::npos);
  EXPECT_EQ(session::resolved(goodput_session())["objective"].dump(),
            R"({"metric":"goodput","direction":"maximize","noise_scale":4000,"base_batch":256})");
}

TEST(Goodput, IsWorkedOutFromWhatARunnerReports) {
  const session::Session session = goodput_session();
  trial::Measured reported;
  reported.metrics = {{"samples_per_s", 100.0}, {"step_time_s", 5.12}};
  reported.value_sem = 2.0;
  const trial::Outcome outcome = session::with_goodput(session, of(8, 8), reported);  // 512 sequences
  const auto& measured = std::get<trial::Measured>(outcome);
  EXPECT_NEAR(measured.metrics.at("goodput"), 100.0 * 4256.0 / 4512.0, 1e-9);
  EXPECT_EQ(measured.metrics.at("samples_per_s"), 100.0);
  EXPECT_NEAR(measured.value_sem, 2.0 * 4256.0 / 4512.0, 1e-12);
  EXPECT_NEAR(std::get<trial::Bounded>(session::with_goodput(session, of(8, 8), trial::Bounded{50.0})).at_best,
              50.0 * 4256.0 / 4512.0, 1e-9);
  EXPECT_TRUE(
      std::holds_alternative<trial::OutOfMemory>(session::with_goodput(session, of(8, 8), trial::OutOfMemory{})));
  EXPECT_EQ(session.objective.reported_field(), "samples_per_s");
  const session::Session plain = read(text_of(R"({"metric": "throughput"})"));
  EXPECT_EQ(std::get<trial::Measured>(session::with_goodput(plain, of(8, 8), reported)).metrics, reported.metrics);
}

// 512 sequences have an efficiency of 4256 / 4512, so a goodput of 90 needs a throughput of 95.4.
TEST(Goodput, OfARivalIsTheThroughputThatMatchesIt) {
  class Capturing final : public trial::Runner {
   public:
    explicit Capturing(std::optional<trial::Rival>& seen) : seen_(seen) {}
    trial::Outcome run(const space::Configuration&, const trial::RunContext& context) override {
      seen_ = context.rival;
      return trial::Bounded{0.9 * context.rival->value};
    }

   private:
    std::optional<trial::Rival>& seen_;
  };
  const session::Session session = goodput_session();
  std::optional<trial::Rival> seen;
  const auto runner = session::with_goodput(session, std::make_unique<Capturing>(seen));
  const trial::Outcome outcome = runner->run(of(8, 8), {}, trial::Rival{"goodput", true, 90.0, 1.0});
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->metric, "samples_per_s");
  EXPECT_NEAR(seen->value, 90.0 * 4512.0 / 4256.0, 1e-9);
  EXPECT_NEAR(seen->value_sem, 4512.0 / 4256.0, 1e-9);
  EXPECT_NEAR(std::get<trial::Bounded>(outcome).at_best, 81.0, 1e-9);
}

TEST(Goodput, IsForecastAndThePriorOfTheSearch) {
  const Problem problem(goodput_session());
  const forecast::Forecaster forecaster(problem.session, problem.filter);
  const auto physics = forecast::make_physics_prior(problem.session, problem.filter);
  ASSERT_NE(physics, nullptr);
  const Eigen::VectorXd log_values = physics->log_values({of(1, 1), of(8, 8), of(64, 64)});
  const Eigen::VectorXd first = physics->log_values({of(1, 1)});
  double previous = 0.0;
  for (const auto& [micro_batch, row] : {std::pair{1, 0}, std::pair{8, 1}, std::pair{64, 2}}) {
    const space::Configuration configuration = of(micro_batch, micro_batch);
    const forecast::Forecast forecast = forecaster(configuration);
    const double batch = 8.0 * micro_batch * micro_batch;
    ASSERT_TRUE(forecast.value);
    EXPECT_NEAR(*forecast.value, forecast.samples_per_s * 4256.0 / (4000.0 + batch), 1e-9 * *forecast.value);
    if (row == 0) previous = *forecast.value;
    EXPECT_NEAR(log_values(row) - first(0), std::log(*forecast.value / previous), 1e-9);
  }
}

// In a table of throughputs that grow with the batch, the best goodput is inside, and regret is relative to it.
TEST(Goodput, OfATableIsOfItsThroughput) {
  const TemporaryDirectory directory;
  std::string table = "micro_batch,gradient_accumulation_steps,speed\n";
  for (int micro_batch = 1; micro_batch <= 64; micro_batch *= 2) {
    const double batch = 8.0 * micro_batch;
    table += std::to_string(micro_batch) + ",1," + std::to_string(batch / (0.5 + 2e-3 * batch)) + "\n";
  }
  directory.write("t.csv", table);
  const std::string text = std::string(R"({"workload": {)") + kModel + R"(}, "cluster": {"gpus_per_node": 8},
      "space": {"micro_batch": {"min": 1, "max": 64, "scale": "log2"}},
      "objective": {"metric": "goodput", "noise_scale": 100, "base_batch": 8},
      "runner": {"kind": "replay", "table": "t.csv", "value": "speed"}})";
  const session::Session session = session::read_session(parse_json(text, "s"), "s", directory / "");
  const auto runner = session::with_goodput(session, runner::make_replay_runner(*session.table));
  const trial::Measured at_128 = std::get<trial::Measured>(runner->run({{"micro_batch", std::int64_t{16}}}, {}));
  EXPECT_NEAR(at_128.metrics.at("throughput"), 128.0 / (0.5 + 0.256), 1e-5);
  EXPECT_NEAR(at_128.metrics.at("goodput"), 128.0 / (0.5 + 0.256) * 108.0 / 228.0, 1e-5);
}

TEST(Goodput, SaysWhatItLacks) {
  const auto error_of = [](const std::string& text) { return user_error_of([&] { read(text); }); };
  const auto expect = [&](const std::string& text, const std::string& part) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(text_of(R"({"metric": "goodput"})"), "/objective/noise_scale: is missing");
  expect(text_of(R"({"metric": "goodput"})"), "two batch sizes: docs/goodput.md");
  expect(text_of(R"({"metric": "goodput", "noise_scale": -1})"), "/objective/noise_scale");
  expect(text_of(R"({"metric": "goodput", "noise_scale": [{"batch": 1, "squared_norm": 1},
                     {"batch": 2, "squared_norm": 2}]})"),
         "are not those of one gradient with noise");
  expect(text_of(R"({"metric": "goodput", "noise_scale": 4000, "base_batch": 0})"), "/objective/base_batch");
  expect(text_of(R"({"metric": "goodput", "noise_scale": 4000, "direction": "minimize"})"), "is to maximize");
  expect(text_of(R"({"metric": "throughput", "noise_scale": 4000})"), "is of goodput, not of 'throughput'");
  expect(R"({"space": {"micro_batch": [1, 2]}, "objective": {"metric": "goodput", "noise_scale": 5},
             "runner": {"kind": "none"}})",
         "goodput needs to know the batch");
  const std::string unknown_batch = std::string(R"({"workload": {)") + kModel + R"(}, "space": {"zero_stage": [0, 1]},
      "objective": {"metric": "goodput", "noise_scale": 5}, "runner": {"kind": "none"}})";
  expect(unknown_batch, "there is no parameter micro_batch");
  std::string no_baseline = text_of(R"({"metric": "goodput", "noise_scale": 5})");
  const std::size_t at = no_baseline.find(R"("baseline": {)") + std::string(R"("baseline": )").size();
  no_baseline.replace(at, no_baseline.find('}', at) + 1 - at, "null");
  expect(no_baseline, "/objective/base_batch: is missing");
}

// By hand: 1024 sequences instead of 256, k = 4, phi = 4000: r = 4 * 4256 / 5024 = 3.388535...
TEST(LearningRate, FollowsTheRulesOfTheOptimizer) {
  const session::Session adam = read(text_of(R"({"metric": "throughput"})"));
  const auto advice = forecast::learning_rate_advice(adam, of(16, 8));
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->base_batch, 256);
  EXPECT_EQ(advice->batch, 1024);
  EXPECT_DOUBLE_EQ(advice->linear, 4.0);
  EXPECT_DOUBLE_EQ(advice->square_root, 2.0);
  EXPECT_DOUBLE_EQ(advice->learning_rate(), 2.0);
  EXPECT_STREQ(advice->rule(), "square-root");
  EXPECT_DOUBLE_EQ(advice->warmup_steps, 0.25);
  EXPECT_FALSE(advice->by_noise || advice->total_steps);
  const auto sgd = forecast::learning_rate_advice(
      read(text_of(R"({"metric": "throughput"})", R"(, "optimizer": "sgd")")), of(16, 8));
  EXPECT_DOUBLE_EQ(sgd->learning_rate(), 4.0);
  EXPECT_STREQ(sgd->rule(), "linear");
}

TEST(LearningRate, FollowsTheGainOfAStepWhereTheNoiseIsKnown) {
  constexpr double kGain = 4.0 * 4256.0 / 5024.0;
  const auto adam = forecast::learning_rate_advice(goodput_session(), of(16, 8));
  EXPECT_NEAR(adam->learning_rate(), std::sqrt(kGain), 1e-12);
  EXPECT_STREQ(adam->rule(), "AdaScale");
  EXPECT_NEAR(*adam->total_steps, 1.0 / kGain, 1e-12);
  const auto sgd = forecast::learning_rate_advice(goodput_session("", R"(, "optimizer": "sgd")"), of(16, 8));
  EXPECT_NEAR(sgd->learning_rate(), kGain, 1e-12);
  // McCandlish et al.: S = S_min (1 + phi / B), the number of steps to the same loss.
  EXPECT_NEAR(*sgd->total_steps, (1.0 + 4000.0 / 1024.0) / (1.0 + 4000.0 / 256.0), 1e-12);
  // Beyond the noise scale, no batch can gain more than 1 + phi / M0.
  const auto most =
      forecast::learning_rate_advice(goodput_session(R"(, "base_batch": 1)", R"(, "optimizer": "sgd")"), of(64, 64));
  EXPECT_LT(most->learning_rate(), 4001.0);
}

TEST(LearningRate, IsNotSpokenOfWhereTheBatchStays) {
  const session::Session session = read(text_of(R"({"metric": "throughput"})"));
  EXPECT_FALSE(forecast::learning_rate_advice(session, of(8, 4)));
  EXPECT_TRUE(forecast::learning_rate_advice(session, of(8, 8)));
  EXPECT_FALSE(
      forecast::learning_rate_advice(plain_session(R"({"micro_batch": [1, 2]})"), {{"micro_batch", std::int64_t{2}}}));
}

}  // namespace krigtune::goodput_test
