#include "executor/slurm_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace krigtune::slurm_text_test {
namespace {

using executor::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Recorded from Slurm 22.05.8 with kQueueFormat.
constexpr const char* kQueue =
    "41|krigtune-0f3a-0000|PENDING|0:00||PartitionNodeLimit\n"
    "40|krigtune-0f3a-0001|RUNNING|1-02:03:04|n[1-2]|None\n"
    "39|krigtune-0f3a-0002|NODE_FAIL|0:27|n3|NodeDown\n"
    "38|krigtune-0f3a-0003|CANCELLED|0:02|n1|None\n"
    "37|krigtune-0f3a-0004|PENDING|0:00||launch failed requeued held\n"
    "\n";

TEST(SlurmText, ReadsTheQueue) {
  const std::vector<JobState> jobs = executor::parse_queue(kQueue);
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(jobs[0].id, "41");
  EXPECT_EQ(jobs[0].name, "krigtune-0f3a-0000");
  EXPECT_EQ(jobs[0].phase, JobState::Phase::kPending);
  EXPECT_TRUE(jobs[0].never_starts);
  EXPECT_FALSE(jobs[0].elapsed_s);
  EXPECT_EQ(jobs[1].phase, JobState::Phase::kRunning);
  EXPECT_EQ(jobs[1].nodes, "n[1-2]");
  EXPECT_EQ(jobs[1].reason, "");
  EXPECT_EQ(jobs[1].elapsed_s, 93784.0);  // 86400 + 2 * 3600 + 3 * 60 + 4
  EXPECT_EQ(jobs[2].end, JobState::End::kNodeFailure);
  EXPECT_EQ(jobs[3].end, JobState::End::kCancelled);
  EXPECT_TRUE(jobs[4].never_starts);
}

TEST(SlurmText, KnowsWhichStatesAreEnds) {
  using End = JobState::End;
  const auto end_of = [](const char* word) {
    const JobState state = executor::slurm_state(word, "");
    EXPECT_EQ(state.phase, JobState::Phase::kEnded) << word;
    return state.end;
  };
  EXPECT_EQ(end_of("COMPLETED"), End::kByItself);
  EXPECT_EQ(end_of("FAILED"), End::kByItself);
  EXPECT_EQ(end_of("TIMEOUT"), End::kTimeLimit);
  EXPECT_EQ(end_of("OUT_OF_MEMORY"), End::kOutOfMemory);
  EXPECT_EQ(end_of("PREEMPTED"), End::kPreempted);
  EXPECT_EQ(end_of("BOOT_FAIL"), End::kNodeFailure);
  EXPECT_EQ(end_of("CANCELLED by 1000"), End::kCancelled);  // sacct
  EXPECT_EQ(executor::slurm_state("COMPLETING", "").phase, JobState::Phase::kRunning);
  // From a later Slurm; the job's own files will say when it has ended.
  EXPECT_EQ(executor::slurm_state("EXPEDITING", "").phase, JobState::Phase::kRunning);
}

TEST(SlurmText, TellsReasonsThatPassFromThoseThatDoNot) {
  const auto never = [](const char* reason) { return executor::slurm_state("PENDING", reason).never_starts; };
  for (const char* reason : {"Resources", "Priority", "BeginTime", "QOSMaxJobsPerUserLimit", "AssocGrpGRES",
                             "Dependency", "ReqNodeNotAvail, UnavailableNodes:n3", "None"}) {
    EXPECT_FALSE(never(reason)) << reason;
  }
  for (const char* reason : {"PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "AssocMaxNodePerJobLimit",
                             "QOSMaxWallDurationPerJobLimit", "JobHeldAdmin", "launch_failed_requeued_held"}) {
    EXPECT_TRUE(never(reason)) << reason;
  }
  EXPECT_FALSE(executor::slurm_state("RUNNING", "PartitionNodeLimit").never_starts);
}

TEST(SlurmText, ReadsTheRecordOfAJob) {
  const auto job = executor::parse_job_record(
      "JobId=7 JobName=krigtune-1-0003 UserId=root(0) JobState=TIMEOUT Reason=TimeLimit Dependency=(null) Requeue=0 "
      "RunTime=00:01:20 TimeLimit=00:01:00 ReqNodeList=(null) NodeList=n[1-2] BatchHost=n1\n");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, "7");
  EXPECT_EQ(job->end, JobState::End::kTimeLimit);
  EXPECT_EQ(job->nodes, "n[1-2]");
  EXPECT_EQ(job->elapsed_s, 80.0);
  EXPECT_FALSE(executor::parse_job_record("slurm_load_jobs error: Invalid job id specified\n"));
}

TEST(SlurmText, ExpandsListsOfHosts) {
  EXPECT_THAT(executor::expand_hosts("n[1-2,7]"), ElementsAre("n1", "n2", "n7"));
  EXPECT_THAT(executor::expand_hosts("n[08-10],gpu3"), ElementsAre("n08", "n09", "n10", "gpu3"));
  EXPECT_THAT(executor::expand_hosts("r[1-2]n[3-4]"), ElementsAre("r1n3", "r1n4", "r2n3", "r2n4"));
  EXPECT_THAT(executor::expand_hosts(""), IsEmpty());
  EXPECT_THAT(executor::expand_counts("16(x3),8"), ElementsAre(16, 16, 16, 8));
}

TEST(SlurmText, ReadsTimes) {
  EXPECT_EQ(executor::parse_elapsed("3:04"), 184.0);
  EXPECT_EQ(executor::parse_elapsed("02:00:00"), 7200.0);
  EXPECT_FALSE(executor::parse_elapsed("INVALID"));
  EXPECT_FALSE(executor::parse_elapsed("12"));
}

// Recorded from sbatch 22.05.8, the last two from slurm_errno.c.
TEST(SlurmText, ExplainsWhatSbatchRefuses) {
  const executor::Refusal partition = executor::explain_refusal(
      "sbatch: error: invalid partition specified: nosuch\n"
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  EXPECT_THAT(partition.reason, HasSubstr("invalid partition specified: nosuch; Batch job submission failed"));
  EXPECT_THAT(partition.fix, HasSubstr("sinfo -o %P"));
  EXPECT_FALSE(partition.passes);
  EXPECT_THAT(executor::explain_refusal("allocation failure: Requested node configuration is not available").fix,
              HasSubstr("sinfo -N"));
  EXPECT_THAT(executor::explain_refusal("allocation failure: Requested time limit is invalid (missing or exceeds some "
                                        "limit)")
                  .fix,
              HasSubstr("\"time\""));
  const executor::Refusal full = executor::explain_refusal(
      "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates "
      "accounting/QOS policy (job submit limit, user's size and/or time limits)\n");
  EXPECT_TRUE(full.passes);
  EXPECT_TRUE(
      executor::explain_refusal("sbatch: error: Batch job submission failed: Unable to contact slurm controller "
                                "(connect failure)")
          .passes);
  EXPECT_EQ(executor::explain_refusal("").reason, "it gave no reason");
}

TEST(SlurmText, BelievesOnlyTheDaemonsOwnLines) {
  const auto words = executor::daemon_words(
      "step 1 of 10\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0. Some of your processes may have "
      "been killed by the cgroup out-of-memory handler.\nsrun: error: n1: task 0: Out Of Memory\n");
  EXPECT_TRUE(words.out_of_memory);
  EXPECT_THAT(words.line, HasSubstr("StepId=12.0"));
  EXPECT_TRUE(executor::daemon_words("srun: error: Node failure on n3\n").node_failure);
  EXPECT_TRUE(executor::daemon_words("slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-25T10:00:00 DUE TO "
                                     "PREEMPTION ***\n")
                  .preempted);
  EXPECT_TRUE(executor::daemon_words("slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-25T10:00:00 DUE TO "
                                     "TIME LIMIT ***\n")
                  .time_limit);
  EXPECT_TRUE(executor::daemon_words("slurmstepd-n1: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-25T10:00:00 ***\n")
                  .cancelled);
  // A rank has failed, and srun has ended the others.
  EXPECT_FALSE(executor::daemon_words("srun: error: n2: tasks 2-3: Exited with exit code 3\n"
                                      "srun: launch/slurm: _step_signal: Terminating StepId=7.6\n"
                                      "slurmstepd-n1: error: *** STEP 7.6 ON n1 CANCELLED AT 2026-11-25T14:28:18 ***\n")
                   .cancelled);
  const auto users = executor::daemon_words("my program: Node failure on n3, Out Of Memory\n");
  EXPECT_FALSE(users.node_failure || users.out_of_memory);
  EXPECT_EQ(users.line, "");
}

}  // namespace
}  // namespace krigtune::slurm_text_test
