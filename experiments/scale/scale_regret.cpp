// Sessions of bayes with the exact model and with the model for many trials, on functions with a known optimum: the
// simple regret (the difference between the best so far and the optimum), and the time of suggestions.
//
// usage: scale_regret TRIALS SEEDS EXACT[,EXACT...] [FUNCTION [sampled]]
//   EXACT     how many measured configurations the process may use; 100000: the exact model
//   FUNCTION  hill (six parameters of ten values), ripples (two of 300), hartmann6 (six of five), hartmann6_7 (six of
//             seven, which are too many for a list), levy4 and rough4 (four of eleven); all if left out
//   sampled   sample the space for each question, although it could be listed
// Prints a CSV row at 10, 20, 50, 100, 200, ... trials of each session. Values have noise of 2 %, and state 1 %.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "run/tuner.h"

namespace krigtune {
namespace {

struct Function {
  std::string name;
  std::string space;
  std::function<double(const std::vector<double>&)> log_value;  ///< for points of the unit cube; at most about 0
};

std::string space_of(int parameters, int values) {
  Json space = Json::object();
  for (int i = 0; i < parameters; ++i) {
    space[fmt::format("p{}", i)] = {{"min", 0}, {"max", values - 1}};
  }
  return space.dump();
}

double hill(const std::vector<double>& x) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = 0.3 + 0.07 * static_cast<double>(i);
    sum += (0.4 + 0.2 * static_cast<double>(i)) * (x[i] - at) * (x[i] - at);
  }
  return -2.0 * sum + 0.3 * (x[0] - 0.3) * (x[1] - 0.37);
}

double ripples(const std::vector<double>& x) {
  const double a = x[0] - 0.62;
  const double b = x[1] - 0.41;
  return -1.5 * (a * a + b * b) + 0.12 * std::cos(9.0 * std::numbers::pi * a) * std::cos(7.0 * std::numbers::pi * b) -
         0.12;
}

// Hartmann's function of six variables, which has six local maxima. Constants from Dixon & Szego 1978, "Towards global
// optimisation 2", as in https://www.sfu.ca/~ssurjano/hart6.html. Its largest value is 3.32237.
double hartmann6(const std::vector<double>& x) {
  constexpr std::array<double, 4> kAlpha{1.0, 1.2, 3.0, 3.2};
  constexpr double kA[4][6] = {{10.0, 3.0, 17.0, 3.5, 1.7, 8.0},
                               {0.05, 10.0, 17.0, 0.1, 8.0, 14.0},
                               {3.0, 3.5, 1.7, 10.0, 17.0, 8.0},
                               {17.0, 8.0, 0.05, 10.0, 0.1, 14.0}};
  constexpr double kP[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                               {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                               {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                               {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0.0;
  for (std::size_t i = 0; i < kAlpha.size(); ++i) {
    double exponent = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j) exponent += kA[i][j] * (x[j] - kP[i][j]) * (x[j] - kP[i][j]);
    sum += kAlpha[i] * std::exp(-exponent);
  }
  return 0.5 * (sum - 3.32237);
}

// Levy's function (https://www.sfu.ca/~ssurjano/levy.html) over -4 to 6, so that the grid has its maximum at 1.
double levy(const std::vector<double>& x) {
  const auto w = [&](std::size_t i) { return 1.0 + (-4.0 + 10.0 * x[i] - 1.0) / 4.0; };
  const auto square = [](double value) { return value * value; };
  const double pi = std::numbers::pi;
  double sum = square(std::sin(pi * w(0)));
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    sum += square(w(i) - 1.0) * (1.0 + 10.0 * square(std::sin(pi * w(i) + 1.0)));
  }
  const double last = w(x.size() - 1);
  sum += square(last - 1.0) * (1.0 + square(std::sin(2.0 * pi * last)));
  return -0.03 * sum;
}

// A draw of a Gaussian process with the squared exponential kernel by 400 random Fourier features (Rahimi & Recht
// 2007). It has as many hills as fit, and no trend.
double rough(const std::vector<double>& x, double lengthscale) {
  constexpr int kFeatures = 400;
  Rng rng(4, 4);
  double sum = 0.0;
  for (int feature = 0; feature < kFeatures; ++feature) {
    double phase = 2.0 * std::numbers::pi * rng.uniform();
    for (const double coordinate : x) phase += rng.normal() / lengthscale * coordinate;
    sum += rng.normal() * std::cos(phase);
  }
  return 0.3 * std::sqrt(2.0 / kFeatures) * sum;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {{"hill", space_of(6, 10), hill},
                                            {"ripples", space_of(2, 300), ripples},
                                            {"hartmann6", space_of(6, 5), hartmann6},
                                            {"hartmann6_7", space_of(6, 7), hartmann6},
                                            {"levy4", space_of(4, 11), levy},
                                            {"rough4", space_of(4, 11), [](const auto& x) { return rough(x, 0.08); }},
                                            {"rough5", space_of(5, 7), [](const auto& x) { return rough(x, 0.2); }}};
  return all;
}

session::Session session_of(const Function& function, int trials) {
  session::Session session;
  space::JobFacts facts;
  facts.well_known = false;
  session.space =
      space::Space(space::read_parameters(parse_json(function.space, "function"), "function", "/space"), facts);
  session.objective = {"speed", true, "speed"};
  session.runner = runner::ReplaySpec();
  session.budget.trials = trials;
  return session;
}

std::vector<double> unit_point(const session::Session& session, const space::Configuration& configuration) {
  std::vector<double> x;
  for (const space::Parameter& parameter : session.space.parameters()) {
    x.push_back(space::as_number(*configuration.find(parameter.name)) /
                static_cast<double>(parameter.values.size() - 1));
  }
  return x;
}

double best_log_value(const session::Session& session, const Function& function) {
  double best = -HUGE_VAL;
  session.space.for_each([&](const space::Configuration& configuration) {
    best = std::max(best, function.log_value(unit_point(session, configuration)));
    return true;
  });
  return best;
}

bool is_shown(std::size_t trials) {
  std::size_t first = trials;
  while (first >= 10 && first % 10 == 0) first /= 10;
  return first == 1 || first == 2 || first == 5 || trials % 100 == 0;
}

void run_session(const Function& function, double best, int trials, Eigen::Index most_exact, std::uint64_t seed,
                 search::Candidates::Listing listing) {
  const session::Session session = session_of(function, trials);
  const session::MemoryFilter filter(session);
  const search::Candidates candidates(session, filter, {}, listing);
  search::StrategyOptions options{seed, trials};
  options.most_exact = most_exact;
  const auto strategy = search::make_bayes(session, candidates, options);
  const SystemClock clock;
  run::Tuner tuner({session, candidates, *strategy, clock});
  Rng noise(seed, 77);
  double found = -HUGE_VAL;
  double suggest_s = 0.0;
  while (static_cast<int>(tuner.history().size()) < trials) {
    const std::optional<journal::Trial> trial = tuner.ask();
    if (!trial) break;
    const double value = function.log_value(unit_point(session, trial->proposal.configuration));
    trial::Measured outcome;
    outcome.metrics["speed"] = 100.0 * std::exp(value + 0.02 * noise.normal());
    outcome.value_sem = 0.01 * outcome.metrics["speed"];
    found = std::max(found, value);
    suggest_s += trial->proposal.suggest_s;
    tuner.tell(trial->number, outcome, 0.0);
    const std::size_t count = tuner.history().size();
    if (!is_shown(count)) continue;
    std::cout << fmt::format("{},{},{},{},{:.6f},{:.2f}\n", function.name, most_exact, seed, count, best - found,
                             suggest_s)
              << std::flush;
  }
}

std::vector<long> numbers_in(const std::string& list) {
  std::vector<long> numbers;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::stol(word));
  return numbers;
}

void compare(int argc, char** argv) {
  if (argc < 4)
    throw UserError("usage: scale_regret TRIALS SEEDS EXACT[,EXACT...] [FUNCTION [sampled]]", "give at least three");
  const int trials = std::stoi(argv[1]);
  const auto seeds = static_cast<std::uint64_t>(std::stoi(argv[2]));
  using Listing = search::Candidates::Listing;
  const Listing listing = argc > 5 && argv[5] == std::string("sampled") ? Listing::kNever : Listing::kWhereSmall;
  std::cout << "function,most_exact,seed,trials,log_regret,suggest_s\n";
  for (const Function& function : functions()) {
    if (argc > 4 && function.name != argv[4]) continue;
    const double best = best_log_value(session_of(function, trials), function);
    for (const long most_exact : numbers_in(argv[3])) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        run_session(function, best, trials, most_exact, seed, listing);
    }
  }
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  try {
    krigtune::compare(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
