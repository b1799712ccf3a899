#include "trial/python_exception.h"

#include <gtest/gtest.h>

namespace krigtune::python_exception_test {

TEST(PythonException, IsTheLastOfAChainAndOfTheRankThatTheLauncherNames) {
  const std::string chain =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nbinascii.Error: Incorrect padding\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"/x/deepspeed/runtime/config.py\", line 2, in g\n"
      "    raise ValueError(\nValueError: Expected a string path\n";
  const auto cause = trial::cause_of_failure(chain);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->line(), "ValueError: Expected a string path");
  EXPECT_EQ(cause->files, std::vector<std::string>{"/x/deepspeed/runtime/config.py"});
  const std::string two =
      "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"a.py\", line 1, in f\n[rank1]:   File \"b.py\", line 1, in f\n"
      "[rank0]: RuntimeError: first in the text\n[rank1]: RuntimeError: first to fail\n";
  EXPECT_EQ(trial::cause_of_failure(two)->message, "first in the text");
  EXPECT_EQ(
      trial::cause_of_failure(two + "Root Cause (first observed failure):\n  rank      : 1 (local_rank: 1)\n")->message,
      "first to fail");
  EXPECT_FALSE(
      trial::cause_of_failure("ERROR: RuntimeError: said, not raised\nTraceback (most recent call last):\n  File"));
}

// LLaMA-Factory 0.9.5 with a model that is not there: "raise OSError("Failed to load tokenizer.") from e".
TEST(PythonException, KnowsWhatItWasRaisedFrom) {
  const std::string trace = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n";
  const std::string from = "\nThe above exception was the direct cause of the following exception:\n\n";
  const std::string during = "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::string inner = trace + "OSError: We couldn't connect to load the files\n";
  const std::string outer = trace + "OSError: Failed to load tokenizer.\n";
  EXPECT_EQ(trial::cause_of_failure(inner + from + outer)->origin, "OSError: We couldn't connect to load the files");
  EXPECT_EQ(trial::cause_of_failure(inner + from + outer)->line(), "OSError: Failed to load tokenizer.");
  EXPECT_EQ(trial::cause_of_failure(inner + during + outer)->origin, "");
  EXPECT_EQ(trial::cause_of_failure(outer)->origin, "");
}

TEST(PythonException, IsFoundBehindTheNamesOfHosts) {
  const std::string text =
      "n-1: [rank2]: Traceback (most recent call last):\nn-0: Traceback (most recent call last):\n"
      "n-1: [rank2]:   File \"b.py\", line 1, in f\nn-0:   File \"a.py\", line 1, in f\n"
      "n-0: RuntimeError: Connection closed by peer\nn-1: [rank2]: ValueError: odd\n";
  const auto cause = trial::cause_of_failure(text);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->line(), "ValueError: odd");
  EXPECT_EQ(cause->rank, 2);
  EXPECT_EQ(cause->files, std::vector<std::string>{"b.py"});
}

TEST(PythonException, ALostConnectionIsAConsequence) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "RuntimeError: [pair.cc:545] Read error: Connection reset by peer. This is typically caused by\n"
      "Traceback (most recent call last):\n  File \"b.py\", line 1, in f\nIndexError: index out of range\n";
  EXPECT_EQ(trial::cause_of_failure(text)->type, "IndexError");
}

// rich breaks the message, too, at the terminal's width.
TEST(PythonException, IsReadBehindABoxOfRich) {
  const auto cause = trial::cause_of_failure(
      "[12:00:01] step 3\n"
      "╭───────────── Traceback (most recent call last) ─────────────╮\n"
      "│ /w/train.py:331 in <module>                                 │\n"
      "│ ❱ 331 │   main()                                            │\n"
      "│ /opt/lib/deepspeed/runtime/config.py:891 in _batch_assert   │\n"
      "│   888 │   │   assert (grad_acc > 0), f\"Gradient\"             │\n"
      "│ ❱ 891 │   │   │   f\"Check batch\"                             │\n"
      "╰─────────────────────────────────────────────────────────────╯\n"
      "deepspeed.Odd: Check batch related parameters. It is \nnot equal to 64 != 4 * 8 * 1\n\nbye\n");
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->line(), "Odd: Check batch related parameters. It is not equal to 64 != 4 * 8 * 1");
  EXPECT_EQ(cause->files, (std::vector<std::string>{"/w/train.py", "/opt/lib/deepspeed/runtime/config.py"}));
  EXPECT_EQ(cause->code, "│   │   f\"Check batch\"");
  EXPECT_FALSE(trial::cause_of_failure("╭─── Traceback (most recent call last) ───╮\n│ /w/train.py:331 in f │\n"));
}

TEST(PythonException, KnowsTheLineOfCodeThatRaisedIt) {
  const auto cause = trial::cause_of_failure(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g(x)\n"
      "  File \"b.py\", line 2, in g\n    return x.pin_memory()\n           ^^^^^^^^^^^^^^\nRuntimeError: no\n");
  EXPECT_EQ(cause->code, "return x.pin_memory()");
}

}  // namespace krigtune::python_exception_test
