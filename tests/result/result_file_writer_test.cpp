// When result files are rewritten, and how often the recommendation in them is computed again.
#include <gtest/gtest.h>

#include <cmath>

#include "core/csv.h"
#include "core/files.h"
#include "result/report_fixtures.h"
#include "result/result_files.h"
#include "run/run_directory.h"
#include "trial/temporary_directory.h"

namespace krigtune::result_file_writer_test {

TEST(ResultFileWriter, WritesWhatOthersHaveClosedMeanwhile) {
  const session::Session session = bench_session();
  const session::MemoryFilter filter(session);
  const search::Candidates candidates(session, filter);
  const TemporaryDirectory directory;
  journal::Journal journal(run::journal_path(directory.path()), session.space, session.objective.field, true);
  for (int number = 0; number < 2; ++number) {
    journal::Proposal proposal;
    proposal.configuration = configuration(2, number + 1, false);
    ASSERT_TRUE(journal.begin(proposal, 0, journal.trials().size()));
  }
  journal.end(0, measured_samples(100.0), 1.0, 0);
  const search::History before = journal.trials();
  journal.end(1, measured_samples(200.0), 1.0, 0);
  const search::History none;
  report::RunView run = run_view(session, none, std::nullopt);
  run.directory = directory.path();
  result::ResultFileWriter writer(run, result::make_recommender(session, candidates, 1));
  writer.write(before);
  ASSERT_TRUE(writer.best());
  EXPECT_EQ(writer.best()->trial, 1);
  EXPECT_EQ(parse_csv(read_text(directory / "trials.csv"), "trials").rows.size(), 2U);
  EXPECT_EQ(load_json(directory / "best.json")["trial"], 1);
}

TEST(ResultFileWriter, RewritesEverythingAfterEachTrial) {
  const session::Session session = bench_session();
  const session::MemoryFilter filter(session);
  const search::Candidates candidates(session, filter);
  const TemporaryDirectory directory;
  const search::History none;
  report::RunView run = run_view(session, none, std::nullopt);
  run.directory = directory.path();
  result::ResultFileWriter writer(run, result::make_recommender(session, candidates, 1));
  writer.resumed(none);
  EXPECT_TRUE(std::filesystem::exists(directory / "trials.csv"));
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
  writer.trial_ended(history.back(), history);
  EXPECT_EQ(load_json(directory / "best.json")["trial"], 0);
  history.push_back(trial_record(1, configuration(3, 4, true), measured_samples(200.0)));
  writer.trial_ended(history.back(), history);
  EXPECT_EQ(load_json(directory / "best.json")["trial"], 1);
  EXPECT_EQ(load_json(directory / "best.json")["gain"], 2);
  EXPECT_EQ(parse_csv(read_text(directory / "trials.csv"), "trials").rows.size(), 2U);
  EXPECT_EQ(load_json(directory / "ds_config_optimal.json")["zero_optimization"]["stage"], 3);
}

class GrowingTrialsCsv : public testing::Test {
 protected:
  report::RunView view() const {
    report::RunView run = run_view(session_, history_, std::nullopt);
    run.directory = directory_.path();
    return run;
  }
  void close(int number, const trial::Outcome& outcome) {
    history_[static_cast<std::size_t>(number)].outcome = outcome;
  }
  void expect_rows(const std::vector<std::string>& numbers) const {
    const CsvTable table = parse_csv(read_text(directory_ / "trials.csv"), "trials");
    std::vector<std::string> got;
    for (const std::vector<std::string>& row : table.rows) got.push_back(row.front());
    EXPECT_EQ(got, numbers);
  }

  session::Session session_ = bench_session();
  TemporaryDirectory directory_;
  search::History history_ = {trial_record(0, configuration(2, 2, false), measured_samples(100.0)),
                              trial_record(1, configuration(3, 4, true), measured_samples(200.0)),
                              trial_record(2, configuration(1, 4, true), measured_samples(150.0))};
  result::TrialsCsvFile file_;
};

TEST_F(GrowingTrialsCsv, GrowsByTheRowOfATrialAndIsWrittenAnewOnlyForAColumnMore) {
  history_[1].outcome.reset();
  history_[2].outcome.reset();
  file_.write(view(), true);
  const std::string first = read_text(directory_ / "trials.csv");
  close(2, measured_samples(150.0));
  file_.write(view(), false);
  EXPECT_EQ(file_.rewritten(), 1);
  EXPECT_EQ(read_text(directory_ / "trials.csv").substr(0, first.size()), first);
  expect_rows({"0", "2"});
  trial::Outcome with_more = measured_samples(200.0);
  std::get<trial::Measured>(with_more).metrics["another"] = 1.0;
  close(1, with_more);
  file_.write(view(), false);
  EXPECT_EQ(file_.rewritten(), 2);
  expect_rows({"0", "1", "2"});
}

TEST_F(GrowingTrialsCsv, OfATrialThatClosesLateIsInOrderAtTheEnd) {
  history_[0].outcome.reset();
  file_.write(view(), true);
  close(0, trial::OutOfMemory{});
  file_.write(view(), false);
  expect_rows({"1", "2", "0"});
  file_.write(view(), true);
  expect_rows({"0", "1", "2"});
}

TEST_F(GrowingTrialsCsv, ThatSomebodyChangedOrRemovedIsWrittenAnew) {
  file_.write(view(), true);
  const std::string whole = read_text(directory_ / "trials.csv");
  write_atomically(directory_ / "trials.csv", whole + "9,ok\n");
  file_.write(view(), false);
  EXPECT_EQ(read_text(directory_ / "trials.csv"), whole);
  std::filesystem::remove(directory_ / "trials.csv");
  file_.write(view(), false);
  EXPECT_EQ(read_text(directory_ / "trials.csv"), whole);
}

/// A writer whose recommendation is the latest trial, so that the files show from which trials it was made.
class RecommendationsMade : public testing::Test {
 protected:
  RecommendationsMade() : writer_(view(), [this](const search::History& history) { return fit(history); }) {}

  report::RunView view() const {
    report::RunView run = run_view(session_, none_, std::nullopt);
    run.directory = directory_.path();
    return run;
  }
  std::optional<search::Recommendation> fit(const search::History& history) {
    ++fits_;
    if (history.empty()) return std::nullopt;
    search::Recommendation latest = recommendation();
    latest.trial = history.back().number;
    return latest;
  }
  void measure(double samples_per_s, const space::Configuration& tried = configuration(3, 4, true),
               const char* by = "random") {
    history_.push_back(trial_record(static_cast<int>(history_.size()), tried, measured_samples(samples_per_s), by));
    writer_.trial_ended(history_.back(), history_);
  }
  int trials_of_the_recommendation() const { return load_json(directory_ / "best.json")["trial"].get<int>() + 1; }
  int trials_in_files() const { return load_json(directory_ / "best.json")["trials"]["ok"].get<int>(); }

  static session::Session of_a_table() {
    session::Session session;
    session.runner = runner::ReplaySpec();
    return session;
  }

  const session::Session session_ = of_a_table();  // without a job, so that there are only two small files
  const search::History none_;
  const TemporaryDirectory directory_;
  search::History history_;
  int fits_ = 0;
  result::ResultFileWriter writer_;
};

TEST_F(RecommendationsMade, AreFewInALongSessionAndLackNoMoreThanATenthOfTheTrials) {
  writer_.resumed(history_);
  double operations = 0.0;  // of a fit: the cube of the number of trials
  for (int count = 1; count <= 60; ++count) {
    const int before = fits_;
    measure(count == 1 ? 100.0 : 50.0, configuration(count == 1 ? 2 : 3, 4, true));
    if (fits_ > before) operations += std::pow(count, 3);
    EXPECT_EQ(trials_in_files(), count) << "whatever it recommends";
    EXPECT_GE(trials_of_the_recommendation(), count <= 10 ? count : 10 * count / 11) << count;
  }
  EXPECT_LE(fits_, 30);
  EXPECT_LE(operations, 5.0 * std::pow(60, 3)) << "after every trial it would be 15 times";
  const CsvTable trials = parse_csv(read_text(directory_ / "trials.csv"), "trials");
  EXPECT_EQ(trials.rows.size(), 60U);
  writer_.session_ended(history_);
  EXPECT_EQ(trials_of_the_recommendation(), 60);
  const int whole = fits_;
  writer_.session_ended(history_);
  EXPECT_EQ(fits_, whole) << "of the same trials";
}

TEST_F(RecommendationsMade, FollowTheBestMeanAndTheReferenceAtOnce) {
  measure(100.0, configuration(2, 4, true));
  while (history_.size() < 22) measure(50.0);
  ASSERT_LT(trials_of_the_recommendation(), 22);
  measure(120.0, configuration(1, 1, true));
  EXPECT_EQ(trials_of_the_recommendation(), 23) << "a better one";
  measure(110.0, configuration(1, 1, true));
  EXPECT_EQ(trials_of_the_recommendation(), 24) << "it again: its mean fell";
  measure(60.0);
  EXPECT_EQ(trials_of_the_recommendation(), 24);
  measure(60.0, configuration(2, 2, false), "baseline");
  EXPECT_EQ(trials_of_the_recommendation(), 26) << "gains are relative to another trial";
}

}  // namespace krigtune::result_file_writer_test
