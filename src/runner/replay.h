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

/// A column of a measured table: its name, and what turns its numbers into ours.
struct TableColumn {
  std::string name;
  double times = 1.0;  ///< "bucket_mb" holds reduce_bucket_size / 1e6: times 1e6
};

/// A measured table that answers trials.
struct ReplaySpec {
  static trial::RunnerEntry<ReplaySpec> entry();

  std::filesystem::path table;                               ///< absolute
  std::vector<std::pair<std::string, std::string>> where;    ///< column, value as text
  std::vector<std::pair<std::string, TableColumn>> columns;  ///< parameter, column
  TableColumn value;
  std::vector<std::pair<std::string, TableColumn>> metrics;  ///< further results: metric, column
  std::string status_column;                                 ///< empty: every row is ok
  std::string reason_column;                                 ///< of failures; empty: none
  enum class Repeats { kBest, kMedian, kCycle } repeats = Repeats::kBest;
};

/// A measured table that answers trials: one configuration, one outcome (or several, in turn).
class ReplayTable {
 public:
  /// Reads the rows that `spec.where` picks. Only `parameters` are matched, compared as numbers where both are.
  /// `metric`: the name under which the value is reported. `maximize`: which repeat is the best. Throws UserError.
  ReplayTable(const ReplaySpec& spec, const std::vector<std::string>& parameters, const std::string& metric,
              bool maximize);
  ~ReplayTable();

  bool contains(const space::Configuration& configuration) const;
  /// The `measurement`-th (from 0) measurement of the configuration, which must be contained.
  trial::Outcome look_up(const space::Configuration& configuration, int measurement) const;
  /// How many measurements of it differ: its ok rows with cycle, else 1; 0 when not contained.
  int measurements(const space::Configuration& configuration) const;
  /// What the configuration achieves, repeats merged (cycle: their median). Empty when none is ok, or not contained.
  std::optional<double> value_of(const space::Configuration& configuration) const;
  /// The best value over the configurations of the space, repeats merged (cycle: their median). Empty when none is ok.
  /// `worth`: what a value is worth there; empty: itself.
  using Worth = std::function<double(const space::Configuration& configuration, double value)>;
  std::optional<double> optimum(const space::Space& space, const Worth& worth = {}) const;
  std::size_t size() const;  ///< configurations

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Looks trials up. `table` must outlive it.
std::unique_ptr<trial::Runner> make_replay_runner(const ReplayTable& table);

/// 12 significant digits: 0.07 * 1e6 is 70000.00000000001.
double rounded(double number);

/// One spelling for 4, 4.0 and "4", or for true, True and 1.
std::string spelling_of_field(const std::string& field);

/// Turns configurations and rows into keys: the values of the parameters, each in one spelling; a parameter that is
/// absent is an empty field. Where a column holds other units, values are compared in 12 digits.
class ReplayKeys {
 public:
  ReplayKeys(const ReplaySpec& spec, const std::vector<std::string>& parameters);
  std::string of(const space::Configuration& configuration) const;
  /// Of fields as the table has them; `fields` then holds what they mean in units of the space.
  std::string of(std::vector<std::string>& fields) const;

 private:
  struct Part {
    std::string parameter;
    double times;
  };
  std::vector<Part> parts_;
};

}  // namespace krigtune::runner
