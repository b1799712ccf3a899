// The report's figure that shows which trial ran where and when.
#include <gtest/gtest.h>

#include "html_reader.h"
#include "page/report/report_page.h"
#include "result/report_fixtures.h"
#include "run/prepared.h"
#include "trial/temporary_directory.h"

namespace krigtune::timeline_test {
namespace {

std::string page_of(const search::History& history) {
  const TemporaryDirectory directory;
  const run::Prepared prepared(bench_session());
  const report::RunView run{prepared.session,
                            history,
                            "job",
                            {search::StrategyKind::kBayes, 7},
                            directory.path(),
                            {},
                            answer::answer_of(prepared.session, history, recommendation())};
  return page::report_page(
      {run, prepared.candidates, prepared.filter, "The budget is spent", "today", directory.path()});
}

}  // namespace

TEST(Timeline, IsThereWhereTrialsRanInSeveralPlaces) {
  search::History history = all_outcomes();
  EXPECT_EQ(page_of(history).find("Trials by where and when they ran"), std::string::npos);
  for (journal::Trial& trial : history) trial.where = "slot 0, GPU 0";
  EXPECT_EQ(page_of(history).find("Trials by where and when they ran"), std::string::npos);
  history[1].where = "slot 1, GPUs 1,2";
  history[1].started_at = "2026-08-23T10:03:00.000000";
  const std::string html = page_of(history);
  EXPECT_NE(html.find("Trials by where and when they ran"), std::string::npos);
  EXPECT_NE(html.find("6 trials in 2 places"), std::string::npos);
  EXPECT_NE(html.find(">slot 0<"), std::string::npos);
  EXPECT_NE(html.find(">slot 1<"), std::string::npos);
  EXPECT_EQ(HtmlReader(html).fault(), "");
}

}  // namespace krigtune::timeline_test
