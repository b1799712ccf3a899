// The block "objectives": what is read, written back and refused.
#include "session/objectives.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/json.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune {
namespace {

session::Session read(const std::string& text) {
  return session::read_session(parse_json(text, "s"), "s", std::filesystem::current_path());
}

std::string command_session(const std::string& objectives) {
  return R"({"space": {"a": [1, 2]}, "runner": {"kind": "command", "argv": ["run", "{a}"]}, "objectives": )" +
         objectives + "}";
}

constexpr const char* kSpeedAndPower = R"([{"metric": "throughput"}, {"metric": "power_w", "direction": "minimize"}])";

trial::Outcome measured(std::map<std::string, double> metrics, std::optional<Bytes> peak = std::nullopt) {
  trial::Measured result;
  result.metrics = std::move(metrics);
  result.peak_memory = peak;
  return result;
}

TEST(Objectives, AreReadInTheirOrder) {
  const session::Session session = read(command_session(
      R"([{"metric": "power_w", "direction": "minimize", "limit": 300, "unit": "W"}, {"metric": "throughput"}])"));
  EXPECT_EQ(session.objective.metric, "power_w");
  EXPECT_EQ(session.objective.limit, 300.0);
  ASSERT_EQ(session.others.size(), 1);
  EXPECT_EQ(session.others[0].metric, "throughput");
  EXPECT_TRUE(session.others[0].maximize);
}

TEST(Objectives, AreWrittenBackAsTheyAreRead) {
  const Json written = session::resolved(read(command_session(kSpeedAndPower)));
  EXPECT_FALSE(written.contains("objective"));
  EXPECT_EQ(session::resolved(read(written.dump())), written);
}

TEST(Objectives, OneAloneIsWrittenAsBefore) {
  const Json written = session::resolved(read(R"({"space": {"a": [1]}, "objective": {"metric": "latency"}})"));
  EXPECT_EQ(written["objective"].dump(), R"({"metric":"latency","direction":"minimize"})");
  EXPECT_FALSE(written.contains("objectives"));
}

TEST(Objectives, ThatCannotBeSearchedAreRefusedInOneLine) {
  const auto expect = [](const std::string& text, const std::string& pointer, const std::string& what) {
    const std::string refusal = user_error_of([&] { read(text); });
    EXPECT_NE(refusal.find(pointer), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(what), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  };
  expect(command_session(R"([{"metric": "throughput"}])"), "/objectives", "2 to 4 objectives");
  expect(command_session(R"({"metric": "throughput"})"), "/objectives", "2 to 4 objectives");
  expect(command_session(R"([{"metric": "throughput"}, {"metric": "throughput"}])"), "/objectives/1/metric", "twice");
  expect(command_session(R"([{"metric": "throughput"}, {"metric": "power_w"}])"), "/objectives/1/direction", "missing");
  expect(R"({"space": {"a": [1]}, "objective": {}, "objectives": )" + std::string(kSpeedAndPower) + "}", "/objectives",
         "both given");
  expect(R"({"space": {"a": [1]}, "objective": {"metric": "latency", "limit": 3}})", "/objective/limit",
         "several objectives");
  expect(R"({"workload": {"model": {"preset": "gpt2-124m"}}, "space": {"zero_stage": [0]}, "objectives": )" +
             std::string(kSpeedAndPower) + "}",
         "/objectives/1/metric", "the runner bench does not measure 'power_w'");
  expect(R"json({"space": {"a": [1, 2]}, "runner": {"kind": "command", "argv": ["run", "{a}"],
             "measure": {"tokens_per_s": {"regex": "([0-9]+)"}}}, "objectives": )json" +
             std::string(kSpeedAndPower) + "}",
         "/objectives/1/metric", "does not measure 'power_w'");
}

TEST(Objectives, OfATableNeedColumns) {
  const TemporaryDirectory directory;
  const std::filesystem::path table = directory.write("t.csv", "a,speed,peak\n1,10,100\n2,20,300\n");
  const auto session_with = [&](const std::string& metrics) {
    return R"({"space": {"a": [1, 2]}, "objectives": [{"metric": "throughput"},
               {"metric": "peak_memory_bytes", "direction": "minimize"}], "runner": {"kind": "replay", "value": "speed",
               "table": ")" +
           table.string() + "\"" + metrics + "}}";
  };
  const std::string refusal = user_error_of([&] { read(session_with("")); });
  EXPECT_NE(refusal.find("\"metrics\": {\"peak_memory_bytes\": \"COLUMN\"}"), std::string::npos) << refusal;
  const session::Session session = read(session_with(R"(, "metrics": {"peak_memory_bytes": "peak"})"));
  const trial::Outcome outcome =
      session::with_objectives(session, {{"a", std::int64_t{2}}}, session.table->look_up({{"a", std::int64_t{2}}}, 0));
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("peak_memory_bytes"), 300.0);
}

TEST(Objectives, AnOutcomeWithoutOneOfThemIsABadResult) {
  const session::Session session = read(command_session(kSpeedAndPower));
  const auto status = [&](trial::Outcome outcome) {
    return std::string(trial::status_text(session::with_objectives(session, {}, std::move(outcome))));
  };
  EXPECT_EQ(status(measured({{"throughput", 1.0}, {"power_w", 2.0}})), "ok");
  EXPECT_EQ(status(measured({{"throughput", 1.0}})), "failed");
  EXPECT_EQ(status(measured({{"throughput", 1.0}, {"power_w", std::numeric_limits<double>::quiet_NaN()}})), "failed");
  EXPECT_EQ(status(trial::OutOfMemory{}), "oom");
}

std::string with_limits(const std::string& limits) {
  return R"({"space": {"a": [1, 2]}, "runner": {"kind": "command", "argv": ["run", "{a}"]}, "objective": {"metric": "throughput"}, "limits": )" +
         limits + "}";
}

TEST(Limits, AreReadAndWrittenBack) {
  const session::Session session = read(with_limits(R"(["power_w <= 300", "loss>=-2.5e-1"])"));
  ASSERT_EQ(session.limits.size(), 2);
  EXPECT_FALSE(session.limits[0].maximize);
  EXPECT_EQ(session.limits[0].limit, 300.0);
  EXPECT_TRUE(session.limits[1].maximize);
  EXPECT_EQ(session.limits[1].limit, -0.25);
  EXPECT_EQ(session::resolved(session)["limits"], Json({"power_w <= 300", "loss >= -0.25"}));
  EXPECT_FALSE(session::resolved(read(with_limits("[]"))).contains("limits"));
}

TEST(Limits, ThatCannotBeHonouredAreRefused) {
  const auto expect = [](const std::string& text, const std::string& pointer, const std::string& what) {
    const std::string refusal = user_error_of([&] { read(text); });
    EXPECT_NE(refusal.find(pointer), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(what), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  };
  expect(with_limits(R"(["power_w < 300"])"), "/limits/0", "is not a limit");
  expect(with_limits(R"(["power_w <= much"])"), "/limits/0", "is not a limit");
  expect(with_limits(R"(["<= 3"])"), "/limits/0", "is not a limit");
  expect(with_limits(R"(["throughput >= 3"])"), "/limits/0", "is an objective");
  expect(with_limits(R"(["goodput >= 3"])"), "/limits/0", "goodput");
  expect(with_limits(R"(["loss <= 3", "loss <= 2"])"), "/limits/1", "twice");
  expect(with_limits(R"("loss <= 3")"), "/limits", "");
}

TEST(Limits, ATrialWithoutTheMetricFails) {
  const session::Session session = read(with_limits(R"(["power_w <= 300"])"));
  trial::Measured result;
  result.metrics = {{"throughput", 1.0}};
  const trial::Outcome outcome = session::with_objectives(session, {{"a", std::int64_t{1}}}, result);
  EXPECT_NE(std::get<trial::Failed>(outcome).last_lines.find("limits"), std::string::npos);
}

}  // namespace
}  // namespace krigtune
