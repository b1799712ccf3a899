// Runs a search on every test problem from every seed. Each evaluation gives a row with the smallest regret so far.
//
//   sanity EXPECTED_VALUES.csv OUTPUT.csv STRATEGY [FIRST_SEED [SEEDS [PROBLEM...]]]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "problems.h"

namespace krigtune::sanity {
namespace {

enum class Strategy { kOurs, kOursImpute, kRandom };

Strategy strategy_named(const std::string& name) {
  if (name == "ours") return Strategy::kOurs;
  if (name == "ours-impute") return Strategy::kOursImpute;
  if (name == "random") return Strategy::kRandom;
  throw UserError("no strategy '" + name + "'", "ours, ours-impute or random");
}

/// Draws a uniform point.
surrogate::Points random_point(const Problem& problem, Rng& rng) {
  surrogate::Points point = surrogate::Points::zero(1, std::ssize(problem.levels), std::ssize(problem.categories));
  for (std::size_t i = 0; i < problem.levels.size(); ++i) {
    const int count = problem.levels[i];
    point.ordered(0, static_cast<Eigen::Index>(i)) =
        count == 0 ? rng.uniform() : static_cast<double>(rng.below(static_cast<std::uint64_t>(count))) / (count - 1);
  }
  for (std::size_t i = 0; i < problem.categories.size(); ++i)
    point.categories(0, static_cast<Eigen::Index>(i)) =
        static_cast<int>(rng.below(static_cast<std::uint64_t>(problem.categories[i])));
  return point;
}

bool feasible(const surrogate::Evaluation& outcome) {
  return outcome.value && (outcome.constraints.size() == 0 || outcome.constraints.maxCoeff() <= 0.0);
}

/// Returns the smallest regret after every evaluation.
std::vector<double> search(const Problem& problem, Strategy strategy, std::uint64_t seed) {
  surrogate::OptimizerOptions options;
  options.seed = seed;
  if (strategy == Strategy::kOursImpute) options.failures = surrogate::OptimizerOptions::Failures::kImpute;
  surrogate::Optimizer optimizer(problem.space(), options);
  Rng rng(seed, 0);
  double best = std::numeric_limits<double>::infinity();
  std::vector<double> regrets;
  for (int i = 0; i < problem.evaluations; ++i) {
    surrogate::Evaluation outcome =
        problem.evaluate(strategy == Strategy::kRandom ? random_point(problem, rng) : *optimizer.ask());
    if (feasible(outcome)) best = std::min(best, *outcome.value - problem.optimum);
    regrets.push_back(best);
    if (strategy == Strategy::kRandom) continue;
    if (outcome.value) outcome.value = -*outcome.value;
    optimizer.tell(outcome);
  }
  return regrets;
}

void run(std::span<char*> arguments) {
  if (arguments.size() < 4) throw UserError("too few arguments", "see the top of sanity.cpp");
  check_expected_values(arguments[1]);
  std::ofstream output(arguments[2]);
  output << "problem,strategy,seed,evaluation,best_regret\n";
  const std::string name = arguments[3];
  const std::uint64_t first = arguments.size() > 4 ? std::stoull(arguments[4]) : 1;
  const std::uint64_t seeds = arguments.size() > 5 ? std::stoull(arguments[5]) : 30;
  const std::vector<std::string> wanted(arguments.begin() + std::min<std::ptrdiff_t>(6, std::ssize(arguments)),
                                        arguments.end());
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    for (const Problem& problem : problems()) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), problem.name) == wanted.end()) continue;
      const std::vector<double> regrets = search(problem, strategy_named(name), seed);
      for (std::size_t i = 0; i < regrets.size(); ++i)
        output << problem.name << ',' << name << ',' << seed << ',' << i + 1 << ',' << regrets[i] << '\n';
      output.flush();
    }
  }
}

}  // namespace
}  // namespace krigtune::sanity

int main(int argc, char** argv) {
  try {
    krigtune::sanity::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
