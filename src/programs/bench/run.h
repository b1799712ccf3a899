#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "core/clock.h"
#include "programs/bench/train.h"

namespace krigtune::bench {

/// The program krigtune-bench, with either engine. Writes results to `out` and errors to `err`. Returns the exit code.
int run_bench(const BenchEngine& engine, const std::vector<std::string>& arguments, const Clock& clock,
              std::ostream& out, std::ostream& err);

}  // namespace krigtune::bench
