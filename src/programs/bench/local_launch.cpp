#include "programs/bench/local_launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <ostream>

#include "core/environment.h"
#include "core/error.h"
#include "core/secret.h"
#include "core/short_program.h"
#include "engine/host/launch.h"
#include "engine/host/sockets.h"
#include "programs/bench/options.h"

namespace krigtune::bench {
namespace {

/// An ending in the form in which processes exchange it.
struct Said {
  std::int32_t exit_code = 0;
  std::array<char, 508> message{};
};

template <std::size_t N>
void put(const std::string& text, std::array<char, N>& into) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), into.data());
}

// Returns the ending that another process has decided on.
BenchEnding ending_with(int exit_code, const std::string& message) {
  switch (exit_code) {
    case BenchExit::kPredictedOutOfMemory:
      return {exit_code, "oom", "predicted", message};
    case BenchExit::kOutOfMemory:
      return {exit_code, "oom", "allocation", message};
    case BenchExit::kBadInput:
      return {exit_code, "failed", "invalid", message};
    case BenchExit::kEnvironmentLacks:
    case BenchExit::kNoDevice:
      return {exit_code, "failed", "environment", message};
    case BenchExit::kHang:
      return {exit_code, "failed", "hang", message};
    case BenchExit::kCommunication:
      return {exit_code, "failed", "communication", message};
    case BenchExit::kNumericalFailure:
      return {exit_code, "failed", "bad_result", message};
    default:
      return {exit_code, "failed", "crash", message};
  }
}

}  // namespace

engine::Environment process_environment() { return environment_variable; }

void check_cluster(const workload::ClusterSpec& cluster, const engine::Launch& launch) {
  if (launch.size > 1 && launch.size != cluster.ranks()) {
    throw UserError(fmt::format("{} has started {} processes, but the cluster has {} ranks ({} x {})", launch.by,
                                launch.size, cluster.ranks(), cluster.nodes, cluster.gpus_per_node),
                    "start nodes * gpus_per_node processes, or one for all ranks");
  }
  if (launch.size == 1 && cluster.nodes > 1 && !cluster.emulated_network) {
    throw UserError(fmt::format("the cluster has {} nodes, and this is one process", cluster.nodes),
                    "start it with mpirun, srun or torchrun's variables, or set \"emulate_network\"");
  }
}

BenchEnding agreed_ending(const BenchEnding& mine, engine::Processes* processes) {
  if (processes == nullptr) return mine;
  Said said;
  said.exit_code = mine.exit_code;
  put(mine.message, said.message);
  const std::vector<Said> all = engine::all_say(processes->control(), said);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].exit_code == 0) continue;
    if (static_cast<int>(r) == processes->rank()) return mine;
    return ending_with(all[r].exit_code, fmt::format("rank {}: {}", r, all[r].message.data()));
  }
  return mine;
}

BenchEnding ending_of_current_exception(engine::Processes* processes) {
  try {
    throw;
  } catch (const UserError& error) {
    return ending_with(BenchExit::kBadInput, error.what());
  } catch (const EnvironmentError& error) {
    return ending_with(BenchExit::kEnvironmentLacks, error.what());
  } catch (const CodedError& error) {
    return ending_with(error.exit_code(), error.what());
  } catch (const std::bad_alloc&) {
    return ending_with(BenchExit::kOutOfMemory, "this machine does not have enough memory for all ranks");
  } catch (const engine::PeerLost& error) {
    const std::optional<int> announced = processes == nullptr ? std::nullopt : processes->announced_exit_code();
    if (!announced) return ending_with(BenchExit::kCommunication, error.what());
    return ending_with(*announced, fmt::format("another process has ended the job with code {}", *announced));
  } catch (const std::exception& error) {
    return ending_with(BenchExit::kInternal, error.what());
  }
}

namespace {

constexpr int kSignalled = 128;

/// Blocks the signals that end a process, as long as the object lives, so that they can be read one by one.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      sigaction(number, nullptr, &now);
      if (now.sa_handler != SIG_IGN) sigaddset(&held_, number);  // nohup ignores signals; they stay ignored
    }
    std::signal(SIGCHLD, SIG_DFL);  // a process that ignores it receives no exit codes
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  const sigset_t& before() const { return before_; }

  /// Returns the next signal, or 0 if none arrives for a while.
  int take() const {
    constexpr timespec kWhile = {0, 50'000'000};
    return std::max(0, sigtimedwait(&held_, nullptr, &kWhile));
  }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

std::vector<std::string> environment_of(int rank, const LocalRanks& job, int port, const std::string& token) {
  const auto variables = engine::local_rank_variables(rank, job.ranks, port, token);
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (variables.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : variables) {
    if (value) all.push_back(name + "=" + *value);
  }
  return all;
}

struct Rank {
  pid_t process = -1;
  bool ended = false;
  int exit_code = 0;
};

int exit_code_of(int status) { return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status); }

class LocalLaunch {
 public:
  LocalLaunch(const LocalRanks& job, const Clock& clock, std::ostream& err) : job_(job), clock_(clock), err_(err) {}

  int run() {
    start_all();
    while (left() > 0) {
      if (const int number = signals_.take(); number != 0 && number != SIGCHLD) {
        passed_on_ = number;
        end_with(number);
      }
      reap();
      press();
    }
    return exit_code();
  }

 private:
  std::int64_t left() const {
    return std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; });
  }

  void start_all() {
    const int port = engine::listen_at(engine::loopback_host(), 0).local_port();  // a port that was free a moment ago
    for (int r = 0; r < job_.ranks; ++r) {
      const pid_t process = start(r, port);
      if (process > 0) {
        ranks_.push_back({process});
        continue;
      }
      const std::string why = std::strerror(errno);
      signal_all(SIGKILL);
      while (left() > 0) reap();
      throw EnvironmentError(fmt::format("process {} of {} cannot be started: {}", r, job_.ranks, why),
                             "raise the limit on processes (ulimit -u), or free memory");
    }
  }

  pid_t start(int rank, int port) const {
    const CStrings argv = command_line(job_.program, job_.arguments);
    const CStrings environment(environment_of(rank, job_, port, token_));
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process != 0) return process;
    // Only functions that are safe between fork and exec may be called here.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kSignalled + SIGKILL);
    pthread_sigmask(SIG_SETMASK, &signals_.before(), nullptr);
    if (rank != 0) dup2(STDERR_FILENO, STDOUT_FILENO);
    execve(argv.get()[0], argv.get(), environment.get());
    constexpr int kNotFound = 127;
    _exit(kNotFound);
  }

  void reap() {
    int status = 0;
    for (Rank& rank : ranks_) {
      if (rank.ended || waitpid(rank.process, &status, WNOHANG) != rank.process) continue;
      rank.ended = true;
      rank.exit_code = exit_code_of(status);
      const auto number = &rank - ranks_.data();
      if (WIFSIGNALED(status) && !ending_) {
        err_ << fmt::format("krigtune-bench: rank {} was ended by signal {} ({})\n", number, WTERMSIG(status),
                            strsignal(WTERMSIG(status)))
             << std::flush;
      }
      if (rank.exit_code != 0) note_failure(rank.exit_code);
      if ((number == 0 || rank.exit_code != 0) && deadline_s_ < 0.0) deadline_s_ = clock_.now_s() + job_.farewell_s;
    }
  }

  // Keeps the most informative failure: a rank that only lost the others knows least.
  void note_failure(int exit_code) {
    if (!ending_ && (failure_ == 0 || failure_ == BenchExit::kCommunication)) failure_ = exit_code;
  }

  // Ends the ranks that exceed the deadline.
  void press() {
    if (deadline_s_ < 0.0 || clock_.now_s() < deadline_s_ || left() == 0) return;
    end_with(ending_ ? SIGKILL : SIGTERM);
  }

  void end_with(int number) {
    rank_0_was_ended_ = rank_0_was_ended_ || !ranks_.front().ended;
    signal_all(number);
    ending_ = true;
    deadline_s_ = clock_.now_s() + job_.grace_s;
  }

  void signal_all(int number) const {
    for (const Rank& rank : ranks_) {
      if (!rank.ended) kill(rank.process, number);
    }
  }

  int exit_code() const {
    const int first = ranks_.front().exit_code;
    if (passed_on_ != 0 && first != 0) return kSignalled + passed_on_;
    if (failure_ != 0 && (rank_0_was_ended_ || first == BenchExit::kCommunication)) return failure_;
    return first;
  }

  const LocalRanks& job_;
  const Clock& clock_;
  std::ostream& err_;
  const HeldSignals signals_;
  const std::string token_ = new_token();
  std::vector<Rank> ranks_;
  double deadline_s_ = -1.0;  ///< for the remaining ranks; below 0: there is none
  bool ending_ = false;       ///< true once ranks are being ended: later failures are consequences
  bool rank_0_was_ended_ = false;
  int passed_on_ = 0;  ///< the signal that ended the job
  int failure_ = 0;
};

}  // namespace

int run_local_ranks(const LocalRanks& job, const Clock& clock, std::ostream& err) {
  return LocalLaunch(job, clock, err).run();
}

std::optional<int> run_as_ranks(const workload::ClusterSpec& cluster, const std::vector<std::string>& arguments,
                                const Clock& clock, std::ostream& err) {
  if (cluster.ranks() <= 1 || cluster.nodes > 1 || cluster.emulated_network) return std::nullopt;
  const LocalRanks ranks = {
      .program = own_program(), .arguments = arguments, .ranks = static_cast<int>(cluster.ranks())};
  return run_local_ranks(ranks, clock, err);
}

}  // namespace krigtune::bench
