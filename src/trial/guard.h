#pragma once
#include <cstdint>

namespace krigtune::trial {

/// What krigtune may ask of a guard, one byte each. The end of the connection means kKill.
enum class GuardOrder : char { kTerminate = 'T', kKill = 'K' };

/// What a guard says, one message each: kStarted or one of the two refusals, then kEnded.
struct GuardReport {
  enum class Kind : std::int32_t { kStarted, kNotStarted, kNoDirectory, kEnded };
  Kind kind = Kind::kEnded;
  std::int32_t value = 0;           ///< kStarted: process id; refusals: errno; kEnded: the status as waitpid gives it
  std::int64_t peak_rss_bytes = 0;  ///< kEnded: the largest of the program and its descendants
};

/// The program and its surroundings, made ready before the fork. What it points to must outlive it.
struct GuardTask {
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* working_directory = nullptr;  ///< nullptr: ours
  int in = -1;
  int out = -1;
  int err = -1;
  int socket = -1;  ///< of a SOCK_SEQPACKET pair; all descriptors above 2 and closed on exec
};

/// The life of a guard: to be called in a process just forked, with all signals blocked, so that it runs none of the
/// handlers that it inherited. It starts the program in a process group of its own,
/// obeys, and ends when the program and every descendant of it are gone. Calls nothing but async-signal-safe functions,
/// because other threads may have held any lock at the fork.
[[noreturn]] void run_guard(const GuardTask& task);

}  // namespace krigtune::trial
