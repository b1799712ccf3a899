// docs/security.md: which files are written, for whom, and through which links; the environment of a trial; what a
// spreadsheet gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <sstream>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"
#include "scoped_variable.h"

namespace krigtune::security_test {

namespace fs = std::filesystem;

/// A session of a program that writes down its variables, and the configuration's number as the result.
class SecurityTest : public testing::Test {
 protected:
  SecurityTest() {
    directory_.write_program("own", R"(tr '\0' '\n' </proc/$$/environ >"${2%/*}/variables"
      echo "{\"speed\": $(sed -n 's/.*"a": *\([0-9]*\).*/\1/p' "$1")}" >"$2")");
  }

  Said tune(int trials, const std::string& variables = R"({"MY_WORD": "x"})") const {
    const std::string session = R"({"space": {"a": {"min": 1, "max": 9}}, "baseline": null,
      "objective": {"metric": "speed", "direction": "maximize"},
      "budget": {"trials": 2, "regret": 0, "least_gain": 0},
      "runner": {"kind": "command", "argv": ["./own", "{config}", "{result}"], "env": )" +
                                variables + "}}";
    return run_krigtune({"tune", directory_.write("own.json", session).string(), "--out", run_.string(), "--trials",
                         std::to_string(trials)},
                        "/nowhere/krigtune", clock_);
  }
  static mode_t permissions(const fs::path& path) {
    struct stat state {};
    return ::stat(path.c_str(), &state) == 0 ? state.st_mode & 0777U : 0U;
  }

  const SystemClock clock_;
  const TemporaryDirectory directory_;
  const fs::path run_ = directory_ / "run";
};

// Whoever may write into a run directory could plant links to the user's files: beside the table and the page, and
// where the next trial will put its files.
TEST_F(SecurityTest, FilesOfARunAreNeverWrittenThroughALink) {
  ASSERT_EQ(tune(2).code, 0);
  std::vector<fs::path> links;
  const auto plant = [&](const fs::path& place, const std::string& text) {
    const fs::path victim = directory_ / ("victim" + std::to_string(links.size()));
    write_atomically(victim, text);
    fs::remove(place);
    fs::create_symlink(victim, place);
    links.push_back(place);
  };
  for (const auto& entry : fs::directory_iterator(run_)) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && name != "journal.log") plant(entry.path(), read_text(entry.path()));
  }
  EXPECT_GE(links.size(), 6U);
  fs::create_directories(run_ / "trials/0002");
  for (const char* name : {"config.json", "cmd.txt", "env.txt", "exit.json"}) plant(run_ / "trials/0002" / name, name);
  std::vector<std::string> before;
  for (std::size_t i = 0; i < links.size(); ++i)
    before.push_back(read_text(directory_ / ("victim" + std::to_string(i))));
  const Said said = tune(3);
  EXPECT_EQ(said.code, 0) << said.err;
  for (std::size_t i = 0; i < links.size(); ++i) {
    EXPECT_EQ(read_text(directory_ / ("victim" + std::to_string(i))), before[i]) << links[i];
    EXPECT_TRUE(links[i].filename() == "changes.md" || !fs::is_symlink(links[i])) << links[i];
  }
}

TEST_F(SecurityTest, AJournalAnOutputOrATrialBehindALinkIsRefused) {
  ASSERT_EQ(tune(2).code, 0);
  // Each refusal uses up a number: the trial was begun, and is ended as interrupted when the session continues.
  fs::path next = run_ / "trials/0002";
  for (const char* name : {"stdout.log", "stderr.log"}) {
    fs::create_directories(next);
    write_atomically(directory_ / "victim", "untouched");
    fs::create_symlink(directory_ / "victim", next / name);
    const Said said = tune(3);
    EXPECT_EQ(said.code, 3) << said.err;
    EXPECT_NE(said.err.find("Too many levels of symbolic links"), std::string::npos) << said.err;
    EXPECT_EQ(read_text(directory_ / "victim"), "untouched");
    next = run_ / (next.filename() == "0002" ? "trials/0003" : "trials/0004");
  }
  fs::create_directory(directory_ / "elsewhere");
  fs::create_directory_symlink(directory_ / "elsewhere", next);
  const Said behind = tune(3);
  EXPECT_EQ(behind.code, 3) << behind.err;
  EXPECT_NE(behind.err.find("is a symbolic link: no trial is run through one"), std::string::npos) << behind.err;
  EXPECT_TRUE(fs::is_empty(directory_ / "elsewhere"));
  fs::rename(run_ / "journal.log", directory_ / "journal");
  fs::create_symlink(directory_ / "journal", run_ / "journal.log");
  const std::string journal = read_text(directory_ / "journal");
  const Said said = tune(3);
  EXPECT_EQ(said.code, 2) << said.err;
  EXPECT_NE(said.err.find("a journal is never written through one"), std::string::npos) << said.err;
  EXPECT_EQ(read_text(directory_ / "journal"), journal);
  EXPECT_EQ(run_krigtune({"results", run_.string()}).code, 0) << "reading is not a harm";
}

TEST_F(SecurityTest, TheUmaskDecidesWhoMayReadARunButForWhatMayHoldASecret) {
  const mode_t before = ::umask(002);
  EXPECT_EQ(tune(1).code, 0);
  ::umask(before);
  EXPECT_EQ(permissions(run_), 0775U);
  for (const char* name : {"journal.log", "session.json", "trials.csv", "trials/0000/stdout.log"}) {
    EXPECT_EQ(permissions(run_ / name), 0664U) << name;
  }
  EXPECT_EQ(permissions(run_ / "trials/0000/env.txt"), 0600U);
  fs::remove_all(run_);
  ::umask(077);
  EXPECT_EQ(tune(1, R"({"WANDB_API_KEY": "x"})").code, 0);
  ::umask(022);
  EXPECT_EQ(permissions(run_), 0700U);
  EXPECT_EQ(permissions(run_ / "journal.log"), 0600U);
  fs::remove_all(run_);
  EXPECT_EQ(tune(1, R"({"WANDB_API_KEY": "x"})").code, 0);
  ::umask(before);
  EXPECT_EQ(permissions(run_ / "session.json"), 0600U) << "it names the variable";
  EXPECT_EQ(permissions(run_ / "journal.log"), 0644U);
  EXPECT_EQ(read_text(run_ / "journal.log").find("WANDB_API_KEY"), std::string::npos);
}

// docs/security.md lists them in a table: each row has a variable and who sets it.
std::set<std::string> documented_variables() {
  std::set<std::string> names;
  std::istringstream page(read_text(fs::path(KRIGTUNE_DOCS) / "security.md"));
  for (std::string line; std::getline(page, line);) {
    const std::string begin = "| `";
    if (line.starts_with(begin)) names.insert(line.substr(begin.size(), line.find('`', begin.size()) - begin.size()));
  }
  return names;
}

TEST_F(SecurityTest, ATrialHasOurEnvironmentTheSessionsVariablesAndWhatTheDocsList) {
  const ScopedVariable own("MY_SECRET_OF_THE_SHELL", "hidden");
  EXPECT_EQ(tune(1).code, 0);
  std::set<std::string> inherited;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    inherited.insert(text.substr(0, text.find('=')));
  }
  std::set<std::string> seen;
  std::istringstream variables(read_text(run_ / "trials/0000/variables"));
  for (std::string line; std::getline(variables, line);) seen.insert(line.substr(0, line.find('=')));
  EXPECT_TRUE(seen.contains("MY_WORD")) << "the session sets it";
  const std::set<std::string> documented = documented_variables();
  EXPECT_GT(documented.size(), 10U);
  for (const std::string& name : inherited) EXPECT_TRUE(seen.contains(name)) << name;
  for (const std::string& name : seen) {
    EXPECT_TRUE(name == "MY_WORD" || inherited.contains(name) || documented.contains(name))
        << name << " is not listed in docs/security.md";
  }
  const std::string kept = read_text(run_ / "trials/0000/env.txt");
  EXPECT_NE(kept.find("MY_WORD=x\n"), std::string::npos);
  EXPECT_EQ(kept.find("MY_SECRET_OF_THE_SHELL"), std::string::npos);
}

// In a stand-in for krigtune-bench: the secret that its ranks share is new for each trial, and is written nowhere.
TEST_F(SecurityTest, TheRanksOfATrialHaveATokenThatNoFileHolds) {
  directory_.write_program("krigtune-bench",
                           "case \"$*\" in *--config*) echo \"$KRIGTUNE_TOKEN\" >>'" +
                               (directory_ / "tokens").string() +
                               "' ;; esac; exit 4");  // it may be asked to measure the machine first
  const std::string session = directory_
                                  .write("bench.json", R"({
    "workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 8},
    "cluster": {"gpus_per_node": 2}, "space": {"zero_stage": [0, 1, 2, 3]}, "baseline": null,
    "memory": {"limit_gib": 1}, "runner": {"kind": "bench"}, "budget": {"trials": 2}})")
                                  .string();
  run_krigtune({"tune", session, "--out", run_.string()}, directory_ / "krigtune", clock_);
  std::istringstream tokens(read_text(directory_ / "tokens"));
  std::set<std::string> different;
  for (std::string token; std::getline(tokens, token);) {
    EXPECT_EQ(token.size(), 32U);
    different.insert(token);
  }
  EXPECT_GE(different.size(), 2U);
  for (const auto& entry : fs::recursive_directory_iterator(run_)) {
    if (!entry.is_regular_file()) continue;
    for (const std::string& token : different) {
      EXPECT_EQ(read_text(entry.path()).find(token), std::string::npos) << entry.path();
    }
  }
}

TEST_F(SecurityTest, TablesForSpreadsheetsHoldNoFormula) {
  directory_.write("table.csv", "a,word,v\n1,=cmd|'/C calc'!A1,-5\n2,@SUM(A1),-1e-3\n");
  const std::string session =
      directory_
          .write("table.json", R"x({"space": {"a": [1, 2], "word": ["=cmd|'/C calc'!A1", "@SUM(A1)"]}, "baseline": null,
    "objective": {"metric": "v", "direction": "maximize"},
    "runner": {"kind": "replay", "table": "table.csv", "value": "v"}, "budget": {"trials": 2}})x")
          .string();
  ASSERT_EQ(run_krigtune({"tune", session, "--out", run_.string(), "--full-budget"}).code, 0);
  const std::string plain = run_krigtune({"results", run_.string(), "--format", "csv"}).out;
  EXPECT_NE(plain.find(",=cmd|'/C calc'!A1,"), std::string::npos) << plain;
  const std::string safe = run_krigtune({"results", run_.string(), "--format", "csv", "--spreadsheet-safe"}).out;
  EXPECT_NE(safe.find(",'=cmd|'/C calc'!A1,"), std::string::npos) << safe;
  EXPECT_NE(safe.find(",'@SUM(A1),"), std::string::npos) << safe;
  EXPECT_NE(safe.find(",-5,"), std::string::npos) << "a number stays one: " << safe;
  EXPECT_EQ(safe, spreadsheet_safe(plain));
  const Said written = run_krigtune({"export", run_.string(), "--format", "csv", "--spreadsheet-safe"});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(read_text(run_ / "export/trials.csv"), spreadsheet_safe(read_text(run_ / "trials.csv")));
  for (const std::vector<std::string>& other :
       std::vector<std::vector<std::string>>{{"results", run_.string(), "--spreadsheet-safe"},
                                             {"export", run_.string(), "--format", "json", "--spreadsheet-safe"}}) {
    const Said said = run_krigtune(other);
    EXPECT_EQ(said.code, 2);
    EXPECT_NE(said.err.find("--spreadsheet-safe applies only to CSV; add --format csv"), std::string::npos) << said.err;
  }
}

TEST_F(SecurityTest, TuneRemovesWhatKilledWritersLeft) {
  ASSERT_EQ(tune(1).code, 0);
  const fs::path left = run_ / "best.json.tmp-0123456789abcdef";
  write_atomically(left, "half");
  fs::last_write_time(left, fs::last_write_time(left) - std::chrono::hours(1));
  EXPECT_EQ(tune(2).code, 0);
  EXPECT_FALSE(fs::exists(left));
}

}  // namespace krigtune::security_test
