#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "run/loop.h"
#include "run/run_directory.h"
#include "search/fixtures.h"

namespace krigtune {

inline constexpr const char* kLoopSpace = R"({"a": {"min": 0, "max": 5}, "b": [1, 2, 4, 8]})";  // 24

inline double loop_speed(const space::Configuration& c) {
  const double a = space::as_number(*c.find("a"));
  return 10.0 * space::as_number(*c.find("b")) * std::exp(-0.1 * (a - 3) * (a - 3));
}

inline bool loop_fails(const space::Configuration& c) {
  return space::as_number(*c.find("a")) + space::as_number(*c.find("b")) > 11;
}

/// Sets the stop flag after a number of trials, and records what it was told.
class StoppingObserver final : public run::Observer {
 public:
  explicit StoppingObserver(int trials = 1'000'000) : left_(trials) { stop = trials == 0; }
  void resumed(const search::History& history) override { at_start = static_cast<int>(history.size()); }
  void trial_begins(const journal::Trial& trial, const search::History&) override { begun.push_back(trial.number); }
  void trial_ended(const journal::Trial& trial, const search::History& history) override {
    ended.push_back(trial.number);
    EXPECT_TRUE(history.at(static_cast<std::size_t>(trial.number)).outcome);
    stop = --left_ <= 0;
  }
  void session_ended(const search::History& history) override { at_end.push_back(static_cast<int>(history.size())); }
  std::atomic<bool> stop{false};
  int at_start = -1;
  std::vector<int> begun;
  std::vector<int> ended;
  std::vector<int> at_end;  ///< number of trials at each end of the session

 private:
  int left_;
};

inline session::Session budgeted(int trials) {
  session::Session session = plain_session(kLoopSpace);
  session.budget.trials = trials;
  return session;
}

class Loop : public testing::Test {
 protected:
  std::filesystem::path directory() const { return directory_ / "run"; }

  run::RunResult run(const session::Session& session, StoppingObserver& observer, FakeRunner& runner) {
    const Problem problem(session);
    return run::run_session(problem.session, problem.candidates, sharing(runner), directory(), options_, clock_,
                            observer, observer.stop);
  }
  run::RunResult run(const session::Session& session, int stop_after = 1'000'000) {
    StoppingObserver observer(stop_after);
    FakeRunner runner([&](const space::Configuration& c) { return answer(session, c); });
    return run(session, observer, runner);
  }
  static trial::Outcome answer(const session::Session& session, const space::Configuration& c) {
    if (loop_fails(c)) return trial::OutOfMemory{};
    return measured(session, loop_speed(c));
  }

  TemporaryDirectory directory_;
  run::RunOptions options_;
  ManualClock clock_;
};

}  // namespace krigtune
