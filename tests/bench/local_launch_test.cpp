// Ranks as processes that the program itself starts: their environment, their output, exit codes and signals, and that
// no rank outlives the program. Every rank has the writing end of a pipe, which ends when all of them are gone.
#include "programs/bench/local_launch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "engine/host/sockets.h"

namespace krigtune::local_launch_test {

/// The ends of a pipe, closed by the destructor.
struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends.data()), 0); }
  ~Pipe() {
    close_writing();
    close(ends[0]);
  }
  void close_writing() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
  // Reads until nobody can write any more.
  std::string read_all() {
    close_writing();
    std::string text;
    std::array<char, 512> block{};
    for (ssize_t n = 0; (n = read(ends[0], block.data(), block.size())) > 0;) {
      text.append(block.data(), static_cast<std::size_t>(n));
    }
    return text;
  }
  std::string read_line() const {
    std::string line;
    for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) line.push_back(c);
    return line;
  }
  std::array<int, 2> ends{-1, -1};
};

struct Said {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Said launch(const bench::LocalRanks& job) {
  const SystemClock clock;
  std::ostringstream own;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Said said;
  said.exit_code = bench::run_local_ranks(job, clock, own);
  said.out = testing::internal::GetCapturedStdout();
  said.err = testing::internal::GetCapturedStderr() + own.str();
  return said;
}
// Waits only briefly: a rank that does not end by itself never does.
bench::LocalRanks of_script(int ranks, const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"-c", script}, .ranks = ranks, .farewell_s = 0.2, .grace_s = 0.2};
}
Said launch_script(int ranks, const std::string& script) { return launch(of_script(ranks, script)); }

/// Starts the launcher as a process of its own.
pid_t start_launcher(int ranks, const std::string& script) {
  const pid_t process = fork();
  if (process != 0) return process;
  for (const int number : {SIGTERM, SIGINT})
    std::signal(number, SIG_DFL);  // the program that starts the test may ignore them
  const SystemClock clock;
  std::ostringstream own;
  _exit(bench::run_local_ranks(of_script(ranks, script), clock, own));
}
int wait_for(pid_t process) {
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
std::string says_that_it_is_there(const Pipe& alive) { return "echo rank >&" + std::to_string(alive.ends[1]) + "; "; }
constexpr const char* kForEver = "exec sleep 1000";

TEST(LocalLaunch, TellsEveryRankWhoItIsAndForwardsWhatItSays) {
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  const Said said = launch_script(3,
                                  "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR "
                                  "${OMPI_COMM_WORLD_SIZE-alone}; [ $MASTER_PORT -gt 0 ] && echo heard $RANK >&2");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(said.exit_code, 0);
  const std::string where = " " + engine::loopback_host() + " alone\n";
  EXPECT_EQ(said.out, "0/3 0/3" + where);
  const std::vector<std::string> lines = {"1/3 1/3" + where, "2/3 2/3" + where, "heard 0", "heard 1", "heard 2"};
  for (const std::string& line : lines) {
    EXPECT_NE(said.err.find(line), std::string::npos) << line << said.err;
  }
}

TEST(LocalLaunch, EndsWithTheCodeThatTellsMost) {
  const auto code = [](const std::string& script) { return launch_script(3, script).exit_code; };
  EXPECT_EQ(code("exit 10"), 10) << "all agree";
  EXPECT_EQ(code("[ $RANK = 0 ] && exit 12; exit 13"), 12) << "rank 0 knows";
  EXPECT_EQ(code("[ $RANK = 2 ] && kill -9 $$; exit 13"), 137) << "rank 0 has only lost the others";
  EXPECT_EQ(code("exit 13"), 13);
  EXPECT_EQ(code("[ $RANK = 1 ] && exit 4; exec sleep 1000"), 4) << "rank 0 has to be ended";
  EXPECT_EQ(code("[ $RANK = 0 ] && exit 0; exec sleep 1000"), 0) << "rank 0 is done";
  EXPECT_EQ(launch({.program = "/nowhere/program", .arguments = {}, .ranks = 2}).exit_code, 127);
}

TEST(LocalLaunch, SaysWhichRankASignalHasEnded) {
  const Said said = launch_script(2, "[ $RANK = 1 ] && kill -11 $$; exec sleep 1000");
  EXPECT_EQ(said.exit_code, 139);
  EXPECT_EQ(said.err, "krigtune-bench: rank 1 was ended by signal 11 (Segmentation fault)\n");
}

TEST(LocalLaunch, EndsRanksThatDoNotListen) {
  Pipe alive;
  const Said said = launch_script(2, "[ $RANK = 1 ] && exit 4; trap '' TERM; exec sleep 1000");
  EXPECT_EQ(said.exit_code, 4);
  EXPECT_EQ(alive.read_all(), "");
}

TEST(LocalLaunch, PassesSignalsOn) {
  for (const int number : {SIGTERM, SIGINT}) {
    Pipe alive;
    const pid_t launcher = start_launcher(2, says_that_it_is_there(alive) + kForEver);
    for (int r = 0; r < 2; ++r) EXPECT_EQ(alive.read_line(), "rank");
    kill(launcher, number);
    EXPECT_EQ(wait_for(launcher), 128 + number);
    EXPECT_EQ(alive.read_all(), "");
  }
}

TEST(LocalLaunch, LeavesNobodyBehindWhenItIsKilled) {
  Pipe alive;
  const pid_t launcher = start_launcher(3, says_that_it_is_there(alive) + kForEver);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(alive.read_line(), "rank");
  kill(launcher, SIGKILL);
  EXPECT_EQ(wait_for(launcher), 137);
  EXPECT_EQ(alive.read_all(), "");
}

/// krigtune-bench itself on CPU ranks.
class LaunchedBench : public testing::Test {
 protected:
  LaunchedBench() : config_(std::filesystem::temp_directory_path() / ("launch_" + std::to_string(getpid()) + ".json")) {
    const Json job = {
        {"workload", {{"model", {{"layers", 1}, {"hidden", 32}, {"heads", 2}, {"vocab", 64}, {"seq_len", 8}}}}},
        {"cluster", {{"gpus_per_node", 2}}},
        {"memory", {{"limit_gib", 1}}},
        {"configuration", {{"zero_stage", 2}}}};
    write_atomically(config_, job.dump());
  }
  ~LaunchedBench() override { std::filesystem::remove(config_); }

  bench::LocalRanks job(int ranks) const {
    return {.program = KRIGTUNE_BENCH,
            .arguments = {"--config", config_.string(), "--json", "--device", "cpu", "--steps", "8"},
            .ranks = ranks};
  }

 private:
  std::filesystem::path config_;
};

TEST_F(LaunchedBench, TrainsWhatThreadsTrain) {
  const Said threads = launch(job(1));
  const Said processes = launch(job(2));
  ASSERT_EQ(threads.exit_code, 0) << threads.err;
  ASSERT_EQ(processes.exit_code, 0) << processes.err;
  EXPECT_EQ(Json::parse(processes.out)["parameters_fnv1a64"], Json::parse(threads.out)["parameters_fnv1a64"]);
}

TEST_F(LaunchedBench, EndsAsItsRanksDo) {
  for (const auto& [fault, code] : {std::pair("kill:1:5", 137), std::pair("bad_alloc:1:5", 11)}) {
    setenv("KRIGTUNE_BENCH_FAULT", fault, 1);
    Pipe alive;
    const Said said = launch(job(2));
    EXPECT_EQ(said.exit_code, code) << said.err;
    EXPECT_EQ(Json::parse(said.out)["status"], code == 11 ? "oom" : "failed");
    EXPECT_EQ(alive.read_all(), "");
  }
  unsetenv("KRIGTUNE_BENCH_FAULT");
}

TEST_F(LaunchedBench, RefusesAnotherNumberOfRanks) {
  const Said said = launch(job(3));
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_NE(said.err.find("has started 3 processes"), std::string::npos) << said.err;
}

}  // namespace krigtune::local_launch_test
