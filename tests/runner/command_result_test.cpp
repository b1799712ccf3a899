#include "runner/command_result.h"

#include <gtest/gtest.h>

#include <csignal>

#include "krigtune/rng.h"
#include "runner/command_outcome.h"
#include "trial/program.h"

namespace krigtune::command_result_test {

trial::Measured measured_of(const std::string& text, const std::string& metric = "throughput") {
  const trial::Outcome outcome = runner::read_command_result(text, metric);
  const auto* measured = std::get_if<trial::Measured>(&outcome);
  EXPECT_NE(measured, nullptr) << text << ": " << trial::reason_text(outcome);
  return measured == nullptr ? trial::Measured{} : *measured;
}

std::string complaint_of(const std::string& text, const std::string& metric = "throughput") {
  const trial::Outcome outcome = runner::read_command_result(text, metric);
  const auto* failed = std::get_if<trial::Failed>(&outcome);
  EXPECT_TRUE(failed != nullptr && failed->reason == trial::FailureReason::kBadResult)
      << text << trial::status_text(outcome);
  return failed == nullptr ? "" : failed->last_lines;
}

TEST(CommandResult, EveryNumberIsAMetric) {
  const trial::Measured measured = measured_of(
      R"({"throughput": 12.5, "status": "ok", "reason": "", "value_sem": 0.25, "peak_memory_bytes": 1.2e10, "epoch": 3,
          "eval": {"loss": 1.5, "by": {"token": 2}, "name": "x"}, "good": true, "note": "n", "list": [1, 2], "none": null})");
  const std::map<std::string, double> expected = {
      {"throughput", 12.5}, {"epoch", 3}, {"eval_loss", 1.5}, {"eval_by_token", 2}};
  EXPECT_EQ(measured.metrics, expected);
  EXPECT_EQ(measured.value_sem, 0.25);
  EXPECT_EQ(measured.peak_memory, Bytes{12000000000});
}

TEST(CommandResult, NothingButTheObjectiveIsNeeded) {
  const trial::Measured measured = measured_of(R"({"loss": -0.5})", "loss");
  EXPECT_EQ(measured.metrics, (std::map<std::string, double>{{"loss", -0.5}}));
  EXPECT_EQ(measured.value_sem, 0.0);
  EXPECT_FALSE(measured.peak_memory.has_value());
  EXPECT_EQ(measured_of(R"({"status": null, "throughput": 1})").metrics.at("throughput"), 1.0);
}

TEST(CommandResult, AnObjectiveMayBeNestedOrThePeakItself) {
  EXPECT_EQ(measured_of(R"({"eval": {"loss": 2}})", "eval_loss").metrics.at("eval_loss"), 2.0);
  EXPECT_EQ(measured_of(R"({"peak_memory_bytes": 5})", "peak_memory_bytes").metrics.at("peak_memory_bytes"), 5.0);
}

TEST(CommandResult, KnownMetricsArePositiveAndOthersNeedNotBe) {
  for (const std::string metric : {"throughput", "tokens_per_second", "flops", "latency", "goodput"}) {
    for (const std::string value : {"0", "-1", "-0.0", "-1e-300"}) {
      EXPECT_NE(complaint_of("{\"" + metric + "\": " + value + "}", metric).find("above 0"), std::string::npos);
    }
    measured_of("{\"" + metric + "\": 1e-300}", metric);
  }
  for (const std::string value : {"0", "-1", "-1e300"}) measured_of("{\"regret\": " + value + "}", "regret");
}

TEST(CommandResult, GarbageIsABadResultThatSaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty"},
      {" \n", "is empty"},
      {"garbage", "is not JSON"},
      {"{\"throughput\": 1", "is not JSON"},
      {"{\"throughput\": 1} trailing", "is not JSON"},
      {"{\"throughput\": 1e400}", "1e400"},
      {"{\"throughput\": NaN}", "no NaN"},
      {"{\"throughput\": 1, \"loss\": -Infinity}", "no Infinity"},
      {"[1]", "not a JSON object"},
      {"12.5", "not a JSON object"},
      {"{}", "no number 'throughput'"},
      {"{\"thruoghput\": 1}", "but 'thruoghput'"},
      {"{\"throughput\": \"12.5\"}", "has \"12.5\" as 'throughput', where a number was expected"},
      {"{\"throughput\": null}", "has null as 'throughput'"},
      {"{\"throughput\": true}", "has true as 'throughput'"},
      {"{\"throughput\": 1, \"value_sem\": -1}", "'value_sem'"},
      {"{\"throughput\": 1, \"value_sem\": \"1\"}", "'value_sem'"},
      {"{\"throughput\": 1, \"peak_memory_bytes\": -1}", "'peak_memory_bytes'"},
      {"{\"throughput\": 1, \"peak_memory_bytes\": 1e30}", "'peak_memory_bytes'"},
      {"{\"throughput\": 1, \"status\": 0}", "'status' that is not text"},
      {"{\"throughput\": 1, \"reason\": []}", "'reason' that is not text"},
      {"{\"throughput\": 1, \"status\": \"good\"}", "status 'good'; known: ok, oom, failed"},
      {std::string("\xff\xfe{\0", 4), "is not JSON"},
      {"{\"throughput\": \"\xff\"}", "is not JSON"},
  };
  for (const auto& [text, part] : cases) {
    EXPECT_NE(complaint_of(text).find(part), std::string::npos) << text << ": " << complaint_of(text);
  }
}

TEST(CommandResult, HugeAndDeepResultsAreRefusedAtOnce) {
  constexpr int kMany = 100000;
  std::string many = "{\"throughput\": 1";
  for (int i = 0; i < kMany; ++i) many += ", \"k" + std::to_string(i) + "\": 1";
  EXPECT_NE(complaint_of(many + "}").find("100001 numbers"), std::string::npos);
  std::string deep;
  for (int i = 0; i < kMany; ++i) deep += "{\"a\": ";
  EXPECT_NE(complaint_of(deep + "1" + std::string(kMany, '}')).find("nested more than 64 deep"), std::string::npos);
  complaint_of(deep);
  complaint_of(std::string(1 << 20, '['));
}

TEST(CommandResult, FailuresHaveTheirReason) {
  EXPECT_TRUE(
      std::holds_alternative<trial::OutOfMemory>(runner::read_command_result(R"({"status": "oom"})", "throughput")));
  const auto failed = [](const std::string& text) {
    const trial::Outcome outcome = runner::read_command_result(text, "throughput");
    return std::get<trial::Failed>(outcome);
  };
  EXPECT_EQ(failed(R"({"status": "failed"})").reason, trial::FailureReason::kCrash);
  EXPECT_EQ(failed(R"({"status": "failed", "reason": "hang"})").reason, trial::FailureReason::kHang);
  EXPECT_EQ(failed(R"({"status": "failed", "reason": "loss exploded"})").reason, trial::FailureReason::kCrash);
  EXPECT_EQ(failed(R"({"status": "failed", "reason": "loss exploded"})").last_lines, "loss exploded");
  EXPECT_EQ(failed(R"({"status": "failed", "reason": "interrupted"})").reason, trial::FailureReason::kCrash)
      << "an interrupted trial would be asked again for ever";
}

TEST(CommandResult, NoTextWhateverCrashesTheReader) {
  const std::string good =
      R"({"throughput": 12.5, "status": "ok", "value_sem": 0.1, "eval": {"loss": [1, {"a": "b"}]}})";
  Rng rng(1, 0);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (std::uint64_t n = 1 + rng.below(4); n > 0; --n) {
      const std::size_t at = rng.below(text.size());
      const char byte = static_cast<char>(rng.below(256));
      switch (rng.below(3)) {
        case 0:
          text.erase(at, 1 + rng.below(5));
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text[at] = byte;
      }
      if (text.empty()) text.assign(1, '{');
    }
    const trial::Outcome outcome = runner::read_command_result(text, "throughput");
    if (const auto* measured = std::get_if<trial::Measured>(&outcome)) {
      ASSERT_GT(measured->metrics.at("throughput"), 0.0);
    }
  }
}

class CommandOutcome : public ::testing::Test {
 protected:
  CommandOutcome() {
    job_.metric = "throughput";
    job_.spec.argv = {"train"};
    end_.result = R"({"throughput": 2})";
    end_.oom_kills = 0;
  }
  trial::Outcome outcome() const { return runner::command_outcome(end_, job_, patterns_); }
  std::string words() const { return std::string(trial::status_text(outcome())) + " " + trial::reason_text(outcome()); }
  void exit_with(int code) {
    end_.process.exit_code = code;
    end_.process.signal = code > 128 ? code - 128 : 0;
  }

  runner::CommandJob job_;
  runner::CommandEnd end_;
  std::vector<Pattern> patterns_;
};

TEST_F(CommandOutcome, ExitCodeZeroAndAGoodResultIsMeasuredWhateverWasPrinted) {
  end_.standard_error = "warning: CUDA out of memory, trying a smaller batch\nError\n";
  EXPECT_EQ(words(), "ok ");
}

TEST_F(CommandOutcome, AGoodResultDoesNotExcuseAnExitCode) {
  exit_with(3);
  end_.standard_error = "boom\n";
  EXPECT_EQ(words(), "failed crash");
  EXPECT_EQ(std::get<trial::Failed>(outcome()).exit_code, 3);
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines, "exit code 3\nboom");
}

TEST_F(CommandOutcome, WithoutAResultTheOutputTellsWhetherMemoryRanOut) {
  end_.result.reset();
  end_.result_error = "it wrote no result";
  EXPECT_EQ(words(), "failed bad_result");
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines, "it wrote no result");
  for (const int code : {0, 1}) {
    exit_with(code);
    end_.standard_output = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB\n";
    EXPECT_EQ(std::get<trial::OutOfMemory>(outcome()).requested, Bytes{1 << 30}) << code;
  }
}

TEST_F(CommandOutcome, TheUsersExitCodesAndPatternsMeanOutOfMemory) {
  exit_with(3);
  job_.spec.oom_exit_codes = {2, 3};
  EXPECT_EQ(words(), "oom ");
  exit_with(4);
  EXPECT_EQ(words(), "failed crash");
  patterns_.emplace_back("arena [0-9]+ exhausted");
  end_.standard_error = "x\narena 12 exhausted\n";
  EXPECT_EQ(words(), "oom ");
}

TEST_F(CommandOutcome, AKillThatWasNotOursIsTheOomKillersWhereItHasKilled) {
  for (const int code : {137, 247}) {
    exit_with(code);
    end_.oom_kills = 0;
    EXPECT_EQ(words(), "failed crash") << code;
    EXPECT_NE(std::get<trial::Failed>(outcome()).last_lines.find("neither by krigtune nor"), std::string::npos);
    end_.oom_kills = 1;
    EXPECT_EQ(words(), "oom ") << code;
    end_.oom_kills.reset();
    EXPECT_EQ(words(), "oom ") << "the kernel does not count";
  }
  exit_with(139);
  end_.oom_kills = 1;
  EXPECT_EQ(words(), "failed crash") << "another signal";
}

// Launchers end with exit code 1 and say what happened to the rank.
TEST_F(CommandOutcome, AKillThatALauncherReportsIsJudgedLikeItsExitCode) {
  exit_with(1);
  for (const char* line : {"failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: /usr/bin/python3",
                           "CalledProcessError: Command '['python3', 'train.py']' died with <Signals.SIGKILL: 9>."}) {
    end_.standard_error = std::string(line) + "\n";
    end_.oom_kills = 0;
    EXPECT_EQ(words(), "failed crash") << line;
    EXPECT_NE(std::get<trial::Failed>(outcome()).last_lines.find("neither by krigtune nor"), std::string::npos);
    end_.oom_kills = 1;
    EXPECT_EQ(words(), "oom ") << line;
    end_.oom_kills.reset();
    EXPECT_EQ(words(), "oom ") << "the kernel does not count";
  }
}

TEST_F(CommandOutcome, WhatTheMachineLacksIsOfTheEnvironment) {
  exit_with(249);
  EXPECT_EQ(words(), "failed crash");
  EXPECT_NE(std::get<trial::Failed>(outcome()).last_lines.find("exit code 249: SIGBUS (bus error), as when shared"),
            std::string::npos);
  end_.standard_error =
      "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n";
  EXPECT_EQ(words(), "failed environment");
  EXPECT_NE(std::get<trial::Failed>(outcome()).last_lines.find("docker run --shm-size"), std::string::npos);
  exit_with(1);
  end_.standard_error = "OSError: [Errno 28] No space left on device\n";
  EXPECT_EQ(words(), "failed environment");
}

TEST_F(CommandOutcome, AnOptionThatARecipeAddedIsNamedAsSuch) {
  exit_with(2);
  job_.spec.argv = {"python", "train.py", "--lr", "1", "--max_steps", "{steps}"};
  job_.spec.recipe = "hf-trainer";
  end_.standard_error = "train.py: error: unrecognized arguments: --max_steps 20\n";
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines.rfind("exit code 2\n", 0), 0U)
      << "no recipe made the command";
  job_.spec.users_command = {"python", "train.py", "--lr", "1"};
  EXPECT_EQ(words(), "failed crash");
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines,
            "the program does not take --max_steps, which the recipe hf-trainer added: name the parameters with --vary "
            "instead\nexit code 2\ntrain.py: error: unrecognized arguments: --max_steps 20");
  job_.spec.users_command = job_.spec.argv;
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines.rfind("exit code 2\n", 0), 0U) << "the user typed it";
}

// LLaMA-Factory 0.9.5: such words are keys of its file, too.
TEST_F(CommandOutcome, AKeyThatARecipeAddedIsNamedAsSuch) {
  exit_with(1);
  job_.spec.argv = {"llamafactory-cli", "train", "a.yaml", "logging_nan_inf_filter=false"};
  job_.spec.users_command = {"llamafactory-cli", "train", "a.yaml"};
  job_.spec.recipe = "llama-factory";
  end_.standard_error =
      "[rank0]: ValueError: Some keys are not used by the HfArgumentParser: ['logging_nan_inf_filter']\n";
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines.rfind("the program does not take logging_nan_inf_filter=", 0),
            0U);
  end_.standard_error = "[rank0]: ValueError: Some keys are not used by the HfArgumentParser: ['lora_rnk']\n";
  EXPECT_EQ(std::get<trial::Failed>(outcome()).last_lines.rfind("exit code 1\n", 0), 0U) << "of the user's file";
}

// LLaMA-Factory 0.9.5 on two CPU ranks, of which the second was killed: the first says that it lost it, and that line
// was shown.
TEST_F(CommandOutcome, OfAKilledRankTheLastLineSaysThatItWasKilled) {
  exit_with(1);
  end_.oom_kills = 0;
  end_.standard_error =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/x/torch/autograd/graph.py\", line 1, in f\n"
      "[rank0]: RuntimeError: [/__w/third_party/gloo/gloo/transport/tcp/pair.cc:545] Read error [127.0.0.1]:42158: "
      "Connection reset by peer. This is typically caused by a remote worker hanging\n"
      "E1130 23:00:59.1 7 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 1 "
      "(pid: 2469) of binary: /x/bin/python\n"
      "subprocess.CalledProcessError: Command '['torchrun', '--nnodes', '1']' returned non-zero exit status 1.\n";
  EXPECT_EQ(words(), "failed crash");
  const std::string said = std::get<trial::Failed>(outcome()).last_lines;
  EXPECT_EQ(said.substr(said.rfind('\n') + 1),
            "exit code 1: killed (SIGKILL), neither by krigtune nor by the kernel's OOM killer");
}

// The same with a model that is not there.
TEST_F(CommandOutcome, OfAWrappedExceptionTheLastLineSaysWhatItWasRaisedFrom) {
  exit_with(1);
  end_.standard_error =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/x/llamafactory/model/loader.py\", line 80, in "
      "f\n"
      "[rank0]: OSError: We couldn't connect to load the files, and couldn't find them in the cached files.\n"
      "[rank0]: \n[rank0]: The above exception was the direct cause of the following exception:\n[rank0]: \n"
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/x/llamafactory/model/loader.py\", line 93, in "
      "f\n"
      "[rank0]: OSError: Failed to load tokenizer.\n";
  EXPECT_EQ(words(), "failed crash");
  const std::string said = std::get<trial::Failed>(outcome()).last_lines;
  EXPECT_EQ(said.substr(said.rfind('\n') + 1),
            "OSError: Failed to load tokenizer. (raised from OSError: We couldn't connect to load the files, and "
            "couldn't find them in the cached files.)");
}

TEST_F(CommandOutcome, ACollectiveThatDidNotEndInTimeIsAHang) {
  exit_with(1);
  const std::string timeout =
      "[rank1]:[E1107 03:11:12.101 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=211, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800043 milliseconds before timing out.\n";
  end_.standard_error = timeout;
  EXPECT_EQ(words(), "failed hang");
  end_.standard_error =
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for "
      "recv operation to complete\n";
  EXPECT_EQ(words(), "failed hang");
  end_.standard_error =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nIndexError: list index out of "
      "range\n" +
      timeout;
  EXPECT_EQ(words(), "failed crash") << "the others waited for that rank";
}

TEST_F(CommandOutcome, WhatKrigtuneEndedItselfIsNoCrash) {
  exit_with(137);
  end_.oom_kills = 1;
  end_.process.timed_out = true;
  EXPECT_EQ(words(), "failed timeout");
  end_.process.timed_out = false;
  end_.process.hung = true;
  EXPECT_EQ(words(), "failed hang");
  end_.process.stopped = true;
  EXPECT_EQ(words(), "failed interrupted");
  end_.result = R"({"status": "oom"})";
  EXPECT_EQ(words(), "failed interrupted") << "it was told to end";
  end_.process.stopped = false;
  EXPECT_EQ(words(), "oom ");
  end_.process.start_error = "Permission denied";
  EXPECT_EQ(words(), "failed environment");
}

TEST(OomKills, AreReadFromVmstat) {
  EXPECT_EQ(trial::oom_kills_in("nr_free_pages 12\noom_kill 3\ndrop_pagecache 0\n"), 3);
  EXPECT_FALSE(trial::oom_kills_in("nr_free_pages 12\n").has_value());
  EXPECT_FALSE(trial::oom_kills_in("").has_value());
}

}  // namespace krigtune::command_result_test
