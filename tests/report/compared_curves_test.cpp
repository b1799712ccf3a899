// Reads the files of krigtune compare for a page beside a session.
#include "report/compared_curves.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "result/report_fixtures.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::compared_curves_test {

// Three runs of random, of which the last one begins with failures and is shorter; one run of grid.
constexpr const char* kRows =
    "strategy,seed,trial,status,value,best_so_far,regret,wall_s\n"
    "grid,1,0,ok,10,10,0.5,1\n"
    "grid,1,1,oom,,10,0.5,1\n"
    "grid,1,2,ok,16,16,0.2,1\n"
    "random,1,0,ok,10,10,0.5,1\n"
    "random,1,1,ok,12,12,0.4,1\n"
    "random,1,2,ok,20,20,0,1\n"
    "random,2,0,ok,8,8,0.6,1\n"
    "random,2,1,ok,18,18,0.1,1\n"
    "random,2,2,ok,17,18,0.1,1\n"
    "random,3,0,failed,,,1,1\n"
    "random,3,1,ok,9,9,0.55,1\n";

class ComparedCurves : public testing::Test {
 protected:
  std::filesystem::path write(const session::Session& session, const std::string& rows = kRows,
                              const std::string& folder = "run-compare") const {
    std::filesystem::create_directories(directory_ / folder);
    directory_.write(folder + "/compared.json", report::compared_record(session, 3).dump());
    directory_.write(folder + "/comparison.csv", rows);
    return directory_ / folder;
  }
  TemporaryDirectory directory_;
};

TEST_F(ComparedCurves, AreMediansAndQuartilesOverRuns) {
  const session::Session session = bench_session();
  const report::ComparedCurves found = report::compared_curves(write(session), session);
  EXPECT_EQ(found.runner, "bench");
  ASSERT_EQ(found.curves.size(), 2U);
  EXPECT_EQ(found.curves[0].strategy, "grid");
  EXPECT_EQ(found.curves[0].runs, 1);
  EXPECT_EQ(found.curves[0].trials, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(found.curves[0].best[1].median, 10.0);
  const report::ComparedCurve& random = found.curves[1];
  EXPECT_EQ(random.runs, 3);
  EXPECT_EQ(random.trials, (std::vector<int>{1, 2})) << "one run has no success at trial 0";
  EXPECT_EQ(random.best[0].median, 12.0);
  EXPECT_EQ(random.best[1].median, 18.0) << "the run that ended keeps its last, 9";
  EXPECT_EQ(random.best[1].q25, 13.5);
  EXPECT_EQ(random.best[1].q75, 19.0);
}

TEST_F(ComparedCurves, OfAnotherSessionAreRefusedWhereTheyAreAskedFor) {
  write(bench_session());
  const session::Session other = bench_session(R"({"gpus_per_node": 4})");
  const std::string line = user_error_of([&] { report::compared_curves(directory_ / "run-compare", other); });
  EXPECT_NE(line.find("it compares another session: cluster differs; compare this session: krigtune compare SESSION"),
            std::string::npos)
      << line;
  EXPECT_TRUE(report::curves_beside(directory_ / "run", other).curves.empty());
}

TEST_F(ComparedCurves, AreFoundInTheRunDirectoryAndBesideIt) {
  const session::Session session = bench_session();
  EXPECT_TRUE(report::curves_beside(directory_ / "run", session).curves.empty());
  write(session);
  EXPECT_EQ(report::curves_beside(directory_ / "run", session).directory, directory_ / "run-compare");
  EXPECT_EQ(report::curves_beside((directory_ / "run").string() + "/", session).curves.size(), 2U);
  write(session, kRows, "run");
  EXPECT_EQ(report::curves_beside(directory_ / "run", session).directory, directory_ / "run");
}

TEST_F(ComparedCurves, ThatAreDamagedAreOneClearLine) {
  const session::Session session = bench_session();
  const auto trouble = [&](const std::filesystem::path& folder) {
    return user_error_of([&] { report::compared_curves(folder, session); });
  };
  EXPECT_NE(trouble(directory_.path()).find("there is no comparison in it (no compared.json)"), std::string::npos);
  EXPECT_NE(trouble(write(session, "strategy,seed,trial\n")).find("there is no column 'best_so_far'"),
            std::string::npos);
  const std::string rows = "strategy,seed,trial,best_so_far\ngrid,1,0,5\ngrid,1,first,5\n";
  EXPECT_NE(trouble(write(session, rows)).find("line 3: numbers were expected as trial and best_so_far"),
            std::string::npos);
  for (const char* record : {"[]", "{}", R"({"schema_version": "1", "session": {}})"}) {
    directory_.write("run-compare/compared.json", record);
    EXPECT_NE(trouble(directory_ / "run-compare").find("it is not a record of a comparison"), std::string::npos)
        << record;
  }
}

}  // namespace krigtune::compared_curves_test
