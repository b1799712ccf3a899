// How often is a measurement inside the surrogate's predictive interval? See README.md beside this file.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/csv.h"
#include "core/error.h"
#include "krigtune/rng.h"
#include "krigtune/surrogate/surrogate.h"

namespace {

using Eigen::Index;
using Eigen::VectorXd;
using krigtune::Rng;
using krigtune::surrogate::GaussianProcess;
using krigtune::surrogate::Observations;
using krigtune::surrogate::Points;
using krigtune::surrogate::Surrogate;
using krigtune::surrogate::SurrogateOptions;

constexpr std::array kLevels{0.5, 0.9, 0.95};

/// Counts of values inside the central intervals.
struct Coverage {
  std::array<int, kLevels.size()> inside{};
  int count = 0;

  void add(double value, double mean, double variance) {
    const double level = std::erf(std::abs(value - mean) / std::sqrt(2.0 * variance));
    for (std::size_t i = 0; i < kLevels.size(); ++i) inside[i] += level <= kLevels[i] ? 1 : 0;
    ++count;
  }
  void add(const Coverage& more) {
    for (std::size_t i = 0; i < inside.size(); ++i) inside[i] += more.inside[i];
    count += more.count;
  }
  double share(std::size_t i) const { return static_cast<double>(inside[i]) / count; }
};

/// Results for a row of the table: predictions of held-out points, and of each fitted point from the others at the same
/// theta.
struct Row {
  Coverage held_out;
  Coverage leave_one_out;
  std::vector<double> shares;  ///< held out, at 90 %, for each fit

  double standard_error() const {
    const Eigen::Map<const VectorXd> each(shares.data(), static_cast<Index>(shares.size()));
    const auto count = static_cast<double>(shares.size());
    return std::sqrt((each.array() - each.mean()).square().sum() / (count - 1.0) / count);
  }
};

void measure(const SurrogateOptions& options, const Observations& fitted, const Observations& held, Rng& rng,
             Row& row) {
  Surrogate surrogate(options);
  surrogate.fit(fitted, rng);
  Coverage here;
  const auto predicted = surrogate.predict(held.points);
  const double noise = surrogate.noise_stddev() * surrogate.noise_stddev();
  for (Index i = 0; i < held.size(); ++i) {
    here.add(held.values[i], predicted.mean[i], predicted.variance[i] + noise);
  }
  const GaussianProcess& process = surrogate.processes().front();
  const auto others = process.leave_one_out();
  for (Index i = 0; i < process.observed(); ++i)
    row.leave_one_out.add(process.values()[i], others.mean[i], others.variance[i]);
  row.held_out.add(here);
  row.shares.push_back(here.share(1));
}

struct Problem {
  std::string name;
  Index dims;
  std::function<double(const VectorXd& x)> value;  ///< larger is better; x in the unit cube
};

double branin(const VectorXd& unit) {
  const double x = -5.0 + 15.0 * unit[0];
  const double y = 15.0 * unit[1];
  const double pi = std::numbers::pi;
  const double valley = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
  return -(valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0);
}

double hartmann6(const VectorXd& x) {
  constexpr double kA[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                               {2329, 4135, 8307, 3736, 1004, 9991},
                               {2348, 1451, 3522, 2883, 3047, 6650},
                               {4047, 8828, 8732, 5743, 1091, 381}};
  constexpr double kAlpha[4] = {1.0, 1.2, 3.0, 3.2};
  double sum = 0.0;
  for (int i = 0; i < 4; ++i) {
    double exponent = 0.0;
    for (int j = 0; j < 6; ++j) exponent += kA[i][j] * std::pow(x[j] - 1e-4 * kP[i][j], 2);
    sum += kAlpha[i] * std::exp(-exponent);
  }
  return sum;
}

/// On [-5, 5]^4, with the optimum at (0.6, -1.4, 2.2, 0.4).
double ackley4(const VectorXd& unit) {
  const VectorXd x = (10.0 * unit.array() - 5.0).matrix() - Eigen::Vector4d(0.6, -1.4, 2.2, 0.4);
  const double ripples = (2.0 * std::numbers::pi * x.array()).cos().mean();
  return 20.0 * std::exp(-0.2 * std::sqrt(x.squaredNorm() / 4.0)) + std::exp(ripples) - 20.0 - std::numbers::e;
}

Observations draw(const Problem& problem, Index count, Rng& rng) {
  Observations drawn{Points::zero(count, problem.dims, 0), VectorXd(count), {}};
  for (Index i = 0; i < count; ++i) {
    for (Index j = 0; j < problem.dims; ++j) drawn.points.ordered(i, j) = rng.uniform();
    drawn.values[i] = problem.value(drawn.points.ordered.row(i).transpose());
  }
  return drawn;
}

Row of_function(const SurrogateOptions& options, const Problem& problem, Index count) {
  constexpr std::uint64_t kSeeds = 30;
  constexpr Index kHeldOut = 200;
  Row row;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rng rng(1, seed);
    const Observations fitted = draw(problem, count, rng);
    measure(options, fitted, draw(problem, kHeldOut, rng), rng, row);
  }
  return row;
}

/// Reads measured spaces: tensor parallelism, pipeline parallelism and micro-batch (logarithms, mapped to the unit
/// interval), and the logarithm of the throughput.
std::vector<Observations> read_spaces(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw krigtune::UserError("cannot read " + path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto table = krigtune::parse_csv(text, path);
  const auto number = [&table](const std::vector<std::string>& fields, const char* name) {
    return std::stod(fields[static_cast<std::size_t>(table.column(name))]);
  };
  std::map<std::array<double, 4>, std::vector<Eigen::Vector4d>> spaces;
  for (const auto& fields : table.rows)
    spaces[std::array{number(fields, "hidden"), number(fields, "layers"), number(fields, "n_gpus"),
                      number(fields, "global_batch")}]
        .emplace_back(std::log2(number(fields, "tp")), std::log2(number(fields, "pp")),
                      std::log2(number(fields, "micro_batch")), -std::log(number(fields, "iter_ms")));
  constexpr std::size_t kFewestRows = 12;
  std::vector<Observations> result;
  for (const auto& [key, rows] : spaces) {
    if (rows.size() < kFewestRows) continue;
    const auto count = static_cast<Index>(rows.size());
    Observations space{Points::zero(count, 3, 0), VectorXd(count), {}};
    for (Index i = 0; i < count; ++i) {
      space.points.ordered.row(i) = rows[static_cast<std::size_t>(i)].head<3>().transpose() / 3.0;  // 1 to 8
      space.values[i] = rows[static_cast<std::size_t>(i)][3];
    }
    result.push_back(space);
  }
  return result;
}

Observations rows(const Observations& space, const std::vector<Index>& which) {
  Observations result;
  for (const Index i : which) result.append({space.points.slice(i, 1), space.values.segment(i, 1), {}});
  return result;
}

std::vector<Index> count_up(Index size) {
  std::vector<Index> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), Index{0});
  return order;
}

/// Predicts one random half of each space from the other half.
Row of_halves(const SurrogateOptions& options, const std::vector<Observations>& spaces) {
  constexpr std::uint64_t kSeeds = 4;
  Row row;
  for (const Observations& space : spaces)
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Rng rng(2, seed);
      std::vector<Index> order = count_up(space.size());
      rng.shuffle(order);
      const auto middle = order.begin() + (space.size() + 1) / 2;
      measure(options, rows(space, {order.begin(), middle}), rows(space, {middle, order.end()}), rng, row);
    }
  return row;
}

/// Predicts each row of each space from all others; the hyperparameters are learned without it.
Row of_single_rows(const SurrogateOptions& options, const std::vector<Observations>& spaces) {
  Row row;
  for (const Observations& space : spaces)
    for (Index held = 0; held < space.size(); ++held) {
      Rng rng(3, static_cast<std::uint64_t>(held));
      std::vector<Index> others = count_up(space.size());
      others.erase(others.begin() + held);
      measure(options, rows(space, others), rows(space, {held}), rng, row);
    }
  return row;
}

void print(const std::string& name, const Row& row) {
  std::printf("| %s | %zu | %d |", name.c_str(), row.shares.size(), row.held_out.count);
  std::printf(" %.1f | %.1f (%.1f) | %.1f |", 100.0 * row.held_out.share(0), 100.0 * row.held_out.share(1),
              100.0 * row.standard_error(), 100.0 * row.held_out.share(2));
  for (std::size_t i = 0; i < kLevels.size(); ++i) std::printf(" %.1f |", 100.0 * row.leave_one_out.share(i));
  std::printf("\n");
}

void table(const SurrogateOptions& options, const std::vector<Observations>& spaces) {
  const std::vector<Problem> problems{{"Branin", 2, branin}, {"Hartmann6", 6, hartmann6}, {"Ackley-4", 4, ackley4}};
  std::printf("| problem | fits | held out | 50 %% | 90 %% | 95 %% | left out 50 %% | 90 %% | 95 %% |\n");
  std::printf("|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const Problem& problem : problems)
    for (const Index count : {10, 20, 40, 80})
      print(problem.name + ", n = " + std::to_string(count), of_function(options, problem, count));
  print("vtrain, half of each space", of_halves(options, spaces));
  print("vtrain, all rows but one", of_single_rows(options, spaces));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw krigtune::UserError("usage: surrogate_coverage FILE.csv");
    const auto spaces = read_spaces(argv[1]);
    table(SurrogateOptions(), spaces);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "surrogate_coverage: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
