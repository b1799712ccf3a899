// Reads the session's keys for what a job prints, and finds all their errors while reading.
#include "trial/measure_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "trial/measure_pattern.h"

namespace krigtune::trial {
namespace {

// libstdc++ compiles patterns recursively; one of this length cannot overflow the stack.
constexpr std::size_t kLongestMeasurePattern = 500;

constexpr EnumWords<MeasureHow, 5> kHowWords = {{{"regex", MeasureHow::kRegex},
                                                 {"wall", MeasureHow::kWall},
                                                 {"key", MeasureHow::kKey},
                                                 {"column", MeasureHow::kColumn},
                                                 {"tag", MeasureHow::kTag}}};
constexpr EnumWords<MeasureScope, 2> kScopeWords = {{{"job", MeasureScope::kJob}, {"gpu", MeasureScope::kGpu}}};
constexpr EnumWords<MeasureKind, 3> kKindWords = {
    {{"line", MeasureKind::kLine}, {"cumulative", MeasureKind::kCumulative}, {"final", MeasureKind::kFinal}}};

struct UnitWord {
  std::string_view name;
  double factor;
};
// Sizes have the meanings of PyTorch and nvidia-smi: GiB is 2^30, GB is 10^9.
constexpr std::array<UnitWord, 14> kUnits = {{{"s", 1.0},
                                              {"ms", 1e-3},
                                              {"us", 1e-6},
                                              {"min", 60.0},
                                              {"KiB", 0x1p10},
                                              {"MiB", 0x1p20},
                                              {"GiB", 0x1p30},
                                              {"KB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"K", 1e3},
                                              {"M", 1e6},
                                              {"GFLOP/s", 1e9},
                                              {"TFLOP/s", 1e12}}};

std::vector<std::string> unit_names() {
  std::vector<std::string> names;
  for (const UnitWord& unit : kUnits) names.emplace_back(unit.name);
  return names;
}

std::string unit_suggestion(const std::string& word) {
  for (const std::string& name : unit_names()) {
    if (lower_case(name) == lower_case(word)) return fmt::format("did you mean '{}'?", name);
  }
  return suggestion(word, unit_names());
}

constexpr std::array kReservedNames = {"steps", "value_sem", "drift", "status", "reason", "peak_rss_bytes"};

constexpr const char* kMeaningOfHow[] = {"a regular expression (ECMAScript) with one group around the number",
                                         "a regular expression: the time between lines that match",
                                         "JSON lines: the key, dotted where objects are nested", "CSV: the column",
                                         "TensorBoard event files: the tag"};

bool is_regular(MeasureHow how) { return how == MeasureHow::kRegex || how == MeasureHow::kWall; }

// Why the pattern cannot be used, and the fix; empty if it can be used.
struct PatternTrouble {
  std::string what;
  std::string hint;
};
std::optional<PatternTrouble> trouble_with(const std::string& pattern, bool needs_group) {
  if (pattern.empty()) return PatternTrouble{"is empty", "write what the line with the number looks like"};
  if (pattern.size() > kLongestMeasurePattern) {
    return PatternTrouble{"is too long", fmt::format("give {} characters at most", kLongestMeasurePattern)};
  }
  if (pattern.find('\0') != std::string::npos) return PatternTrouble{"contains a zero byte", "remove it"};
  try {
    const MeasurePattern compiled(pattern);
    if (!needs_group || compiled.groups() == 1) return std::nullopt;
    return PatternTrouble{
        fmt::format("'{}' has {} groups where one was expected", pattern,
                    compiled.groups() == 0 ? "no" : std::to_string(compiled.groups())),
        "put one pair of parentheses around the number, as in 'loss: ([0-9.]+)'; (?:...) is no group"};
  } catch (const std::regex_error& error) {
    return PatternTrouble{fmt::format("'{}' is not a regular expression: {}", pattern, trouble_with_pattern(error)),
                          "write one as in JavaScript, without back-references"};
  }
}

void refuse_trouble(const JsonObject& object, const std::string& key, const std::string& pattern, bool needs_group) {
  if (const auto trouble = trouble_with(pattern, needs_group)) object.fail(key, trouble->what, trouble->hint);
}

void read_how(JsonObject& object, Measure& measure, MeasureHow how) {
  const std::string key = word_of(how);
  if (object.find(key) == nullptr) return;
  if (!measure.pattern.empty()) {
    object.fail(key, fmt::format("cannot be combined with '{}'", word_of(measure.how)), "keep one of the two");
  }
  measure.how = how;
  measure.pattern = object.text(key, "");
  if (is_regular(how)) return refuse_trouble(object, key, measure.pattern, how == MeasureHow::kRegex);
  if (measure.pattern.empty()) object.fail(key, "is empty", "name what the file has");
}

void read_times(JsonObject& object, Measure& measure) {
  const Json* times = object.find("times");
  if (times == nullptr) return;
  if (times->is_string()) {
    const std::string word = times->get<std::string>();
    if (word.find('{') != std::string::npos) {
      measure.times_by = word;
      return;
    }
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const UnitWord& u) { return u.name == word; });
    if (unit == kUnits.end()) object.fail("times", fmt::format("'{}' is not a unit", word), unit_suggestion(word));
    measure.times = unit->factor;
    return;
  }
  const double number = object.number("times", 1.0);
  if (!(number > 0.0 && std::isfinite(number))) {
    object.fail("times", "a factor above 0 was expected", R"(write 1e-3 or "ms" for milliseconds)");
  }
  measure.times = number;
}

void read_from(JsonObject& object, Measure& measure) {
  measure.from = object.text("from", measure.from);
  if (measure.from.empty() || measure.from.find('\0') != std::string::npos) {
    object.fail("from", "names no file", R"(write "stdout", "stderr", "output" or a path)");
  }
  const bool looks_like_a_path = measure.from.find_first_of("/.*{") != std::string::npos;
  if (is_path(measure.from) && !looks_like_a_path) {
    object.fail("from", fmt::format("'{}' is neither output, stdout, stderr nor a path", measure.from),
                fmt::format("write './{}' if it is a file", measure.from));
  }
}

void check_measure(const JsonObject& object, const Measure& measure) {
  if (measure.pattern.empty()) {
    object.fail("", "does not say how the number is found",
                "write \"regex\": \"loss: ([0-9.]+)\", or one of wall, key, column, tag");
  }
  if (!is_regular(measure.how) && !is_path(measure.from)) {
    object.fail("from", fmt::format("'{}' needs a file", word_of(measure.how)), R"(write "from": "logs/*.jsonl")");
  }
  if (measure.how == MeasureHow::kWall && measure.kind != MeasureKind::kLine) {
    object.fail("kind", "the time between lines is of kind 'line'", "leave it out");
  }
  if (measure.name == kIteration && measure.kind != MeasureKind::kLine) {
    object.fail("kind", "the iteration is of kind 'line'", "leave it out");
  }
}

Block<Measure> measure_block() {
  Block<Measure> block("One number that the program prints");
  for (std::size_t i = 0; i < kHowWords.size(); ++i) {
    const MeasureHow how = kHowWords[i].second;
    block
        .custom(
            std::string(kHowWords[i].first).c_str(), schema::not_empty(schema::text()), kMeaningOfHow[i],
            [how](JsonObject& object, Measure& measure) { read_how(object, measure, how); },
            [how](const Measure& measure) {
              return measure.how == how && !measure.pattern.empty() ? Json(measure.pattern) : Json(nullptr);
            })
        .written_where_changed();
  }
  block
      .custom("times",
              schema::either({above(0).applied_to(schema::number()), schema::word(unit_names()),
                              Json{{"type", "string"}, {"pattern", "[{].+[}]"}}}),
              "factor that gives the unit of the name (s, bytes, 1/s), or the unit that is printed, or a factor with "
              "placeholders: {gradient_accumulation_steps}",
              read_times,
              [](const Measure& measure) {
                return measure.times_by.empty() ? json_number(measure.times) : Json(measure.times_by);
              })
      .written_where_changed();
  block
      .key("per", &Measure::per, one_of(kScopeWords),
           "what the value belongs to: one of gpu is multiplied by the ranks")
      .written_where_changed();
  block
      .custom("from", schema::not_empty(schema::text()),
              "output (stdout and stderr), stdout, stderr, or a path relative to cwd, with placeholders and *",
              read_from, [](const Measure& measure) { return Json(measure.from); })
      .written_where_changed();
  block
      .key("kind", &Measure::kind, one_of(kKindWords),
           "line: each value belongs to one step; cumulative: each value is a sum so far, and its differences belong "
           "to the steps; final: the last value counts")
      .written_where_changed();
  block.check([](JsonObject& object, const Measure& measure) { check_measure(object, measure); });
  return block;
}

Block<PrintedCheck> check_block() {
  Block<PrintedCheck> block("A printed value that must equal the intended one");
  block
      .custom(
          "regex", schema::not_empty(schema::text()), "a regular expression (ECMAScript) with one group",
          [](JsonObject& object, PrintedCheck& check) {
            check.regex = object.text("regex", "");
            refuse_trouble(object, "regex", check.regex, true);
          },
          [](const PrintedCheck& check) { return Json(check.regex); })
      .required();
  block.key("equals", &PrintedCheck::equals, text(), "the value that must be printed, with placeholders").required();
  block.key("what", &PrintedCheck::what, text(), "its name in messages");
  return block;
}

}  // namespace

const Measure* MeasureSpec::find(const std::string& name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Measure& m) { return m.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

std::string unit_of_measure(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kKnown = {{{kStepTime, "s"},
                                                                                    {kTokensRate, "tokens/s"},
                                                                                    {kSamplesRate, "samples/s"},
                                                                                    {kTokens, "tokens"},
                                                                                    {kSamples, "samples"},
                                                                                    {kFlopsRate, "FLOP/s"},
                                                                                    {kPeakMemory, "bytes"}}};
  for (const auto& [known, unit] : kKnown) {
    if (known == name) return std::string(unit);
  }
  return "";
}

bool is_unit(const std::string& word) {
  return std::any_of(kUnits.begin(), kUnits.end(), [&](const auto& unit) { return unit.name == word; });
}

std::string word_of(MeasureHow how) { return krigtune::word_of(how, kHowWords); }

bool is_path(const std::string& from) { return from != "output" && from != "stdout" && from != "stderr"; }

std::vector<Measure> read_measures(JsonObject& block, const std::string& key) {
  std::vector<Measure> measures;
  if (block.find(key) == nullptr) return measures;
  const JsonObject map = block.object(key);
  for (const auto& [name, written] : map.value().items()) {
    if (name.empty() || is_one_of(name, kReservedNames)) {
      map.fail(name, name.empty() ? "has no name" : "is krigtune's own name", "call it otherwise");
    }
    JsonObject object(written, map.source(), map.pointer(name));
    Measure measure;
    measure.name = name;
    measure_block().read(object, measure);
    measures.push_back(std::move(measure));
  }
  if (measures.empty()) block.fail(key, "measures nothing", "name a metric, or leave it out");
  return measures;
}

std::vector<PrintedCheck> read_checks(JsonObject& block, const std::string& key) {
  std::vector<PrintedCheck> checks;
  const Json* list = block.find(key);
  if (list == nullptr) return checks;
  if (!list->is_array()) block.fail(key, "a list was expected", R"(write [{"regex": "...", "equals": "{dp}"}])");
  for (std::size_t i = 0; i < list->size(); ++i) {
    JsonObject object((*list)[i], block.source(), block.pointer(fmt::format("{}/{}", key, i)));
    PrintedCheck check;
    check_block().read(object, check);
    checks.push_back(std::move(check));
  }
  return checks;
}

Json measures_json(const std::vector<Measure>& measures) {
  if (measures.empty()) return nullptr;
  Json json = Json::object();
  for (const Measure& measure : measures) json[measure.name] = measure_block().written(measure);
  return json;
}

Json checks_json(const std::vector<PrintedCheck>& checks) {
  Json json = Json::array();
  for (const PrintedCheck& check : checks) json.push_back(check_block().written(check));
  return json;
}

Json measures_schema() { return schema::map(measure_block().schema()); }
Json checks_schema() { return schema::list(check_block().schema()); }

namespace {

constexpr double kMostMeasuredSteps = 1e5;
constexpr double kLeastMeasuredSteps = 3.0;  // a standard error of fewer steps is a guess

}  // namespace

Codec<std::int64_t> warmup_steps_codec() { return integer(from_to(0, kMostMeasuredSteps)); }
Codec<std::int64_t> measure_steps_codec() { return integer(from_to(kLeastMeasuredSteps, kMostMeasuredSteps)); }

Measure measure_from_text(const std::string& text, const std::string& named) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0) {
    throw UserError(fmt::format("{}: '{}' has no name", named, text), "write NAME=REGEX, as in 'loss=loss: ([0-9.]+)'");
  }
  Measure measure;
  measure.name = text.substr(0, sign);
  measure.pattern = text.substr(sign + 1);
  if (is_one_of(measure.name, kReservedNames)) {
    throw UserError(fmt::format("{}: '{}' is krigtune's own name", named, measure.name), "call it otherwise");
  }
  if (const auto trouble = trouble_with(measure.pattern, true)) {
    throw UserError(fmt::format("{}: {}: {}", named, measure.name, trouble->what), trouble->hint);
  }
  return measure;
}

}  // namespace krigtune::trial
