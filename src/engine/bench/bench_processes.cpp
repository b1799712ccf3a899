#include "bench/bench_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "bench/coded_error.h"
#include "krigtune/core/bench_exit.h"
#include "krigtune/core/error.h"

namespace krigtune {
namespace {

/// An ending as it travels.
struct Said {
  std::int32_t exit_code = 0;
  std::array<char, 508> message{};
};

template <std::size_t N>
void put(const std::string& text, std::array<char, N>& into) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), into.data());
}

// The words of an ending that another process has chosen.
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

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

void check_cluster(const ClusterSpec& cluster, const Launch& launch) {
  if (launch.size > 1 && launch.size != cluster.ranks()) {
    throw UserError(fmt::format("{} has started {} processes, but the cluster has {} ranks ({} x {})", launch.by,
                                launch.size, cluster.ranks(), cluster.nodes, cluster.gpus_per_node),
                    "start as many as nodes * gpus_per_node, or one for all");
  }
  if (launch.size == 1 && cluster.nodes > 1 && !cluster.emulated_network) {
    throw UserError(fmt::format("the cluster has {} nodes, and this is one process", cluster.nodes),
                    "start it with mpirun, srun or torchrun's variables, or set \"emulate_network\"");
  }
}

BenchEnding agreed_ending(const BenchEnding& mine, Processes* processes) {
  if (processes == nullptr) return mine;
  Said said;
  said.exit_code = mine.exit_code;
  put(mine.message, said.message);
  const std::vector<Said> all = all_say(processes->control(), said);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].exit_code == 0) continue;
    if (static_cast<int>(r) == processes->rank()) return mine;
    return ending_with(all[r].exit_code, fmt::format("rank {}: {}", r, all[r].message.data()));
  }
  return mine;
}

BenchEnding ending_of_current_exception(Processes* processes) {
  try {
    throw;
  } catch (const UserError& error) {
    return ending_with(BenchExit::kBadInput, error.what());
  } catch (const EnvironmentError& error) {
    return ending_with(BenchExit::kEnvironmentLacks, error.what());
  } catch (const CodedError& error) {
    return ending_with(error.exit_code(), error.what());
  } catch (const std::bad_alloc&) {
    return ending_with(BenchExit::kOutOfMemory, "this machine has not enough memory for all ranks");
  } catch (const PeerLost& error) {
    const std::optional<int> announced = processes == nullptr ? std::nullopt : processes->announced_exit_code();
    if (!announced) return ending_with(BenchExit::kCommunication, error.what());
    return ending_with(*announced, fmt::format("another process has ended the job with code {}", *announced));
  } catch (const std::exception& error) {
    return ending_with(BenchExit::kInternal, error.what());
  }
}

}  // namespace krigtune
