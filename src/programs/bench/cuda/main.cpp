#include <iostream>

#include "programs/bench/cuda/cuda_engine.h"
#include "programs/bench/run.h"

int main(int argc, char** argv) {
  const krigtune::SystemClock clock;
  return krigtune::bench::run_bench(krigtune::bench::cuda_engine(), {argv + 1, argv + argc}, clock, std::cout,
                                    std::cerr);
}
