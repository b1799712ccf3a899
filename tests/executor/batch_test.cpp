// The test plays the scheduler and moves the clock, so that every message of the executor is tested without a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "executor/batch_executor.h"
#include "executor/job_files.h"
#include "trial/trial_files.h"
#include "user_error.h"

namespace krigtune::batch_test {
namespace {

using executor::BatchSystem;
using executor::JobState;
using executor::Submission;
using testing::HasSubstr;

/// The answers of the scheduler. Each query uses one entry; the last one stays.
struct Play {
  std::vector<std::function<std::optional<std::vector<JobState>>()>> answers;
  std::vector<Submission> submissions = {{Submission::Answer::kAccepted, "7", ""}};
  std::optional<JobState> remembered;
  int asked = 0;
  int submitted = 0;
  std::vector<double> limits;
  std::vector<std::string> cancelled;
  std::vector<std::string> avoided;
  std::string objection;
};

class PlayedSystem final : public BatchSystem {
 public:
  explicit PlayedSystem(Play& play) : play_(play) {}
  Submission submit(const executor::JobRequest& request) override {
    play_.limits.push_back(request.time_limit_s);
    play_.avoided = request.avoid;
    const auto index = std::min(static_cast<std::size_t>(play_.submitted++), play_.submissions.size() - 1);
    return play_.submissions[index];
  }
  std::optional<std::vector<JobState>> jobs(const std::vector<Asked>& asked) override {
    const auto index = std::min(static_cast<std::size_t>(play_.asked++), play_.answers.size() - 1);
    auto jobs = play_.answers[index]();
    if (jobs) {
      for (JobState& job : *jobs) job.name = asked.front().name;
    }
    return jobs;
  }
  std::optional<JobState> forgotten(const std::string& /*id*/) override { return play_.remembered; }
  bool cancel(const std::string& id) override {
    play_.cancelled.push_back(id);
    return true;
  }
  bool take_back(const std::string& id) override { return cancel(id); }
  void cancel_named(const std::string& /*name*/) override {}
  std::string objection(const trial::TrialNeeds& /*needs*/, double /*time_limit_s*/) override {
    return play_.objection;
  }
  std::vector<std::string> launcher(const std::vector<std::string>& /*argv*/,
                                    const trial::TrialNeeds& /*needs*/) const override {
    return {};
  }
  std::vector<std::string> broken_nodes(const std::string& nodes) override { return {nodes}; }
  const char* name() const override { return "Slurm"; }

 private:
  Play& play_;
};

JobState pending(const std::string& reason, bool never = false) {
  JobState state;
  state.id = "7";
  state.reason = reason;
  state.never_starts = never;
  return state;
}
JobState running(double elapsed_s = 0.0) {
  JobState state;
  state.id = "7";
  state.phase = JobState::Phase::kRunning;
  state.nodes = "n3";
  state.elapsed_s = elapsed_s;
  return state;
}
JobState ended(JobState::End end, const std::string& word) {
  JobState state = running();
  state.phase = JobState::Phase::kEnded;
  state.end = end;
  state.word = word;
  return state;
}

class Batch : public testing::Test {
 protected:
  Batch() {
    task_.number = 4;
    task_.directory = scratch_ / "0004";
    std::filesystem::create_directories(task_.directory);
    spec_.argv = {"/bin/true"};
    spec_.stdout_file = task_.directory / "stdout.log";
    spec_.stderr_file = task_.directory / "stderr.log";
    spec_.timeout_s = 100.0;
    options_.patience_s = 60.0;
  }

  trial::ProcessResult run() {
    if (!executor_) {
      executor_ = executor::make_batch_executor(std::make_unique<PlayedSystem>(play_), options_, clock_);
    }
    const std::unique_ptr<trial::Place> place = executor_->place(task_);
    trial::ProcessResult result = place->run(spec_, clock_);
    where_ = place->where();
    account_ = place->account();
    return result;
  }

  // The job's exit file, as its script writes it.
  std::optional<std::vector<JobState>> exits(int code, const std::string& signal, JobState state) {
    const executor::JobFiles files(task_.directory);
    write_atomically(spec_.stdout_file, "out\n");
    write_atomically(spec_.stderr_file, said_);
    const Json exit = {{"token", executor::read_submitted(files).value().token},
                       {"id", "7"},
                       {"exit_code", code},
                       {"signal", signal},
                       {"start_error", ""},
                       {"host", "n3"},
                       {"nodes", "n3"},
                       {"restarts", 0},
                       {"wall_s", 12.5},
                       {"peak_rss_bytes", 4096},
                       {"stdout_bytes", 4}};
    write_atomically(files.ended(), exit.dump());
    return std::vector{std::move(state)};
  }
  static auto says(JobState state) {
    return [state = std::move(state)] { return std::optional(std::vector{state}); };
  }
  static auto knows_nothing() {
    return [] { return std::optional(std::vector<JobState>()); };
  }
  static auto is_silent() {
    return []() -> std::optional<std::vector<JobState>> { return std::nullopt; };
  }
  auto exits_with(int code, const std::string& signal, JobState state) {
    return [=, this] { return exits(code, signal, state); };
  }

  trial::ScratchDirectory scratch_;
  ManualClock clock_;
  Play play_;
  executor::BatchOptions options_;
  trial::TrialTask task_;
  trial::ProcessSpec spec_;
  std::string said_;
  std::string where_;
  trial::PlaceAccount account_;
  std::unique_ptr<trial::Executor> executor_;
};

TEST_F(Batch, RunsAJobToItsEnd) {
  play_.answers = {says(pending("Resources")), says(running()), exits_with(3, "", running())};
  const trial::ProcessResult result = run();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.wall_s, 12.5);
  EXPECT_EQ(result.peak_rss_bytes, 4096);
  EXPECT_EQ(account_.ran_s, 12.5) << "its time in the queue is not a part of it";
  EXPECT_TRUE(account_.was_begun);
  EXPECT_EQ(result.lost + result.start_error, "");
  EXPECT_EQ(where_, "n3, job 7");
  EXPECT_TRUE(play_.cancelled.empty());
}

TEST_F(Batch, AsksNoMoreOftenThanItShould) {
  for (int i = 0; i < 5; ++i) play_.answers.push_back(says(running()));
  play_.answers.push_back(exits_with(0, "", running()));
  run();
  EXPECT_EQ(play_.asked, 6);
  EXPECT_GE(clock_.now_s(), 5 * options_.poll_s);
}

TEST_F(Batch, CountsTheTimeLimitFromTheStartOfTheJob) {
  play_.answers.assign(50, says(pending("Priority")));  // 500 s in the queue
  play_.answers.push_back(says(running(30.0)));         // it began 30 s before
  const double queue_s = 50 * options_.poll_s;
  const trial::ProcessResult result = run();
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(play_.cancelled.front(), "7");
  EXPECT_GE(result.wall_s, spec_.timeout_s);
  EXPECT_LE(result.wall_s, spec_.timeout_s + 1.0);
  EXPECT_GE(clock_.now_s(), queue_s + spec_.timeout_s - 30.0);
}

TEST_F(Batch, IsToldWhatTheSchedulerDid) {
  using End = JobState::End;
  struct Case {
    End end;
    const char* word;
    const char* lost;
  };
  for (const Case& one : {Case{End::kNodeFailure, "NODE_FAIL", "Slurm job 7 on n3 (NODE_FAIL): a node failed"},
                          Case{End::kPreempted, "PREEMPTED", "Slurm job 7 on n3 (PREEMPTED) was preempted"},
                          Case{End::kCancelled, "CANCELLED", "was cancelled, not by krigtune"}}) {
    play_.asked = 0;
    play_.answers = {says(running()), says(ended(one.end, one.word))};
    EXPECT_THAT(run().lost, HasSubstr(one.lost));
  }
  play_.asked = 0;
  play_.answers = {says(running()), says(ended(End::kOutOfMemory, "OUT_OF_MEMORY"))};
  EXPECT_TRUE(run().out_of_memory);
  // With the full limit, the timeout is the trial's own fault.
  play_.asked = 0;
  play_.answers = {says(running()), says(ended(End::kTimeLimit, "TIMEOUT"))};
  EXPECT_TRUE(run().timed_out);
}

TEST_F(Batch, AvoidsANodeThatFailed) {
  play_.answers = {says(ended(JobState::End::kNodeFailure, "NODE_FAIL"))};
  run();
  run();
  EXPECT_THAT(play_.avoided, testing::ElementsAre("n3"));
}

TEST_F(Batch, DoesNotBelieveAnExitThatASignalBrought) {
  // The script received SIGTERM from a preemption, and the program that it started returned 0.
  play_.answers = {says(running()), exits_with(0, "TERM", running()),
                   says(ended(JobState::End::kPreempted, "PREEMPTED"))};
  EXPECT_THAT(run().lost, HasSubstr("preempted"));
}

TEST_F(Batch, AsksWhoEndedAProgramThatASignalEnded) {
  // The program had ended before the signal reached the script.
  play_.answers = {says(running()), exits_with(143, "", running()),
                   says(ended(JobState::End::kPreempted, "PREEMPTED"))};
  EXPECT_THAT(run().lost, HasSubstr("preempted"));
  play_.asked = 0;
  play_.answers = {says(running()), exits_with(139, "", running()), says(ended(JobState::End::kByItself, "FAILED"))};
  const trial::ProcessResult crashed = run();
  EXPECT_EQ(crashed.lost, "");
  EXPECT_EQ(crashed.exit_code, 139);
}

TEST_F(Batch, FollowsAJobThatSlurmRunsAgain) {
  play_.answers = {says(running()), exits_with(143, "TERM", pending("BeginTime")), says(running()), [this] {
                     auto state = exits(0, "", running());
                     Json exit = load_json(executor::JobFiles(task_.directory).ended());
                     exit["restarts"] = 1;
                     write_atomically(executor::JobFiles(task_.directory).ended(), exit.dump());
                     return state;
                   }};
  const trial::ProcessResult result = run();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lost, "");
}

TEST_F(Batch, WaitsForFilesThatAreLate) {
  // The job has ended, and its exit file appears half a minute later.
  const JobState done = ended(JobState::End::kByItself, "COMPLETED");
  play_.answers = {says(running()), says(done), says(done), says(done), exits_with(0, "", done)};
  const trial::ProcessResult result = run();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lost + result.start_error, "");
}

TEST_F(Batch, WaitsForOutputThatIsNotAllThere) {
  play_.answers = {says(running()),
                   [this] {
                     auto state = exits(0, "", running());
                     std::filesystem::resize_file(spec_.stdout_file, 0);
                     return state;
                   },
                   [this] {
                     write_atomically(spec_.stdout_file, "out\n");
                     return std::optional(std::vector{running()});
                   }};
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(play_.asked, 3);
}

TEST_F(Batch, SaysWhenTheDirectoryIsNotShared) {
  play_.answers = {says(running()), says(ended(JobState::End::kByItself, "FAILED"))};
  EXPECT_THAT(run().start_error, HasSubstr("is that directory on a file system that the nodes share?"));
}

TEST_F(Batch, SaysWhyNothingCanBeWritten) {
  play_.answers = {says(running()), [this] {
                     std::filesystem::remove_all(task_.directory);
                     return std::optional(std::vector{ended(JobState::End::kByItself, "COMPLETED")});
                   }};
  EXPECT_THAT(run().start_error, HasSubstr("could not leave its result in"));
  EXPECT_EQ(executor::write_trouble(task_.directory), "No such file or directory");
  EXPECT_EQ(executor::write_trouble(scratch_ / ""), "");
}

// Needs the permission to mount a file system.
TEST_F(Batch, KnowsAFullDisk) {
  const std::string folder = (scratch_ / "full").string();
  std::filesystem::create_directory(folder);
  if (std::system(("mount -t tmpfs -o size=4k,mode=0777 none " + folder + " 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  const std::string before = executor::write_trouble(folder);
  const std::string fill = "head -c 100000 /dev/zero >" + folder + "/fill 2>/dev/null";
  [[maybe_unused]] const int filled = std::system(fill.c_str());
  const std::string after = executor::write_trouble(folder);
  EXPECT_EQ(std::system(("umount " + folder).c_str()), 0);
  EXPECT_EQ(before, "");
  EXPECT_EQ(after, "No space left on device");
}

TEST_F(Batch, OutlivesASilentScheduler) {
  spec_.timeout_s = 3600.0;
  play_.answers = {says(running())};
  for (int i = 0; i < 8; ++i) play_.answers.push_back(is_silent());
  play_.answers.push_back(exits_with(0, "", running()));
  const trial::ProcessResult result = run();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lost, "");
  EXPECT_EQ(play_.submitted, 1);
}

TEST_F(Batch, LearnsFromAJobThatIsForgotten) {
  play_.remembered = ended(JobState::End::kNodeFailure, "NODE_FAIL");
  play_.answers = {says(running()), knows_nothing()};
  EXPECT_THAT(run().lost, HasSubstr("a node failed"));
  play_.remembered.reset();
  play_.asked = 0;
  EXPECT_THAT(run().lost, HasSubstr("no longer known to the scheduler"));
}

TEST_F(Batch, TakesBackWhatNeverStarts) {
  play_.answers = {says(pending("PartitionNodeLimit", true))};
  EXPECT_THAT(run().start_error, HasSubstr("Slurm job 7 can never start: PartitionNodeLimit"));
  EXPECT_EQ(play_.cancelled.size(), 1u);
  options_.pending_limit_s = 300.0;
  executor_.reset();
  play_.answers = {says(pending("Resources"))};
  EXPECT_THAT(run().start_error, HasSubstr("and was cancelled: Resources; raise --pending-limit"));
}

TEST_F(Batch, SubmitsAgainWhenTheControllerReturns) {
  play_.submissions = {{Submission::Answer::kLater, "", "sbatch: Unable to contact slurm controller"},
                       {Submission::Answer::kLater, "", "sbatch: Unable to contact slurm controller"},
                       {Submission::Answer::kAccepted, "7", ""}};
  play_.answers = {is_silent(), knows_nothing(), says(running()), exits_with(0, "", running())};
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(play_.submitted, 3);
}

TEST_F(Batch, FindsTheJobOfASubmissionThatGotNoAnswer) {
  play_.submissions = {{Submission::Answer::kLater, "", "sbatch does not answer"}};
  play_.answers = {says(pending("Resources")), exits_with(0, "", running())};
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(play_.submitted, 1);
}

TEST_F(Batch, IsRefused) {
  play_.submissions = {{Submission::Answer::kRefused, "", "sbatch refused the job: no"}};
  play_.answers = {knows_nothing()};
  EXPECT_EQ(run().start_error, "sbatch refused the job: no");
}

TEST_F(Batch, TakesBackWhatWaitsOnceItShouldEnd) {
  std::atomic<bool> ending = true;
  options_.ending = &ending;
  play_.answers = {says(pending("Resources")), says(ended(JobState::End::kCancelled, "CANCELLED"))};
  const trial::ProcessResult result = run();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.lost, "");
  EXPECT_EQ(play_.cancelled.size(), 1u);
  // A job that began at that moment continues.
  play_.asked = 0;
  play_.answers = {says(pending("Resources")), says(running()), exits_with(0, "", running())};
  EXPECT_FALSE(run().stopped);
}

TEST_F(Batch, LetsRunWhatRunsUntilItIsStopped) {
  std::atomic<bool> ending = true;
  std::atomic<bool> stop = false;
  options_.ending = &ending;
  spec_.stop = &stop;
  play_.answers = {says(running()), says(running()),
                   [&] {
                     stop = true;
                     return std::optional(std::vector{running()});
                   },
                   says(ended(JobState::End::kCancelled, "CANCELLED"))};
  const trial::ProcessResult result = run();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.lost, "");
}

TEST_F(Batch, AdoptsAJobThatEndedMeanwhile) {
  play_.answers = {says(running()), exits_with(5, "", running())};
  run();
  task_.adopted = true;
  play_.answers = {knows_nothing()};
  EXPECT_EQ(run().exit_code, 5);
  EXPECT_EQ(play_.submitted, 1);
}

TEST_F(Batch, AdoptsAJobThatRuns) {
  executor::write_submitted(executor::JobFiles(task_.directory), {executor::job_name(task_), "7", "abc"});
  task_.adopted = true;
  play_.answers = {says(running(50.0)), says(running(60.0)), exits_with(0, "", running())};
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(play_.submitted, 0);
}

TEST_F(Batch, AdoptsAJobWhoseIdWasNeverHeard) {
  executor::write_submitted(executor::JobFiles(task_.directory), {executor::job_name(task_), "", "abc"});
  task_.adopted = true;
  play_.answers = {says(pending("Resources")), says(running()), exits_with(0, "", running())};
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(play_.submitted, 0);
}

TEST_F(Batch, SaysThatNothingIsLeftOfATrial) {
  task_.adopted = true;
  play_.answers = {knows_nothing()};
  EXPECT_EQ(run().lost, "no job of this trial was submitted");
  EXPECT_FALSE(account_.was_begun);
  executor::write_submitted(executor::JobFiles(task_.directory), {executor::job_name(task_), "", "abc"});
  EXPECT_EQ(run().lost, "the job of this trial was not submitted");
  EXPECT_FALSE(account_.was_begun);
}

TEST_F(Batch, DoesNotTakeTheFilesOfAnEarlierTry) {
  play_.answers = {says(running()), exits_with(1, "", running())};
  run();
  const std::string old = read_text(executor::JobFiles(task_.directory).ended());
  play_.asked = 0;
  // A job that counted as lost still writes.
  play_.answers = {says(running()),
                   [&] {
                     write_atomically(executor::JobFiles(task_.directory).ended(), old);
                     return std::optional(std::vector{running()});
                   },
                   exits_with(0, "", running())};
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(play_.asked, 3);
}

TEST_F(Batch, AsksForLessTimeOnceItIsKnown) {
  spec_.timeout_s = 3600.0;
  play_.answers = {says(running()), exits_with(0, "", running())};
  for (int i = 0; i < 3; ++i) {
    play_.asked = 0;
    run();
  }
  EXPECT_EQ(play_.limits.front(), 3600.0 + spec_.grace_s + 120.0);
  // The fourth job gets a limit of three times the usual time (12.5 s) plus two minutes. That is too short, so it gets
  // the full limit.
  play_.asked = 0;
  play_.answers = {says(ended(JobState::End::kTimeLimit, "TIMEOUT")), exits_with(0, "", running())};
  EXPECT_EQ(run().exit_code, 0);
  ASSERT_EQ(play_.limits.size(), 5u);
  EXPECT_EQ(play_.limits[3], 3 * 12.5 + 120.0);
  EXPECT_EQ(play_.limits[4], play_.limits.front());
}

TEST_F(Batch, KnowsANodeFailureFromTheOutput) {
  said_ = "srun: error: Node failure on n3\n";
  play_.answers = {says(running()), exits_with(0, "", running())};  // srun returns 0 (22.05)
  EXPECT_THAT(run().lost, HasSubstr("a node failed (srun: error: Node failure on n3)"));
  said_ = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0.\n";
  play_.asked = 0;
  play_.answers = {says(running()), exits_with(1, "", running())};
  EXPECT_TRUE(run().out_of_memory);
}

TEST_F(Batch, HasRoomForSoManyJobs) {
  options_.max_queued = 2;
  const auto two = executor::make_batch_executor(std::make_unique<PlayedSystem>(play_), options_, clock_);
  EXPECT_TRUE(two->survives());
  EXPECT_EQ(two->capacity(), 2);
  const auto first = two->place(task_);
  EXPECT_TRUE(two->has_room({}));
  auto second = two->place(task_);
  EXPECT_EQ(second->facts().slot, 1);
  EXPECT_FALSE(two->has_room({}));
  second.reset();
  EXPECT_TRUE(two->has_room({}));
  play_.objection = "sbatch refused the job: Invalid partition";
  EXPECT_TRUE(two->has_room({}));  // the scheduler was asked once
  EXPECT_THAT(user_error_of([&] { two->has_room({.ranks = 99}); }), HasSubstr("Invalid partition"));
}

TEST_F(Batch, GivesTrialsOfARunDifferentNamesAndPorts) {
  trial::TrialTask other = task_;
  other.number = 5;
  EXPECT_NE(executor::job_name(task_), executor::job_name(other));
  other.number = 4;
  EXPECT_EQ(executor::job_name(task_), executor::job_name(other));
  other.directory = scratch_ / "elsewhere/0004";
  EXPECT_NE(executor::job_name(task_), executor::job_name(other));
  EXPECT_THAT(executor::job_name(task_), testing::MatchesRegex("krigtune-[0-9a-f]{12}-0004"));
}

}  // namespace
}  // namespace krigtune::batch_test
