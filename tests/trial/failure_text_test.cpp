#include "trial/failure_text.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace krigtune::failure_text_test {

constexpr const char* kTorchrunReport =
    R"(W0325 20:57:27 2606 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 11 closing signal SIGTERM
E0325 20:57:27 2606 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 12) of binary: /usr/bin/python
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2025-05-21_15:43:04
  host      : n1
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 10)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-05-21_15:43:03
  host      : n1
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 12)
============================================================
)";

TEST(FailureText, TheRootCauseNamesTheRank) {
  EXPECT_EQ(trial::first_failing_rank(kTorchrunReport), 3);
  EXPECT_EQ(trial::first_failing_rank("mpirun noticed that process rank 5 with PID 0 on node n1 exited on signal 9."),
            5);
  EXPECT_EQ(
      trial::first_failing_rank("srun: error: n1: task 2: Exited with exit code 1\nsrun: error: n1: task 0: Killed"),
      2);
  EXPECT_FALSE(trial::first_failing_rank("rank 3 says hello\n  rank  : 4 (local_rank: 4)").has_value());
  EXPECT_FALSE(trial::first_failing_rank("").has_value());
}

TEST(FailureText, OnlyTheLinesOfTheFirstFailingRankAreShown) {
  const std::string text = std::string("[rank1]: ValueError: watchdog\n[rank3]: Traceback (most recent call last):\n") +
                           "[rank0]: fine\n[rank3]: ValueError: bad head\n" + kTorchrunReport;
  EXPECT_EQ(trial::failure_text("", text), "rank 3:\n Traceback (most recent call last):\n ValueError: bad head");
}

TEST(FailureText, TheLabelsOfTheLaunchersAreKnown) {
  const std::string raised = "Traceback (most recent call last):";
  EXPECT_EQ(trial::failure_text("", "[rank3]:" + raised), "rank 3:\n" + raised);
  EXPECT_EQ(trial::failure_text("", "[default3]:" + raised), "rank 3:\n" + raised);
  EXPECT_EQ(trial::failure_text("", "0: fine\n3: " + raised), "rank 3:\n" + raised);
  EXPECT_EQ(trial::failure_text("", " 3: " + raised + "\n11: fine"), "rank 3:\n" + raised);
  EXPECT_EQ(trial::failure_text("[1,3]<stderr>:" + raised + "\n[1,0]<stdout>:fine", ""), "rank 3:\n" + raised);
  EXPECT_EQ(trial::failure_text("", "12:30:01 " + raised), "12:30:01 " + raised);
}

TEST(FailureText, WithoutLabelsTheLaunchersReportIsLeftOut) {
  EXPECT_EQ(trial::failure_text("", std::string("step 1\nValueError: bad head\n") + kTorchrunReport),
            "step 1\nValueError: bad head");
  EXPECT_NE(trial::failure_text("", kTorchrunReport).find("Root Cause"), std::string::npos) << "there is nothing else";
}

TEST(FailureText, TheLastTwentyLinesOfStderrElseOfStdout) {
  std::string text;
  for (int i = 1; i <= 30; ++i) text += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(trial::failure_text("out\n", text).find("line 11\n"), 0U);
  EXPECT_EQ(trial::failure_text(text, " \n").find("line 11\n"), 0U);
  EXPECT_EQ(trial::failure_text("", ""), "");
  EXPECT_LE(trial::failure_text("", std::string(1 << 20, 'x')).size(), 8192U);
}

TEST(FailureText, WhatIsNoTextIsMadeText) {
  EXPECT_EQ(trial::failure_text("", "10%\r50%\r90%\r\nboom"), "90%\nboom");
  EXPECT_EQ(trial::failure_text("", "\x1b[31mred\x1b[0m \x01\x07 \xc3\xa4 \xff\xc3"), "red  \xc3\xa4 ??");
  // Half of a surrogate pair and an overlong form are no characters either, and JSON refuses them.
  EXPECT_EQ(trial::failure_text("", "bad \xed\xa0\x80 and \xc0\xaf"), "bad ??? and ??");
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 73 % 256);
  EXPECT_NO_THROW(Json(trial::failure_text("", bytes)).dump());
  EXPECT_NO_THROW(Json(trial::failure_text("", std::string(9000, 'x') + "\xc3\xa4" + std::string(8191, 'y'))).dump());
}

}  // namespace krigtune::failure_text_test
