#include <algorithm>
#include <iostream>

#include "core/error.h"
#include "programs/bench/cuda/attention_choice.h"
#include "programs/bench/cuda/cuda_engine.h"
#include "programs/bench/run.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  if (std::find(arguments.begin(), arguments.end(), "--version") != arguments.end()) {
    if (const std::string why = krigtune::bench::why_it_cannot_start(); !why.empty()) {
      std::cerr << why << "\n";
      return krigtune::BenchExit::kEnvironmentLacks;
    }
  }
  if (!arguments.empty() && arguments.front() == krigtune::bench::kCheckAttention) {
    try {
      return krigtune::bench::check_attention(arguments, std::cout);
    } catch (const krigtune::UserError& error) {
      std::cerr << error.what() << "\n";
      return krigtune::BenchExit::kBadInput;
    }
  }
  const krigtune::SystemClock clock;
  return krigtune::bench::run_bench(krigtune::bench::cuda_engine(), arguments, clock, std::cout, std::cerr);
}
