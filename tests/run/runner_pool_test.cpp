// The threads of trials that run at the same time. The program links no layer that proposes trials, so that the thread
// sanitizer compiles little.
#include "run/runner_pool.h"

#include <gtest/gtest.h>

#include <map>

#include "core/json.h"

namespace krigtune::runner_pool_test {
namespace {

/// Three places.
class Places final : public trial::Executor {
 public:
  int capacity() const override { return kPlaces; }
  bool has_room(const trial::TrialNeeds&) const override { return held < kPlaces; }
  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override {
    ++held;
    return std::make_unique<Held>(*this, task.number);
  }
  bool survives() const override { return false; }
  int held = 0;

 private:
  static constexpr int kPlaces = 3;
  class Held final : public trial::Place {
   public:
    Held(Places& places, int trial) : places_(places), trial_(trial) {}
    ~Held() override { --places_.held; }
    trial::PlaceFacts facts() const override { return {}; }
    trial::ProcessResult run(const trial::ProcessSpec&, const Clock&) override { return {}; }
    std::string where() const override { return "place of " + std::to_string(trial_); }

   private:
    Places& places_;
    int trial_;
  };
};

/// Blocks everybody until a given number has arrived.
class Gate {
 public:
  explicit Gate(int wanted) : wanted_(wanted) {}
  void pass() {
    std::unique_lock lock(mutex_);
    if (++here_ >= wanted_) changed_.notify_all();
    changed_.wait(lock, [this] { return here_ >= wanted_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int wanted_;
  int here_ = 0;
};

trial::Outcome speed(double value) {
  trial::Measured result;
  result.metrics["speed"] = value;
  return result;
}

const trial::Outcome kLost = trial::Failed{trial::FailureReason::kLost, 0, "the node is gone"};

/// krigtune-bench, whose memory is planned to the byte.
session::Session session_of(double limit_gib) {
  Json json = parse_json(R"({
    "workload": {"model": {"layers": 2, "hidden": 64, "heads": 2, "vocab": 128, "seq_len": 32}, "train_batch_size": 32},
    "cluster": {"gpus_per_node": 2}, "runner": {"kind": "bench"},
    "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4, 8]}})",
                         "s.json");
  json["memory"]["limit_gib"] = limit_gib;
  return session::read_session(json, "s.json", ".");
}

class Pool : public testing::Test {
 protected:
  using Answer = std::function<trial::Outcome(const space::Configuration&)>;
  class Answering final : public trial::Runner {
   public:
    explicit Answering(const Answer& answer) : answer_(answer) {}
    trial::Outcome run(const space::Configuration& configuration, const trial::RunContext&) override {
      ++runs;
      return answer_(configuration);
    }
    int runs = 0;  ///< of no other thread: the sanitizer would find two trials of one runner at a time

   private:
    const Answer& answer_;
  };

  run::RunnerPool& pool() {
    if (!pool_) {
      pool_.emplace(
          [this] {
            ++made_;
            return std::make_unique<Answering>(answer_);
          },
          places_, filter_, clock_, stop_);
    }
    return *pool_;
  }
  std::string start(int number, int stage = 0, int micro_batch = 1) {
    run::PooledTrial pooled;
    pooled.trial.number = number;
    pooled.trial.proposal.configuration = {{"zero_stage", std::int64_t{stage}},
                                           {"micro_batch", std::int64_t{micro_batch}}};
    return pool().start(std::move(pooled));
  }
  run::FinishedTrial next() {
    for (;;) {
      if (std::optional<run::FinishedTrial> finished = pool().wait()) return *finished;
    }
  }
  std::map<int, trial::Outcome> outcomes(int count) {
    std::map<int, trial::Outcome> ended;
    for (int i = 0; i < count; ++i) {
      const run::FinishedTrial one = next();
      EXPECT_EQ(one.where, "place of " + std::to_string(one.number));
      EXPECT_TRUE(ended.emplace(one.number, one.outcome).second) << one.number;
    }
    return ended;
  }

  session::Session session_ = session_of(1.0);
  session::MemoryFilter filter_{session_};
  Places places_;
  ManualClock clock_;
  std::atomic<bool> stop_{false};
  Answer answer_ = [](const space::Configuration&) { return speed(1.0); };
  int made_ = 0;
  std::optional<run::RunnerPool> pool_;  ///< the first one to go: it uses all others
};

TEST_F(Pool, RunsTrialsAtTheSameTimeEachWithItsOwnRunner) {
  Gate first(3);  // opens only if three run at once
  Gate second(3);
  answer_ = [&](const space::Configuration& c) {
    (c.integer("micro_batch", 0) == 1 ? first : second).pass();
    return speed(static_cast<double>(c.integer("zero_stage", 0)));
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(start(i, i), "place of " + std::to_string(i));
  EXPECT_FALSE(pool().has_room({}));
  EXPECT_EQ(pool().running().size(), 3U);
  std::map<int, trial::Outcome> ended = outcomes(3);
  for (int i = 3; i < 6; ++i) start(i, i - 3, 2);
  ended.merge(outcomes(3));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(std::get<trial::Measured>(ended.at(i)).metrics.at("speed"), i % 3) << i;
  EXPECT_EQ(made_, 3) << "runners are used again";
  EXPECT_TRUE(pool().running().empty());
  EXPECT_EQ(places_.held, 0);
}

TEST_F(Pool, RunsATrialWhosePlaceWasLostTwiceMore) {
  answer_ = [](const space::Configuration& c) { return c.integer("zero_stage", 0) == 1 ? kLost : speed(2.0); };
  start(0, 1);
  for (int times = 1; times <= 3; ++times) {
    const run::FinishedTrial one = next();
    EXPECT_EQ(one.times_lost, times);
    EXPECT_EQ(one.runs_again, times < 3);
    EXPECT_EQ(pool().running().size(), times < 3 ? 1U : 0U);
    EXPECT_EQ(pool().has_room({}), times == 3) << "no other trial begins before it";
  }
  start(1);
  EXPECT_EQ(next().times_lost, 0);
}

TEST_F(Pool, LeavesALostTrialWhenItIsStopped) {
  answer_ = [](const space::Configuration&) { return kLost; };
  start(0);
  EXPECT_TRUE(next().runs_again);
  stop_ = true;
  const run::FinishedTrial given_up = next();
  EXPECT_EQ(std::get<trial::Failed>(given_up.outcome).reason, trial::FailureReason::kInterrupted);
  EXPECT_FALSE(given_up.runs_again);
  EXPECT_TRUE(pool().running().empty());
}

TEST_F(Pool, PassesOnWhatARunnerThrowsAndGoesOn) {
  Gate both(2);
  answer_ = [&](const space::Configuration& c) {
    both.pass();
    if (c.integer("zero_stage", 0) == 1) throw std::runtime_error("no such thing");
    return speed(1.0);
  };
  start(0, 1);
  start(1, 0);
  int thrown = 0;
  int ended = 0;
  while (thrown + ended < 2) {
    try {
      ended += pool().wait() ? 1 : 0;
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  EXPECT_EQ(thrown, 1);
  EXPECT_TRUE(pool().running().empty());
  start(2, 0);
  EXPECT_EQ(next().number, 2);
}

TEST_F(Pool, WaitsForRunningTrialsWhenItEnds) {
  std::atomic<int> ended{0};
  Gate gate(4);
  answer_ = [&](const space::Configuration&) {
    gate.pass();
    ++ended;
    return speed(1.0);
  };
  for (int i = 0; i < 3; ++i) start(i);
  gate.pass();
  pool_.reset();
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(places_.held, 0);
}

// The filter makes its plans in the threads of the trials.
TEST_F(Pool, PlansTheMemoryOfSeveralTrialsAtATime) {
  constexpr double kKib = 1.0 / (1024.0 * 1024.0);
  session_ = session_of(2048.0 * kKib);
  const session::MemoryFilter small(session_);
  run::RunnerPool pool([this] { return std::make_unique<Answering>(answer_); }, places_, small, clock_, stop_);
  std::map<bool, int> fitted;
  int number = 0;
  for (const std::int64_t micro_batch : {1, 2, 4, 8, 8, 8}) {
    for (const std::int64_t stage : {0, 1, 3}) {
      run::PooledTrial pooled;
      pooled.trial.number = number++;
      pooled.trial.proposal.configuration = {{"zero_stage", stage}, {"micro_batch", micro_batch}};
      pool.start(std::move(pooled));
    }
    for (int ended = 0; ended < 3;) {
      const std::optional<run::FinishedTrial> one = pool.wait();
      if (!one) continue;
      ++ended;
      ++fitted[std::holds_alternative<trial::Measured>(one->outcome)];
    }
  }
  EXPECT_GT(fitted[true], 0);
  EXPECT_GT(fitted[false], 0);
  EXPECT_EQ(fitted[true] + fitted[false], number);
}

}  // namespace
}  // namespace krigtune::runner_pool_test
