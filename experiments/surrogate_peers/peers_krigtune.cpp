// The fit and the suggestion that peers.py times in other programs, with this library. See README.md beside this file.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "krigtune/surrogate/maximize.h"
#include "krigtune/surrogate/surrogate.h"

namespace {

using Eigen::Index;
using krigtune::Rng;
using krigtune::surrogate::Observations;
using krigtune::surrogate::Points;
using krigtune::surrogate::Surrogate;

constexpr Index kDims = 8;
constexpr Index kCandidates[] = {10'000, 100'000};

/// Returns the CPU time of the process, which has one thread.
double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Rows x0, ..., x7, value.
Observations read_points(const std::filesystem::path& path) {
  const krigtune::CsvTable table = krigtune::parse_csv(krigtune::read_text(path), path.string());
  const auto count = static_cast<Index>(table.rows.size());
  Observations result{Points::zero(count, kDims, 0), Eigen::VectorXd(count), {}};
  for (Index row = 0; row < count; ++row) {
    const auto& cells = table.rows[static_cast<std::size_t>(row)];
    for (Index column = 0; column < kDims; ++column)
      result.points.ordered(row, column) = std::stod(cells.at(static_cast<std::size_t>(column)));
    result.values[row] = std::stod(cells.at(kDims));
  }
  return result;
}

Observations slice(const Observations& all, Index first, Index count) {
  return {all.points.slice(first, count), all.values.segment(first, count), {}};
}

class Measurement {
 public:
  Measurement(const std::filesystem::path& folder, int n)
      : n_(n),
        observed_and_one_(read_points(folder / ("observations_" + std::to_string(n) + ".csv"))),
        observed_(slice(observed_and_one_, 0, n)),
        candidates_(read_points(folder / "candidates.csv")) {}

  void run() {
    double began = cpu_s();
    const Surrogate first = fitted();
    const double fit = cpu_s() - began;
    report("fit", 0, fit, error_of(first));
    began = cpu_s();
    const Surrogate second = refitted(first.theta());
    const double refit = cpu_s() - began;
    for (const Index count : kCandidates) {
      report("fit and score", count, fit + scoring(first, observed_, count));
      report("refit and score", count, refit + scoring(second, observed_and_one_, count));
    }
    report("fit and suggest", 0, fit + suggesting(first, observed_));
    report("refit and suggest", 0, refit + suggesting(second, observed_and_one_));
  }

 private:
  Surrogate fitted() const {
    Surrogate surrogate;
    Rng rng(1, 0);
    surrogate.fit(observed_, rng);
    return surrogate;
  }
  Surrogate refitted(const Eigen::VectorXd& theta) const {
    Surrogate surrogate;
    surrogate.refit(observed_and_one_, theta);
    return surrogate;
  }

  double scoring(const Surrogate& surrogate, const Observations& observed, Index count) {
    const Points candidates = candidates_.points.slice(0, count);
    const double began = cpu_s();
    choose(surrogate.predict(candidates), observed);
    return cpu_s() - began;
  }
  double suggesting(const Surrogate& surrogate, const Observations& observed) {
    const krigtune::surrogate::MixedSpace cube{std::vector<krigtune::surrogate::OrderedDimension>(kDims), {}, {}, {}};
    const auto model = std::make_shared<const Surrogate>(surrogate);
    Rng rng(1, 2);
    const double began = cpu_s();
    Index incumbent = 0;
    observed.values.maxCoeff(&incumbent);
    const krigtune::surrogate::Score score(
        {{model, krigtune::surrogate::make_log_expected_improvement(observed.values[incumbent]), 1.0}});
    chosen_ += krigtune::surrogate::maximize(score, cube, observed.points.slice(incumbent, 1), rng).score;
    return cpu_s() - began;
  }
  void choose(const krigtune::surrogate::Prediction& prediction, const Observations& observed) {
    chosen_ += static_cast<double>(krigtune::surrogate::best_candidate(
        krigtune::surrogate::make_log_expected_improvement(observed.values.maxCoeff())->values(prediction)));
  }

  /// Returns the root mean square error of the posterior mean.
  std::string error_of(const Surrogate& surrogate) const {
    const Observations held_out = slice(candidates_, 0, kCandidates[0]);
    const Eigen::VectorXd off = surrogate.predict(held_out.points).mean - held_out.values;
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", std::sqrt(off.squaredNorm() / static_cast<double>(off.size())));
    return text;
  }
  void report(const char* task, Index count, double seconds, const std::string& error = "") const {
    std::printf("krigtune,%s,%d,%d,%.6f,%s\n", task, n_, static_cast<int>(count), seconds, error.c_str());
  }

  int n_;
  Observations observed_and_one_;
  Observations observed_;
  Observations candidates_;
  double chosen_ = 0.0;  ///< sum over all suggestions, so that the compiler cannot omit any
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw krigtune::UserError("usage: peers_krigtune FOLDER N REPETITIONS");
    Measurement measurement(argv[1], std::stoi(argv[2]));
    for (int repetition = 0; repetition < std::stoi(argv[3]); ++repetition) measurement.run();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peers_krigtune: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
