#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost/time/step_cost.h"
#include "tables.h"

namespace krigtune::accuracy {

/// How far predictions are from measurements.
struct Score {
  std::size_t rows = 0;
  double mape = 0.0;  ///< mean of |predicted / measured - 1|
  double median_error = 0.0;
  double bias = 0.0;      ///< geometric mean of predicted / measured, minus 1
  double spearman = 0.0;  ///< rank correlation; NaN for fewer than three rows
};
Score score(std::span<const double> predicted, std::span<const double> measured);
double spearman(std::span<const double> a, std::span<const double> b);
double median(std::vector<double> values);

using MakeMachine = std::function<cost::Machine(const workload::Workload&, const workload::ClusterSpec&)>;

/// Predicts the seconds of steps, by table row; one model for all rows of a workload on a cluster.
std::vector<double> predict(std::span<const MeasuredStep* const> steps, const MakeMachine& make);
std::vector<double> predict(std::span<const MeasuredStep* const> steps, const cost::TimeCalibration& calibration);

/// Machines on which constants that were fitted to `table` have their values from the literature instead
/// (docs/accuracy.md).
MakeMachine without_table(const std::string& table);

/// Rows of a space in the order of the table, split by the rule of README.md: five chosen by a fixed seed, and the
/// others.
struct Split {
  std::vector<const MeasuredStep*> drawn, rest;
};
Split split(std::vector<const MeasuredStep*> steps);

cost::TimeCalibration calibrate(std::span<const MeasuredStep* const> drawn);
std::vector<double> measured(std::span<const MeasuredStep* const> steps);

}  // namespace krigtune::accuracy
