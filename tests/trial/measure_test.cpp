// What is read from lines that real jobs printed; the values are those that a person reads. If only one line of a job
// is known, further lines of the same form are made from it.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/json.h"
#include "trial/measure_reader.h"
#include "trial/measure_spec.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::measure_test {

trial::MeasureSpec spec_of(const std::string& measures, std::int64_t warmup = 0, const std::string& checks = "[]") {
  const Json json = Json::parse("{\"measure\": " + measures + ", \"checks\": " + checks + "}");
  JsonObject object(json, "a test", "/runner");
  trial::MeasureSpec spec;
  spec.metrics = trial::read_measures(object, "measure");
  spec.checks = trial::read_checks(object, "checks");
  spec.warmup_steps = warmup;
  return spec;
}

// All lines come from one stream, as in a log.
trial::Measurement measured(const trial::MeasureSpec& spec, const std::vector<std::string>& lines,
                            const trial::MeasureFacts& facts = {}) {
  trial::Measurement measurement(spec, facts);
  const std::vector<std::size_t> all = trial::metrics_from(spec, "stdout");
  for (const std::string& line : lines) measurement.take_line(0, line, all, true);
  return measurement;
}

double value_of(const trial::Measurement& measurement, const std::string& name) {
  const auto found = measurement.value_of(name);
  EXPECT_TRUE(found) << name;
  return found ? found->value : std::nan("");
}

constexpr const char* kMegatronLine =
    " [2024-04-06 02:59:36] iteration       43/     100 | consumed samples:         5504 | elapsed time per iteration "
    "(ms): 5444.9 | throughput per GPU (TFLOP/s/GPU): 239.8 | learning rate: 8.600000E-06 | global batch size:   128 | "
    "lm loss: 1.825991E+00 | load_balancing_loss: 1.019746E+00 | loss scale: 1.0 | grad norm: 1.426 | num zeros: 0.0 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |";

constexpr const char* kMegatron = R"~({
  "iteration": {"regex": "iteration\\s+(\\d+)/\\s*(?:\\d+) \\|"},
  "step_time_s": {"regex": "elapsed time per iteration \\(ms\\): ([0-9.]+)", "times": "ms"},
  "flops_per_s": {"regex": "throughput per GPU \\(TFLOP/s/GPU\\): ([0-9.]+)", "times": 1e12, "per": "gpu"},
  "samples": {"regex": "global batch size:\\s+(\\d+)"},
  "loss": {"regex": "lm loss: ([-+0-9.eE]+)"},
  "peak_memory_bytes": {"regex": "memory \\(MB\\) \\|.* max reserved: ([0-9.]+)", "times": "MiB"}})~";

std::string warning_with(const trial::Measurement& measurement, const std::string& part) {
  for (const std::string& warning : measurement.warnings("value")) {
    if (warning.find(part) != std::string::npos) return warning;
  }
  return "";
}

const trial::MeasureSpec kTokenRate = spec_of(R"~({"value": {"regex": "tok/s ([0-9.]+)"}})~");

TEST(Warnings, NameALossThatIsNotANumberThoughNothingMeasuresIt) {
  for (const char* loss : {"loss nan", "{'loss': nan, 'epoch': 1.0}", "train_loss=nan.0",
                           "lm loss: NaN | loss scale: 1.0", "Loss: -inf", "step 3/10 loss=nan lr 1e-4"}) {
    const std::vector<std::string> lines(6, std::string("tok/s 100 ") + loss);
    EXPECT_EQ(warning_with(measured(kTokenRate, lines), "is not a number").find("the loss that the job prints"), 0U)
        << loss;
  }
  for (const char* fine : {"loss 0.5", "loss scale: nan", "lossless nan", "no loss here: yes", "loss"}) {
    const std::vector<std::string> lines(6, std::string("tok/s 100 ") + fine);
    EXPECT_EQ(warning_with(measured(kTokenRate, lines), "is not a number"), "") << fine;
  }
  EXPECT_EQ(warning_with(measured(kTokenRate, {"tok/s 1 loss nan", "tok/s 1 loss 2.5", "tok/s 1"}), "is not a number"),
            "")
      << "as at the beginning of training in fp16";
}

TEST(Warnings, NameAMetricThatCountsSteps) {
  const auto of = [](const std::vector<double>& values) {
    std::vector<std::string> lines;
    for (const double value : values) lines.push_back("tok/s " + std::to_string(value));
    return warning_with(measured(kTokenRate, lines), "counter of steps");
  };
  EXPECT_EQ(
      of({1, 2, 3, 4, 5}),
      "'value' grows by 1 with each step, as a counter of steps does: is that what regex 'tok/s ([0-9.]+)' is meant "
      "to find?");
  EXPECT_NE(of({10, 20, 30, 40, 50, 60}), "");
  EXPECT_EQ(of({1, 2, 3, 4}), "") << "too few to tell";
  EXPECT_EQ(of({1, 2, 3, 4, 5.5}), "");
  EXPECT_EQ(of({5, 5, 5, 5, 5, 5}), "") << "a rate";
}

TEST(Megatron, ItsIterationLineAndItsMemoryLine) {
  trial::MeasureFacts facts;
  facts.ranks = 16;
  facts.tokens_per_sample = 4096;
  const auto found = measured(
      spec_of(kMegatron, 0,
              R"~([{"regex": "data-parallel size: (\\d+)", "equals": "4", "what": "data-parallel ranks"}])~"),
      {"using world size: 16, data-parallel size: 4, context-parallel size: 1, tensor-model-parallel size: 2",
       kMegatronLine,
       "[Rank 0] (after 50 iterations) memory (MB) | allocated: 9909.07763671875 | max allocated: 50277.15625 | "
       "reserved: "
       "53386.0 | max reserved: 53386.0"},
      facts);
  EXPECT_EQ(found.fault(), "");
  EXPECT_EQ(found.failed_check(), "");
  EXPECT_LE(std::abs(value_of(found, "step_time_s") - 5.4449), 1e-12);
  EXPECT_LE(std::abs(value_of(found, "latency") - 5.4449), 1e-12) << "as the objective is called";
  EXPECT_LE(std::abs(value_of(found, "flops_per_s") - 239.8e12 * 16), 1e3);
  EXPECT_LE(std::abs(value_of(found, "samples_per_s") - 128 / 5.4449), 1e-9);
  EXPECT_LE(std::abs(value_of(found, "throughput") - 128 / 5.4449), 1e-9);
  EXPECT_LE(std::abs(value_of(found, "tokens_per_s") - 128 * 4096 / 5.4449), 1e-6);
  EXPECT_EQ(value_of(found, "loss"), 1.825991);
  EXPECT_EQ(found.peak_memory(), 53386.0 * 1048576);
  EXPECT_EQ(found.steps_of("step_time_s"), 1);
}

TEST(Megatron, ACheckThatFailsSaysWhatWasPrintedAndWhatWasIntended) {
  const auto found =
      measured(spec_of(kMegatron, 0,
                       R"~([{"regex": "data-parallel size: (\\d+)", "equals": "8", "what": "data-parallel ranks"}])~"),
               {"using world size: 16, data-parallel size: 4, context-parallel size: 1"});
  EXPECT_EQ(
      found.failed_check(),
      "data-parallel ranks: the program printed 4 where 8 was intended: using world size: 16, data-parallel size: 4, "
      "context-parallel size: 1");
}

TEST(Torchtitan, PrintsTokensPerGpuOnEveryRankAndEachIterationCountsOnce) {
  const std::string line =
      "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24405  grad_norm:  0.8319  memory: "
      " "
      "9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%";
  trial::MeasureFacts facts;
  facts.ranks = 8;
  facts.samples_per_step = 64;
  facts.tokens_per_sample = 2048;
  std::vector<std::string> lines;
  for (int step = 14; step < 18; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      std::string printed = line;
      printed.replace(printed.find("step: 14"), 8, "step: " + std::to_string(step));
      printed.replace(printed.find("rank0"), 5, "rank" + std::to_string(rank));
      if (rank == 1) printed.replace(printed.find("7,282"), 5, "7,284");
      if (rank == 1) printed.replace(printed.find("9.46"), 4, "9.5");
      lines.push_back(printed);
    }
    lines.push_back("[rank0]:[titan] 2026-05-18 16:04:47,000 - root - INFO - validate step: " + std::to_string(step) +
                    "  loss:  9.9");
  }
  const auto found = measured(spec_of(
                                  R"~({"iteration": {"regex": "(?:^|[^e] )step:\\s+(\\d+)\\s+loss:"},
    "tokens_per_s": {"regex": "(?:tps|wps): ([0-9,]+)", "per": "gpu"},
    "peak_memory_bytes": {"regex": "memory:\\s+([0-9.]+)GiB", "times": "GiB"}})~"),
                              lines, facts);
  EXPECT_EQ(found.steps_of("tokens_per_s"), 4);
  EXPECT_EQ(value_of(found, "tokens_per_s"), 7283.0 * 8);
  EXPECT_LE(std::abs(value_of(found, "step_time_s") - 64 * 2048 / (7283.0 * 8)), 1e-12);
  EXPECT_LE(std::abs(value_of(found, "samples_per_s") - 7283.0 * 8 / 2048), 1e-9);
  EXPECT_EQ(found.peak_memory(), 9.5 * 0x1p30);
}

TEST(HuggingFace, StepTimeAndTokensAreDifferencesOfSums) {
  const auto found =
      measured(spec_of(
                   R"~({"step_time_s": {"regex": "'train_runtime': '?([0-9.eE+]+)", "kind": "cumulative"},
    "tokens": {"regex": "'num_input_tokens_seen': '?([0-9.eE+]+)", "kind": "cumulative"},
    "loss": {"regex": "'loss': '?([-+0-9.eE]+|nan|inf)"}})~"),
               {"{'loss': '6.951', 'grad_norm': '1.009', 'learning_rate': '5e-05', 'epoch': '0.003906', "
                "'num_input_tokens_seen': 1024, 'train_runtime': '0.7682', 'train_tokens_per_second': '1333'}",
                "{'loss': '6.949', 'grad_norm': '1.029', 'learning_rate': '4.375e-05', 'epoch': '0.007812', "
                "'num_input_tokens_seen': 2048, 'train_runtime': '1.496', 'train_tokens_per_second': '1369'}"});
  EXPECT_EQ(found.steps_of("step_time_s"), 1);
  EXPECT_LE(std::abs(value_of(found, "step_time_s") - 0.7278), 1e-12);
  EXPECT_EQ(value_of(found, "tokens"), 1024.0);
  EXPECT_LE(std::abs(value_of(found, "tokens_per_s") - 1024 / 0.7278), 1e-9);
  EXPECT_EQ(value_of(found, "loss"), 6.949);
}

TEST(HuggingFace, OldVersionsPrintNumbersWithoutQuotes) {
  const auto found = measured(spec_of(R"~({"loss": {"regex": "'loss': '?([-+0-9.eE]+|nan|inf)"}})~"),
                              {"{'loss': 4.75, 'grad_norm': 98.5, 'learning_rate': 5e-06, 'epoch': 1.0}"});
  EXPECT_EQ(value_of(found, "loss"), 4.75);
}

TEST(Nanotron, ItsThreeDigitsWithASuffix) {
  const auto found = measured(
      spec_of(
          R"~({"iteration": {"regex": "iteration: (\\d+) / "},
    "step_time_s": {"regex": "time_per_iteration_ms: ([0-9.]+[KMBT]?)", "times": 1e-3},
    "tokens_per_s": {"regex": "tokens_per_sec: ([0-9.]+[KMBT]?)"},
    "flops_per_s": {"regex": "model_tflops_per_gpu: ([0-9.]+[KMBT]?)", "times": "TFLOP/s", "per": "gpu"},
    "loss": {"regex": "lm_loss: ([-+0-9.eE]+|nan|inf)"}})~"),
      {"12/21 01:39:51 [INFO|DP=0|TP=0|lrdn0007]: iteration: 211364 / 1500000 | consumed_tokens: 480B | "
       "time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 699 | global_batch_size: 1.6M "
       "| "
       "grad_norm: 0.112 | lm_loss: 2.04 | lr: 0.0001 | model_tflops_per_gpu: 15.4 | eta: 131 days, 1:45:39"});
  EXPECT_LE(std::abs(value_of(found, "step_time_s") - 8.79), 1e-12);
  EXPECT_EQ(value_of(found, "tokens_per_s"), 182e3);
  EXPECT_LE(std::abs(value_of(found, "flops_per_s") - 15.4e12), 1.0);
  EXPECT_EQ(value_of(found, "loss"), 2.04);
}

TEST(Axolotl, ItsMemoryAndItsTokens) {
  const auto found = measured(
      spec_of(
          R"~({"peak_memory_bytes": {"regex": "'memory/(?:device_reserved \\(GiB\\)|device_mem_reserved\\(gib\\))': '?([0-9.]+)", "times": "GiB"},
    "loss": {"regex": "'loss': '?([-+0-9.eE]+|nan|inf)"},
    "tokens": { "regex": "'tokens/total': '?([0-9.eE+]+)", "kind": "cumulative"}})~"),
      {"{'loss': '0.7157', 'grad_norm': '12.79', 'learning_rate': '0', 'ppl': '2.046', 'memory/max_active (GiB)': "
       "'2.98', "
       "'memory/max_allocated (GiB)': '2.98', 'memory/device_reserved (GiB)': '4.12', 'tokens/trainable': 93, "
       "'tokens/total': 512, 'epoch': '0.1333'}"});
  EXPECT_EQ(found.peak_memory(), 4.12 * 0x1p30);
  EXPECT_EQ(value_of(found, "loss"), 0.7157);
  EXPECT_EQ(found.fault(), "");
}

TEST(LlamaFactory, ItsJsonLinesGiveExactTimes) {
  const TemporaryDirectory dir;
  std::filesystem::create_directory(dir / "out");
  dir.write("out/trainer_log.jsonl",
            "{\"current_steps\": 1, \"total_tokens\": 1, \"throughput\": 1}\n");  // from an earlier run
  trial::MeasureSpec spec = spec_of(
      R"~({"iteration": {"key": "current_steps", "from": "out/*_log.jsonl"},
    "loss": {"key": "loss", "from": "out/*_log.jsonl"},
    "tokens": {"key": "total_tokens", "from": "out/*_log.jsonl", "kind": "cumulative"},
    "peak_memory_bytes": {"key": "vram_reserved", "from": "out/*_log.jsonl", "times": "GiB"}})~");
  trial::MeasureReader reader(spec, {}, {dir / "stdout", dir / "stderr", dir.path()});
  std::filesystem::remove(dir / "out/trainer_log.jsonl");
  std::ofstream log(dir / "out/trainer_log.jsonl");
  log << R"~({"current_steps": 10, "total_steps": 375, "loss": 2.5, "lr": 1e-5, "epoch": 0.1, "percentage": 2.67, )~"
      << R"~("elapsed_time": "0:00:41", "remaining_time": "0:25:00", "throughput": 5123.4, "total_tokens": 210176, )~"
      << R"~("vram_allocated": 35.12, "vram_reserved": 41.5})~"
      << "\n"
      << std::flush;
  EXPECT_TRUE(reader.look());
  EXPECT_FALSE(reader.look()) << "nothing new";
  log << R"~({"current_steps": 20, "loss": 2.25, "total_tokens": 420352, "vram_reserved": 41.75})~"
      << "\n";
  log << R"~({"current_steps": 30, "loss": 2.0)~" << std::flush;
  EXPECT_TRUE(reader.look());
  EXPECT_EQ(value_of(reader.measurement(), "loss"), 2.25) << "the last line has no end yet";
  log << R"~(, "total_tokens": 630528})~" << std::flush;
  reader.finish();
  EXPECT_EQ(value_of(reader.measurement(), "loss"), 2.0) << "at the end it counts without one";
  EXPECT_EQ(value_of(reader.measurement(), "tokens"), 21017.6) << "ten steps apart";
  EXPECT_EQ(reader.measurement().steps_of("tokens"), 2);
  EXPECT_EQ(reader.measurement().peak_memory(), 41.75 * 0x1p30);
}

TEST(Csv, AColumnByItsName) {
  const TemporaryDirectory dir;
  trial::MeasureSpec spec = spec_of(
      R"~({"step_time_s": {"column": "train/time ms", "from": "log.csv", "times": "ms"},
    "iteration": {"column": "step", "from": "log.csv"}})~");
  trial::MeasureReader reader(spec, {}, {dir / "stdout", dir / "stderr", dir.path()});
  dir.write("log.csv", "step,\"train/time ms\",loss\n1,100,2\n2,\"120\",2\nstep,train/time ms,loss\n3,110,2\n4,,1\n");
  reader.finish();
  EXPECT_LE(std::abs(value_of(reader.measurement(), "step_time_s") - 0.11), 1e-12);
  EXPECT_EQ(reader.measurement().steps_of("step_time_s"), 3);

  trial::MeasureReader misspelt(spec_of(R"~({"step_time_s": {"column": "train/tme ms", "from": "log.csv"}})~"), {},
                                {dir / "stdout", dir / "stderr", dir.path()});
  std::ofstream(dir / "log.csv", std::ios::app) << "5,100,1\n";
  misspelt.finish();
  EXPECT_NE(misspelt.measurement().why_nothing("step_time_s").find("did you mean 'train/time ms'?"), std::string::npos)
      << misspelt.measurement().why_nothing("step_time_s");
}

TEST(Steps, ThatCountAnewEachEpochAreStepsOfTheirOwn) {
  std::vector<std::string> lines;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 1; step <= 5; ++step) {
      lines.push_back("epoch " + std::to_string(epoch) + " step " + std::to_string(step) + "/5 time 0.5");
    }
  }
  const auto found = measured(
      spec_of(R"~({"iteration": {"regex": "step (\\d+)/"}, "step_time_s": {"regex": "time ([0-9.]+)"}})~"), lines);
  EXPECT_EQ(found.steps_of("step_time_s"), 15);
}

TEST(Steps, OfUnlabelledRanksThatPrintALittleApartCountOnce) {
  std::vector<std::string> lines;
  for (const int step : {1, 1, 2, 3, 2, 3, 4, 5, 4, 6, 5, 6}) {
    lines.push_back("step " + std::to_string(step) + " time 0.5");
  }
  const auto found = measured(
      spec_of(R"~({"iteration": {"regex": "step (\\d+)"}, "step_time_s": {"regex": "time ([0-9.]+)"}})~"), lines);
  EXPECT_EQ(found.steps_of("step_time_s"), 6);
}

TEST(Steps, OfLabelledRanksWithoutAnIterationAreCountedByRank) {
  trial::MeasureFacts slurm;
  slurm.has_plain_labels = true;
  const trial::MeasureSpec spec = spec_of(R"~({"step_time_s": {"regex": "time ([0-9.]+)"}})~");
  EXPECT_EQ(
      measured(spec, {"[rank0]: time 1", "[rank1]: time 3", "[rank1]: time 3", "[rank0]: time 1"}).steps_of("latency"),
      2);
  const std::vector<std::string> plain = {"0: time 1", "1: time 3", "1: time 3", "0: time 1"};
  EXPECT_EQ(measured(spec, plain, slurm).steps_of("latency"), 2);
  EXPECT_EQ(measured(spec, plain).steps_of("latency"), 4) << "without srun the number may be anything";
  EXPECT_EQ(measured(spec, plain, slurm).value_of("latency")->value, 2.0);
}

TEST(Wall, IsTheTimeBetweenLinesThatMatchSharedByThoseThatCameTogether) {
  const trial::MeasureSpec spec =
      spec_of(R"~({"step_time_s": {"wall": "step \\d+"}, "iteration": {"regex": "step (\\d+)"}})~");
  trial::Measurement found(spec, {});
  const auto lines = [&](std::initializer_list<int> steps, double written_s) {
    for (const int step : steps) found.take_line(0, "step " + std::to_string(step), {0, 1}, false);
    found.end_of_look(0, written_s);
  };
  lines({1, 2}, 100.0);  // the arrival of the first one is unknown
  lines({3}, 102.0);
  lines({4, 5}, 106.0);
  lines({}, 107.0);
  lines({7}, 110.0);  // two steps
  EXPECT_EQ(found.steps_of("step_time_s"), 4);
  EXPECT_EQ(value_of(found, "step_time_s"), 2.0);
}

// OpenRLHF's bar counts micro-steps, and moves once for each step.
TEST(Wall, HasItsFactorAndCountsTheIterationsBetweenLines) {
  const trial::MeasureSpec spec =
      spec_of(R"~({"step_time_s": {"wall": "(?:\\d+)/", "times": 4}, "iteration": {"regex": "(\\d+)/"}})~");
  trial::Measurement found(spec, {});
  double now_s = 100.0;
  for (int micro_step = 4; micro_step <= 20; micro_step += 4, now_s += 6.0) {
    for (int line = 0; line < 3; ++line) found.take_line(0, std::to_string(micro_step) + "/99", {0, 1}, false);
    found.end_of_look(0, now_s);
  }
  EXPECT_EQ(found.steps_of("step_time_s"), 4);
  EXPECT_EQ(value_of(found, "step_time_s"), 6.0);
}

// LLaMA-Factory 0.9.5 on processors: "vram_allocated": 0.0, "vram_reserved": -0.0; torchtitan's monitor: -1.
TEST(BadValues, APeakOfNothingIsNoPeak) {
  const std::string spec = R"~({"step_time_s": {"regex": "t (\\S+)"}, "peak_memory_bytes": {"regex": "mem (\\S+)"}})~";
  for (const char* nothing : {"0.0", "-0.0", "-1"}) {
    const trial::Measurement read = measured(spec_of(spec), {"t 1 mem " + std::string(nothing), "t 1 mem 0.0"});
    EXPECT_EQ(read.fault(), "") << nothing;
    EXPECT_EQ(read.peak_memory(), std::nullopt) << nothing;
    EXPECT_TRUE(read.warnings("step_time_s").empty()) << nothing;
  }
  EXPECT_EQ(measured(spec_of(spec), {"t 1 mem 0.0", "t 1 mem 12"}).peak_memory(), 12.0);
  EXPECT_NE(measured(spec_of(spec), {"t 1 mem nan"}).fault(), "");
}

TEST(BadValues, AreNamedWithTheirLine) {
  const auto fault = [](const std::string& measures, const std::string& line) {
    return measured(spec_of(measures), {line}).fault();
  };
  EXPECT_EQ(fault(R"~({"loss": {"regex": "loss (\\S+)"}})~", "step 3 loss nan"),
            "the loss is not a number: step 3 loss nan");
  EXPECT_EQ(fault(R"~({"tokens_per_s": {"regex": "tps (\\S+)"}})~", "tps n/a"),
            "'n/a' is not a number (tokens_per_s): tps n/a");
  EXPECT_EQ(fault(R"~({"tokens_per_s": {"regex": "tps (\\S+)"}})~", "tps inf"), "'tokens_per_s' is inf: tps inf");
  EXPECT_EQ(fault(R"~({"step_time_s": {"regex": "t (\\S+)"}})~", "t -1"),
            "'step_time_s' is -1, and must be above 0: t -1");
  EXPECT_EQ(fault(R"~({"step_time_s": {"regex": "t (\\S+)"}})~", "t 0.0"),
            "'step_time_s' is 0, and must be above 0: t 0.0");
  EXPECT_EQ(fault(R"~({"reward": {"regex": "r (\\S+)"}})~", "r -1"), "") << "of the user's own";
  EXPECT_EQ(fault(R"~({"loss": {"key": "loss", "from": "x.jsonl"}})~", R"~({"loss": NaN})~"), "") << "another stream";
  trial::Measurement json(spec_of(R"~({"loss": {"key": "a.loss", "from": "x.jsonl"}})~"), {});
  json.take_line(0, R"~({"a": {"loss": NaN}, "text": "NaN \" NaN"})~", {0}, false);
  EXPECT_EQ(json.fault(), R"~(the loss is not a number: {"a": {"loss": NaN}, "text": "NaN \" NaN"})~");
}

TEST(NothingMatched, ShowsTheLineThatLookedClosest) {
  const auto found =
      measured(spec_of(R"~({"step_time_s": {"regex": "step_time: ([0-9.]+) ms"}})~"),
               {"loading data", "epoch 1", "step 1 | step_time 155.6 ms | loss 2", "Step_Time is 3 ms", "bye"});
  EXPECT_EQ(found.why_nothing("step_time_s"),
            "nothing in the output is 'step_time_s': regex 'step_time: ([0-9.]+) ms' never matched; the most similar "
            "line: step 1 | step_time 155.6 ms | loss 2");
}

constexpr const char* kRate = R"~({"tokens_per_s": {"regex": "tokens/s: ([0-9.]+)"}})~";

trial::VainSearch vain_search(const std::vector<std::string>& lines, const std::string& measures = kRate) {
  return measured(spec_of(measures), lines).vain_search("tokens_per_s").value_or(trial::VainSearch{-1, -1});
}

std::vector<std::string> repeated(const std::string& before, const std::string& behind, int times) {
  std::vector<std::string> lines;
  for (int i = 0; i < times; ++i) lines.push_back(before + std::to_string(i) + behind);
  return lines;
}

TEST(VainSearch, CountsLinesOfOneFormThatResembleThePattern) {
  for (const char* like : {" 101.5 tok/s", " Tokens/s = 7", " tokens / sec 7", " tokns/s: 7"}) {
    EXPECT_EQ(vain_search(repeated("step ", like, 25)).alike, 25) << like;
  }
  EXPECT_EQ(vain_search(repeated("step ", " lr 1e-4", 25)).alike, 0);
  EXPECT_EQ(vain_search(repeated("step ", " lr 1e-4", 25)).steps, 25);
}

// What jobs print before they train.
TEST(VainSearch, CountsNeitherSettingsNorProgressBarsNorLibraries) {
  std::vector<std::string> lines = repeated("Map:  1%|#   | ", "/900 [00:01<00:10, 500 tokens/s]", 100);
  for (const std::string& line : repeated("node1:77:", " [0] NCCL INFO Channel 00/02 : 0 1", 100))
    lines.push_back(line);
  for (const char* key : {"adam_beta1", "lr_decay_iters", "train_iters", "eval_iters", "num_tokens", "max_tokens"}) {
    lines.push_back(std::string("  ") + key + " ................ 100");
  }
  const trial::VainSearch vain = vain_search(lines);
  EXPECT_LE(vain.alike, 1);
  EXPECT_LE(vain.steps, 1);
}

TEST(VainSearch, IsOverWithTheFirstMatch) {
  std::vector<std::string> lines = repeated("step ", " 101.5 tok/s", 25);
  lines.push_back("tokens/s: 3");
  EXPECT_EQ(vain_search(lines).alike, -1);
}

TEST(VainSearch, IsNoneForValuesOfTheEnd) {
  EXPECT_EQ(vain_search(repeated("step ", " 101.5 tok/s", 25),
                        R"~({"tokens_per_s": {"regex": "tokens/s: ([0-9.]+)", "kind": "final"}})~")
                .alike,
            -1);
}

TEST(VainSearch, OfAnObjectiveThatFollowsFromOthersNeedsAllOfThemToBeMissing) {
  const char* both = R"~({"step_time_s": {"regex": "took ([0-9.]+)"}, "samples_per_s": {"regex": "rate ([0-9.]+)"}})~";
  EXPECT_EQ(vain_search(repeated("step ", " lr 1", 25), both).steps, 25);
  EXPECT_EQ(vain_search({"step 1 rate 2"}, both).steps, -1);
}

TEST(VainSearch, OfAKeyIsCertainOnlyWhereAnotherSpellingIsThere) {
  const char* key = R"~({"tokens_per_s": {"key": "tokens_per_s", "from": "x.jsonl"}})~";
  const auto of = [&](const std::string& row) {
    trial::Measurement measurement(spec_of(key), {});
    for (int i = 0; i < 25; ++i) measurement.take_line(0, row, {0}, false);
    return *measurement.vain_search("tokens_per_s");
  };
  EXPECT_EQ(of(R"~({"step": 1, "loss": 2})~").alike, 0);
  EXPECT_EQ(of(R"~({"step": 1, "loss": 2})~").steps, 25);
  EXPECT_EQ(of(R"~({"step": 1, "token_per_s": 2})~").alike, 25);
}

TEST(VainSearch, OfAColumnIsCertain) {
  trial::Measurement measurement(spec_of(R"~({"tokens_per_s": {"column": "rate", "from": "x.csv"}})~"), {});
  measurement.take_csv_header(0, "step,loss");
  for (int i = 0; i < 25; ++i) measurement.take_line(0, "1,2", {0}, false);
  EXPECT_EQ(measurement.vain_search("tokens_per_s")->alike, 25);
}

TEST(TooFewSteps, AreToldWithTheirNumber) {
  const auto found = measured(spec_of(R"~({"step_time_s": {"regex": "t ([0-9.]+)"}})~", 5), {"t 1", "t 1"});
  EXPECT_EQ(found.value_of("step_time_s").has_value(), false);
  EXPECT_EQ(found.why_nothing("step_time_s"),
            "too short: 2 steps of 'step_time_s' were printed, and 8 are needed: 5 of the warm-up and 3 after it");
}

TEST(FinalValues, CountOnceAtTheEnd) {
  trial::MeasureFacts facts;
  facts.samples_per_step = 16;
  const auto found = measured(spec_of(
                                  R"~({"val_loss": {"regex": "val_loss ([0-9.]+)", "kind": "final"},
    "step_time_s": {"regex": "mean step ([0-9.]+)", "kind": "final"}})~",
                                  5),
                              {"val_loss 3", "val_loss 2", "mean step 0.5"}, facts);
  EXPECT_EQ(value_of(found, "val_loss"), 2.0);
  EXPECT_EQ(found.steps_of("val_loss"), std::nullopt) << "nothing to be ended early";
  EXPECT_EQ(value_of(found, "samples_per_s"), 32.0);
}

TEST(MeasureSpec, ReadsBackWhatItWrites) {
  const trial::MeasureSpec spec = spec_of(kMegatron);
  EXPECT_EQ(trial::measures_json(spec_of(trial::measures_json(spec.metrics).dump()).metrics),
            trial::measures_json(spec.metrics));
  const char* by_placeholder = R"~({"step_time_s":{"wall":"it","times":"{8 / (micro_batch * dp)}"}})~";
  EXPECT_EQ(trial::measures_json(spec_of(by_placeholder).metrics), Json::parse(by_placeholder));
  EXPECT_EQ(trial::measures_json(spec.metrics)["loss"].dump(), R"~({"regex":"lm loss: ([-+0-9.eE]+)"})~");
}

TEST(MeasureSpec, NamesWhatIsWrongWithIt) {
  const auto error = [](const std::string& measures) { return user_error_of([&] { spec_of(measures); }); };
  EXPECT_EQ(error(R"~({"loss": {"regex": "loss ([0-9"}})~"),
            "a test: /runner/measure/loss/regex: 'loss ([0-9' is not a regular expression: a [ has no ]; write one as "
            "in JavaScript, "
            "without back-references");
  EXPECT_NE(error(R"~({"loss": {"regex": "loss [0-9]+"}})~").find("has no groups where one was expected"),
            std::string::npos);
  EXPECT_NE(error(R"~({"loss": {"regex": "(loss) ([0-9]+)"}})~").find("has 2 groups where one was expected"),
            std::string::npos);
  EXPECT_NE(error(R"~({"loss": {"regex": "l (.)", "key": "loss"}})~").find("/key: cannot be combined with 'regex'"),
            std::string::npos);
  EXPECT_NE(error(R"~({"loss": {}})~").find("does not say how the number is found"), std::string::npos);
  EXPECT_NE(error(R"~({"loss": {"key": "loss"}})~").find("/from: 'key' needs a file"), std::string::npos);
  EXPECT_NE(error(R"~({"t": {"regex": "t (.)", "times": "Mib"}})~").find("did you mean 'MiB'?"), std::string::npos);
  EXPECT_NE(error(R"~({"t": {"regex": "t (.)", "times": -1}})~").find("a factor above 0"), std::string::npos);
  EXPECT_NE(
      error(R"~({"t": {"regex": "t (.)", "from": "stdot"}})~").find("is neither output, stdout, stderr nor a path"),
      std::string::npos);
  EXPECT_NE(error(R"~({"t": {"regex": "t (.)", "kind": "sum"}})~").find("known: line, cumulative, final"),
            std::string::npos);
  EXPECT_NE(error(R"~({"t": {"regex": "t (.)", "per": "node"}})~").find("known: job, gpu"), std::string::npos);
  EXPECT_NE(error(R"~({"t": {"regx": "t (.)"}})~").find("did you mean 'regex'?"), std::string::npos);
  EXPECT_NE(error(R"~({"steps": {"regex": "t (.)"}})~").find("is krigtune's own name"), std::string::npos);
  EXPECT_NE(error(R"~({"t": {"wall": "t", "kind": "final"}})~").find("is of kind 'line'"), std::string::npos);
}

TEST(CertainText, IsInEachLineThatMatches) {
  EXPECT_EQ(trial::certain_text("elapsed time per iteration \\(ms\\): ([0-9.]+)"), "elapsed time per iteration (ms): ");
  EXPECT_EQ(trial::certain_text("(?:tps|wps): ([0-9,]+)"), ": ");
  EXPECT_EQ(trial::certain_text("tps|wps"), "");
  EXPECT_EQ(trial::certain_text("colou?r: x*y+z{2}"), "colo");
  EXPECT_EQ(trial::certain_text("[[:digit:]] it/s"), " it/s");
  EXPECT_EQ(trial::certain_text("[]abc]def"), "") << "read in more than one way";
  EXPECT_EQ(trial::certain_text("\\d+\\x41step"), "step");
}

}  // namespace krigtune::measure_test
