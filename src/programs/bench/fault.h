#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace krigtune::bench {

/// A deliberate failure: before this step (counted from 0) the process of this rank hangs, aborts, runs out of memory
/// or is killed.
///
/// Only tests use it (tests/e2e/bench_failures.sh), but it is part of the shipped program. The tests check that this
/// very program, under mpirun and as a trial of krigtune, reports each failure correctly and leaves no process behind;
/// a program built for tests would prove that only for itself. The engine knows nothing of it.
/// process behind. A program built for tests would show that of another program. The engine knows nothing of it.
struct Fault {
  enum class Kind { kHang, kAbort, kBadAlloc, kKill };
  Kind kind = Kind::kHang;
  std::int64_t rank = 0;
  std::int64_t step = 0;
};

/// Reads the environment variable KRIGTUNE_BENCH_FAULT: KIND:RANK:STEP, where KIND is hang, abort, bad_alloc or kill.
/// Throws UserError.
Fault fault_from(const std::string& text);

/// Fails as described if this is the fault's step. Only the process of the fault's rank may call it. Returns if it is
/// another step, throws std::bad_alloc, or does not return.
void inject(const Fault& fault, std::int64_t step);

}  // namespace krigtune::bench
