// Schedulers that krigtune knows only by their commands, imitated by small scripts.
#include "executor/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/files.h"
#include "core/json.h"
#include "executor/batch_executor.h"
#include "executor/executor.h"
#include "executor/job_files.h"
#include "trial/trial_files.h"
#include "user_error.h"

namespace krigtune::template_test {
namespace {

using testing::HasSubstr;

executor::TemplateSpec read(const std::string& text) {
  return std::get<executor::TemplateSpec>(
      executor::read_executor(parse_json(text, "s.json"), "s.json", "/executor", {}));
}

class Template : public testing::Test {
 protected:
  Template() {
    std::filesystem::create_directories(directory());
    spec_.argv = {"/bin/sh", "-c", "echo said; exit $CODE"};
    spec_.stdout_file = directory() / "stdout.log";
    spec_.stderr_file = directory() / "stderr.log";
    spec_.environment = {{"CODE", "4"}};
    spec_.timeout_s = 60.0;
  }

  std::filesystem::path directory() const { return scratch_ / "trials/0003"; }
  std::string program(const char* name, const std::string& text) const {
    const std::filesystem::path path = scratch_ / name;
    write_atomically(path, "#!/bin/bash\n" + text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

  // A scheduler whose submit prints `id_line`, and whose status prints `state_line` until the job has ended and
  // `end_line` from then on. Its daemon is a thread of the test, because what submit itself starts ends with submit.
  trial::ProcessResult run_under(const std::string& id_line, const std::string& state_line, const std::string& end_line,
                                 const std::string& keys) {
    const std::string submit =
        program("submit", "echo \"$@\" >$0.args; echo \"$1\" >$0.tmp; mv $0.tmp $0.script; echo '" + id_line + "'\n");
    const std::string status = program("status", "echo \"$@\" >$0.args; if [ -e ${0%status}ended ]; then echo '" +
                                                     end_line + "'; else echo '" + state_line + "'; fi\n");
    const std::string cancel = program("cancel", "echo \"$@\" >>$0.args; kill $(cat ${0%cancel}job.pid)\n");
    const std::string folder = (scratch_ / "").string();
    const std::string daemon = "cd " + folder +
                               " && while [ ! -e submit.script ]; do sleep 0.02; done; bash $(cat submit.script) "
                               ">daemon.log 2>&1 & echo $! >" +
                               folder + "job.pid; wait; touch " + folder + "ended";
    std::thread scheduler([daemon] { EXPECT_EQ(std::system(("bash -c '" + daemon + "'").c_str()), 0); });
    const trial::ProcessResult result = run_job(submit, status, cancel, keys);
    scheduler.join();
    return result;
  }

  trial::ProcessResult run_job(const std::string& submit, const std::string& status, const std::string& cancel,
                               const std::string& keys) {
    const executor::TemplateSpec spec =
        read(R"({"kind": "template", "poll_s": 0.2, "patience_s": 5, "submit": [")" + submit +
             R"(", "{script}", "{log}", "-n", "{ranks}"], "status": [")" + status + R"(", "{id}"], "cancel": [")" +
             cancel + R"(", "{id}"], )" + keys + "}");
    const auto executor = executor::make_template_executor(spec, {cluster_, directory(), clock_});
    trial::TrialTask task;
    task.number = 3;
    task.directory = directory();
    task.needs.ranks = 2;
    EXPECT_TRUE(executor->has_room(task.needs));
    return executor->place(task)->run(spec_, clock_);
  }
  std::string args(const char* name) const { return read_text(scratch_ / (std::string(name) + ".args").c_str()); }

  trial::ScratchDirectory scratch_;
  SystemClock clock_;
  workload::ClusterSpec cluster_;
  trial::ProcessSpec spec_;
};

TEST_F(Template, RunsUnderPbs) {
  const trial::ProcessResult result = run_under(
      "1234.server", "Job Id: 1234.server\n    job_state = R", "Job Id: 1234.server\n    job_state = F",
      R"x("state": "job_state = (\\S+)", "states": {"pending": ["Q"], "held": ["H"], "running": ["R", "E"], "ended": ["F", "C"]})x");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.start_error + result.lost, "");
  EXPECT_EQ(read_text(spec_.stdout_file), "said\n");
  EXPECT_THAT(args("submit"), HasSubstr("-n 2"));
}

TEST_F(Template, RunsUnderLsfAndEndsWhatTakesTooLong) {
  spec_.argv = {"/bin/sleep", "100"};
  spec_.timeout_s = 0.5;
  const trial::ProcessResult result = run_under(
      "Job <815> is submitted to default queue <normal>.", "RUN", "EXIT",
      R"x("id": "Job <(\\d+)>", "states": {"pending": ["PEND"], "running": ["RUN"], "ended": ["DONE", "EXIT"]})x");
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(args("cancel"), "815\n");
  EXPECT_EQ(args("status"), "815\n");
}

// The tuner died after submit and before it recorded the job's id. A scheduler that is asked by name still finds the
// job.
TEST_F(Template, FindsAJobByItsName) {
  executor::TemplateSpec spec;
  spec.submit = {"/bin/false"};
  spec.status = {program("status", "echo $1 >$0.args; [ ! -e $0.end ] && echo RUN || echo job not found\n"), "{name}"};
  spec.cancel = {program("cancel", "echo $1 >$0.args; touch ${0%cancel}status.end\n"), "{name}"};
  spec.running = {"RUN"};
  spec.poll_s = 0.2;
  spec_.timeout_s = 0.5;  // so that it is cancelled
  trial::TrialTask task;
  task.number = 3;
  task.directory = directory();
  task.adopted = true;
  const std::string name = executor::job_name(task);
  executor::write_submitted(executor::JobFiles(task.directory), {name, "", "abc"});
  const auto executor = executor::make_template_executor(spec, {cluster_, directory(), clock_});
  const trial::ProcessResult result = executor->place(task)->run(spec_, clock_);
  EXPECT_TRUE(result.timed_out) << result.lost;
  EXPECT_EQ(args("status"), name + "\n");
  EXPECT_EQ(args("cancel"), name + "\n");
}

TEST_F(Template, CountsTheMemoryOfTheProgram) {
  // 64 MiB in a child of the program, which keeps them until they were noticed.
  const std::string seen = "$(cat " + (directory() / "job_start.json").string() + ".*.peak 2>/dev/null || echo 0)";
  spec_.argv = {
      "/bin/bash", "-c",
      "head -c 64M /dev/zero | tail -c 64M | (until [ " + seen + " -gt 61440 ]; do sleep 0.1; done; cat >/dev/null)"};
  const trial::ProcessResult result = run_under("7", "R", "C", R"x("states": {"running": ["R"], "ended": ["C"]})x");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_GT(result.peak_rss_bytes, std::int64_t{60} << 20);
  EXPECT_LT(result.peak_rss_bytes, std::int64_t{400} << 20);
}

TEST_F(Template, HearsThatAJobWasLost) {
  spec_.argv = {"/bin/sh", "-c", "kill -9 $PPID; sleep 5"};
  const trial::ProcessResult result = run_under(
      "job.batch/trial created", "Running", "Evicted",
      R"x("id": "(job.batch/\\S+)", "states": {"pending": ["Pending"], "ended": ["Complete"], "lost": ["Evicted"]})x");
  EXPECT_THAT(result.lost, HasSubstr("job.batch/trial"));
  EXPECT_THAT(result.lost, HasSubstr("(Evicted) was ended by the scheduler"));
}

TEST_F(Template, IsRefusedInTheSchedulersWords) {
  executor::TemplateSpec spec;
  spec.submit = {program("submit", "echo 'qsub: Unknown queue' >&2; exit 1")};
  spec.status = spec.cancel = {"/bin/true"};
  const auto executor = executor::make_template_executor(spec, {cluster_, directory(), clock_});
  trial::TrialTask task;
  task.directory = directory();
  EXPECT_THAT(executor->place(task)->run(spec_, clock_).start_error, HasSubstr("refused the job: qsub: Unknown queue"));
}

TEST_F(Template, NeedsItsCommands) {
  EXPECT_THAT(user_error_of([] { read(R"({"kind": "template", "submit": ["a"], "status": ["b"]})"); }),
              HasSubstr("cancel"));
  EXPECT_THAT(
      user_error_of([] {
        read(R"({"kind": "template", "submit": ["a"], "status": ["b"], "cancel": ["c"], "state": "job_state"})");
      }),
      HasSubstr("/executor/state: a regular expression with one group was expected"));
  executor::TemplateSpec spec;
  spec.submit = {"no-such-qsub"};
  spec.status = spec.cancel = {"/bin/true"};
  const auto executor = executor::make_template_executor(spec, {cluster_, directory(), clock_});
  EXPECT_THAT(user_error_of([&] { executor->has_room({}); }), HasSubstr("'no-such-qsub' is not on PATH"));
}

TEST(TemplateWords, AreFilled) {
  EXPECT_EQ(executor::filled("-l nodes={nodes}:{x}", {{"nodes", "2"}}), "-l nodes=2:{x}");
  EXPECT_EQ(executor::filled("{a}{a", {{"a", "1"}}), "1{a");
}

}  // namespace
}  // namespace krigtune::template_test
