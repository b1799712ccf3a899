#include "journal/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "core/clock.h"
#include "core/files.h"
#include "core/json.h"
#include "journal/example_trials.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::journal_test {

class JournalFile : public ::testing::Test {
 protected:
  journal::Journal open(const std::string& metric = "throughput", bool maximize = true) const {
    return {file_, space_, metric, maximize};
  }

  std::vector<Json> lines() const {
    std::vector<Json> result;
    std::istringstream text(read_text(file_));
    for (std::string line; std::getline(text, line);) result.push_back(Json::parse(line));
    return result;
  }

  TemporaryDirectory dir_;
  std::filesystem::path file_ = dir_ / "journal.log";
  space::Space space_ = example_space();
};

TEST_F(JournalFile, EveryKindOfTrialComesBackExactly) {
  const std::vector<ExampleTrial> trials = example_trials();
  {
    journal::Journal journal = open();
    write_trials(journal, trials);
  }
  const journal::Journal again = open();
  const std::vector<journal::Trial> read = journal::read_journal(file_);
  ASSERT_EQ(again.trials().size(), trials.size());
  ASSERT_EQ(read.size(), trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(read[i].number, static_cast<int>(i));
    EXPECT_EQ(full_text(read[i].proposal), full_text(trials[i].proposal));
    EXPECT_EQ(full_text(read[i].outcome), full_text(trials[i].outcome));
    EXPECT_EQ(read[i].wall_s, trials[i].outcome ? 1.1 : 0.0);
    EXPECT_EQ(read[i].started_at, local_iso_time(kExampleStartUs + 60'000'000 * static_cast<std::int64_t>(i)));
    EXPECT_EQ(full_text(again.trials()[i]), full_text(read[i]));
  }
}

TEST_F(JournalFile, TheOrderOfNamesIsKept) {
  journal::Proposal proposal;
  proposal.configuration = {{"zebra", std::int64_t{1}}, {"ant", 0.5}, {"mouse", true}};
  journal::Journal journal = open();
  begin_next(journal, proposal, 0);
  EXPECT_EQ(journal::read_journal(file_).at(0).proposal.configuration.text(), proposal.configuration.text());
}

TEST_F(JournalFile, WhoWritesSeesWhatAReaderSees) {
  journal::Journal journal = open();
  EXPECT_TRUE(journal.trials().empty());
  EXPECT_EQ(begin_next(journal, example_proposal(1, 4), 1), 0);
  EXPECT_FALSE(journal.trials().at(0).outcome.has_value());
  EXPECT_FALSE(journal::read_journal(file_).at(0).outcome.has_value());
  EXPECT_EQ(begin_next(journal, example_proposal(2, 4), 2), 1);
  journal.end(1, trial::Measured{{{"throughput", 3.0}}, 0.0, std::nullopt}, 4.0, 5);
  EXPECT_EQ(full_text(journal.trials().at(1)), full_text(journal::read_journal(file_).at(1)));
  EXPECT_FALSE(journal.trials().at(0).outcome.has_value());
}

TEST_F(JournalFile, ARunningTrialIsClosedAfterAResume) {
  journal::Journal first = open();
  begin_next(first, example_proposal(1, 4), 1);
  journal::Journal journal = open();
  ASSERT_FALSE(journal.trials().at(0).outcome.has_value());
  journal.end(0, trial::Failed{trial::FailureReason::kInterrupted, 0, ""}, 0.0, 2);
  EXPECT_EQ(trial::reason_text(*journal::read_journal(file_).at(0).outcome), "interrupted");
  EXPECT_EQ(begin_next(journal, example_proposal(1, 8), 3), 1);
}

TEST_F(JournalFile, EndingWithoutAValueIsABug) {
  journal::Journal journal = open();
  begin_next(journal, example_proposal(1, 4), 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(journal.end(0, trial::Measured{{{"latency", 1.0}}, 0.0, std::nullopt}, 0, 1), std::logic_error);
  EXPECT_THROW(journal.end(0, trial::Measured{{{"throughput", nan}}, 0.0, std::nullopt}, 0, 1), std::logic_error);
  EXPECT_THROW(journal.end(0, trial::Bounded{nan}, 0, 1), std::logic_error);
  EXPECT_THROW(journal.end(1, trial::Failed{}, 0, 1), std::logic_error);
  EXPECT_FALSE(journal::read_journal(file_).at(0).outcome.has_value());
}

TEST_F(JournalFile, WhoAskedIsKept) {
  journal::Journal journal = open();
  journal::Proposal proposal = example_proposal(1, 4);
  proposal.asker = journal::Asker::kHand;
  begin_next(journal, proposal, 1);
  begin_next(journal, example_proposal(1, 8), 2);
  const std::vector<journal::Trial> read = journal::read_journal(file_);
  EXPECT_EQ(read.at(0).proposal.asker, journal::Asker::kHand);
  EXPECT_EQ(read.at(1).proposal.asker, journal::Asker::kTune);
}

TEST_F(JournalFile, WhatWasPredictedIsKeptWithItsSpread) {
  journal::Journal journal = open();
  journal::Proposal proposal = example_proposal(1, 4);
  proposal.predicted_stddev = 0.125;
  proposal.widening = 1.3;
  begin_next(journal, proposal, 1);
  proposal.predicted_stddev = std::nan("");
  begin_next(journal, proposal, 2);
  const std::vector<journal::Trial> read = journal::read_journal(file_);
  EXPECT_EQ(read.at(0).proposal.predicted_value, 1.0 / 3.0);
  EXPECT_EQ(read.at(0).proposal.predicted_stddev, 0.125);
  EXPECT_EQ(read.at(0).proposal.widening, 1.3);
  EXPECT_FALSE(read.at(1).proposal.predicted_stddev);
  EXPECT_EQ(read.at(1).proposal.widening, 1.0);
}

TEST_F(JournalFile, AParameterThatTheFirstTrialsLackGetsItsDistributionLater) {
  journal::Journal journal = open();
  journal::Proposal without = example_proposal(1, 4);
  without.configuration = {{"zero_stage", std::int64_t{1}}};
  begin_next(journal, without, 1);
  begin_next(journal, example_proposal(3, 8), 2);
  std::vector<std::string> parameters;
  for (const Json& line : lines()) {
    if (line["op_code"] == 5)
      parameters.push_back(fmt::format("{} {}", line["trial_id"].get<int>(), line["param_name"]));
  }
  EXPECT_EQ(parameters, (std::vector<std::string>{"0 zero_stage", "1 zero_stage", "1 micro_batch", "1 workers",
                                                  "1 overlap_comm", "1 offload", "1 lr"}));
  EXPECT_EQ(journal::read_journal(file_).at(0).proposal.configuration, without.configuration);
}

TEST_F(JournalFile, NoLineHoldsWhatIsNoJson) {
  journal::Journal journal = open();
  const double infinity = std::numeric_limits<double>::infinity();
  journal::Proposal proposal = example_proposal(1, 4);
  proposal.predicted_value = std::nan("");
  proposal.hyperparameters = {1.0, infinity};
  begin_next(journal, proposal, 1);
  journal.end(0, trial::Measured{{{"throughput", 1.0}, {"odd", infinity}}, std::nan(""), std::nullopt}, std::nan(""),
              2);
  begin_next(journal, proposal, 3);
  journal.end(1, trial::Failed{trial::FailureReason::kCrash, 1, "cut in the middle of \xC3"}, 1.0, 4);
  for (const Json& line : lines()) {
    const Json attributes = line.value("user_attrs", line.value("user_attr", Json::object()));
    for (const auto& [name, value] : attributes.items()) EXPECT_FALSE(value.is_null()) << name;
  }
  const std::vector<journal::Trial> read = journal::read_journal(file_);
  EXPECT_FALSE(read.at(0).proposal.predicted_value.has_value());
  EXPECT_EQ(std::get<trial::Measured>(*read.at(0).outcome).metrics.size(), 1U);
  EXPECT_EQ(std::get<trial::Failed>(*read.at(1).outcome).last_lines, "cut in the middle of \xEF\xBF\xBD");
}

TEST_F(JournalFile, EveryLineIsOptunas) {
  {
    journal::Journal journal = open("latency", false);
    begin_next(journal, example_proposal(1, 4), kExampleStartUs);
    journal.end(0, trial::OutOfMemory{Bytes{7}, false}, 1.0, kExampleStartUs + 1);
  }
  const std::vector<Json> log = lines();
  for (const Json& line : log) {
    EXPECT_TRUE(line.at("op_code").is_number_integer());
    EXPECT_TRUE(line.at("worker_id").is_string());
    EXPECT_TRUE(!line.contains("distribution") || line["distribution"].is_string());
  }
  EXPECT_EQ(log.at(0).at("study_name"), "krigtune");
  EXPECT_EQ(log.at(0).at("directions"), Json::array({1}));
  EXPECT_EQ(log.at(1).at("system_attr"), Json::parse(R"({"study:metric_names": ["latency"]})"));
  EXPECT_EQ(log.at(2).at("op_code"), 4);
  EXPECT_EQ(log.at(2).at("datetime_start"), local_iso_time(kExampleStartUs));
  EXPECT_EQ(log.back().at("op_code"), 6);
  EXPECT_EQ(log.back().at("state"), 3);
  EXPECT_TRUE(log.back().at("values").is_null());
  EXPECT_EQ(log.back().at("datetime_start"), log.at(2).at("datetime_start"));
  EXPECT_EQ(log.back().at("datetime_complete"), local_iso_time(kExampleStartUs + 1));
  EXPECT_EQ(log.at(log.size() - 2).at("system_attr"), Json::parse(R"({"constraints": [1.0]})"));
}

TEST_F(JournalFile, AnotherMetricOrDirectionIsRefusedAndNothingIsWritten) {
  open("throughput", true);
  const std::string before = read_text(file_);
  EXPECT_NE(user_error_of([&] { open("latency", true); }).find("its metric is 'throughput', not 'latency'"),
            std::string::npos);
  EXPECT_NE(user_error_of([&] { open("throughput", false); }).find("does not minimize"), std::string::npos);
  EXPECT_EQ(read_text(file_), before);
}

TEST_F(JournalFile, AnotherStudyIsRefused) {
  dir_.write("journal.log", R"({"op_code":0,"worker_id":"w","study_name":"mine","directions":[2]})"
                            "\n");
  EXPECT_NE(user_error_of([&] { open(); }).find("journal.log: line 1: has the study 'mine'"), std::string::npos);
}

TEST_F(JournalFile, AFileThatIsNoJournalIsLeftAlone) {
  for (const std::string text : {"my notes", "my notes\n", "{\"a\": 1}\n", "[1, 2"}) {
    dir_.write("journal.log", text);
    EXPECT_NE(user_error_of([&] { open(); }).find("journal.log: line 1"), std::string::npos) << text;
    EXPECT_EQ(read_text(file_), text);
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// One bad record never costs other trials.
TEST_F(JournalFile, ADamagedLineIsPassedOverAndNamed) {
  {
    journal::Journal journal = open();
    write_trials(journal, example_trials());
  }
  const std::vector<std::string> good = lines_of(read_text(file_));
  const std::vector<journal::Trial> whole = journal::read_journal(file_);
  for (std::size_t damaged = 2; damaged < good.size(); ++damaged) {
    SCOPED_TRACE(good[damaged]);
    std::string text;
    for (std::size_t i = 0; i < good.size(); ++i) {
      text += (i == damaged ? good[i].substr(0, good[i].size() - 1) : good[i]) + "\n";
    }
    dir_.write("journal.log", text);
    std::vector<std::string> complaints;
    const std::vector<journal::Trial> trials = journal::read_journal(file_, &complaints);
    ASSERT_FALSE(complaints.empty());
    EXPECT_NE(complaints[0].find("journal.log: line " + std::to_string(damaged + 1) + ": "), std::string::npos);
    ASSERT_EQ(trials.size(), whole.size());
    const auto same = std::count_if(trials.begin(), trials.end(), [&](const journal::Trial& trial) {
      return full_text(trial) == full_text(whole[static_cast<std::size_t>(trial.number)]);
    });
    EXPECT_GE(static_cast<std::size_t>(same), whole.size() - 1);
    EXPECT_EQ(open().trials().size(), whole.size());
  }
}

TEST_F(JournalFile, WhatIsNoLineOfAJournalIsPassedOver) {
  {
    journal::Journal journal = open();
    write_trials(journal, example_trials());
  }
  const std::string good = read_text(file_);
  const std::vector<journal::Trial> whole = journal::read_journal(file_);
  for (const std::string foreign : {"", "7", R"({"op_code":11,"worker_id":"w"})", R"({"worker_id":"w"})",
                                    R"({"op_code":8,"worker_id":"w","trial_id":700,"user_attr":{"a":1}})"}) {
    dir_.write("journal.log", good + foreign + "\n");
    const std::vector<journal::Trial> trials = journal::read_journal(file_);
    ASSERT_EQ(trials.size(), whole.size()) << foreign;
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(full_text(trials[i]), full_text(whole[i])) << foreign;
  }
}

TEST_F(JournalFile, ThatIsRemovedOrReplacedKeepsItsTrialsBesideIt) {
  for (const bool is_replaced : {false, true}) {
    std::filesystem::remove(file_);
    journal::Journal journal = open();
    const int trial = begin_next(journal, example_proposal(1, 8), kExampleStartUs);
    std::filesystem::remove(file_);
    if (is_replaced) dir_.write("journal.log", "");
    std::string said;
    try {
      journal.end(trial, trial::Bounded{1.5}, 1.0, kExampleStartUs + 1);
    } catch (const EnvironmentError& error) {
      said = error.what();
    }
    const std::size_t begin = said.find("are in '");
    ASSERT_NE(begin, std::string::npos) << said;
    const std::size_t name = begin + std::string("are in '").size();
    const std::filesystem::path kept = said.substr(name, said.find('\'', name) - name);
    const std::vector<journal::Trial> trials = journal::read_journal(kept);
    ASSERT_EQ(trials.size(), 1U);
    EXPECT_EQ(std::get<trial::Bounded>(trials[0].outcome.value()).at_best, 1.5);
    std::filesystem::remove(kept);
  }
}

TEST_F(JournalFile, ThatBecameShorterIsNoticed) {
  journal::Journal journal = open();
  write_trials(journal, example_trials());
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  EXPECT_THROW(journal.refresh(), EnvironmentError);
}

TEST_F(JournalFile, KeepsRoomOnTheDiskForTheEndsOfTrialsThatRun) {
  const auto allocated_bytes = [&] {
    struct stat info {};
    ::stat(file_.c_str(), &info);
    return static_cast<std::uintmax_t>(info.st_blocks) * 512;
  };
  journal::Journal journal = open();
  const std::uintmax_t bytes = std::filesystem::file_size(file_);
  const int probe = ::open((dir_ / "probe").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool can = ::fallocate(probe, FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
  ::close(probe);
  if (!can) GTEST_SKIP() << "this file system reserves nothing";
  begin_next(journal, example_proposal(1, 8), kExampleStartUs);
  constexpr std::uintmax_t kEnd = 16 << 10;
  EXPECT_GE(allocated_bytes(), bytes + kEnd);
  trial::Failed failed;
  failed.reason = trial::FailureReason::kCrash;
  failed.last_lines = std::string(kEnd / 2, 'x');
  journal.end(0, failed, 1.0, kExampleStartUs + 1);
  begin_next(journal, example_proposal(2, 8), kExampleStartUs + 2);
  begin_next(journal, example_proposal(3, 8), kExampleStartUs + 3);
  EXPECT_GE(allocated_bytes(), std::filesystem::file_size(file_) + 2 * kEnd) << "also after what was appended since";
}

TEST_F(JournalFile, ANumberThatNothingCanBeCalculatedWithIsABadResult) {
  journal::Journal journal = open();
  for (const auto& [value, sem] : {std::pair(3.0, 1e155), std::pair(1e200, 0.0), std::pair(1e-60, 1e60)}) {
    const int trial = begin_next(journal, example_proposal(1, 8), kExampleStartUs);
    trial::Measured measured;
    measured.metrics["throughput"] = value;
    measured.value_sem = sem;
    journal.end(trial, measured, 1.0, kExampleStartUs + 1);
    const auto& outcome = journal.trials()[static_cast<std::size_t>(trial)].outcome.value();
    EXPECT_EQ(std::get<trial::Failed>(outcome).reason, trial::FailureReason::kBadResult);
  }
}

TEST_F(JournalFile, KnowsWhereATrialRunsWhileItRunsAndAfterwards) {
  {
    journal::Journal journal = open();
    begin_next(journal, {}, 0);
    journal.set_where(0, "slot 1");
    EXPECT_EQ(journal.trials()[0].where, "slot 1");
    EXPECT_EQ(journal::read_journal(file_).at(0).where, "slot 1");
    journal.end(0, trial::OutOfMemory{}, 1.0, 1'000'000, "slot 1, GPUs 2,3");
  }
  const journal::Trial trial = open().trials().at(0);
  EXPECT_EQ(trial.where, "slot 1, GPUs 2,3");
  EXPECT_EQ(trial.ended_at, local_iso_time(1'000'000));
}

}  // namespace krigtune::journal_test
