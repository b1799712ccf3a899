// Constraints, continuous ranges, conditional parameters, and runners whose programs krigtune does not know.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "run/run_directory.h"
#include "search/fixtures.h"
#include "user_error.h"

namespace krigtune::session_space_test {

constexpr const char* kWorkload = R"("workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64,
    "seq_len": 16}, "precision": "fp32", "train_batch_size": 8})";
constexpr const char* kCluster = R"("cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local"})";

session::Session read(const std::string& text) {
  return session::read_session(parse_json(text, "s.json"), "s.json", "/");
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { read(text); });
}

// A session whose trials are told by hand; `keys` follow the space.
std::string plain(const std::string& space, const std::string& keys = "") {
  return R"({"objective": {"metric": "speed", "direction": "maximize"}, "space": )" + space + keys + "}";
}

std::string with_workload(const std::string& space, const std::string& keys = "") {
  return std::string("{") + kWorkload + ", " + kCluster + R"(, "memory": {"limit_gib": 4}, "space": )" + space + keys +
         "}";
}

constexpr const char* kCommand = R"(, "runner": {"kind": "command", "argv": ["run.sh", "{config}", "{result}"]})";

TEST(Constraints, KeepWhatTheyHoldFor) {
  const session::Session session =
      read(plain(R"({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]})", R"(, "constraints": ["a * b <= 4", "a != 4"])"));
  EXPECT_EQ(session.space.count(), 7);  // of the eight points with a b <= 4, (4, 1) is excluded
  session.space.for_each([](const space::Configuration& c) {
    EXPECT_LE(c.integer("a", 0) * c.integer("b", 0), 4);
    return true;
  });
}

// Several stages a rank are interleaved 1F1B or ZB-H1.
TEST(Constraints, LeaveOutStagesThatASchedulesRanksDoNotHave) {
  const session::Session session = read(with_workload(R"({"pipeline_parallel": [1, 2], "virtual_pipeline": [1, 2],
                        "pipeline_schedule": ["1f1b", "zb-h1", "zb-h2", "zb-v"]})",
                                                      kCommand));
  EXPECT_EQ(session.space.count(), 1 + 4 + 2);
  session.space.for_each([](const space::Configuration& c) {
    const std::string schedule = space::to_string(*c.find("pipeline_schedule"));
    EXPECT_TRUE(c.integer("virtual_pipeline", 1) == 1 || schedule == "1f1b" || schedule == "zb-h1") << c.text();
    return true;
  });
  const auto& assumed = session.workload->caveats.assumed;
  EXPECT_TRUE(std::ranges::any_of(assumed, [](const std::string& one) { return one.starts_with("zero-bubble"); }));
}

TEST(Constraints, MayUseFactsOfTheJob) {
  const session::Session session = read(
      with_workload(R"({"micro_batch": [1, 2, 4]})",
                    R"(, "constraints": ["micro_batch * seq_len <= 32", "nodes * gpus_per_node == ranks && dp == 2",
          "layers == 2 && hidden == 32 && heads == 2 && kv_heads == 2 && vocab == 64 && train_batch_size == 8"])"));
  EXPECT_EQ(session.space.count(), 2);  // 4 * 16 = 64 exceeds the batch
}

// 512 ranks and 8 heads of keys and values.
std::string of_many_clusters(const std::string& space, const std::string& keys = "") {
  return R"({"workload": {"model": {"preset": "llama-3-8b"}, "train_batch_size": 512}, "cluster": {"nodes": 64,
             "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-ndr-400"}, "runner": {"kind": "simulate"}, "space": )" +
         space + keys + "}";
}

TEST(UnusableValues, AreLeftOutWithOneRemark) {
  const session::Session session = read(of_many_clusters(
      R"({"tensor_parallel": [1, 2, 4, 8, 16], "pipeline_parallel": [1, 2, 4, 5, 8, 64], "micro_batch": [1]})"));
  EXPECT_EQ(session.space.find("tensor_parallel")->values.size(), 4U);
  EXPECT_EQ(session.space.find("pipeline_parallel")->values.size(), 4U);
  ASSERT_EQ(session.left_out.size(), 2U);
  EXPECT_EQ(session.left_out[1].parameter, "pipeline_parallel");
  EXPECT_EQ(session.left_out[1].values, (std::vector<space::Value>{std::int64_t{5}, std::int64_t{64}}));
  const auto remark = [](const std::string& line) { return line.rfind("values are left out", 0) == 0; };
  EXPECT_EQ(std::count_if(session.warnings.begin(), session.warnings.end(), remark), 1);
  EXPECT_EQ(*std::find_if(session.warnings.begin(), session.warnings.end(), remark),
            "values are left out of the space: tensor_parallel = 16 does not divide 8 kv_heads, pipeline_parallel = 5 "
            "does not divide 512 ranks, pipeline_parallel = 64 is out of range");
  const session::Session again = read(session::resolved(session).dump());
  EXPECT_EQ(again.space.count(), session.space.count());
  EXPECT_TRUE(again.left_out.empty());
}

TEST(UnusableValues, AreAnErrorWhereNoOtherIsLeftOrNoJobCouldUseThem) {
  EXPECT_EQ(error_of(of_many_clusters(R"({"tensor_parallel": [16, 32], "micro_batch": [1]})")),
            "s.json: /space/tensor_parallel: tensor_parallel = 16 does not divide 8 kv_heads; choose another size");
  EXPECT_EQ(error_of(of_many_clusters(R"({"zero_stage": [1, 4], "micro_batch": [1]})")),
            "s.json: /space/zero_stage: zero_stage = 4 is out of range; use 0 to 3");
}

TEST(UnusableValues, OfTwoParametersTogetherAreAConstraint) {
  const std::string space = R"({"tensor_parallel": [1, 2, 4], "sequence_parallel": [false, true], "micro_batch": [1]})";
  const std::string odd = of_many_clusters(space);
  const std::string preset = R"({"preset": "llama-3-8b"})";
  const auto with_length = [&](const std::string& length) {
    std::string text = odd;
    return read(
        text.replace(text.find(preset), preset.size(), R"({"preset": "llama-3-8b", "seq_len": )" + length + "}"));
  };
  const session::Session session = with_length("4098");  // 4 does not divide it
  EXPECT_EQ(session.space.constraints().back().text(), "!sequence_parallel || seq_len % tensor_parallel == 0");
  EXPECT_EQ(session.space.count() + 1, with_length("4096").space.count());
  EXPECT_EQ(session.space.find("tensor_parallel")->values.size(), 3U) << "4 is usable without sequence_parallel";
}

TEST(Constraints, OfDeepSpeedForbidPipelinesWithStagesTwoAndThree) {
  const auto session_of = [](const std::string& framework) {
    return read(R"({"workload": {"model": {"preset": "llama-2-7b"}, "train_batch_size": 64, "framework": ")" +
                framework +
                R"("}, "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4"},
                "space": {"zero_stage": [1, 2, 3], "pipeline_parallel": [1, 2]}, "runner": {"kind": "none"}})");
  };
  const session::Session deepspeed = session_of("deepspeed");
  EXPECT_EQ(deepspeed.space.count(), 4);  // stages 1 to 3 alone, and stage 1 with two pipeline stages
  EXPECT_EQ(session_of("megatron").space.count(), 6);
  // A recorded session has the constraint, and it is not added again.
  const Json resolved = session::resolved(deepspeed);
  ASSERT_EQ(resolved.at("constraints").size(), 1);
  EXPECT_EQ(session::read_session(resolved, "session", "").space.constraints().size(), 1);
}

struct Bad {
  const char* name;
  std::string text;
  std::string begin;  ///< of the line: the place, and the error
  std::string fix;
};

class BadSpace : public testing::TestWithParam<Bad> {};

TEST_P(BadSpace, IsRefusedInOneLineWithThePlaceAndTheMend) {
  const std::string message = error_of(GetParam().text);
  EXPECT_EQ(message.rfind("s.json: " + GetParam().begin, 0), 0U) << message;
  EXPECT_NE(message.find(GetParam().fix), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

constexpr const char* kSmall = R"({"a": [1, 2, 3]})";

INSTANTIATE_TEST_SUITE_P(
    Table, BadSpace,
    testing::Values(
        Bad{"syntax", plain(kSmall, R"(, "constraints": ["a > 1", "a * 2 <= 4 +"])"),
            "/constraints/1: at character 13: ", ";"},
        Bad{"unknown_name", plain(kSmall, R"(, "constraints": ["a > 1", "aa < 3"])"), "/constraints/1: ", "'a'"},
        Bad{"no_list", plain(kSmall, R"(, "constraints": "a > 1")"), "/constraints: a list of strings", "["},
        Bad{"no_text", plain(kSmall, R"(, "constraints": [true])"), "/constraints: a list of strings", "["},
        Bad{"unsatisfiable", plain(R"({"a": [1, 2, 3], "b": [1, 2]})", R"(, "constraints": ["a + b > 9"])"),
            "/constraints/0: no configuration is left: constraint 'a + b > 9' (6)", "loosen"},
        Bad{"unsatisfiable_and_batch",
            with_workload(R"({"micro_batch": [1, 3, 4]})", R"(, "constraints": ["micro_batch > 4"])"),
            "/constraints/0: no configuration is left: constraint 'micro_batch > 4' (2), batch not divisible (1)",
            "loosen"},
        Bad{"unsatisfiable_real",
            plain(R"({"x": {"type": "real", "min": 0, "max": 1}})", R"(, "constraints": ["x > 2"])"),
            "/constraints/0: no configuration is left", "loosen"},
        Bad{"factorial_of_reals",
            plain(R"({"x": {"type": "real", "min": 0, "max": 1}})", R"(, "grid": {"order": "session"})"),
            "/grid/order: ", "steps"},
        Bad{"bench_real",
            with_workload(R"({"overlap_comm": {"type": "real", "min": 0, "max": 1}})",
                          R"(, "runner": {"kind": "bench"})"),
            "/space/overlap_comm: krigtune-bench takes no real numbers", "list its values"},
        Bad{"nccl_on_an_emulated_network",
            R"({"workload": {"model": {"preset": "gpt2-124m"}, "precision": "fp32", "train_batch_size": 8},
              "cluster": {"gpus_per_node": 2, "emulate_network": "ib-hdr-200"},
              "space": {"nccl_max_ctas": [0, 8]}, "runner": {"kind": "bench"}})",
            "/space/nccl_max_ctas: krigtune-bench does not execute", "leave it out"},
        Bad{"nccl_value", with_workload(R"({"nccl_buffers": ["plain", "fast"]})", R"(, "runner": {"kind": "bench"})"),
            "/space/nccl_buffers: nccl_buffers = fast is not known", "symmetric"},
        Bad{"baseline_kind", plain(kSmall, R"(, "baseline": {"a": "one"})"),
            "/baseline/a: a number was expected, not \"one\"", "as in the space"},
        Bad{"baseline_name", plain(kSmall, R"(, "baseline": {"b": 1})"), "/baseline/b: ", "'a'"}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(Objectives, KeepTheNoiseFromRunToRunThatTheSessionSays) {
  const session::Session usual = read(plain(kSmall));
  EXPECT_EQ(usual.objective.run_noise, session::kUsualRunNoise);
  EXPECT_FALSE(session::resolved(usual).at("objective").contains("run_noise"));
  std::string text = plain(kSmall);
  text.insert(text.find("\"metric\""), "\"run_noise\": 0.2, ");
  const session::Session noisy = read(text);
  EXPECT_EQ(noisy.objective.run_noise, 0.2);
  EXPECT_EQ(read(session::resolved(noisy).dump()).objective.run_noise, 0.2);
}

TEST(Runners, AreTheBenchWithAWorkloadAndNobodyWithout) {
  EXPECT_TRUE(runner::is<runner::BenchSpec>(read(with_workload(R"({"micro_batch": [1, 2]})")).runner));
  const session::Session none = read(plain(kSmall));
  EXPECT_TRUE(runner::is<runner::NoRunner>(none.runner));
  EXPECT_EQ(session::resolved(none).at("runner"), parse_json(R"({"kind": "none"})", "t"));
  EXPECT_EQ(none.objective.field, "speed");
}

// How NCCL exchanges changes no plan. With one rank it changes nothing at all.
TEST(Runners, OfTheBenchExecuteNcclsParameters) {
  const std::string space = R"({"micro_batch": [1, 2], "nccl_max_ctas": [0, 8],
      "nccl_buffers": ["plain", "registered", "symmetric", "copy_engines"]})";
  const std::string two_ranks = with_workload(space, R"(, "runner": {"kind": "bench"})");
  const session::Session session = read(two_ranks);
  EXPECT_EQ(session.space.count(), 2 * 2 * 4);
  std::string alone = two_ranks;
  const std::size_t at = alone.find("\"gpus_per_node\": 2");
  ASSERT_NE(at, std::string::npos) << two_ranks;
  alone.replace(at, 18, "\"gpus_per_node\": 1");
  EXPECT_EQ(read(alone).space.count(), 2);
}

TEST(Runners, OfCommandsKeepTheBatchAndAllOfAStatedLimitButTheReserve) {
  const session::Session session = read(with_workload(R"({"micro_batch": [1, 2, 3], "my_own": ["x", "y"]})", kCommand));
  EXPECT_EQ(session.space.count(), 4);  // 3 * 2 ranks do not divide 8
  ASSERT_TRUE(session.usable_per_rank);
  EXPECT_EQ(session.usable_per_rank->count, static_cast<std::int64_t>(0.95 * 4.0 * 1024.0 * 1024.0 * 1024.0));
  EXPECT_EQ(session.objective.field, "throughput");
  ASSERT_TRUE(session.baseline);  // defaults of well-known parameters, first values of the others
  EXPECT_EQ(session.baseline->text(), "micro_batch=1 my_own=x gradient_accumulation_steps=4");
}

TEST(Runners, OfCommandsMayHaveABaselineOutsideTheSpace) {
  const session::Session session = read(plain(R"({"a": [1, 2], "x": {"type": "real", "min": 0, "max": 1}})",
                                              std::string(kCommand) + R"(, "baseline": {"a": 7, "x": 2.5})"));
  EXPECT_EQ(session.baseline->text(), "a=7 x=2.5");
  EXPECT_FALSE(session.space.contains(*session.baseline));
}

TEST(Baseline, IsNotTheDefaultsWhereAConstraintForbidsThem) {
  const session::Session session = read(plain(R"({"a": [1, 2]})", R"(, "constraints": ["a > 1"])"));
  EXPECT_FALSE(session.baseline);
  ASSERT_EQ(session.warnings.size(), 1U);
  EXPECT_NE(session.warnings[0].find("it violates a constraint"), std::string::npos) << session.warnings[0];
}

TEST(Try, IsCompletedLikeABaseline) {
  const session::Session session = read(with_workload(R"({"zero_stage": [0, 3], "micro_batch": [1, 2, 4]})"));
  EXPECT_EQ(session::read_try(session, R"({"micro_batch": 2, "zero_stage": 3})", "--try").text(),
            "zero_stage=3 micro_batch=2 gradient_accumulation_steps=2");
  EXPECT_EQ(session::read_try(session, R"({"zero_stage": 1,})", "--try")
                .text(),  // outside the list, with the batch at its default
            "zero_stage=1 micro_batch=1 gradient_accumulation_steps=4");
  for (const auto& [text, what] :
       std::vector<std::pair<const char*, const char*>>{{R"({"micro_batch": 3})", "batch not divisible"},
                                                        {R"({"micro_bach": 2})", "did you mean 'micro_batch'?"},
                                                        {R"({"zero_stage": 9})", "out of range"},
                                                        {R"([1])", "an object was expected"},
                                                        {R"({"micro_batch": )", "not JSON"}}) {
    const std::string message = user_error_of([&] { session::read_try(session, text, "--try"); });
    EXPECT_EQ(message.rfind("--try: ", 0), 0U) << message;
    EXPECT_NE(message.find(what), std::string::npos) << message;
  }
}

TEST(Try, LeavesTheBaselineWhereItSaysNothingAndKeepsAConstraintsBatch) {
  const session::Session session = read(plain(R"({"zero_stage": [0, 1, 2], "micro_batch": [1, 2, 4],
      "gradient_accumulation_steps": [1, 2, 4], "overlap_comm": [false, true]})",
                                              R"(, "constraints": ["micro_batch * gradient_accumulation_steps == 4"],
      "baseline": {"zero_stage": 2, "micro_batch": 1, "gradient_accumulation_steps": 4, "overlap_comm": true})"));
  EXPECT_EQ(session::read_try(session, R"({"micro_batch": 2})", "--try").text(),
            "zero_stage=2 micro_batch=2 gradient_accumulation_steps=2 overlap_comm=true");
  EXPECT_EQ(session::read_try(session, R"({"zero_stage": 1})", "--try").text(),
            "zero_stage=1 micro_batch=1 gradient_accumulation_steps=4 overlap_comm=true");
  const std::string error = user_error_of([&] { session::read_try(session, R"({"micro_batch": 3})", "--try"); });
  EXPECT_NE(error.find("no gradient_accumulation_steps of the space keeps the constraints"), std::string::npos)
      << error;
}

TEST(Session, WithEverythingReadsBackAsResolved) {
  const session::Session session =
      read(std::string(R"({"$schema": "https://example.org/session.json", )") + kWorkload + ", " + kCluster + R"(,
      "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 4, "scale": "log2"},
                "stage3_prefetch_bucket_size": {"min": 1e6, "max": 1e8, "scale": "log", "steps": 5, "when": "zero_stage == 3"},
                "lr": {"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log"},
                "dropout": {"type": "real", "min": 0, "max": 0.5}, "kind": ["a", "b"]},
      "baseline": {"zero_stage": 3, "micro_batch": 4, "lr": 0.5},
      "constraints": ["micro_batch * seq_len <= 64", "kind == 'a' || zero_stage < 3"],
      "objective": {"metric": "latency"}, "grid": {"order": "seed"},
      "runner": {"kind": "command", "argv": ["python", "run.py", "{config}", "{result}"], "timeout_s": 600},
      "budget": {"trials": 12, "hours": 1.5, "gpu_hours": 6, "patience": 5}})");
  const Json json = session::resolved(session);
  EXPECT_FALSE(json.contains("$schema"));
  EXPECT_EQ(json.at("constraints").size(), 2U);
  const session::Session again = session::read_session(parse_json(json.dump(), "r"), "r", "/elsewhere");
  EXPECT_EQ(session::resolved(again).dump(), json.dump());
  EXPECT_EQ(again.baseline, session.baseline);
  EXPECT_EQ(again.budget.gpu_hours, 6.0);
  EXPECT_EQ(again.objective.field, "latency");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {  // equal spaces give the same draws
    Rng one(seed, 0);
    Rng two(seed, 0);
    EXPECT_EQ(again.space.sample(one), session.space.sample(two));
  }
}

// A job of that framework on 8 GPUs with two kinds of parallelism.
std::string job_of(const std::string& framework, const std::string& keys = "") {
  return R"({"workload": {"model": {"layers": 8, "hidden": 1024, "heads": 16, "vocab": 50304, "seq_len": 2048},
      "precision": "bf16", "framework": ")" +
         framework + R"(", "train_batch_size": 64},
      "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb"},
      "runner": {"kind": "command", "argv": ["run.sh", "{config}", "{result}"]})" +
         keys + "}";
}

constexpr const char* kSplits = R"(, "space": {"tensor_parallel": [1, 2, 4], "micro_batch": [1, 2]})";

TEST(Fixed, IsInEveryConfigurationAndNoColumn) {
  const session::Session session =
      read(job_of("megatron", std::string(kSplits) + R"(, "fixed": {"sequence_parallel": true},
      "constraints": ["!sequence_parallel || tensor_parallel < 4"], "baseline": {"tensor_parallel": 2})"));
  EXPECT_EQ(session.space.columns(),
            (std::vector<std::string>{"tensor_parallel", "micro_batch", "gradient_accumulation_steps"}));
  EXPECT_EQ(session.space.count(), 4) << "constraints know what is fixed";
  session.space.for_each([](const space::Configuration& c) {
    EXPECT_TRUE(c.boolean("sequence_parallel", false)) << c.text();
    return true;
  });
  EXPECT_TRUE(session.baseline->boolean("sequence_parallel", false));
  Rng rng(1, 0);
  EXPECT_TRUE(session.space.contains(session.space.sample(rng)));
  const Json json = session::resolved(session);
  EXPECT_EQ(json.at("fixed").dump(), R"({"sequence_parallel":true})");
  EXPECT_EQ(session::resolved(read(json.dump())).dump(), json.dump());
}

TEST(Fixed, DecidesWhatIsPredicted) {
  const auto bytes = [](const std::string& value) {
    const session::Session session =
        read(job_of("megatron", std::string(kSplits) + R"(, "fixed": {"sequence_parallel": )" + value +
                                    R"(}, "baseline": {"tensor_parallel": 4})"));
    return session::MemoryFilter(session).check(*session.baseline)->predicted;
  };
  EXPECT_LT(bytes("true"), bytes("false"));
}

TEST(Fixed, IsRefusedWithThePlaceWhereItMakesNoSense) {
  const auto error = [](const std::string& fixed) {
    return error_of(job_of("megatron", std::string(kSplits) + R"(, "fixed": )" + fixed));
  };
  EXPECT_NE(error(R"({"micro_batch": 2})").find("fixed, and in the space as well"), std::string::npos);
  EXPECT_NE(error(R"({"zero_stage": 7})").find("/fixed"), std::string::npos) << error(R"({"zero_stage": 7})");
  EXPECT_NE(error(R"({"sequence_parallel": 3})").find("/fixed"), std::string::npos);
  EXPECT_NE(error("[1]").find("/fixed"), std::string::npos);
  const std::string other = error_of(job_of("megatron", std::string(kSplits) + R"(,
      "fixed": {"overlap_comm": true}, "baseline": {"overlap_comm": false})"));
  EXPECT_NE(other.find("is false, but fixed at true"), std::string::npos) << other;
}

std::vector<std::string> assumed_by(const session::Session& session) {
  std::vector<std::string> texts;
  for (const session::Assumption& one : session.assumptions)
    texts.push_back(one.name + "=" + space::to_string(one.value));
  return texts;
}

TEST(Assumptions, AreWhatTheFrameworkUsuallySetsAndNobodySays) {
  using Texts = std::vector<std::string>;
  const std::string splits = kSplits;
  EXPECT_EQ(assumed_by(read(job_of("megatron", splits))),
            (Texts{"sequence_parallel=true", "zero_stage=1", "attention=flash", "model=like GPT-2"}));
  EXPECT_EQ(assumed_by(read(job_of("megatron", splits + R"(, "fixed": {"sequence_parallel": false})"))),
            (Texts{"zero_stage=1", "attention=flash", "model=like GPT-2"}));
  EXPECT_EQ(assumed_by(read(job_of("fsdp", R"(, "space": {"micro_batch": [1, 2]})"))),
            (Texts{"zero_stage=3", "attention=flash", "model=like GPT-2"}));
  EXPECT_EQ(assumed_by(read(job_of("deepspeed", splits))), (Texts{"attention=flash", "model=like GPT-2"}));
  // One of the keys that GPT-2 and others differ in says that the author thought of it.
  std::string stated = job_of("deepspeed", splits);
  stated.insert(stated.find("\"seq_len\""), R"("norm": "rmsnorm", )");
  EXPECT_EQ(assumed_by(read(stated)), Texts{"attention=flash"});
}

TEST(Frameworks, WarnOfStagesThatAreNotModelled) {
  const auto warnings = [](const std::string& framework, const std::string& stages) {
    std::string all;
    const std::string space = R"(, "space": {"zero_stage": )" + stages + R"(, "micro_batch": [1, 2]})";
    for (const std::string& warning : read(job_of(framework, space)).warnings) all += warning + "\n";
    return all;
  };
  EXPECT_NE(warnings("nanotron", "[0, 1, 2]").find("nanotron's zero_stage 2 and more is predicted as that of stage 1"),
            std::string::npos);
  EXPECT_EQ(warnings("nanotron", "[0, 1]").find("zero_stage"), std::string::npos);
  EXPECT_EQ(warnings("megatron", "[0, 1, 2, 3]").find("zero_stage"), std::string::npos);
  EXPECT_EQ(warnings("fsdp", "[0, 1, 2, 3]").find("zero_stage"), std::string::npos);
}

// Assumed values are used in predictions as if they were fixed.
TEST(Assumptions, ArePredictedWith) {
  const auto bytes = [](const std::string& keys) {
    const session::Session session =
        read(job_of("nanotron", std::string(kSplits) + R"(, "baseline": {"tensor_parallel": 4})" + keys));
    return session::MemoryFilter(session).check(*session.baseline)->predicted.count;
  };
  EXPECT_EQ(bytes(""), bytes(R"(, "fixed": {"sequence_parallel": true, "zero_stage": 1})"));
  EXPECT_NE(bytes(""), bytes(R"(, "fixed": {"sequence_parallel": false, "zero_stage": 1})"));
}

bool says(const session::Session& session, const std::string& remark) {
  return std::find(session.warnings.begin(), session.warnings.end(), remark) != session.warnings.end();
}

TEST(OtherNames, AreReadAsTheUsualParameters) {
  const session::Session session = read(job_of("megatron", R"(, "space": {"tensor_model_parallel_size": [1, 8],
      "mbs": [1, 64], "dataloader_workers": [1, 2]})"));
  EXPECT_TRUE(
      says(session, "read as the usual parameters: mbs as micro_batch, tensor_model_parallel_size as tensor_parallel"));
  EXPECT_TRUE(says(session, "predictions of memory and time leave out dataloader_workers"));
}

// Whatever a space calls its parameters, it has the same configurations with the same batches and memory.
TEST(OtherNames, ChangeNeitherTheSpaceNorMemory) {
  const std::string rest = R"(, "fixed": {"zero_stage": 1}, "constraints": ["tensor_parallel * dp <= 8 && dp > 1"])";
  const session::Session usual = read(job_of("megatron", R"(, "space": {"tensor_parallel": [1, 2, 4, 8],
      "micro_batch": [1, 16, 32, 64], "activation_checkpointing": ["none", "full"]})" +
                                                             rest));
  const session::Session other = read(job_of("megatron", R"(, "space": {"tp": [1, 2, 4, 8],
      "mbs": [1, 16, 32, 64], "gradient_checkpointing": [false, true]})" +
                                                             rest));
  EXPECT_EQ(usual.space.count(), 12);  // of 64 sequences: 8 ranks take 1, 4 take 1 or 16, 2 take 1, 16 or 32
  EXPECT_EQ(other.space.count(), usual.space.count());
  const session::MemoryFilter of_usual(usual);
  const session::MemoryFilter of_other(other);
  std::set<std::int64_t> predicted;
  other.space.for_each([&](const space::Configuration& one) {
    const space::Configuration part = session::modelled_part(one);
    EXPECT_TRUE(usual.space.contains(part)) << part.text();
    const auto expected = of_usual.check(part);
    const auto found = of_other.check(one);
    EXPECT_EQ(found->predicted.count, expected->predicted.count) << one.text();
    EXPECT_EQ(found->probability_fits, expected->probability_fits) << one.text();
    predicted.insert(found->predicted.count);
    return true;
  });
  EXPECT_GT(predicted.size(), 4u);
}

TEST(OtherNames, DoNotCountBesideTheUsualNameOrAnEarlierOne) {
  const space::Configuration both = {{"tp", std::int64_t{4}}, {"tensor_parallel", std::int64_t{2}}};
  EXPECT_EQ(session::modelled_part(both), (space::Configuration{{"tensor_parallel", std::int64_t{2}}}));
  const space::Configuration two = {{"tp_size", std::int64_t{4}}, {"tp", std::int64_t{8}}};
  EXPECT_EQ(session::modelled_part(two), (space::Configuration{{"tensor_parallel", std::int64_t{8}}}));
  const space::Configuration word = {{"sharding_strategy", std::string("SHARD_GRAD_OP")}};
  EXPECT_EQ(session::modelled_part(word), (space::Configuration{{"zero_stage", std::int64_t{2}}}));
  const session::Session session =
      read(job_of("megatron", R"(, "space": {"tp_size": [1, 2], "tp": [1, 2], "zero": [0, 1], "zero_stage": [0, 1]})"));
  EXPECT_TRUE(says(session, "read as the usual parameters: tp as tensor_parallel"));
  EXPECT_TRUE(says(session, "predictions of memory and time leave out tp_size, zero"));
}

TEST(OtherNames, AreLeftOutWithValuesThatMeanNothing) {
  const session::Session session = read(
      job_of("megatron", R"(, "space": {"mbs": ["auto", "x"], "tp": [0, 2], "sharding_strategy": ["HYBRID", "X"]})"));
  EXPECT_TRUE(says(session, "predictions of memory and time leave out mbs, tp, sharding_strategy"));
  EXPECT_EQ(session.space.count(), 8);
  EXPECT_TRUE(session::modelled_part({{"mbs", std::string("auto")}, {"tp", std::int64_t{0}}}).empty());
}

TEST(OtherNames, AreRefusedWhereOnlyTheUsualOnesRun) {
  const std::string error = error_of(of_many_clusters(R"({"tp": [1, 2]})"));
  EXPECT_NE(error.find("does not know 'tp'"), std::string::npos) << error;
  EXPECT_NE(error.find("write 'tensor_parallel'"), std::string::npos) << error;
}

TEST(RecordedTrials, GiveRealRangesTheValuesThatWereMeasured) {
  const TemporaryDirectory directory;
  write_atomically(directory / "trials.csv",
                   "trial,status,x,kind,value\n0,ok,0.25,a,10\n1,ok,0.5,b,20\n2,oom,0.75,a,\n");
  const session::Session session = read(plain(R"({"x": {"type": "real", "min": 0, "max": 1}, "kind": ["a", "b"]})"));
  const session::Session recorded = session::with_recorded_trials(session, directory / "trials.csv");
  EXPECT_EQ(recorded.space.count(), 3);
  EXPECT_EQ(recorded.table->optimum(recorded.space), 20.0);
}

}  // namespace krigtune::session_space_test
