#include <gtest/gtest.h>

#include <regex>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "session/session.h"

namespace krigtune::init_test {

class Init : public testing::Test {
 protected:
  std::string written() const {
    const Said said = run_krigtune({"init", file_});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(
        said.out,
        file_ + ": written; next: krigtune plan " + file_ +
            "\nit trains a small model of krigtune's own; to tune your own command: krigtune init -- COMMAND...\n");
    return read_text(file_);
  }

  TemporaryDirectory directory_;
  std::string file_ = (directory_ / "session.json").string();
};

TEST_F(Init, WritesASessionThatCanBePlannedAndTuned) {
  written();
  const session::Session session = session::load_session(file_);
  EXPECT_TRUE(session.warnings.empty()) << session.warnings.front();
  EXPECT_TRUE(session.baseline) << "what is gained is relative to it";
  EXPECT_GT(session.space.count(), 20);
  const auto& bench = std::get<runner::BenchSpec>(session.runner);
  EXPECT_LT(bench.warmup_s + bench.measure_s, 3.0) << "three trials take seconds";
  const Said plan = run_krigtune({"plan", file_});
  EXPECT_EQ(plan.code, 0) << plan.err;
}

// Commented lines show the values that the session has anyway, so uncommenting them must not change it.
TEST_F(Init, ShowsTheDefaultsOfEveryBlockAsComments) {
  const std::string text = written();
  const Json before = session::resolved(session::load_session(file_));
  const std::regex commented(R"re((^|\n)( *)// (?=["}]))re");
  directory_.write("session.json", std::regex_replace(text, commented, "$1$2"));
  const Json after = session::resolved(session::load_session(file_));
  EXPECT_EQ(after.dump(2), before.dump(2));
  for (const auto& [block, value] : before.items()) {
    EXPECT_TRUE(load_json(file_).contains(block)) << block;
  }
}

TEST_F(Init, SaysOfEveryLineWhatItMeans) {
  std::istringstream lines(written());
  int members = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 240U) << line;
    const bool is_leaf = line.find("\": ") != std::string::npos && line.back() != '{';
    const bool says = line.find("  // ", line.find("\": ") + 1) != std::string::npos;
    if (is_leaf && says) ++members;
  }
  EXPECT_GT(members, 30);
}

TEST_F(Init, OverwritesNothing) {
  directory_.write("session.json", "mine");
  const Said said = run_krigtune({"init", file_});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.err, "krigtune: init: '" + file_ +
                          "' exists already; move it away, or name another file: krigtune init OTHER.json\n");
  EXPECT_EQ(read_text(file_), "mine");
}

TEST_F(Init, RefusesADirectoryThatIsNotThere) {
  const Said said = run_krigtune({"init", (directory_ / "absent/session.json").string()});
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("there is no directory '"), std::string::npos) << said.err;
}

TEST_F(Init, PrintsTheSchemaAndWritesNothing) {
  const Said said = run_krigtune({"init", "--schema", file_});
  EXPECT_EQ(said.code, 2) << "a file would be expected to be written";
  EXPECT_EQ(parse_json(run_krigtune({"init", "--schema"}).out, "schema")["type"], "object");
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

}  // namespace krigtune::init_test
