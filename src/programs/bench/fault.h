#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace krigtune::bench {

/// A failure on purpose: before this step (from 0) the process that has this rank hangs, aborts, runs out of memory or
/// is killed.
///
/// Only tests ask for it (tests/e2e/bench_failures.sh), and the shipped program can do it all the same: what is tested
/// is that this program, under mpirun and as a trial of krigtune, reports each failure as what it was and leaves no
/// process behind. A program built for tests would show that of another program. The engine knows nothing of it.
struct Fault {
  enum class Kind { kHang, kAbort, kBadAlloc, kKill };
  Kind kind = Kind::kHang;
  std::int64_t rank = 0;
  std::int64_t step = 0;
};

/// Reads the environment variable KRIGTUNE_BENCH_FAULT: KIND:RANK:STEP, KIND one of hang, abort, bad_alloc, kill.
/// Throws UserError.
Fault fault_from(const std::string& text);

/// Does what the fault says if this is its step. To be called only by the process that has its rank. Returns if it is
/// another step, throws std::bad_alloc, or does not return.
void inject(const Fault& fault, std::int64_t step);

}  // namespace krigtune::bench
