#include "forecast/predicted_step.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/json.h"
#include "user_error.h"

namespace krigtune::predicted_step_test {

session::Session session_of(const std::string& cluster) {
  return session::read_session(parse_json(R"({
    "workload": {"model": {"preset": "gpt2-350m"}, "precision": "bf16", "train_batch_size": 64, "framework": "megatron"},
    "cluster": )" + cluster + R"(, "baseline": null, "runner": {"kind": "none"},
    "space": {"micro_batch": [1, 2, 4], "pipeline_parallel": [1, 2, 4], "zero_stage": [0, 1]}})",
                                          "test"),
                               "test", ".");
}

session::Session on_gpus() {
  return session_of(R"({"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb", "network": "ib-hdr-200"})");
}

space::Configuration completed(const session::Session& session, std::int64_t stages) {
  space::Configuration configuration = {
      {"micro_batch", std::int64_t{2}}, {"pipeline_parallel", stages}, {"zero_stage", std::int64_t{1}}};
  EXPECT_EQ(session.space.complete(configuration), space::Exclusion::kNone);
  return configuration;
}

struct Shown {
  std::set<std::string> processes;
  std::map<std::string, int> spans;  ///< by category
  double end_s = 0.0;
};

Shown shown(const std::string& trace) {
  constexpr double kMicro = 1e-6;
  Shown seen;
  const Json document = parse_json(trace, "trace");
  for (const Json& event : document.at("traceEvents")) {
    if (event["name"] == "process_name") seen.processes.insert(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    ++seen.spans[event["cat"].get<std::string>()];
    EXPECT_GE(event["dur"].get<double>(), 0.0);
    seen.end_s = std::max(seen.end_s, kMicro * (event["ts"].get<double>() + event["dur"].get<double>()));
  }
  return seen;
}

TEST(PredictedTrace, LastsAsLongAsThePredictedStep) {
  const session::Session session = on_gpus();
  const session::MemoryFilter filter(session);
  const forecast::Forecaster forecaster(session, filter);
  for (const std::int64_t stages : {1, 2, 4}) {
    const space::Configuration configuration = completed(session, stages);
    const Shown seen = shown(forecast::predicted_trace(session, forecaster, configuration));
    const double step_s = forecaster(configuration).cost->step_time_s;
    if (stages == 1) {
      EXPECT_EQ(seen.processes, std::set<std::string>{"rank 0"});
      EXPECT_NEAR(seen.end_s / step_s, 1.0, 0.1) << "krigtune-bench's own operations, without what is once a step";
      continue;
    }
    EXPECT_EQ(seen.processes.size(), static_cast<std::size_t>(stages));
    EXPECT_NEAR(seen.end_s / step_s, 1.0, 1e-9);
    const int micro_steps = static_cast<int>(configuration.integer("gradient_accumulation_steps", 0));
    EXPECT_EQ(micro_steps, 64 / 2 / (8 / stages));
    EXPECT_EQ(seen.spans.at("forward"), stages * micro_steps);
    EXPECT_EQ(seen.spans.at("backward"), stages * micro_steps);
    EXPECT_EQ(seen.spans.at("send"), 2 * (stages - 1) * micro_steps) << "activations on, gradients back";
  }
}

TEST(PredictedTrace, IsRefusedWhereNothingIsKnownOfTheMachine) {
  const session::Session session = session_of(R"({"gpus_per_node": 8})");
  const session::MemoryFilter filter(session);
  const forecast::Forecaster forecaster(session, filter);
  const std::string refused = user_error_of([&] {
    forecast::predicted_trace(session, forecaster, {{"micro_batch", std::int64_t{2}}});
  });
  EXPECT_EQ(refused.rfind("no step can be predicted: name the cluster's \"gpu\"", 0), 0U) << refused;
}

}  // namespace krigtune::predicted_step_test
