// The page of a plan: what fits, the memory map, the Pareto front.
#include "page/plan/plan_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "html_reader.h"
#include "result/report_fixtures.h"

namespace krigtune::plan_page_test {

TEST(PlanPage, HasTheMapAndTheParetoFrontOfWhatWasLookedAt) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "gpu": "a100-40gb"})");
  const session::MemoryFilter filter(session);
  const forecast::Forecaster forecaster(session, filter);
  std::vector<forecast::Candidate> looked_at;
  forecast::StudyOptions options;
  options.visit = [&](const forecast::Candidate& candidate) { looked_at.push_back(candidate); };
  const forecast::PlanStudy study = forecast::study_plan(session, forecaster, options);
  const forecast::PlanAnswers answers = forecast::answers_of(session, filter, forecaster, study);
  const std::string html =
      page::plan_page({session, study, answers, looked_at, {}, {"10 d", "steps <10> d"}, "<job>", "today"});
  const HtmlReader read(html);
  ASSERT_EQ(read.fault(), "");
  EXPECT_NE(html.find("krigtune plan: &lt;job&gt;"), std::string::npos);
  EXPECT_NE(html.find("steps &lt;10&gt; d"), std::string::npos);
  EXPECT_NE(html.find(">ZeRO stage 3<"), std::string::npos);
  EXPECT_NE(html.find("Where memory goes, by ZeRO stage"), std::string::npos);
  EXPECT_NE(read.text().find("parameters, 4 tokens a sequence, on 2 x a100-40gb."), std::string::npos) << read.text();
  EXPECT_NE(html.find("The fastest that fit more likely than not"), std::string::npos);
  EXPECT_NE(html.find("tokens/s per GPU"), std::string::npos);
  // Computed directly: a candidate is on the front if no other one is faster or smaller, and as good in the other.
  for (const forecast::Candidate& one : looked_at) {
    ASSERT_TRUE(one.forecast.memory && one.forecast.cost);
    bool is_on_front = true;
    for (const forecast::Candidate& other : looked_at) {
      const bool smaller = other.forecast.memory->predicted.count < one.forecast.memory->predicted.count;
      const bool as_small = other.forecast.memory->predicted.count == one.forecast.memory->predicted.count;
      const bool faster = other.forecast.samples_per_s > one.forecast.samples_per_s;
      const bool as_fast = other.forecast.samples_per_s == one.forecast.samples_per_s;
      if ((smaller && (faster || as_fast)) || (as_small && faster)) is_on_front = false;
    }
    if (!is_on_front) continue;
    const std::string row =
        fmt::format("{}{:.4g}", to_string(one.forecast.memory->predicted), one.forecast.samples_per_s);
    EXPECT_NE(read.text().find(row), std::string::npos) << one.configuration.text();
  }
}

TEST(PlanPage, OfNothingIsAPageToo) {
  const session::Session session = bench_session();
  const forecast::PlanStudy study;
  const forecast::PlanAnswers answers;
  EXPECT_EQ(HtmlReader(page::plan_page({session, study, answers, {}, {}, {}, "job", "today"})).fault(), "");
}

}  // namespace krigtune::plan_page_test
