#include "programs/bench/fault.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <new>

#include "core/error.h"

namespace krigtune::bench {
namespace {

[[noreturn]] void hang() {
  const std::atomic<bool> never = false;
  while (true) never.wait(false);
}

std::int64_t count_from(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 9) {
    throw UserError("KRIGTUNE_BENCH_FAULT: '" + text + "' is not a number", "write for example hang:1:3");
  }
  return std::stoll(text);
}

}  // namespace

void inject(const Fault& fault, std::int64_t step) {
  if (fault.step != step) return;
  switch (fault.kind) {
    case Fault::Kind::kHang:
      hang();
    case Fault::Kind::kAbort:
      std::abort();
    case Fault::Kind::kBadAlloc:
      throw std::bad_alloc();
    case Fault::Kind::kKill:
      std::raise(SIGKILL);
  }
}

Fault fault_from(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) {
    throw UserError("KRIGTUNE_BENCH_FAULT is '" + text + "'", "write KIND:RANK:STEP");
  }
  const std::string kind = text.substr(0, first);
  Fault fault;
  if (kind == "hang") {
    fault.kind = Fault::Kind::kHang;
  } else if (kind == "abort") {
    fault.kind = Fault::Kind::kAbort;
  } else if (kind == "bad_alloc") {
    fault.kind = Fault::Kind::kBadAlloc;
  } else if (kind == "kill") {
    fault.kind = Fault::Kind::kKill;
  } else {
    throw UserError("KRIGTUNE_BENCH_FAULT: '" + kind + "' is unknown", "use hang, abort, bad_alloc or kill");
  }
  fault.rank = count_from(text.substr(first + 1, second - first - 1));
  fault.step = count_from(text.substr(second + 1));
  return fault;
}

}  // namespace krigtune::bench
