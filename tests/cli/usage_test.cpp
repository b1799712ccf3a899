#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"

namespace krigtune {
namespace {

/// Bad usage and bad input: exit code 2, one line on stderr that says so, nothing on stdout.
void expect_refused(const std::vector<std::string>& arguments, const std::string& line) {
  const Said said = run(arguments);
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_NE(said.err.find(line), std::string::npos) << said.err;
}

TEST(Usage, WithoutACommandIsHelpOnStderr) {
  const Said said = run({});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(said.err, run({"--help"}).out);
}

TEST(Usage, NamesTheNearestCommandAndOption) {
  expect_refused({"tunee"}, "krigtune: unknown command 'tunee'; did you mean 'tune'?");
  expect_refused({"--versoin"}, "krigtune: unknown option '--versoin'; did you mean '--version'?");
  expect_refused({"tune", "s.json", "--trails", "3"},
                 "krigtune: tune: unknown option '--trails'; did you mean '--trials'?");
  expect_refused({"tune", "s.json", "--trails=3"}, "did you mean '--trials'?");
}

TEST(Usage, DoesNotGuessOptionsFromTheirBeginning) {
  expect_refused({"tune", "s.json", "--tri", "3"}, "unknown option '--tri'");
}

TEST(Usage, HasNoOptionsThatAreNotBuiltYet) {
  expect_refused({"tune", "s.json", "--deepspeed", "1"}, "unknown option '--deepspeed'");
}

TEST(Usage, SaysWhichOperandIsMissingOrTooMuch) {
  expect_refused({"tune"}, "krigtune: tune: SESSION is missing; usage: krigtune tune SESSION [options]");
  expect_refused({"results"}, "DIR is missing");
  expect_refused({"tune", "a.json", "b.json"}, "'b.json' is too much");
  expect_refused({"doctor", "now"}, "'now' is too much");
}

TEST(Usage, SaysWhatAValueMustBe) {
  const TemporaryDirectory directory;
  const std::string session = replay_session(directory).string();
  expect_refused({"tune", session, "--trials", "many"},
                 "--trials: 'many' is not accepted; write a whole number from 1 to");
  expect_refused({"tune", session, "--trials", "0"}, "--trials: '0' is not accepted");
  expect_refused({"tune", session, "--seed=-1"}, "--seed: '-1' is not accepted");
  expect_refused({"tune", session, "--hours", "nan"}, "--hours: 'nan' is not accepted");
  expect_refused({"tune", session, "--strategy", "bayse"}, "did you mean 'bayes'?");
  expect_refused({"compare", session, "--strategies", "bayes,,grid"}, "--strategies: an empty name");
  expect_refused({"compare", session, "--strategies", "grid,grid"}, "'grid' stands there twice");
  expect_refused({"tune", session, "-q", "-v"}, "-q and -v exclude each other");
  expect_refused({"tune", session, "--log-file", "/nowhere/log"}, "--log-file: cannot write '/nowhere/log'");
}

TEST(Usage, RefusesABadSessionInOneLineAndWritesNothing) {
  const TemporaryDirectory directory;
  const std::string session = directory.write("bad.json", R"({"space": {"a": [1, 2]}, "budgte": {}})").string();
  const std::string out = (directory / "run").string();
  expect_refused({"tune", session, "--out", out}, "did you mean 'budget'?");
  EXPECT_FALSE(std::filesystem::exists(out));
  expect_refused({"plan", (directory / "absent.json").string()}, "cannot read");
  directory.write("broken.json", "{");
  expect_refused({"plan", (directory / "broken.json").string()}, "broken.json: not JSON at line 1");
}

TEST(Usage, RefusesADirectoryThatHoldsNoRun) {
  const TemporaryDirectory directory;
  expect_refused({"results", directory.path().string()}, "holds no run");
  expect_refused({"predict", directory.path().string()}, "holds no run");
}

TEST(Doctor, ExitsWithThreeOnlyWhereTrialsCannotRun) {
  const TemporaryDirectory directory;
  directory.write_program("krigtune-bench", "exit 0\n");
  const Said with = run({"doctor"}, directory / "krigtune");
  EXPECT_EQ(with.code, 0) << with.out;
  EXPECT_EQ(with.out.find("FAIL"), std::string::npos) << with.out;
  const Said json = run({"doctor", "--json"}, directory / "krigtune");
  EXPECT_NE(json.out.find("\"schema_version\": 1"), std::string::npos);
  ::setenv("PATH", directory.path().c_str(), 1);
  EXPECT_EQ(run({"doctor"}).code, 0) << "found on PATH";
  ::setenv("PATH", "/nowhere", 1);
  const Said without = run({"doctor"});
  EXPECT_EQ(without.code, 3);
  EXPECT_NE(without.out.find("FAIL  krigtune-bench"), std::string::npos) << without.out;
}

}  // namespace
}  // namespace krigtune
