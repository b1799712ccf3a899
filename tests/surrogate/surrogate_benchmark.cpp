// What one suggestion costs: hyperparameters learned anew, then LogEI of 1e4 candidates, in 8 dimensions.
#include <benchmark/benchmark.h>

#include <cmath>

#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"

namespace krigtune {
namespace {

constexpr int kDims = 8;
constexpr int kCandidates = 10'000;

struct Data {
  Points points;
  Eigen::VectorXd values;
  Points candidates;

  explicit Data(int count) {
    Rng rng(1, 0);
    points = reference::random_points(rng, count, kDims, 0);
    candidates = reference::random_points(rng, kCandidates, kDims, 0);
    values = (4.0 * points.ordered.col(0).array()).sin() + points.ordered.col(1).array().square();
    for (double& value : values) value += 0.05 * rng.normal();
  }
};

void fit_and_score(benchmark::State& state) {
  const Data data(static_cast<int>(state.range(0)));
  int evaluations = 0;
  for (auto _ : state) {
    Surrogate gp;
    Rng rng(2, 0);
    evaluations = gp.fit({data.points, data.values, {}}, rng).evaluations;
    benchmark::DoNotOptimize(log_expected_improvement(gp.predict(data.candidates), data.values.maxCoeff()).eval());
  }
  state.counters["likelihoods"] = evaluations;
}
BENCHMARK(fit_and_score)->Arg(30)->Arg(100)->Unit(benchmark::kMillisecond);

void score(benchmark::State& state) {
  const Data data(static_cast<int>(state.range(0)));
  Surrogate gp;
  Rng rng(2, 0);
  gp.fit({data.points, data.values, {}}, rng);
  for (auto _ : state)
    benchmark::DoNotOptimize(log_expected_improvement(gp.predict(data.candidates), data.values.maxCoeff()).eval());
}
BENCHMARK(score)->Arg(30)->Arg(100)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace krigtune

BENCHMARK_MAIN();
