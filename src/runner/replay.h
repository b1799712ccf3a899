#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trial/runner.h"

namespace krigtune::runner {

/// A column of a measured table: its name, and the factor to our units.
struct TableColumn {
  std::string name;
  double times = 1.0;  ///< for example times = 1e6 if "bucket_mb" contains reduce_bucket_size / 1e6
};

/// A measured table that replaces trials.
struct ReplaySpec {
  static trial::RunnerEntry<ReplaySpec> entry();
  std::optional<std::vector<std::string>> measured_names() const;  ///< beside the value
  bool repeats_exactly() const { return repeats != Repeats::kCycle; }

  std::filesystem::path table;                               ///< absolute
  std::vector<std::pair<std::string, std::string>> where;    ///< column, value as text
  std::vector<std::pair<std::string, TableColumn>> columns;  ///< parameter, column
  TableColumn value;
  std::vector<std::pair<std::string, TableColumn>> metrics;  ///< further results: metric, column
  std::string status_column;                                 ///< empty: every row is ok
  std::string reason_column;                                 ///< reason of a failure; empty: none
  enum class Repeats { kBest, kMedian, kCycle } repeats = Repeats::kBest;
};

/// A measured table that answers trials: one outcome for each configuration, or several in rotation.
class ReplayTable {
 public:
  /// Reads the rows that `spec.where` selects. Only `parameters` are matched, as numbers if both are numbers. `metric`:
  /// the name of the value in outcomes. `maximize`: which repeat is best. Throws UserError.
  ReplayTable(const ReplaySpec& spec, const std::vector<std::string>& parameters, const std::string& metric,
              bool maximize);
  ~ReplayTable();

  bool contains(const space::Configuration& configuration) const;
  /// Returns measurement number `measurement` (from 0) of the configuration, which the table must contain.
  trial::Outcome look_up(const space::Configuration& configuration, int measurement) const;
  /// Returns the number of different measurements: its ok rows with cycle, otherwise 1; 0 if not contained.
  int measurements(const space::Configuration& configuration) const;
  /// Returns the configuration's value with repeats merged (cycle: their median). Empty if not contained, or if no row
  /// is ok.
  std::optional<double> value_of(const space::Configuration& configuration) const;
  /// Returns the best value over the configurations of the space, with repeats merged (cycle: their median). Empty if
  /// no row is ok. `worth` converts a value to its worth; empty: the value itself.
  using Worth = std::function<double(const space::Configuration& configuration, double value)>;
  std::optional<double> optimum(const space::Space& space, const Worth& worth = {}) const;
  std::size_t size() const;  ///< configurations

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Answers trials from the table. `table` must outlive it.
std::unique_ptr<trial::Runner> make_replay_runner(const ReplayTable& table);

/// Rounds to 12 significant digits: 0.07 * 1e6 is 70000.00000000001.
double rounded(double number);

/// Returns the same spelling for 4, 4.0 and "4", and for true, True and 1.
std::string spelling_of_field(const std::string& field);

/// Converts configurations and rows to keys: the values of the parameters in normalised spelling; an absent parameter
/// is an empty field. If a column has other units, values are compared in 12 digits.
class ReplayKeys {
 public:
  ReplayKeys(const ReplaySpec& spec, const std::vector<std::string>& parameters);
  std::string of(const space::Configuration& configuration) const;
  /// Converts the fields of a row; `fields` then contains the values in units of the space.
  std::string of(std::vector<std::string>& fields) const;

 private:
  struct Part {
    std::string parameter;
    double times;
  };
  std::vector<Part> parts_;
};

}  // namespace krigtune::runner
