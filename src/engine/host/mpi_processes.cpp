// Several threads communicate, but only one is inside MPI at a time (MPI_THREAD_SERIALIZED). Each takes a lock for one
// non-blocking call, so no thread waits for a peer while it has the lock. Tags distinguish the transports. A waiting
// thread sleeps between its tests, because ranks that compute on the same cores would pay for them.
#include "engine/host/mpi_processes.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "core/error.h"
#include "engine/host/communicator.h"

namespace krigtune::engine {
namespace {

constexpr int kEagerTests = 20;  // tests without a pause first: a peer on another core is often about to answer
constexpr double kShortestPauseS = 10e-6;
constexpr double kLongestPauseS = 200e-6;

/// The state that all transports of a process share.
struct MpiState {
  MPI_Comm world = MPI_COMM_NULL;
  std::timed_mutex inside;
  std::atomic<bool> interrupted = false;
};

void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw PeerLost(fmt::format("{} failed with code {}", call, code));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MpiState& state, std::vector<int> members, int rank, int tag, const Clock& clock)
      : state_(state), members_(std::move(members)), rank_(rank), tag_(tag), clock_(clock) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

  void exchange(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in) override {
    begin(out, in);
    double pause_s = kShortestPauseS;
    for (int tests = 0; !done(); ++tests) {
      if (state_.interrupted) throw Aborted();
      if (tests < kEagerTests) continue;
      clock_.sleep_until_s(clock_.now_s() + pause_s);
      pause_s = std::min(2.0 * pause_s, kLongestPauseS);
    }
  }

 private:
  void begin(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in) {
    const std::lock_guard lock(state_.inside);
    requests_.clear();
    for (int step = 1; step < size(); ++step) {  // so that not all send to the same member first
      const auto i = static_cast<std::size_t>((rank_ + step) % size());
      if (!in[i].empty()) {
        check(
            MPI_Irecv(in[i].data(), static_cast<int>(in[i].size()), MPI_BYTE, members_[i], tag_, state_.world, next()),
            "MPI_Irecv");
      }
      if (!out[i].empty()) {
        check(MPI_Isend(out[i].data(), static_cast<int>(out[i].size()), MPI_BYTE, members_[i], tag_, state_.world,
                        next()),
              "MPI_Isend");
      }
    }
  }

  MPI_Request* next() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  bool done() {
    const std::lock_guard lock(state_.inside);
    int all = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
    return all != 0;
  }

  MpiState& state_;
  std::vector<int> members_;
  int rank_;  ///< among the members
  int tag_;
  const Clock& clock_;
  std::vector<MPI_Request> requests_;
};

class MpiProcesses final : public Processes {
 public:
  explicit MpiProcesses(const Clock& clock) : clock_(clock) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED) {
      MPI_Finalize();
      throw EnvironmentError("this MPI cannot be used by several threads in turn (MPI_THREAD_SERIALIZED)",
                             "use another MPI, or torchrun's variables");
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &state_.world);
    MPI_Comm_set_errhandler(state_.world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(state_.world, &rank_);
    MPI_Comm_size(state_.world, &size_);
    std::vector<int> all;
    for (int r = 0; r < size_; ++r) all.push_back(r);
    control_ = open(std::move(all));
  }
  // After a failure there is nobody to finalise with.
  ~MpiProcesses() override {
    if (state_.interrupted) return;
    MPI_Comm_free(&state_.world);
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Transport& control() override { return *control_; }

  std::unique_ptr<Transport> open(std::vector<int> members) override {
    const auto me = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::make_unique<MpiTransport>(state_, std::move(members), static_cast<int>(me), next_tag_++, clock_);
  }

  void interrupt() override { state_.interrupted = true; }

  void abort(int exit_code) noexcept override {
    state_.interrupted = true;
    // If another thread's MPI call does not return, mpirun sees the exit code of this process instead.
    if (state_.inside.try_lock_for(std::chrono::seconds(1))) MPI_Abort(state_.world, exit_code);
  }

  std::optional<int> announced_exit_code() override { return std::nullopt; }

 private:
  const Clock& clock_;
  MpiState state_;
  int rank_ = 0;
  int size_ = 1;
  int next_tag_ = 0;
  std::unique_ptr<Transport> control_;
};

}  // namespace

std::unique_ptr<Processes> connect_by_mpi(const Clock& clock) { return std::make_unique<MpiProcesses>(clock); }

}  // namespace krigtune::engine
