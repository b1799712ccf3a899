#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "trial/event_file.h"
#include "trial/measure_pattern.h"
#include "trial/measure_spec.h"
#include "trial/step_series.h"

// Converts lines to numbers: assigns lines to steps, and summarises the steps.
namespace krigtune::trial {

/// Facts about the job in addition to its output.
struct MeasureFacts {
  double ranks = 1.0;
  std::optional<double> samples_per_step;  ///< over all ranks, if the configuration determines them
  double tokens_per_sample = 0.0;          ///< 0: unknown
  /// Lines may begin with "3: ", srun's label. Other labels are always recognised.
  bool has_plain_labels = false;
};

/// The value of a metric, measured or derived.
struct MeasuredValue {
  double value = 0.0;
  double sem = 0.0;        ///< standard error within the run; 0: unknown
  std::int64_t steps = 0;  ///< number of steps after the warm-up that it is based on
  std::optional<StepDrift> drift;
};

/// A number found in a line.
struct LineMatch {
  std::size_t metric = 0;  ///< index in the spec's metrics, then in its checks
  bool is_check = false;
  MeasurePattern::Found found;
  std::optional<double> value;  ///< empty: not a number
};

/// What was searched in vain for a metric. The lines, rows or events counted together have the same form.
struct VainSearch {
  std::int64_t alike = 0;  ///< those that resemble what is looked for, or must contain it
  std::int64_t steps = 0;  ///< those that report a step of the training
};

/// The measurements of one job. Each stream (a file, an output) counts its own steps.
class Measurement {
 public:
  /// Placeholders must be filled in: `equals` of a check is the expected text.
  Measurement(MeasureSpec spec, MeasureFacts facts);

  /// Takes a line from LineSplitter. `metrics`: those that may be in this stream. `checks`: whether to test checks.
  std::vector<LineMatch> take_line(int stream, const std::string& line, const std::vector<std::size_t>& metrics,
                                   bool checks);
  /// Takes a row of the stream's CSV file; its header must come first.
  void take_csv_header(int stream, const std::string& line);
  void take_event(int stream, const EventScalar& event, const std::vector<std::size_t>& metrics);
  /// The stream's lines since the last call were written by `written_s`; needed for `wall`.
  void end_of_look(int stream, double written_s);
  /// The stream's file was started again.
  void forget(int stream);

  const MeasureSpec& spec() const { return spec_; }
  /// Returns what is wrong, with the line; empty if nothing is.
  const std::string& fault() const { return fault_; }
  const std::string& failed_check() const { return failed_check_; }

  /// Returns the value of a metric by its own name ("tokens_per_s", "loss") or by the name of an objective
  /// ("throughput"). Empty if there are no steps after the warm-up.
  std::optional<MeasuredValue> value_of(const std::string& name) const;
  /// Returns its number of steps so far, including warm-up. Empty if it has no steps and is known only at the end of
  /// the job.
  std::optional<std::int64_t> steps_of(const std::string& name) const;
  /// Returns whether its value is based on steps after a warm-up, rather than on a last value or a peak.
  bool counts_steps(const std::string& name) const;
  /// Returns whether the spec and the facts can determine it at all.
  bool can_tell(const std::string& name) const;
  /// Returns all values by name, measured and derived.
  std::map<std::string, double> values() const;
  std::optional<double> peak_memory() const;

  std::int64_t matches(std::size_t metric) const { return metrics_[metric].matches; }
  double last(std::size_t metric) const { return metrics_[metric].last; }
  std::vector<double> step_values(std::size_t metric) const { return metrics_[metric].series.values(); }
  std::vector<std::string> closest(std::size_t metric) const { return metrics_[metric].unmatched.closest(); }
  /// Returns why `name` has no value: metrics that never matched, with the most similar line.
  std::string why_nothing(const std::string& name) const;
  /// Returns the evidence that `name` will never have a value. Empty once one of the metrics that it is, or follows
  /// from, has matched, and if it is only known at the end of the job.
  std::optional<VainSearch> vain_search(const std::string& name) const;
  /// Returns why a value may not be what is meant: it drifts, it counts steps like a counter, or the loss that the job
  /// prints is not a number though nothing measures it.
  std::vector<std::string> doubts(const std::string& name) const;
  /// Returns warnings for the user: the doubts, and metrics and checks that never matched.
  std::vector<std::string> warnings(const std::string& name) const;

 private:
  // The current step of a stream's rank.
  struct Place {
    bool counts = false;  // an iteration was seen
    StepKey step;
    double first = 0.0;
    double greatest = 0.0;
  };
  // The last state of one metric for a stream's rank.
  struct Before {
    std::int64_t count = 0;
    std::optional<double> value;
    StepKey step;
  };
  struct Metric {
    std::optional<MeasurePattern> pattern;
    StepSeries series;
    std::int64_t matches = 0;
    double last = 0.0;
    double greatest = 0.0;
    UnmatchedLines unmatched;
    bool says_nothing = false;    // it was there, and there was nothing to measure
    std::int64_t vain = 0;        // lines, rows or events that were searched before the first match
    std::set<std::string> names;  // keys, columns or tags that were there
  };
  struct Arrival {
    std::size_t metric;
    int rank;
    StepKey step;
  };
  struct Where {
    int stream;
    int rank;  ///< below 0: the stream's own
    bool has_iteration;
  };
  struct Record;
  using Steps = std::vector<std::pair<StepKey, double>>;

  std::optional<LineMatch> find(std::size_t metric, const std::string& line, Record& record);
  std::optional<std::string> text_at_key(std::size_t metric, Record& record);
  std::optional<std::string> text_in_column(std::size_t metric, Record& record);
  void take_value(std::size_t metric, const Where& where, double printed, const std::string& line);
  void take_iteration(const Where& where, double iteration);
  void take_step(std::size_t metric, const Where& where, double value, StepKey step);
  std::optional<StepKey> step_of(std::size_t metric, const Where& where);
  void look_for_loss(const std::string& line);
  void check_line(std::size_t check, const std::string& line, std::vector<LineMatch>& found);
  std::string trouble_with(const Measure& measure, double value) const;
  VainSearch vain_search_of(std::size_t metric) const;
  int rank_of(int stream, const std::string& line) const;

  const Metric* metric(const std::string& name) const;
  std::optional<Steps> steps(const std::string& name) const;
  std::optional<Steps> measured_steps(const std::string& name) const;
  std::optional<Steps> divided(const std::string& amount, const std::string& by) const;
  std::string never_matched(std::size_t metric) const;
  bool has_amount(const std::string& amount) const;
  std::optional<double> typical_amount(const std::string& amount) const;
  std::optional<MeasuredValue> reduced(const std::string& name) const;
  std::optional<double> final_of(const std::string& name) const;

  MeasureSpec spec_;
  MeasureFacts facts_;
  std::vector<Metric> metrics_;
  std::vector<MeasurePattern> checks_;
  std::vector<bool> checked_;
  std::map<std::pair<int, int>, Place> places_;                 // stream, rank
  std::map<std::tuple<std::size_t, int, int>, Before> before_;  // metric, stream, rank
  std::map<int, std::vector<Arrival>> arrivals_;                // by stream
  std::map<int, std::vector<std::string>> csv_headers_;         // by stream
  std::string bad_loss_;  ///< the last line that printed a loss, if that is not a number
  std::string fault_;
  std::string failed_check_;
};

}  // namespace krigtune::trial
