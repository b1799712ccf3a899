#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/block.h"

namespace krigtune::trial {

/// How a number is found.
enum class MeasureHow {
  kRegex,   ///< the group of a regular expression
  kWall,    ///< the time between lines that match
  kKey,     ///< a key of JSON lines, dotted
  kColumn,  ///< a column of a CSV file
  kTag,     ///< a tag of TensorBoard's event files
};
enum class MeasureScope { kJob, kGpu };
enum class MeasureKind {
  kLine,        ///< each value belongs to one step
  kCumulative,  ///< a running sum: its differences belong to the steps
  kFinal,       ///< the last value counts
};

// Names that krigtune knows; all others are the user's own.
inline constexpr const char* kStepTime = "step_time_s";
inline constexpr const char* kTokensRate = "tokens_per_s";
inline constexpr const char* kSamplesRate = "samples_per_s";
inline constexpr const char* kTokens = "tokens";    ///< per step
inline constexpr const char* kSamples = "samples";  ///< per step
inline constexpr const char* kFlopsRate = "flops_per_s";
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kIteration = "iteration";
inline constexpr const char* kPeakMemory = "peak_memory_bytes";

/// Where a program reports its steps itself, a JSON object a line, with the names above as keys; and the variable that
/// tells it the file's path, in trials that are measured there.
inline constexpr const char* kStepsFile = "{dir}/steps.jsonl";
inline constexpr const char* kStepsVariable = "KRIGTUNE_STEPS_FILE";

/// A number in a job's output.
struct Measure {
  std::string name;
  MeasureHow how = MeasureHow::kRegex;
  std::string pattern;   ///< the regular expression, key, column or tag
  double times = 1.0;    ///< factor from the printed value, or the time between lines, to the unit of the name
  std::string times_by;  ///< a further factor, with placeholders: "{gradient_accumulation_steps}"; "": none
  MeasureScope per = MeasureScope::kJob;
  std::string from =
      "output";  ///< "output" (stdout and stderr), "stdout", "stderr", or a path with placeholders and '*'
  MeasureKind kind = MeasureKind::kLine;
};

/// A printed value that must be the intended one, because frameworks may train something else and still exit with code
/// 0.
struct PrintedCheck {
  std::string regex;
  std::string equals;  ///< with placeholders
  std::string what;    ///< "data-parallel ranks"; may be empty
};

/// What to measure in a job's output; nothing if `metrics` is empty.
struct MeasureSpec {
  std::vector<Measure> metrics;
  std::vector<PrintedCheck> checks;
  std::int64_t warmup_steps = 5;
  std::int64_t measure_steps = 10;

  std::int64_t due() const { return warmup_steps + measure_steps; }
  const Measure* find(const std::string& name) const;
};

/// Returns the unit of a name that krigtune knows: "s", "tokens/s"; "" for others.
std::string unit_of_measure(const std::string& name);
/// Returns whether "times" takes the word as a printed unit: "ms", "GiB".
bool is_unit(const std::string& word);
std::string word_of(MeasureHow how);  ///< "regex", as in the session
bool is_path(const std::string& from);

// The keys "measure", "checks", "warmup_steps" and "measure_steps". Readers throw UserError with the JSON pointer.

/// Reads the object at `key`: each metric's name, and how it is found.
std::vector<Measure> read_measures(JsonObject& block, const std::string& key);
std::vector<PrintedCheck> read_checks(JsonObject& block, const std::string& key);
Json measures_json(const std::vector<Measure>& measures);
Json checks_json(const std::vector<PrintedCheck>& checks);
Json measures_schema();
Json checks_schema();
Codec<std::int64_t> warmup_steps_codec();
Codec<std::int64_t> measure_steps_codec();
/// Parses a measure from the command line: NAME=REGEX. Throws UserError that begins with `named`.
Measure measure_from_text(const std::string& text, const std::string& named);

/// Adds the four keys of a MeasureSpec to a block.
template <class T>
void add_measure_keys(Block<T>& block, MeasureSpec T::*member) {
  block.custom(
      "measure", measures_schema(), "how metrics are read from the program's output: name -> rule (docs/measure.md)",
      [member](JsonObject& object, T& value) { (value.*member).metrics = read_measures(object, "measure"); },
      [member](const T& value) { return measures_json((value.*member).metrics); });
  block.custom(
      "checks", checks_schema(),
      "printed values that must equal the intended ones; otherwise the trial fails (not_applied)",
      [member](JsonObject& object, T& value) { (value.*member).checks = read_checks(object, "checks"); },
      [member](const T& value) { return checks_json((value.*member).checks); });
  block.key(
      "warmup_steps", [member](auto& value) -> auto& { return (value.*member).warmup_steps; }, warmup_steps_codec(),
      "printed steps that are left out before the measurement");
  block.key(
      "measure_steps", [member](auto& value) -> auto& { return (value.*member).measure_steps; }, measure_steps_codec(),
      "printed steps that are measured; then the trial is ended");
  block.check([member](JsonObject& object, const T& value) {
    if ((value.*member).metrics.empty() && !(value.*member).checks.empty()) {
      object.fail("checks", "nothing is measured", "say under \"measure\" what the program prints");
    }
  });
}

}  // namespace krigtune::trial
