// The points and values of expected_values.csv, which problems.py must give, too.
#include <cmath>
#include <optional>
#include <sstream>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "problems.h"

namespace krigtune::sanity {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Both languages compute in double; their exp and cos may differ in the last bits.
constexpr double kTolerance = 1e-12;

template <class Number>
Eigen::RowVectorX<Number> numbers_of(const std::string& text) {
  std::istringstream stream(text);
  Eigen::RowVectorX<Number> numbers;
  for (Number number{}; stream >> number;) {
    numbers.conservativeResize(numbers.size() + 1);
    numbers[numbers.size() - 1] = number;
  }
  return numbers;
}

Problem problem_named(const std::string& name) {
  for (const Problem& problem : problems())
    if (problem.name == name) return problem;
  throw UserError("expected_values.csv: no problem '" + name + "'");
}

bool equal(double got, double expected) { return std::abs(got - expected) <= kTolerance * (1.0 + std::abs(expected)); }

}  // namespace

void check_expected_values(const std::string& path) {
  const CsvTable table = parse_csv(read_text(path), path);
  for (const std::vector<std::string>& row : table.rows) {
    const surrogate::Evaluation got =
        problem_named(row[0]).evaluate({numbers_of<double>(row[1]), numbers_of<int>(row[2]), Eigen::MatrixXd(1, 0)});
    const VectorXd constraints = numbers_of<double>(row[4]).transpose();
    bool same = got.value.has_value() == (row[3] != "failed") && got.constraints.size() == constraints.size();
    if (same && got.value) same = equal(*got.value, std::stod(row[3]));
    for (Index i = 0; same && i < constraints.size(); ++i) same = equal(got.constraints[i], constraints[i]);
    if (!same) throw UserError(path + ": " + row[0] + " at " + row[1] + " gives something else here");
  }
}

}  // namespace krigtune::sanity
