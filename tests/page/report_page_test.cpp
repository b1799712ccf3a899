// report.html is complete, self-contained, and agrees with the run directory.
#include "page/report/report_page.h"

#include <gtest/gtest.h>

#include "html_reader.h"
#include "result/report_fixtures.h"
#include "run/prepared.h"
#include "search/model/best.h"
#include "trial/temporary_directory.h"

namespace krigtune::report_page_test {

constexpr std::size_t kMegabyte = 1'000'000;

class ReportPage : public testing::Test {
 protected:
  /// Returns the page for these trials, with the model's recommendation.
  std::string page_of(session::Session session, const search::History& history, const std::string& name = "job",
                      const report::ComparedCurves& compared = {}) const {
    const run::Prepared prepared(std::move(session));
    const auto best =
        history.size() > 1000 ? recommendation() : search::recommend(prepared.session, prepared.candidates, history, 7);
    const report::RunView run{prepared.session,
                              history,
                              name,
                              {search::StrategyKind::kBayes, 7},
                              directory_.path(),
                              {},
                              answer::answer_of(prepared.session, history, best)};
    return page::report_page(
        {run, prepared.candidates, prepared.filter, "The budget is spent", "today", directory_.path(), compared});
  }
  /// Checks what must be true of every page.
  static void expect_whole(const std::string& html) {
    const HtmlReader read(html);
    EXPECT_EQ(read.fault(), "");
    EXPECT_EQ(read.count("script"), 1);
    EXPECT_EQ(read.count("h1"), 1);
    for (const char* fetched : {"http:", "https:", "@import", "url(", "<link", "<img", "<iframe"}) {
      EXPECT_EQ(html.find(fetched), std::string::npos) << fetched;
    }
    for (const std::string& link : read.links()) {
      const bool leads = link.front() != '#' || read.ids().count(link.substr(1)) == 1;
      EXPECT_TRUE(leads) << link << " leads nowhere";
    }
  }

  TemporaryDirectory directory_;
};

/// `count` trials over the fixture's space; later ones are faster, and every fifth one runs out of memory.
search::History many_trials(int count) {
  search::History history;
  for (int i = 0; i < count; ++i) {
    const space::Configuration tried = configuration(i % 4, std::int64_t{1} << (i / 4 % 3), i / 12 % 2 == 1);
    history.push_back(
        i % 5 == 4 ? trial_record(i, tried, trial::OutOfMemory{})
                   : trial_record(i, tried, measured_samples(100.0 + i % 37, 1.0), i == 0 ? "baseline" : "bayes"));
  }
  return history;
}

TEST_F(ReportPage, SlicesDoNotDrawAValueThatAlwaysRanOutOfMemoryAsAChoice) {
  search::History history;
  for (int i = 0; i < 24; ++i) {
    const std::int64_t micro_batch = std::int64_t{1} << (i / 4 % 3);
    const space::Configuration tried = configuration(i % 4, micro_batch, i / 12 % 2 == 1);
    history.push_back(
        micro_batch == 4
            ? trial_record(i, tried, trial::OutOfMemory{})
            : trial_record(i, tried, measured_samples(100.0 * static_cast<double>(micro_batch) + i % 4, 1.0)));
  }
  const std::string html = page_of(bench_session(), history);
  EXPECT_NE(html.find("micro_batch around the best"), std::string::npos);
  EXPECT_NE(html.find("out of memory in 8 of 8 trials"), std::string::npos);
  EXPECT_NE(html.find("expected, if it ran: it is unlikely to"), std::string::npos);
}

TEST_F(ReportPage, AnswersFirst) {
  const std::string html = page_of(bench_session(), all_outcomes());
  expect_whole(html);
  EXPECT_NE(html.find("The recommended configuration (trial 5) trains 1.25 times as fast as yours (trial 0)"),
            std::string::npos);
  // Six closed trials of 2.5 s on two ranks; 1 - 1 / 1.25 of a training run is saved.
  EXPECT_NE(
      html.find(
          "The trials took 0.0083 rank-hours on 2 ranks. They pay for themselves in any training that would have taken "
          "more than 0.042 rank-hours."),
      std::string::npos);
  EXPECT_NE(html.find("ds_config.json"), std::string::npos);
  EXPECT_NE(html.find("last words"), std::string::npos) << "why trial 3 failed";
  const HtmlReader read(html);
  for (int trial = 0; trial <= 5; ++trial) EXPECT_EQ(read.ids().count("trial-" + std::to_string(trial)), 1U) << trial;
  EXPECT_EQ(read.ids().count("trial-6"), 0U) << "it still runs";
}

TEST_F(ReportPage, EscapesWhateverUsersWrite) {
  const std::string hostile = "</script><script>alert(1)</script>\"'&\xE2\x80\xAE";
  Json json = {{"space", {{hostile, {hostile + "a", hostile + "b", std::string(10'000, '<')}}, {"n", {1, 2}}}},
               {"baseline", nullptr},
               {"objective", {{"metric", hostile}, {"direction", "maximize"}}},
               {"runner", {{"kind", "none"}}}};
  const session::Session session = session::read_session(json, "session", ".");
  search::History history;
  const auto add = [&](const std::string& text, std::int64_t n, std::optional<trial::Outcome> outcome) {
    history.push_back(trial_record(static_cast<int>(history.size()), {{hostile, text}, {"n", n}}, std::move(outcome)));
  };
  const auto measured = [&](double value) {
    trial::Measured result;
    result.metrics = {{session.objective.field, value}};
    return result;
  };
  add(hostile + "a", 1, measured(1.0));
  add(hostile + "b", 1, measured(2.0));
  add(std::string(10'000, '<'), 2, measured(3.0));
  add(hostile + "a", 2, trial::Failed{trial::FailureReason::kCrash, 1, std::string(10'000, '&') + hostile});
  const std::string html = page_of(session, history, hostile);
  expect_whole(html);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_LT(html.size(), kMegabyte);
}

TEST_F(ReportPage, OfNoSuccessSaysWhy) {
  search::History history;
  for (int i = 0; i < 3; ++i) {
    history.push_back(trial_record(i, configuration(i, 1, false),
                                   trial::Failed{trial::FailureReason::kCrash, 1, "RuntimeError: no <such> device"}));
  }
  const std::string html = page_of(bench_session(), history);
  expect_whole(html);
  EXPECT_NE(html.find("No trial succeeded: 3 failed (crash)."), std::string::npos);
  EXPECT_NE(html.find("RuntimeError: no &lt;such&gt; device"), std::string::npos);
  EXPECT_NE(html.find("To try: run one of the configurations by hand."), std::string::npos);
}

TEST_F(ReportPage, OfNothingAndOfOneTrialIsAPageToo) {
  const std::string none = page_of(bench_session(), {});
  expect_whole(none);
  EXPECT_NE(none.find("No trial is closed yet."), std::string::npos);
  const std::string one =
      page_of(bench_session(), {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")});
  expect_whole(one);
  EXPECT_NE(one.find("What you have is the best that was found."), std::string::npos);
}

TEST_F(ReportPage, RecommendsWhatYouHaveIfARepetitionOfItIsTheBest) {
  const space::Configuration own = configuration(2, 2, false);
  const std::string page =
      page_of(bench_session(), {trial_record(0, own, measured_samples(100.0, 1.5), "baseline"),
                                trial_record(1, configuration(3, 4, true), measured_samples(50.0, 1.5)),
                                trial_record(2, own, measured_samples(104.0, 1.5), search::kRepeatStrategy)});
  EXPECT_NE(page.find("What you have is the best that was found."), std::string::npos);
  EXPECT_NE(page.find("It measured 102 samples/s, the mean of 2 trials."), std::string::npos);
  EXPECT_EQ(page.find("times as fast as"), std::string::npos);
}

TEST_F(ReportPage, StaysSmall) {
  const std::string two_hundred = page_of(bench_session(), many_trials(200));
  expect_whole(two_hundred);
  EXPECT_LT(two_hundred.size(), kMegabyte);
  const std::string html = page_of(bench_session(), many_trials(10'000));
  expect_whole(html);
  EXPECT_NE(html.find("2002 of 10000; trials.csv has all."), std::string::npos);
  EXPECT_NE(html.find("too many trials for a fit"), std::string::npos);
  EXPECT_LT(html.size(), 8 * kMegabyte);
}

TEST_F(ReportPage, CountsWhichIntervalsHeld) {
  search::History history = many_trials(8);
  int held = 0;
  for (journal::Trial& trial : history) {
    const std::optional<double> value = search::value_of(trial, bench_session().objective);
    if (!value) continue;
    const bool holds = trial.number != 3;
    trial.proposal.predicted_value = holds ? *value * 1.01 : *value * 2.0;
    trial.proposal.predicted_stddev = 0.02 * *value;
    held += holds ? 1 : 0;
  }
  const std::string html = page_of(bench_session(), history);
  EXPECT_EQ(held, 6);
  EXPECT_NE(html.find("Of 7 trials that were predicted before they ran, 6 lay within the 90 % interval"),
            std::string::npos);
}

// Returns the rows of a table as the texts of their cells.
std::vector<std::vector<std::string>> rows_of(const std::string& html, const std::string& id) {
  std::vector<std::vector<std::string>> rows;
  const std::size_t begin = html.find("<table id=\"" + id + "\"");
  if (begin == std::string::npos) return rows;
  const std::size_t end = html.find("</table>", begin);
  for (std::size_t at = html.find("<tr>", html.find("<tbody>", begin)); at < end; at = html.find("<tr>", at + 1)) {
    std::vector<std::string>& cells = rows.emplace_back();
    const std::size_t row_end = html.find("</tr>", at);
    for (std::size_t cell = html.find('<', at + 4); cell < row_end; cell = html.find("<t", cell)) {
      const std::size_t from = html.find('>', cell) + 1;
      cells.push_back(html.substr(from, html.find('<', from) - from));
      cell = from;
    }
  }
  return rows;
}

// For every trial, also for those without a bar; the parts of a row add up to its total.
TEST_F(ReportPage, HasTheMemoryAndTheTimeOfEveryTrial) {
  const search::History history = many_trials(60);
  const std::string html = page_of(bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})"), history);
  expect_whole(html);
  const std::vector<std::vector<std::string>> memory = rows_of(html, "memory-of-trials");
  ASSERT_EQ(memory.size(), 60U);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(memory[i][0], std::to_string(i));
    EXPECT_EQ(memory[i][1].empty(), i % 5 == 4) << "those that ran out of memory measured none";
    double sum = 0.0;
    for (std::size_t part = 3; part < memory[i].size(); ++part) sum += std::stod(memory[i][part]);
    EXPECT_NEAR(sum / std::stod(memory[i][2]), 1.0, 0.01) << "parts too small to be seen are left out";
  }
  EXPECT_NE(html.find("data-picks=\"memory-of-trials\""), std::string::npos);
}

TEST_F(ReportPage, ShowsWhatKrigtuneBenchMeasuredOfAStep) {
  search::History history = many_trials(6);
  for (journal::Trial& trial : history) {
    auto* measured = std::get_if<trial::Measured>(&*trial.outcome);
    if (measured == nullptr || trial.number == 3) continue;
    measured->metrics["breakdown_span_s"] = 0.08;
    measured->metrics["breakdown_forward_s"] = 0.024;
    measured->metrics["breakdown_all_reduce_exposed_s"] = 0.016;
    measured->metrics["breakdown_all_gather_exposed_s"] = 0.008;
    measured->metrics["breakdown_idle_s"] = 0.032;
  }
  const std::string html = page_of(bench_session(), history);
  expect_whole(html);
  // Trial 4 ran out of memory, and trial 3 reported nothing; 8 sequences per step.
  const std::vector<std::vector<std::string>> steps = rows_of(html, "measured-steps");
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[0], (std::vector<std::string>{"0", "10", "10", "3", "3", "4"}));
}

TEST_F(ReportPage, LaysTheCurvesOfACompareOverItsOwn) {
  report::ComparedCurves compared{
      "runs/job-compare", "simulate", {{"grid", 1, {0, 1, 2}, {{100.0}, {100.0}, {110.0}}}}};
  const std::string html = page_of(bench_session(), all_outcomes(), "job", compared);
  expect_whole(html);
  EXPECT_NE(html.find("grid in krigtune compare, one run"), std::string::npos);
  EXPECT_NE(html.find("from runs/job-compare, whose trials are of the runner simulate, not bench"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\">2</th><td class=\"short\">110 samples/s</td>"), std::string::npos);
  EXPECT_EQ(page_of(bench_session(), all_outcomes()).find("krigtune compare"), std::string::npos);
}

// overlap_comm helps only at stage 3.
TEST_F(ReportPage, ShowsWhichParametersDependOnEachOther) {
  search::History history;
  int number = 0;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const std::int64_t micro_batch : {1, 2, 4}) {
      for (const bool overlap : {false, true}) {
        const double speed =
            100.0 + 3.0 * static_cast<double>(micro_batch) + (stage == 3 ? (overlap ? 60.0 : -40.0) : 0.0);
        history.push_back(trial_record(number, configuration(stage, micro_batch, overlap), measured_samples(speed, 0.1),
                                       number == 0 ? "baseline" : "bayes"));
        ++number;
      }
    }
  }
  const std::string html = page_of(bench_session(), history);
  expect_whole(html);
  const bool is_told = html.find("zero_stage and overlap_comm together") != std::string::npos ||
                       html.find("overlap_comm and zero_stage together") != std::string::npos;
  EXPECT_TRUE(is_told);
  EXPECT_NE(html.find("depend on each other"), std::string::npos);
  EXPECT_NE(html.find("Interactions of two parameters"), std::string::npos) << "the table after it";
}

TEST_F(ReportPage, SaysThatANetworkIsEmulated) {
  const std::string html =
      page_of(bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})"), all_outcomes());
  EXPECT_NE(html.find("These are figures of an emulated network eth-25"), std::string::npos);
  EXPECT_LT(html.find("These are figures of an emulated"), html.find("It measured")) << "before the figures";
}

}  // namespace krigtune::report_page_test
