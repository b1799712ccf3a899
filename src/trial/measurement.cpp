// A line belongs to the step whose iteration its rank printed last in the same stream. If no iteration is measured, the
// n-th value of a rank belongs to its n-th step. Only a rank's first value of a step counts. Derived values are
//
//   step time = samples / (samples/s) = tokens / (tokens/s)
//   samples/s = samples / step time,   tokens/s = tokens / step time
//
// with the samples of a step from the output or else from the configuration, and tokens = samples * sequence length.
#include "trial/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json.h"
#include "core/text.h"
#include "trial/failure_text.h"
#include "trial/job_log.h"

namespace krigtune::trial {
namespace {

constexpr std::size_t kMostQuoted = 300;

std::string quoted(const std::string& line) { return printable(line).substr(0, kMostQuoted); }

Json object_of(const std::string& line) {
  if (line.find('{') == std::string::npos) return nullptr;
  Json json = python_json_or_discarded(line, OddNumbers::kText);
  return json.is_object() ? json : Json(nullptr);
}

// Looks up the whole key or, failing that, its dotted parts.
const Json* at_key(const Json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  const auto whole = object.find(key);
  if (whole != object.end()) return &*whole;
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto inner = object.find(key.substr(0, dot));
  return inner == object.end() ? nullptr : at_key(*inner, key.substr(dot + 1));
}

void collect_keys(const Json& object, const std::string& prefix, std::set<std::string>& names) {
  constexpr std::size_t kMost = 100;
  for (const auto& [key, value] : object.items()) {
    if (names.size() >= kMost) return;
    if (value.is_object()) {
      collect_keys(value, prefix + key + ".", names);
    } else {
      names.insert(prefix + key);
    }
  }
}

std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool in_quotes = false;
  for (const char c : line) {
    if (c == '"') {
      in_quotes = !in_quotes;
    } else if (c == ',' && !in_quotes) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) field = trimmed(field);
  return fields;
}

// Returns the text behind a word "loss": "0.5" in "'train_loss': 0.5", "nan" in "lm loss=nan". Empty if there is none:
// in "loss scale: 1.0" the number is another's.
std::string text_of_loss(const std::string& line) {
  constexpr std::string_view kLossWord = "loss";
  constexpr std::string_view kBetween = " \t:='\"";
  const std::string text = lower_case(line);
  for (std::size_t at = text.find(kLossWord); at != std::string::npos; at = text.find(kLossWord, at + 1)) {
    const std::size_t begin = text.find_first_not_of(kBetween, at + kLossWord.size());
    if (begin == std::string::npos || begin == at + kLossWord.size()) continue;
    const std::size_t end =
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.+-", begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (word.starts_with("nan.")) return "nan";  // progress bars of Lightning print nan.0
    if (printed_number(word)) return word;
  }
  return "";
}

bool must_be_positive(const std::string& name) { return !unit_of_measure(name).empty(); }

}  // namespace

// A line, parsed only once for all metrics that need it parsed.
struct Measurement::Record {
  explicit Record(const std::string& text, const std::vector<std::string>* columns) : line(text), header(columns) {}
  const Json& object() {
    if (!json) json = object_of(line);
    return *json;
  }
  const std::vector<std::string>& fields() {
    if (row.empty()) row = csv_fields(line);
    return row;
  }
  const std::string& line;
  const std::vector<std::string>* header;
  std::optional<Json> json;
  std::vector<std::string> row;
};

Measurement::Measurement(MeasureSpec spec, MeasureFacts facts) : spec_(std::move(spec)), facts_(facts) {
  for (const Measure& measure : spec_.metrics) {
    Metric metric;
    const bool is_regular = measure.how == MeasureHow::kRegex || measure.how == MeasureHow::kWall;
    if (is_regular) metric.pattern.emplace(measure.pattern);
    metrics_.push_back(std::move(metric));
  }
  for (const PrintedCheck& check : spec_.checks) checks_.emplace_back(check.regex);
  checked_.assign(checks_.size(), false);
}

int Measurement::rank_of(int stream, const std::string& line) const {
  const std::optional<RankLabel> label = rank_label(line);
  const bool is_sure = label && (line.front() == '[' || facts_.has_plain_labels);
  return is_sure ? label->rank : -1 - stream;
}

std::vector<LineMatch> Measurement::take_line(int stream, const std::string& line,
                                              const std::vector<std::size_t>& metrics, bool checks) {
  std::vector<LineMatch> found;
  const auto header = csv_headers_.find(stream);
  Record record(line, header == csv_headers_.end() ? nullptr : &header->second);
  for (const std::size_t metric : metrics) {
    if (auto match = find(metric, line, record)) found.push_back(std::move(*match));
  }
  if (!found.empty()) {
    const auto is_iteration = [&](std::size_t metric) { return spec_.metrics[metric].name == kIteration; };
    const Where where{stream, rank_of(stream, line), std::any_of(metrics.begin(), metrics.end(), is_iteration)};
    // The iteration comes first, because the rest of the line belongs to it.
    std::stable_partition(found.begin(), found.end(),
                          [&](const LineMatch& match) { return is_iteration(match.metric); });
    for (const LineMatch& match : found) {
      const Measure& measure = spec_.metrics[match.metric];
      if (match.value) {
        take_value(match.metric, where, *match.value, line);
      } else if (fault_.empty()) {
        fault_ = fmt::format("'{}' is not a number ({}): {}", match.found.value, measure.name, quoted(line));
      }
    }
  }
  for (std::size_t check = 0; checks && check < checks_.size(); ++check) check_line(check, line, found);
  if (checks) look_for_loss(line);
  return found;
}

std::optional<LineMatch> Measurement::find(std::size_t metric, const std::string& line, Record& record) {
  const Measure& measure = spec_.metrics[metric];
  Metric& state = metrics_[metric];
  if (state.pattern) {
    const auto found = state.pattern->find(line.size() > kMostLineBytes ? line.substr(0, kMostLineBytes) : line);
    if (!found && state.matches == 0) {
      state.unmatched.add(*state.pattern, line);
      ++state.vain;
    }
    if (!found) return std::nullopt;
    const bool is_wall = measure.how == MeasureHow::kWall;
    return LineMatch{metric, false, *found, is_wall ? std::optional(0.0) : printed_number(found->value)};
  }
  const std::optional<std::string> text = measure.how == MeasureHow::kKey      ? text_at_key(metric, record)
                                          : measure.how == MeasureHow::kColumn ? text_in_column(metric, record)
                                                                               : std::nullopt;
  if (!text) return std::nullopt;
  const std::size_t place = std::min(line.rfind(*text), line.size());
  return LineMatch{metric, false, {place, text->size(), place, *text}, printed_number(*text)};
}

std::optional<std::string> Measurement::text_at_key(std::size_t metric, Record& record) {
  const Json* value = at_key(record.object(), spec_.metrics[metric].pattern);
  if (value != nullptr && !value->is_null() && !value->is_structured()) {
    return value->is_string() ? value->get<std::string>() : value->dump();
  }
  Metric& state = metrics_[metric];
  if (state.matches == 0 && record.object().is_object()) {
    collect_keys(record.object(), "", state.names);
    ++state.vain;
  }
  return std::nullopt;
}

std::optional<std::string> Measurement::text_in_column(std::size_t metric, Record& record) {
  if (record.header == nullptr) return std::nullopt;
  const auto column = std::find(record.header->begin(), record.header->end(), spec_.metrics[metric].pattern);
  if (column == record.header->end()) {
    metrics_[metric].names.insert(record.header->begin(), record.header->end());
    ++metrics_[metric].vain;
    return std::nullopt;
  }
  const auto index = static_cast<std::size_t>(column - record.header->begin());
  const bool is_row = index < record.fields().size() && record.fields() != *record.header;
  if (!is_row || record.fields()[index].empty()) return std::nullopt;
  return record.fields()[index];
}

// Some jobs print a loss that is not a number in their first steps, while they look for a scale in fp16.
void Measurement::look_for_loss(const std::string& line) {
  if (spec_.find(kLoss) != nullptr) return;
  const std::string text = text_of_loss(line.substr(0, kMostLineBytes));
  if (text.empty()) return;
  bad_loss_ = std::isfinite(*printed_number(text)) ? "" : quoted(line);
}

void Measurement::check_line(std::size_t check, const std::string& line, std::vector<LineMatch>& found) {
  const auto match = checks_[check].find(line.size() > kMostLineBytes ? line.substr(0, kMostLineBytes) : line);
  if (!match) return;
  found.push_back({check, true, *match, printed_number(match->value)});
  checked_[check] = true;
  const PrintedCheck& wanted = spec_.checks[check];
  const std::optional<double> printed = printed_number(match->value);
  const std::optional<double> intended = printed_number(wanted.equals);
  constexpr double kRounding = 1e-9;
  const bool same = printed && intended ? std::abs(*printed - *intended) <= kRounding * std::abs(*intended)
                                        : trimmed(match->value) == trimmed(wanted.equals);
  if (same || !failed_check_.empty()) return;
  failed_check_ = fmt::format("{}: the program printed {} where {} was intended: {}",
                              wanted.what.empty() ? wanted.regex : wanted.what, trimmed(match->value),
                              trimmed(wanted.equals), quoted(line));
}

void Measurement::take_csv_header(int stream, const std::string& line) { csv_headers_[stream] = csv_fields(line); }

void Measurement::take_event(int stream, const EventScalar& event, const std::vector<std::size_t>& metrics) {
  for (const std::size_t metric : metrics) {
    if (spec_.metrics[metric].how != MeasureHow::kTag) continue;
    if (spec_.metrics[metric].pattern != event.tag) {
      constexpr std::size_t kMost = 100;
      Metric& state = metrics_[metric];
      if (state.matches == 0 && state.names.size() < kMost) state.names.insert(event.tag);
      if (state.matches == 0) ++state.vain;
      continue;
    }
    const Where where{stream, -1 - stream, true};
    places_[{stream, where.rank}] = {true, {0, static_cast<double>(event.step)}, 0.0, 0.0};
    take_value(metric, where, event.value, fmt::format("{} {} at step {}", event.tag, event.value, event.step));
  }
}

std::string Measurement::trouble_with(const Measure& measure, double value) const {
  if (measure.how == MeasureHow::kWall) return "";
  if (!std::isfinite(value)) {
    return measure.name == kLoss ? "the loss is not a number" : fmt::format("'{}' is {}", measure.name, value);
  }
  const bool may_be_zero = measure.kind != MeasureKind::kLine || measure.name == kIteration;
  const bool is_known = must_be_positive(measure.name) || measure.name == kIteration;
  if (is_known && (value < 0.0 || (value == 0.0 && !may_be_zero))) {
    return fmt::format("'{}' is {}, and must be {}", measure.name, number_text(value),
                       may_be_zero ? "0 or more" : "above 0");
  }
  return "";
}

void Measurement::take_value(std::size_t metric, const Where& where, double printed, const std::string& line) {
  const Measure& measure = spec_.metrics[metric];
  // Without a device whose allocator counts, frameworks print 0 or -1.
  if (measure.name == kPeakMemory && printed <= 0.0) {
    metrics_[metric].says_nothing = true;
    return;
  }
  const std::string trouble = trouble_with(measure, printed);
  if (!trouble.empty()) {
    if (fault_.empty()) fault_ = trouble + ": " + quoted(line);
    return;
  }
  Metric& state = metrics_[metric];
  const double value = printed * measure.times * (measure.per == MeasureScope::kGpu ? facts_.ranks : 1.0);
  state.last = value;
  state.greatest = state.matches == 0 ? value : std::max(state.greatest, value);
  ++state.matches;
  if (measure.name == kIteration) take_iteration(where, value);
  if (measure.kind == MeasureKind::kFinal) return;
  const std::optional<StepKey> step = step_of(metric, where);
  if (!step) return;
  if (measure.how == MeasureHow::kWall) {
    arrivals_[where.stream].push_back({metric, where.rank, *step});
  } else {
    take_step(metric, where, value, *step);
  }
}

// Ranks without labels print the same iterations at slightly different times. A new epoch begins only when the
// iteration falls back to where it started, by at least kApart.
void Measurement::take_iteration(const Where& where, double iteration) {
  constexpr double kApart = 3.0;
  Place& place = places_[{where.stream, where.rank}];
  if (!place.counts) {
    place = {true, {0, iteration}, iteration, iteration};
    return;
  }
  if (iteration <= place.first && place.greatest - iteration >= kApart) {
    ++place.step.lap;
    place.greatest = iteration;
  }
  place.step.iteration = iteration;
  place.greatest = std::max(place.greatest, iteration);
}

// Empty if no step has begun.
std::optional<StepKey> Measurement::step_of(std::size_t metric, const Where& where) {
  if (!where.has_iteration) {
    Before& before = before_[{metric, where.stream, where.rank}];
    return StepKey{0, static_cast<double>(before.count++)};
  }
  const auto place = places_.find({where.stream, where.rank});
  if (place == places_.end() || !place->second.counts) return std::nullopt;
  return place->second.step;
}

void Measurement::take_step(std::size_t metric, const Where& where, double value, StepKey step) {
  Metric& state = metrics_[metric];
  const bool is_difference =
      spec_.metrics[metric].kind == MeasureKind::kCumulative || spec_.metrics[metric].how == MeasureHow::kWall;
  if (!is_difference) {
    state.series.add(where.rank, step, value);
    return;
  }
  Before& before = before_[{metric, where.stream, where.rank}];
  if (before.value && before.step == step) return;
  const std::optional<double> last = std::exchange(before.value, value);
  const StepKey from = std::exchange(before.step, step);
  const bool is_wall = spec_.metrics[metric].how == MeasureHow::kWall;  // a printed value has its factor already
  const double difference = (last ? value - *last : 0.0) * (is_wall ? spec_.metrics[metric].times : 1.0);
  if (!(difference > 0.0)) return;  // the first value, a repetition, or a restart
  const double apart = from.lap == step.lap ? step.iteration - from.iteration : 1.0;
  state.series.add(where.rank, step, difference / (where.has_iteration ? std::max(apart, 1.0) : 1.0));
}

// Lines that arrive within one look are assumed to have arrived at even intervals.
void Measurement::end_of_look(int stream, double written_s) {
  const std::vector<Arrival> arrivals = std::exchange(arrivals_[stream], {});
  std::map<std::pair<std::size_t, int>, std::vector<StepKey>> by_rank;
  for (const Arrival& arrival : arrivals) {
    std::vector<StepKey>& steps = by_rank[{arrival.metric, arrival.rank}];
    if (steps.empty() || steps.back() != arrival.step) steps.push_back(arrival.step);
  }
  for (const auto& [of, steps] : by_rank) {
    const auto& [metric, rank] = of;
    const std::optional<double> last = before_[{metric, stream, rank}].value;
    const bool has_iteration = places_.contains({stream, rank});
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool is_last = i + 1 == steps.size();
      if (!last && !is_last) continue;  // its arrival time is unknown
      const double share = static_cast<double>(i + 1) / static_cast<double>(steps.size());
      const double arrived_s = last ? *last + share * (written_s - *last) : written_s;
      take_step(metric, {stream, rank, has_iteration}, arrived_s, steps[i]);
    }
  }
}

void Measurement::forget(int stream) {
  csv_headers_.erase(stream);
  arrivals_.erase(stream);
}

}  // namespace krigtune::trial
