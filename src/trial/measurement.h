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

// From lines to numbers: which line belongs to which step, and what the steps tell.
namespace krigtune::trial {

/// What is known of the job besides its output.
struct MeasureFacts {
  double ranks = 1.0;
  std::optional<double> samples_per_step;  ///< of all ranks, where the configuration tells
  double tokens_per_sample = 0.0;          ///< 0: not known
  /// Lines may begin with "3: ", srun's label. Others are recognised anyway.
  bool has_plain_labels = false;
};

/// What one metric, or one that follows from others, comes to.
struct MeasuredValue {
  double value = 0.0;
  double sem = 0.0;        ///< standard error within the run; 0: not known
  std::int64_t steps = 0;  ///< behind the warm-up, that it is made of
  std::optional<StepDrift> drift;
};

/// A line's number.
struct LineMatch {
  std::size_t metric = 0;  ///< index in the spec's metrics, then in its checks
  bool is_check = false;
  MeasurePattern::Found found;
  std::optional<double> value;  ///< empty: it is no number
};

/// The numbers of one job. Lines come from streams (a file, an output) that each count for themselves.
class Measurement {
 public:
  /// Placeholders are filled in: `equals` of a check is what must be printed.
  Measurement(MeasureSpec spec, MeasureFacts facts);

  /// A line as LineSplitter gives it; `metrics`: which of them may be in this stream. Checks are looked for if
  /// `checks`.
  std::vector<LineMatch> take_line(int stream, const std::string& line, const std::vector<std::size_t>& metrics,
                                   bool checks);
  /// A row of the stream's CSV file: its header comes first.
  void take_csv_header(int stream, const std::string& line);
  void take_event(int stream, const EventScalar& event, const std::vector<std::size_t>& metrics);
  /// The lines of the stream that came since the last call were written by then: needed for `wall`.
  void end_of_look(int stream, double written_s);
  /// The stream's file was begun anew.
  void forget(int stream);

  const MeasureSpec& spec() const { return spec_; }
  /// Empty: nothing is wrong. Else the sentence, with the line.
  const std::string& fault() const { return fault_; }
  const std::string& failed_check() const { return failed_check_; }

  /// Of a metric by its own name ("tokens_per_s", "loss") or as users call an objective ("throughput"). Empty: nothing
  /// behind the warm-up.
  std::optional<MeasuredValue> value_of(const std::string& name) const;
  /// Steps of it so far, those of the warm-up too. Empty: it has none, only the end of the job tells it.
  std::optional<std::int64_t> steps_of(const std::string& name) const;
  /// Whether its value is made of steps, behind a warm-up: no last value and no peak.
  bool counts_steps(const std::string& name) const;
  /// Whether the spec and the facts can tell it at all.
  bool can_tell(const std::string& name) const;
  /// All that there is, by name: measured, and what follows.
  std::map<std::string, double> values() const;
  std::optional<double> peak_memory() const;

  std::int64_t matches(std::size_t metric) const { return metrics_[metric].matches; }
  double last(std::size_t metric) const { return metrics_[metric].last; }
  std::vector<double> step_values(std::size_t metric) const { return metrics_[metric].series.values(); }
  std::vector<std::string> closest(std::size_t metric) const { return metrics_[metric].closest.lines(); }
  /// Why `name` has no value: metrics that never matched, with the lines that looked closest.
  std::string why_nothing(const std::string& name) const;
  /// What the user should look at: a drift, a check that never matched.
  std::vector<std::string> warnings(const std::string& name) const;

 private:
  // What a stream's rank is at.
  struct Place {
    bool counts = false;  // an iteration was seen
    StepKey step;
    double first = 0.0;
    double greatest = 0.0;
  };
  // What one metric had last, of a stream's rank.
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
    ClosestLines closest;
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
  void check_line(std::size_t check, const std::string& line, std::vector<LineMatch>& found);
  std::string trouble_with(const Measure& measure, double value) const;
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
  std::string fault_;
  std::string failed_check_;
};

}  // namespace krigtune::trial
