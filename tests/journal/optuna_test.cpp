// The journal as Optuna reads it. Needs Python with Optuna (Debian: python3-optuna); otherwise the tests are skipped.
// KRIGTUNE_TEST_PYTHON names the Python (scripts/optuna_check sets it); the default is Debian's.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/clock.h"
#include "core/files.h"
#include "core/json.h"
#include "journal/example_trials.h"
#include "python_test.h"

namespace krigtune::optuna_test {

constexpr const char* kScript = KRIGTUNE_TEST_DIR "/journal/load_with_optuna.py";
constexpr const char* kWorker = KRIGTUNE_TEST_DIR "/journal/share_with_optuna.py";

class Optuna : public PythonTest {
 protected:
  Optuna() : PythonTest("optuna", "apt-get install python3-optuna") {}

  int load(const Json& wanted, std::vector<std::string> options = {}) const {
    const std::filesystem::path expected = directory_.write("expected.json", wanted.dump());
    options.insert(options.begin(), {kScript, file_.string(), expected.string()});
    return python(options);
  }

  std::filesystem::path file_ = directory_ / "journal.log";
};

// What Optuna should show, computed from the trials and not from the journal's lines.
Json proposal_part(int number, const journal::Proposal& p) {
  Json wanted = {{"number", number}, {"state", "RUNNING"}, {"value", nullptr}, {"system_attrs", Json::object()}};
  wanted["datetime_start"] = local_iso_time(kExampleStartUs + 60'000'000LL * number);
  wanted["params"] = space::to_json(p.configuration);
  wanted["params"].erase("gradient_accumulation_steps");
  Json& user = wanted["user_attrs"];
  user["configuration"] = space::to_json(p.configuration).dump();
  user["strategy"] = p.strategy;
  user["asker"] = p.asker == journal::Asker::kHand ? "hand" : "tune";
  user["suggest_s"] = p.suggest_s;
  if (p.predicted_value) user["predicted_value"] = *p.predicted_value;
  if (p.predicted_memory) user["predicted_memory_bytes"] = p.predicted_memory->count;
  if (!p.hyperparameters.empty()) user["hyperparameters"] = p.hyperparameters;
  if (p.trials_without_gain) user["trials_without_gain"] = *p.trials_without_gain;
  if (p.outlook) {
    user["expected_gain"] = p.outlook->expected_gain;
    user["regret_bound"] = p.outlook->regret_bound;
    user["confidence"] = p.outlook->confidence;
    if (p.outlook->bound_of_new) user["bound_of_new"] = *p.outlook->bound_of_new;
  }
  wanted["distributions"] = {{"zero_stage", "CategoricalDistribution"},
                             {"micro_batch", "IntDistribution"},
                             {"workers", "IntDistribution"},
                             {"overlap_comm", "CategoricalDistribution"},
                             {"offload", "CategoricalDistribution"},
                             {"lr", "FloatDistribution"}};
  return wanted;
}

void add_outcome(Json& wanted, const trial::Outcome& outcome) {
  Json& user = wanted["user_attrs"];
  user["status"] = trial::status_text(outcome);
  if (!trial::reason_text(outcome).empty()) user["reason"] = trial::reason_text(outcome);
  user["wall_s"] = 1.1;
  wanted["state"] = "FAIL";
  if (const auto* m = std::get_if<trial::Measured>(&outcome)) {
    wanted["state"] = "COMPLETE";
    wanted["value"] = m->metrics.at("throughput");
    for (const auto& [name, value] : m->metrics) user["metric_" + name] = value;
    user["value_sem"] = m->value_sem;
    if (m->peak_memory) user["peak_memory_bytes"] = m->peak_memory->count;
  } else if (const auto* oom = std::get_if<trial::OutOfMemory>(&outcome)) {
    user["predicted"] = oom->predicted;
    if (oom->requested) user["requested_bytes"] = oom->requested->count;
    wanted["system_attrs"]["constraints"] = Json::array({1.0});
  } else if (const auto* failed = std::get_if<trial::Failed>(&outcome)) {
    user["exit_code"] = failed->exit_code;
    user["last_lines"] = failed->last_lines;
  } else {
    wanted["state"] = "PRUNED";
    wanted["value"] = std::get<trial::Bounded>(outcome).at_best;
  }
}

Json study_part(const std::vector<ExampleTrial>& trials) {
  Json wanted = {{"direction", "MAXIMIZE"}, {"metric", "throughput"}, {"best_value", 100.0 / 3.0}, {"best_trial", 1}};
  wanted["trials"] = Json::array();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    wanted["trials"].push_back(proposal_part(static_cast<int>(i), trials[i].proposal));
    if (trials[i].outcome) add_outcome(wanted["trials"].back(), *trials[i].outcome);
  }
  return wanted;
}

TEST_F(Optuna, ReadsEveryKindOfTrialAsItWasMeant) {
  {
    journal::Journal journal(file_, example_space(), "throughput", true);
    write_trials(journal, example_trials());
  }
  EXPECT_EQ(load(study_part(example_trials())), 0);
}

TEST_F(Optuna, ReadsABaselineThatLiesOutsideEveryListAndWhatFollows) {
  std::vector<ExampleTrial> trials = example_trials();
  trials[0].proposal.configuration = {{"zero_stage", std::int64_t{5}},  {"micro_batch", std::int64_t{3}},
                                      {"workers", std::int64_t{17}},    {"overlap_comm", true},
                                      {"offload", std::string("nvme")}, {"lr", 0.0625}};
  Json wanted = study_part(trials);
  for (Json& trial : wanted["trials"]) trial["distributions"]["zero_stage"] = "IntDistribution";
  {
    journal::Journal journal(file_, example_space(), "throughput", true);
    write_trials(journal, trials);
  }
  EXPECT_EQ(load(wanted), 0);
}

TEST_F(Optuna, ReadsAValueOutsideThatComesLaterAsFarAsItsRulesAllow) {
  std::vector<ExampleTrial> trials = example_trials();
  trials[3].proposal.configuration = {{"zero_stage", std::int64_t{5}}, {"micro_batch", std::int64_t{128}},
                                      {"workers", std::int64_t{1}},    {"overlap_comm", false},
                                      {"offload", std::string("x")},   {"lr", 7.5}};
  Json wanted = study_part(trials);
  // Choices are those of the first trial; the configuration attribute has the value anyway.
  wanted["trials"][3]["params"].erase("zero_stage");
  wanted["trials"][3]["params"].erase("offload");
  {
    journal::Journal journal(file_, example_space(), "throughput", true);
    write_trials(journal, trials);
  }
  EXPECT_EQ(load(wanted), 0);
  EXPECT_EQ(journal::read_journal(file_).at(3).proposal.configuration, trials[3].proposal.configuration);
}

TEST_F(Optuna, MayAddATrialThatIsUnderstoodHere) {
  {
    journal::Journal journal(file_, example_space(), "throughput", true);
    write_trials(journal, example_trials());
  }
  ASSERT_EQ(load(study_part(example_trials()), {"--add"}), 0);
  journal::Journal journal(file_, example_space(), "throughput", true);
  const std::size_t added = example_trials().size();
  ASSERT_EQ(journal.trials().size(), added + 1);
  EXPECT_TRUE(journal.trials()[added].proposal.configuration.has("zero_stage"));
  EXPECT_EQ(std::get<trial::Measured>(*journal.trials()[added].outcome).metrics.at("throughput"), 1.25);
  EXPECT_EQ(begin_next(journal, example_proposal(1, 1), kExampleStartUs), static_cast<int>(added) + 1);
}

// [number, state, value, zero_stage, strategy], in the form in which share_with_optuna.py writes it.
Json row_of(const journal::Trial& trial) {
  const auto* measured = trial.outcome ? std::get_if<trial::Measured>(&*trial.outcome) : nullptr;
  const char* state = !trial.outcome ? "RUNNING" : measured != nullptr ? "COMPLETE" : "FAIL";
  Json row = {trial.number, state, nullptr, trial.proposal.configuration.integer("zero_stage", -1),
              trial.proposal.strategy};
  if (measured != nullptr) row[2] = measured->metrics.at("throughput");
  return row;
}

TEST_F(Optuna, WorksOnTheSameJournalAtTheSameTime) {
  constexpr int kTheirs = 60;
  journal::Journal journal(file_, example_space(), "throughput", true);
  std::atomic<bool> done = false;
  auto worker = std::async(std::launch::async, [&] {
    const int code = python({kWorker, "ask", file_.string(), std::to_string(kTheirs)});
    done = true;
    return code;
  });
  const SystemClock clock;
  int ours = 0;
  for (; !done; ++ours) {
    std::optional<int> number;
    while (!number) number = journal.begin(example_proposal(ours % 4, 4), kExampleStartUs, journal.trials().size());
    if (ours % 3 != 0) journal.end(*number, trial::Measured{{{"throughput", 1.0 + ours}}, 0.0, std::nullopt}, 1.0, 1);
    clock.sleep_until_s(clock.now_s() + 0.01);  // give time to the others, whose waiting doubles
  }
  ASSERT_EQ(worker.get(), 0);
  ASSERT_EQ(python({kWorker, "list", file_.string(), directory_ / "rows"}), 0);
  const Json theirs = Json::parse(read_text(directory_ / "rows"));
  journal.refresh();
  ASSERT_EQ(journal.trials().size(), static_cast<std::size_t>(ours + kTheirs));
  ASSERT_EQ(theirs.size(), journal.trials().size());
  double next_value = 1000.0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_EQ(theirs[i], row_of(journal.trials()[i]));
    if (!journal.trials()[i].proposal.strategy.empty()) continue;
    EXPECT_EQ(theirs[i][2], next_value);
    next_value += 1.0;
  }
  EXPECT_EQ(next_value, 1000.0 + kTheirs);
}

}  // namespace krigtune::optuna_test
