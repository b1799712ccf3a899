// The cost of a suggestion in 8 dimensions on one core: first the goals, then how the cost grows. `likelihoods` counts
// the evaluations of the marginal likelihood with its gradient.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cmath>
#include <string>

#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"
#include "vector_unit/vector_unit.h"

namespace krigtune {
namespace {

struct Problem {
  surrogate::Observations observed;
  surrogate::Observations one_more;
  surrogate::Points candidates;

  Problem(benchmark::State& state, int dims)
      : Problem(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), dims) {}
  Problem(int count, int candidate_count, int dims) {
    Rng rng(1, 0);
    observed = draw(rng, count, dims);
    one_more = draw(rng, 1, dims);
    candidates = reference::random_points(rng, candidate_count, dims, 0);
  }
  static surrogate::Observations draw(Rng& rng, int count, int dims) {
    surrogate::Observations drawn{reference::random_points(rng, count, dims, 0), {}, {}};
    drawn.values = (4.0 * drawn.points.ordered.col(0).array()).sin() + drawn.points.ordered.col(1).array().square();
    for (double& value : drawn.values) value += 0.05 * rng.normal();
    return drawn;
  }
  double best() const { return observed.values.maxCoeff(); }
};

constexpr int kDims = 8;

/// Peak memory of the process so far, in MB.
double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

surrogate::Surrogate fitted(const Problem& problem) {
  surrogate::Surrogate surrogate;
  Rng rng(2, 0);
  surrogate.fit(problem.observed, rng);
  return surrogate;
}

/// Learns the hyperparameters again from the last optimum, one observation later, and scores all candidates.
void refit_and_score(benchmark::State& state, int dims) {
  const Problem problem(state, dims);
  const Eigen::VectorXd start = fitted(problem).theta();
  surrogate::Observations observed = problem.observed;
  observed.append(problem.one_more);
  int likelihoods = 0;
  for (auto _ : state) {
    surrogate::Surrogate surrogate;
    likelihoods = surrogate.refit(observed, start).evaluations;
    benchmark::DoNotOptimize(
        surrogate::log_expected_improvement(surrogate.predict(problem.candidates), problem.best()).eval());
  }
  state.counters["likelihoods"] = likelihoods;
  state.counters["peak_MB"] = peak_memory();
}

/// The whole fit from several starts.
void fit(benchmark::State& state, int dims) {
  const Problem problem(state, dims);
  int likelihoods = 0;
  for (auto _ : state) {
    surrogate::Surrogate surrogate;
    Rng rng(2, 0);
    likelihoods = surrogate.fit(problem.observed, rng).evaluations;
  }
  state.counters["likelihoods"] = likelihoods;
}

void score(benchmark::State& state, int dims) {
  const Problem problem(state, dims);
  const surrogate::Surrogate surrogate = fitted(problem);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        surrogate::log_expected_improvement(surrogate.predict(problem.candidates), problem.best()).eval());
}

/// The dense algebra of one likelihood with its gradient.
void factorise_and_invert(benchmark::State& state, const surrogate::VectorUnit& unit) {
  const auto n = static_cast<Eigen::Index>(state.range(0));
  Rng rng(4, 0);
  const surrogate::Points points = reference::random_points(rng, static_cast<int>(n), kDims, 0);
  Eigen::MatrixXd covariance =
      surrogate::make_kernel(surrogate::KernelKind::kMatern52)->gram(points, points, Eigen::VectorXd::Zero(kDims + 1));
  covariance.diagonal().array() += 0.01;
  for (auto _ : state) {
    Eigen::MatrixXd lower = covariance.triangularView<Eigen::Lower>();
    benchmark::DoNotOptimize(unit.cholesky(n, lower.data(), n));
    unit.invert(n, lower.data(), n);
  }
}

/// Correlations of 10 000 pairs in 8 dimensions.
void correlate(benchmark::State& state, const surrogate::VectorUnit& unit) {
  Rng rng(5, 0);
  const surrogate::Points points = reference::random_points(rng, 10'000, kDims, 0);
  Eigen::VectorXd r2(points.size());
  for (auto _ : state) {
    r2.setZero();
    unit.add_squares(r2.size(), kDims, points.ordered.data(), r2.size(), points.ordered.data(), r2.size(), r2.data());
    unit.matern52().correlation(r2.size(), r2.data());
  }
}

using Work = void (*)(benchmark::State&, int);

void add(const std::string& name, Work work, int count, int candidates, int dims = kDims) {
  const std::string title = dims == kDims ? name : name + "/d" + std::to_string(dims);
  benchmark::RegisterBenchmark(title.c_str(), [work, dims](benchmark::State& state) { work(state, dims); })
      ->ArgNames({"n", "m"})
      ->Args({count, candidates})
      ->Unit(benchmark::kMillisecond);
}

void add_goals() {
  add("goal/refit_and_score", refit_and_score, 100, 10'000);
  add("goal/refit_and_score", refit_and_score, 100, 100'000);
  add("goal/refit_and_score", refit_and_score, 1000, 10'000);
}

void add_growth() {
  for (const int count : {30, 100, 300, 1000}) {
    add("growth/fit", fit, count, 0);
    add("growth/score", score, count, 10'000);
  }
  for (const int dims : {2, 32}) {
    add("growth/fit", fit, 100, 0, dims);
    add("growth/score", score, 100, 10'000, dims);
  }
  for (const int candidates : {1'000, 100'000}) add("growth/score", score, 100, candidates);
}

void add_units() {
  for (const surrogate::VectorUnit* unit : surrogate::available_vector_units()) {
    const std::string name = std::string("/") + unit->name;
    for (const int count : {100, 1000})
      benchmark::RegisterBenchmark(("unit/factorise_and_invert" + name + "/n").c_str(),
                                   [unit](benchmark::State& state) { factorise_and_invert(state, *unit); })
          ->Arg(count)
          ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("unit/correlate" + name).c_str(), [unit](benchmark::State& state) {
      correlate(state, *unit);
    })->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  krigtune::add_goals();
  krigtune::add_growth();
  krigtune::add_units();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
