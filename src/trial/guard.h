#pragma once
#include <cstdint>

namespace krigtune::trial {

/// Krigtune's orders to a guard, one byte each. The end of the connection means kKill.
enum class GuardOrder : char { kTerminate = 'T', kKill = 'K' };

/// A guard's messages: kStarted or one of the two refusals, then kEnded.
struct GuardReport {
  enum class Kind : std::int32_t { kStarted, kNotStarted, kNoDirectory, kEnded };
  Kind kind = Kind::kEnded;
  std::int32_t value = 0;           ///< kStarted: process id; refusals: errno; kEnded: status as from waitpid
  std::int64_t peak_rss_bytes = 0;  ///< kEnded: the largest of the program and its descendants
};

/// The program and its surroundings, prepared before the fork. Everything that it points to must outlive it.
struct GuardTask {
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* working_directory = nullptr;  ///< nullptr: ours
  int in = -1;
  int out = -1;
  int err = -1;
  int socket = -1;  ///< one end of a SOCK_SEQPACKET pair; all descriptors above 2 and closed on exec
};

/// The main function of a guard. Call it in a newly forked process with all signals blocked, so that it runs none of
/// the inherited handlers. It starts the program in its own process group, executes orders, and ends when the program
/// and all its descendants are gone. It calls only async-signal-safe functions, because other threads may have held any
/// lock at the fork.
[[noreturn]] void run_guard(const GuardTask& task);

}  // namespace krigtune::trial
