#include "session/session.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/text.h"
#include "search/fixtures.h"
#include "search/strategies/strategy.h"
#include "user_error.h"

namespace krigtune::session_test {

constexpr const char* kModel =
    R"("model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}, "precision": "fp32")";

// A small bench session; `more` has further keys, `space` is its block.
std::string bench_session(const std::string& more = "",
                          const std::string& space = R"({"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4]})",
                          int batch = 8) {
  return std::string("{\"workload\": {") + kModel + ", \"train_batch_size\": " + std::to_string(batch) +
         R"(}, "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local"}, "memory": {"limit_gib": 1}, "space": )" +
         space + R"(, "runner": {"kind": "bench"})" + more + "}";
}

session::Session read(const std::string& text, const std::filesystem::path& base = ".") {
  return session::read_session(parse_json(text, "s.json"), "s.json", base);
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { read(text); });
}

// A session of DeepSpeed on a published GPU; `space` is its block.
std::string also_not_modelled(const std::string& space, const std::string& gpu = "h100-80gb", int gpus = 8,
                              const std::string& framework = "deepspeed", int seq_len = 512) {
  const session::Session session = read(
      R"({"workload": {"model": {"preset": "llama-7b", "seq_len": )" + std::to_string(seq_len) +
      R"(}, "precision": "bf16", "framework": ")" + framework + R"("}, "cluster": {"gpus_per_node": )" +
      std::to_string(gpus) + R"(, "gpu": ")" + gpu + R"("}, "space": )" + space + R"(, "runner": {"kind": "none"}})");
  EXPECT_TRUE(session.workload->caveats.not_modelled.empty());  // memory still excludes
  return join(session.workload->caveats.also_not_modelled, "; ");
}

TEST(Session, NamesTheUpdateOnAHostThatSeveralRanksShare) {
  const std::string offloads = R"({"zero_stage": [2], "offload_optimizer": ["none", "cpu"]})";
  EXPECT_EQ(also_not_modelled(offloads).find("the 8 ranks that share the processors of a node"), 0U);
  EXPECT_EQ(also_not_modelled(offloads, "h100-80gb", 1), "");
  EXPECT_EQ(also_not_modelled(R"({"zero_stage": [2], "offload_optimizer": ["none"]})"), "");
  EXPECT_EQ(also_not_modelled(offloads, "local"), "") << "what was measured there is calibrated";
}

TEST(Session, NamesTheHostsWorkAtStageThreeWhereKernelsAreShorter) {
  const std::string small = R"({"zero_stage": [1, 2, 3], "micro_batch": [1, 2]})";
  EXPECT_EQ(
      also_not_modelled(small),
      "the host's work for each module at ZeRO stage 3: more time where a rank has fewer than about 3900 tokens in a "
      "micro-step; published ones of 512 took 0.4 and 0.6 s");
  EXPECT_EQ(also_not_modelled(R"({"zero_stage": [3], "micro_batch": [8, 16]})"), "") << "4096 tokens and more";
  EXPECT_EQ(also_not_modelled(R"({"zero_stage": [1, 2], "micro_batch": [1]})"), "");
  EXPECT_EQ(also_not_modelled(small, "h100-80gb", 8, "fsdp"), "");
  EXPECT_NE(also_not_modelled(small, "a100-80gb"), "");
  EXPECT_EQ(also_not_modelled(small, "a100-80gb", 8, "deepspeed", 2048), "") << "a slower GPU";
}

// Which layers have no experts is known of both models; where spread ones are in their stage is not planned.
TEST(Session, AssumesAnOrderOfLayersThatAlternate) {
  const auto assumes_order = [](const std::string& model) {
    const session::Session session =
        read(R"({"workload": {"model": {"preset": ")" + model + R"(", "seq_len": 4096}, "precision": "bf16",
            "framework": "megatron"}, "cluster": {"gpus_per_node": 8, "gpu": "h100-80gb"},
            "space": {"expert_parallel": [1, 8]}, "runner": {"kind": "none"}})");
    EXPECT_EQ(join(session.workload->caveats.not_modelled, "; ").find("experts"), std::string::npos);
    return is_one_of("layers without experts come before the others of their pipeline stage",
                     session.workload->caveats.assumed);
  };
  EXPECT_TRUE(assumes_order("meta-llama/Llama-4-Maverick-17B-128E"));
  EXPECT_FALSE(assumes_order("deepseek-ai/DeepSeek-V3"));
}

TEST(Session, FillsInTheDefaults) {
  const session::Session session = read(bench_session());
  EXPECT_EQ(session.objective.metric, "throughput");
  EXPECT_EQ(session.objective.field, "samples_per_s");
  EXPECT_TRUE(session.objective.maximize);
  EXPECT_EQ(session.budget.trials, 30);
  EXPECT_FALSE(session.budget.hours || session.budget.patience);
  EXPECT_EQ(session.grid.order, session::GridOrder::kSeed);
  ASSERT_TRUE(session.usable_per_rank);
  EXPECT_EQ(session.usable_per_rank->count, std::int64_t{1} << 30);  // no reserve, because the plan is exact
  EXPECT_EQ(session.space.count(), 12);
  EXPECT_TRUE(session.warnings.empty());
}

TEST(Session, GivesLeftOutParametersOfTheBaselineTheirDefaults) {
  const char* space =
      R"({"zero_stage": [3, 2, 1, 0], "micro_batch": [1, 2, 4], "reduce_bucket_size": [100, 1000], "overlap_comm": [true, false]})";
  const session::Session session = read(bench_session(R"(, "baseline": {"micro_batch": 4})", space));
  ASSERT_TRUE(session.baseline);
  EXPECT_EQ(session.baseline->integer("zero_stage", -1), 0);
  EXPECT_EQ(session.baseline->integer("micro_batch", -1), 4);
  EXPECT_FALSE(session.baseline->boolean("overlap_comm", true));
  EXPECT_EQ(session.baseline->integer("gradient_accumulation_steps", -1), 1);  // 8 / (4 * 2)
  EXPECT_TRUE(session.baseline->has("reduce_bucket_size"));
}

TEST(Session, RunsTheDefaultsAsBaselineWhenNoneIsGivenAndNoneForNull) {
  const session::Session with_default = read(bench_session());
  ASSERT_TRUE(with_default.baseline);
  EXPECT_EQ(with_default.baseline->integer("zero_stage", -1), 0);
  EXPECT_EQ(with_default.baseline->integer("micro_batch", -1), 1);
  EXPECT_FALSE(read(bench_session(R"(, "baseline": null)")).baseline);
}

TEST(Session, WarnsWhenTheDefaultsAreNoConfiguration) {
  std::string text = bench_session("", R"({"zero_stage": [2, 3], "micro_batch": [2, 4]})", 8);
  const std::string small = R"("limit_gib": 1)";
  text.replace(text.find(small), small.size(), R"("limit_gib": 0.000001)");
  const session::Session session = read(text);
  EXPECT_FALSE(session.baseline);
  ASSERT_EQ(session.warnings.size(), 1u);
  EXPECT_NE(session.warnings[0].find("does not fit in memory"), std::string::npos) << session.warnings[0];
}

TEST(Session, TakesABaselineOutsideTheLists) {
  const session::Session session = read(bench_session(R"(, "baseline": {"zero_stage": 1, "micro_batch": 4})",
                                                      R"({"zero_stage": [2, 3], "micro_batch": [1, 2]})"));
  ASSERT_TRUE(session.baseline);
  EXPECT_EQ(session.baseline->text(), "zero_stage=1 micro_batch=4 gradient_accumulation_steps=1");
  EXPECT_FALSE(session.space.contains(*session.baseline));
}

TEST(Session, DerivesTheBaselinesAccumulationWhereItIsAParameterToo) {
  const session::Session session = read(bench_session(
      R"(, "baseline": {"micro_batch": 2})", R"({"micro_batch": [1, 2], "gradient_accumulation_steps": [2, 4]})"));
  EXPECT_EQ(session.baseline->integer("gradient_accumulation_steps", -1), 2);
}

struct Bad {
  const char* name;
  std::string text;
  std::string message;  ///< the place, and what is wrong
  std::string fix;
};

class BadSession : public testing::TestWithParam<Bad> {};

TEST_P(BadSession, IsRefusedInOneLineWithThePlaceAndTheMend) {
  const std::string message = error_of(GetParam().text);
  EXPECT_EQ(message.rfind("s.json: ", 0), 0u) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().fix), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

std::string replay(const std::string& more) { return R"({"space": {"a": [1, 2]}, "runner": )" + more + "}"; }

INSTANTIATE_TEST_SUITE_P(
    Table, BadSession,
    testing::Values(
        Bad{"unknown_key", bench_session(R"(, "budgt": {})"), "/budgt: unknown key", "did you mean 'budget'?"},
        Bad{"unknown_budget_key", bench_session(R"(, "budget": {"trails": 3})"), "/budget/trails", "'trials'"},
        Bad{"no_trials", bench_session(R"(, "budget": {"trials": 0})"), "/budget/trials", "from 1"},
        Bad{"negative_hours", bench_session(R"(, "budget": {"hours": -1})"), "/budget/hours", "null"},
        Bad{"negative_gpu_hours", bench_session(R"(, "budget": {"gpu_hours": -5})"),
            "/budget/gpu_hours: -5 is out of range", "null"},
        Bad{"regret_in_percent", bench_session(R"(, "budget": {"regret": 1})"), "/budget/regret: 1 is out of range",
            "0.01 for 1 %"},
        Bad{"negative_gain", bench_session(R"(, "budget": {"least_gain": -0.1})"),
            "/budget/least_gain: -0.1 is out of range", "0 for no such rule"},
        Bad{"confidence_in_percent", bench_session(R"(, "budget": {"confidence": 95})"),
            "/budget/confidence: 95 is out of range", "0.95"},
        Bad{"nothing_to_train", bench_session(R"(, "budget": {"run_gpu_hours": 0})"),
            "/budget/run_gpu_hours: 0 is out of range", "null"},
        Bad{"contrary_direction", bench_session(R"(, "objective": {"metric": "latency", "direction": "maximize"})"),
            "/objective/direction: 'latency' is to minimize", "leave the direction out"},
        Bad{"misspelt_direction", bench_session(R"(, "objective": {"direction": "maximise"})"), "/objective/direction",
            "did you mean 'maximize'?"},
        Bad{"no_direction", bench_session(R"(, "objective": {"metric": "exposed_comm_s"})"), "/objective/direction",
            "minimize"},
        Bad{"goodput", bench_session(R"(, "objective": {"metric": "goodput"})"), "/objective/noise_scale: is missing",
            "docs/goodput.md"},
        Bad{"grid_order", bench_session(R"(, "grid": {"order": "sesion"})"), "/grid/order", "'session'"},
        Bad{"baseline_batch", bench_session(R"(, "baseline": {"micro_batch": 3})"), "/baseline: batch not divisible",
            "train_batch_size"},
        Bad{"baseline_name", bench_session(R"(, "baseline": {"zero_stag": 3})"), "/baseline/zero_stag", "zero_stage"},
        Bad{"baseline_kind", bench_session(R"(, "baseline": {"micro_batch": "four"})"), "/baseline", ""},
        Bad{"baseline_accumulation", bench_session(R"(, "baseline": {"gradient_accumulation_steps": 3})"),
            "/baseline/gradient_accumulation_steps: is 3, but", "leave it out"},
        Bad{"unknown_parameter", bench_session("", R"({"micro_bach": [1, 2]})"), "/space/micro_bach", "'micro_batch'"},
        Bad{"unexecuted_parameter", bench_session("", R"({"pipeline_parallel": [1, 2]})"), "/space/pipeline_parallel",
            "write 1"},
        Bad{"bad_stage", bench_session("", R"({"zero_stage": [0, 7]})"), "/space/zero_stage", ""},
        Bad{"empty_space", bench_session("", R"({"micro_batch": [3]})"), "/space: no configuration is left: batch not",
            "train_batch_size"},
        Bad{"no_workload", R"({"space": {"micro_batch": [1, 2]}, "runner": {"kind": "bench"}})",
            "/workload: is missing", "add it"},
        Bad{"no_space", R"({"runner": {"kind": "bench"}})", "/space: is missing", "add it"},
        Bad{"unknown_runner", replay(R"({"kind": "benhc"})"), "/runner/kind", "bench"}),
    [](const auto& param_info) { return param_info.param.name; });

class ReplaySession : public testing::Test {
 protected:
  ReplaySession() {
    write_atomically(directory_ / "t.csv",
                     "tp,pp,ms,status,model\n1,1,100,ok,A\n1,2,80,ok,A\n2,1,,oom,A\n2,2,60,ok,A\n4,1,1,ok,B\n");
  }
  session::Session read_replay(const std::string& more = "", const std::string& where = R"({"model": "A"})") const {
    return read(
        R"({"space": {"tensor_parallel": [1, 2, 4], "pipeline_parallel": [1, 2]}, "objective": {"metric": "latency"},
      "runner": {"kind": "replay", "table": "t.csv", "where": )" +
            where + R"(, "columns": {"tensor_parallel": "tp", "pipeline_parallel": "pp"}, "value": "ms",
      "status": "status"})" +
            more + "}",
        directory_.path());
  }
  TemporaryDirectory directory_;
};

TEST_F(ReplaySession, HoldsOnlyWhatTheTableHolds) {
  const session::Session session = read_replay();
  EXPECT_EQ(session.space.count(), 4);
  EXPECT_FALSE(session.baseline);
  EXPECT_TRUE(session.warnings.empty());
  EXPECT_FALSE(session.objective.maximize);
  EXPECT_EQ(session.objective.field, "latency");  // the runner names the column; the metric is a label
  EXPECT_EQ(session.table->optimum(session.space), 60.0);
  EXPECT_FALSE(session.usable_per_rank);
}

TEST_F(ReplaySession, WarnsOnceThatItsBaselineIsNotRun) {
  const session::Session session = read_replay(R"(, "baseline": {"tensor_parallel": 1})");
  EXPECT_FALSE(session.baseline);
  ASSERT_EQ(session.warnings.size(), 1u);
  EXPECT_NE(session.warnings[0].find("baseline"), std::string::npos);
}

TEST_F(ReplaySession, SaysWhatPredictionsOfItsParametersLeaveOut) {
  const std::string workload = std::string(", \"workload\": {") + kModel + "}";
  const std::string gpus = R"(, "cluster": {"gpus_per_node": 4, "gpu": "a100-80gb"})";
  write_atomically(directory_ / "t.csv", "tp,pp,ms,status,model,lr\n1,1,100,ok,A,1\n2,2,60,ok,A,1\n");
  const session::Session known = read_replay(workload + gpus);
  EXPECT_TRUE(known.warnings.empty());
  EXPECT_TRUE(known.usable_per_rank);
  EXPECT_EQ(known.workload->framework, workload::Framework::kDeepSpeed);
  EXPECT_EQ(known.workload->dialect, workload::Dialect::kDeepSpeed);

  const session::Session unknown =
      read(R"({"space": {"tensor_parallel": [1, 2], "lr": [1]}, "objective": {"metric": "latency"},
      "runner": {"kind": "replay", "table": "t.csv", "columns": {"tensor_parallel": "tp"}, "value": "ms"})" +
               workload + gpus + "}",
           directory_.path());
  ASSERT_EQ(unknown.warnings.size(), 1u);
  EXPECT_NE(unknown.warnings[0].find("predictions of memory and time leave out lr"), std::string::npos);
  EXPECT_TRUE(unknown.usable_per_rank);
}

TEST_F(ReplaySession, RefusesATableWithoutARowOfTheSpace) {
  EXPECT_THROW(read_replay("", R"({"model": "C"})"), UserError);
}

TEST_F(ReplaySession, ReadsBackAsResolved) {
  const session::Session session =
      read_replay(R"(, "budget": {"trials": 7, "hours": 0.5, "patience": 3}, "grid": {"order": "session"})");
  const Json json = session::resolved(session);
  const session::Session again = session::read_session(parse_json(json.dump(), "r"), "r", "/");
  EXPECT_EQ(session::resolved(again).dump(), json.dump());
  EXPECT_EQ(again.space.count(), 4);
  EXPECT_EQ(again.budget.trials, 7);
  EXPECT_EQ(again.budget.hours, 0.5);
  EXPECT_EQ(again.budget.patience, 3);
  EXPECT_EQ(again.grid.order, session::GridOrder::kSession);
}

TEST(Session, ReadsBackAsResolvedWithWorkloadAndBaseline) {
  const char* space =
      R"({"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 4, "scale": "log2"}, "reduce_bucket_size": {"min": 100, "max": 20000, "scale": "log", "steps": 4}})";
  for (const char* baseline : {R"(, "baseline": {"micro_batch": 4})", R"(, "baseline": null)", ""}) {
    const session::Session session = read(bench_session(baseline, space));
    const Json json = session::resolved(session);
    const session::Session again = session::read_session(parse_json(json.dump(), "r"), "r", "/");
    EXPECT_EQ(session::resolved(again).dump(), json.dump());
    EXPECT_EQ(again.baseline, session.baseline);
    for (std::size_t i = 0; i < session.space.parameters().size(); ++i) {
      EXPECT_EQ(again.space.parameters()[i].scale, session.space.parameters()[i].scale);
    }
  }
}

TEST_F(ReplaySession, ReplaysTheTrialsOfADirectory) {
  write_atomically(directory_ / "trials.csv",
                   "trial,status,zero_stage,micro_batch,value\n0,ok,0,1,10\n1,oom,1,2,\n2,ok,2,4,30\n");
  const session::Session recorded = session::with_recorded_trials(read(bench_session()), directory_ / "trials.csv");
  EXPECT_EQ(recorded.space.count(), 3);
  EXPECT_EQ(recorded.table->optimum(recorded.space), 30.0);
  EXPECT_FALSE(recorded.baseline);
}

TEST(MemoryFilter, KeepsWhatCannotFitFromBeingAsked) {
  session::Session session = read(bench_session());
  const session::MemoryFilter generous(session);
  std::int64_t largest = 0;
  session.space.for_each([&](const space::Configuration& configuration) {
    largest = std::max(largest, generous.check(configuration)->predicted.count);
    return true;
  });
  session.usable_per_rank = Bytes{largest - 1};
  const Problem problem(session);
  EXPECT_LT(problem.candidates.size(), 12u);
  EXPECT_EQ(problem.candidates.space_count(), 12);
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    EXPECT_LT(problem.candidates.memory_of(i)->predicted.count, largest);
  }
  for (const search::StrategyKind kind : search::all_strategies()) {
    const search::History history =
        problem.drive(kind, 1, 50, [&](const space::Configuration&) { return measured(problem.session, 1.0); });
    const bool asks_all = kind == search::StrategyKind::kBayes || kind == search::StrategyKind::kRandom;
    EXPECT_GE(history.size(), asks_all ? problem.candidates.size() : std::size_t{5}) << search::to_string(kind);
    for (std::size_t i = 1; i < history.size(); ++i) {
      EXPECT_TRUE(problem.filter.may_fit(history[i].proposal.configuration)) << search::to_string(kind);
    }
  }
}

}  // namespace krigtune::session_test
