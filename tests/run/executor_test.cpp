// Trials on an executor: lost trials run again, trials of an earlier tuner are adopted, and large trials are not
// overtaken.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "executor/local.h"
#include "run/loop_fixture.h"
#include "user_error.h"

namespace krigtune::executor_test {
namespace {

/// Answers programs by a function of the trial's number and of how often it ran before.
class ScriptedExecutor final : public trial::Executor {
 public:
  using Script = std::function<trial::ProcessResult(int trial, int times_before)>;
  explicit ScriptedExecutor(Script script, bool survives = false) : script_(std::move(script)), survives_(survives) {}

  int capacity() const override { return 2; }
  bool has_room(const trial::TrialNeeds&) const override { return held < 2; }
  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override {
    tasks.push_back(task);
    ++held;
    return std::make_unique<ScriptedPlace>(*this, task.number);
  }
  bool survives() const override { return survives_; }

  std::vector<trial::TrialTask> tasks;
  int held = 0;

 private:
  class ScriptedPlace final : public trial::Place {
   public:
    ScriptedPlace(ScriptedExecutor& executor, int trial) : executor_(executor), trial_(trial) {}
    ~ScriptedPlace() override { --executor_.held; }
    trial::PlaceFacts facts() const override { return {}; }
    trial::ProcessResult run(const trial::ProcessSpec&, const Clock&) override {
      const std::lock_guard lock(executor_.mutex_);
      return executor_.script_(trial_, executor_.times_[trial_]++);
    }
    std::string where() const override { return "node n" + std::to_string(trial_); }

   private:
    ScriptedExecutor& executor_;
    int trial_;
  };

  Script script_;
  bool survives_;
  std::mutex mutex_;
  std::map<int, int> times_;
};

/// Runs a program whose result is the value of the loop's configuration.
class PlacedRunner final : public trial::Runner {
 public:
  PlacedRunner(const session::Session& session, const Clock& clock) : session_(session), clock_(clock) {}
  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    const trial::ProcessResult result = context.place.run({}, clock_);
    {
      const std::lock_guard lock(mutex_);
      if (context.adopted) ++adopted;
    }
    if (!result.lost.empty()) return trial::Failed{trial::FailureReason::kLost, 1, result.lost};
    return measured(session_, loop_speed(configuration));
  }
  int adopted = 0;

 private:
  const session::Session& session_;
  const Clock& clock_;
  std::mutex mutex_;
};

class Losses final : public run::Observer {
 public:
  void trial_lost(const journal::Trial& trial, const std::string& why) override {
    lost.push_back(std::to_string(trial.number) + ": " + why);
  }
  void trial_begins(const journal::Trial& trial, const search::History&) override { begun.push_back(trial.number); }
  std::vector<std::string> lost;
  std::vector<int> begun;
};

trial::ProcessResult lost_to(const std::string& why) {
  trial::ProcessResult result;
  result.lost = why;
  return result;
}

}  // namespace

class OnExecutor : public Loop {
 protected:
  run::RunResult run_on(trial::Executor& executor, const session::Session& session, trial::Runner& runner) {
    const Problem problem(session);
    options_.executor = &executor;
    return run::run_session(problem.session, problem.candidates, sharing(runner), directory(), options_, clock_,
                            observer_, stop_);
  }
  run::RunResult run_on(trial::Executor& executor, const session::Session& session) {
    PlacedRunner runner(session, clock_);
    const run::RunResult result = run_on(executor, session, runner);
    adopted_ = runner.adopted;
    return result;
  }

  Losses observer_;
  std::atomic<bool> stop_{false};
  int adopted_ = 0;
};

TEST_F(OnExecutor, WhatIsLostIsRunAgainUnderTheSameNumber) {
  ScriptedExecutor executor([](int trial, int before) {
    return trial == 1 && before < 2 ? lost_to("node n1 failed") : trial::ProcessResult();
  });
  const search::History history = run_on(executor, budgeted(4)).history;
  ASSERT_EQ(history.size(), 4U);
  for (const journal::Trial& trial : history) {
    EXPECT_TRUE(std::holds_alternative<trial::Measured>(*trial.outcome)) << trial.number;
    EXPECT_EQ(trial.where, "node n" + std::to_string(trial.number));
  }
  EXPECT_EQ(observer_.lost, (std::vector<std::string>{"1: node n1 failed", "1: node n1 failed"}));
  EXPECT_EQ(executor.held, 0);
}

TEST_F(OnExecutor, WhatIsLostThreeTimesHasFailedWithItsReason) {
  ScriptedExecutor executor([](int trial, int) { return trial == 1 ? lost_to("preempted") : trial::ProcessResult(); });
  const search::History history = run_on(executor, budgeted(4)).history;
  ASSERT_EQ(history.size(), 4U);
  const trial::Failed& failed = std::get<trial::Failed>(*history[1].outcome);
  EXPECT_EQ(failed.reason, trial::FailureReason::kLost);
  EXPECT_EQ(failed.last_lines, "preempted");
  EXPECT_EQ(observer_.lost.size(), 2U);
  EXPECT_TRUE(search::counts(history[1]));  // it is not asked again forever
}

// A trial that lost its place twice under one tuner has one attempt left under the next one, not three.
TEST_F(OnExecutor, LossesAreCountedOverTuners) {
  class Dying final : public run::Observer {
   public:
    void trial_lost(const journal::Trial&, const std::string&) override {
      if (++lost_ == 2) throw std::runtime_error("killed");
    }

   private:
    int lost_ = 0;
  } dying;
  const session::Session session = budgeted(1);
  const Problem problem(session);
  PlacedRunner runner(session, clock_);
  ScriptedExecutor executor([](int, int) { return lost_to("preempted"); }, true);
  options_.executor = &executor;
  EXPECT_THROW(run::run_session(problem.session, problem.candidates, sharing(runner), directory(), options_, clock_,
                                dying, stop_),
               std::runtime_error);
  EXPECT_EQ(executor.tasks.size(), 2U);
  const search::History history = run_on(executor, session).history;
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].times_lost, 2);
  EXPECT_EQ(std::get<trial::Failed>(*history[0].outcome).reason, trial::FailureReason::kLost);
  EXPECT_EQ(executor.tasks.size(), 3U) << "twice under the first tuner, once under the second";
}

TEST_F(OnExecutor, WhatIsLostOnceTheSessionIsStoppedIsInterrupted) {
  ScriptedExecutor executor([this](int, int) {
    stop_ = true;
    return lost_to("cancelled");
  });
  const run::RunResult result = run_on(executor, budgeted(4));
  EXPECT_EQ(result.reason, run::EndReason::kInterrupted);
  for (const journal::Trial& trial : result.history) EXPECT_TRUE(search::is_interrupted(trial));
}

TEST_F(OnExecutor, TrialsOfATunerThatDiedAreAdoptedWhereTheyLiveOn) {
  const session::Session session = budgeted(2);
  run(session);
  journal::Proposal begun;
  begun.configuration = {{"a", std::int64_t{3}}, {"b", std::int64_t{8}}};
  begun.strategy = "bayes";
  {
    journal::Journal journal(run::journal_path(directory()), session.space, session.objective.field,
                             session.objective.maximize);
    ASSERT_EQ(journal.begin(begun, clock_.unix_us(), 2), 2);
  }
  ScriptedExecutor executor([](int, int) { return trial::ProcessResult(); }, true);
  const search::History history = run_on(executor, budgeted(4)).history;
  ASSERT_EQ(history.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(*history[2].outcome));
  ASSERT_FALSE(executor.tasks.empty());
  EXPECT_EQ(executor.tasks[0].number, 2);
  EXPECT_TRUE(executor.tasks[0].adopted);
  EXPECT_FALSE(executor.tasks[1].adopted);
  EXPECT_EQ(adopted_, 1);
}

TEST_F(OnExecutor, TrialsOfATunerThatDiedAreInterruptedWhereTheyDieWithIt) {
  const session::Session session = budgeted(2);
  run(session);
  journal::Proposal begun;
  begun.configuration = {{"a", std::int64_t{3}}, {"b", std::int64_t{8}}};
  begun.strategy = "bayes";
  journal::Journal(run::journal_path(directory()), session.space, session.objective.field, session.objective.maximize)
      .begin(begun, clock_.unix_us(), 2);
  ScriptedExecutor executor([](int, int) { return trial::ProcessResult(); });
  const search::History history = run_on(executor, budgeted(3)).history;
  ASSERT_EQ(history.size(), 4U);
  EXPECT_TRUE(search::is_interrupted(history[2]));
  EXPECT_EQ(adopted_, 0);
}

// Eight GPUs. Four small trials run. Then a large one is asked, followed by more small ones, for which there is always
// room. The small ones end one by one; if another one began meanwhile, the large one would starve.
TEST_F(OnExecutor, ALargeTrialIsNotOvertaken) {
  session::Session session = budgeted(8);
  session.space = plain_session(R"({"a": {"min": 0, "max": 5}, "b": [1, 8]})").space;
  const auto of = [](std::int64_t a, std::int64_t gpus) { return space::Configuration{{"a", a}, {"b", gpus}}; };
  options_.tries = {of(0, 1), of(1, 1), of(2, 1), of(3, 1), of(0, 8), of(4, 1), of(5, 1), of(1, 8)};
  executor::MachineParts machine;
  machine.cores = {{0}};
  for (int gpu = 0; gpu < 8; ++gpu) machine.gpus.push_back({gpu, -1});
  executor::LocalSpec local;
  local.slots = 8;
  local.gpus_per_trial = "b";
  const auto slots = executor::make_slots(local, machine, directory());
  options_.sizes = executor::TrialSizes(local, session.cluster, session.space, *slots, 60.0);
  std::mutex mutex;
  std::condition_variable changed;
  int together = 0, running = 0, with_the_large_one = 0;
  FakeRunner runner([&](const space::Configuration& c) {
    const bool is_large = space::as_number(*c.find("b")) == 8.0;
    std::unique_lock lock(mutex);
    if (is_large) with_the_large_one += running;
    ++running;
    ++together;
    changed.notify_all();
    changed.wait(lock, [&] { return is_large || together >= 4; });
    --running;
    return measured(session, loop_speed(c));
  });
  const search::History history = run_on(*slots, session, runner).history;
  ASSERT_EQ(history.size(), 8U);
  EXPECT_EQ(with_the_large_one, 0);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(history[i].proposal.configuration, options_.tries[i]) << i;
  EXPECT_EQ(history[4].where, "slot 0, GPUs 0,1,2,3,4,5,6,7");
  EXPECT_EQ(observer_.begun, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(OnExecutor, ATrialThatFitsNoMachineHasFailed) {
  session::Session session = budgeted(2);
  session.space = plain_session(R"({"a": {"min": 0, "max": 5}, "b": [1, 16]})").space;
  options_.tries = {{{"a", std::int64_t{0}}, {"b", std::int64_t{16}}},
                    {{"a", std::int64_t{0}}, {"b", std::int64_t{1}}}};
  executor::MachineParts machine;
  machine.cores = {{0}};
  machine.gpus = {{0, -1}, {1, -1}};
  executor::LocalSpec local;
  local.slots = 2;
  local.gpus_per_trial = "b";
  const auto slots = executor::make_slots(local, machine, directory());
  options_.sizes = executor::TrialSizes(local, session.cluster, session.space, *slots, 60.0);
  FakeRunner runner([&](const space::Configuration& c) { return measured(session, loop_speed(c)); });
  const search::History history = run_on(*slots, session, runner).history;
  ASSERT_EQ(history.size(), 2U);
  const trial::Failed& failed = std::get<trial::Failed>(*history[0].outcome);
  EXPECT_EQ(failed.reason, trial::FailureReason::kInvalid);
  EXPECT_NE(failed.last_lines.find("needs 16 GPUs, and this machine has 2"), std::string::npos);
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(*history[1].outcome));
}

}  // namespace krigtune::executor_test
