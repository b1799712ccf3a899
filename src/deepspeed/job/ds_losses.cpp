// Finds losses in the output of training scripts. There is no standard format, but these are known:
//
//   step 3 loss 6.43, Loss: 6.43, loss = 6.43     scripts that people write; DeepSpeedExamples
//   loss tensor(6.43, device='cuda:0')            the same from a script that prints the tensor
//   iter 0: loss 10.9884, time 5.12ms, mfu ..     nanoGPT, train.py ("step 0: train loss .., val loss .." evaluates)
//   | lm loss: 6.430000E+00 | loss scale: 1.0 |   Megatron-LM and Megatron-DeepSpeed, training.py, training_log
//   {'loss': 6.43, 'grad_norm': .., 'epoch': ..}  Hugging Face Trainer, PrinterCallback and ProgressCallback; numbers
//                                                 in quotes from transformers 5 on
//   30%|###  | 3/10 [00:01<00:03, 1.9it/s, loss=6.43]   tqdm, with set_postfix; its states end in carriage returns
//
// Any prefix ("[rank0]: ", "[1,0]<stdout>:", a date) is ignored. One step may have several lines, of ranks and of
// micro-steps, and their mean is the step's loss. Which lines belong to one step follows from the step number in them
// or, failing that, from the number of lines per step.
#include "deepspeed/job/ds_losses.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/json.h"
#include "core/text.h"
#include "trial/trial_files.h"

namespace krigtune::deepspeed {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool skip(std::string_view& text, std::string_view word) {
  if (text.substr(0, word.size()) != word) return false;
  text.remove_prefix(word.size());
  return true;
}

struct Number {
  double value;
  double resolution;
};

// The precision of "6.43" is 0.01, of "6.430000e+00" 1e-6, of "7" 1.
double resolution_of(std::string_view digits) {
  const std::size_t exponent_at = digits.find('e');
  int exponent = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view text = digits.substr(exponent_at + 1);
    skip(text, "+");
    std::from_chars(text.data(), text.data() + text.size(), exponent);
  }
  const std::string_view mantissa = digits.substr(0, exponent_at);
  const std::size_t point = mantissa.find('.');
  const int decimals = point == std::string_view::npos ? 0 : static_cast<int>(mantissa.size() - point - 1);
  return std::pow(10.0, exponent - decimals);
}

// Between the word and its number there may be blanks, one of ":=", quotes, an arrow, "tensor(" or a bracket.
std::optional<Number> number_behind(std::string_view text) {
  const auto skip_all = [&](std::string_view characters) {
    text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
  };
  skip_all("'\"");
  skip_all(" \t");
  for (const std::string_view word : {"->", "is ", ":", "="}) {
    if (skip(text, word)) break;
  }
  skip_all(" \t'\"");
  if (!skip(text, "tensor(")) skip(text, "[");
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const auto length = static_cast<std::size_t>(end - text.data());
  if (length < text.size() && (is_letter(text[length]) || text[length] == '/')) return std::nullopt;
  return Number{value, std::isfinite(value) ? resolution_of(text.substr(0, length)) : 0.0};
}

// Returns the word that ends before `at`: "val" of "val_loss", "lm" of "lm loss".
std::string_view word_before(std::string_view line, std::size_t at) {
  while (at > 0 && (line[at - 1] == ' ' || line[at - 1] == '_' || line[at - 1] == '-')) --at;
  std::size_t begin = at;
  while (begin > 0 && is_letter(line[begin - 1])) --begin;
  return line.substr(begin, at - begin);
}

std::optional<std::int64_t> integer_at(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  return number;
}

// Reads a tqdm line: "30%|###  | 3/10 [00:01<00:03, 1.9it/s, loss=6.43]".
std::optional<std::int64_t> step_of_bar(std::string_view line) {
  const bool has_rate = line.find("it/s") != std::string_view::npos || line.find("s/it") != std::string_view::npos;
  const std::size_t bracket = line.find(" [");
  if (!has_rate || bracket == std::string_view::npos) return std::nullopt;
  const std::size_t slash = line.rfind('/', bracket);
  if (slash == std::string_view::npos) return std::nullopt;
  std::size_t begin = slash;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  return integer_at(line.substr(begin, slash - begin));
}

// Reads "step 3", "iteration        3/     100", "global_step=3", "batch: 3".
std::optional<std::int64_t> step_in(std::string_view line) {
  for (const std::string_view word : {"iteration", "iter", "step", "batch"}) {
    for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
      std::string_view rest = line.substr(at + word.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t:=#['\""), rest.size()));
      if (const auto step = integer_at(rest)) return step;
    }
  }
  return std::nullopt;
}

std::vector<ReportedLoss> reports_in(std::string_view output) {
  std::vector<ReportedLoss> reports;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find_first_of("\r\n"), output.size());
    if (const auto loss = loss_in_line(output.substr(0, end))) reports.push_back(*loss);
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return reports;
}

// Returns one value for each step that is named, in the order of the output; all values if any line names no step.
std::vector<double> by_named_step(const std::vector<ReportedLoss>& reports) {
  struct Step {
    std::int64_t number;
    double sum;
    int count;
  };
  std::vector<Step> steps;
  const bool named = std::all_of(reports.begin(), reports.end(), [](const auto& one) { return one.step.has_value(); });
  for (const ReportedLoss& report : reports) {
    const auto same =
        named ? std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.number == *report.step; })
              : steps.end();
    if (same == steps.end()) {
      steps.push_back({report.step.value_or(0), report.value, 1});
    } else if (report.is_bar) {
      *same = {same->number, report.value, 1};
    } else {
      same->sum += report.value;
      same->count += 1;
    }
  }
  std::vector<double> values;
  for (const Step& step : steps) values.push_back(step.sum / step.count);
  return values;
}

std::vector<double> means_of_groups(const std::vector<double>& values, std::size_t size) {
  std::vector<double> means;
  for (std::size_t begin = 0; begin + size <= values.size(); begin += size) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
    means.push_back(std::accumulate(first, first + static_cast<std::ptrdiff_t>(size), 0.0) / static_cast<double>(size));
  }
  return means;
}

// Exactly one more step runs than is timed, and some or all of its lines may be missing.
std::size_t lines_of_a_step(std::size_t lines, std::int64_t steps) {
  const auto timed = static_cast<std::size_t>(std::max<std::int64_t>(steps, 1));
  const std::size_t each = (lines + timed) / (timed + 1);
  return each >= 1 && lines >= each * timed ? each : 1;
}

void cut(DsLosses& losses, std::int64_t steps_due) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(steps_due, 0));
  if (losses.values.size() > most) losses.values.resize(most);
}

}  // namespace

std::optional<ReportedLoss> loss_in_line(std::string_view raw) {
  constexpr std::array<std::string_view, 7> kEvaluation = {"val",        "valid", "validation", "eval",
                                                           "evaluation", "test",  "dev"};
  constexpr std::array<std::string_view, 6> kAuxiliary = {"aux", "auxiliary", "balance", "balancing", "z", "mtp"};
  constexpr std::string_view kLoss = "loss";
  const std::string line = lower_case(raw);
  std::optional<ReportedLoss> found;
  for (std::size_t at = line.find(kLoss); at != std::string::npos; at = line.find(kLoss, at + 1)) {
    if (at > 0 && (is_letter(line[at - 1]) || is_digit(line[at - 1]))) continue;
    const std::string_view before = word_before(line, at);
    if (is_one_of(before, kEvaluation)) return std::nullopt;
    if (found || is_one_of(before, kAuxiliary)) continue;
    const auto number = number_behind(std::string_view(line).substr(at + kLoss.size()));
    if (number) found = ReportedLoss{number->value, number->resolution, std::nullopt, false};
  }
  // The Trainer's last line is its mean over the run.
  if (!found || line.find("train_runtime") != std::string::npos) return std::nullopt;
  found->step = step_of_bar(line);
  found->is_bar = found->step.has_value();
  if (!found->step) found->step = step_in(line);
  return found;
}

DsLosses losses_in(std::string_view output, std::int64_t steps, std::int64_t steps_due) {
  const std::vector<ReportedLoss> reports = reports_in(output);
  DsLosses losses;
  if (reports.empty()) return losses;
  for (const ReportedLoss& report : reports) losses.resolution = std::max(losses.resolution, report.resolution);
  const std::vector<double> values = by_named_step(reports);
  losses.values = means_of_groups(values, lines_of_a_step(values.size(), steps));
  const auto count = static_cast<std::int64_t>(losses.values.size());
  losses.interval = std::max<std::int64_t>(1, steps / count);
  cut(losses, steps_due);
  return losses;
}

DsLosses losses_in_monitor(const std::filesystem::path& file, std::int64_t steps_due) {
  DsLosses losses;
  std::string_view text;
  const std::string content = trial::read_tail(file, trial::kMostJobFileBytes);
  for (text = content; !text.empty();) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t comma = row.find(',');
    if (comma == std::string_view::npos) continue;
    double value = 0.0;
    const auto [last, error] = std::from_chars(row.data() + comma + 1, row.data() + row.size(), value);
    if (error == std::errc()) losses.values.push_back(value);
  }
  cut(losses, steps_due);
  return losses;
}

void write_losses(const DsLosses& losses, Json& result) {
  if (losses.values.empty()) return;
  result["losses"] = Json::array();
  for (const double loss : losses.values) {
    result["losses"].push_back(std::isfinite(loss) ? Json(loss) : Json(nullptr));
  }
  result["loss_resolution"] = json_number(losses.resolution);
  result["loss_interval"] = losses.interval;
}

DsLosses read_losses(const std::filesystem::path& result_json) {
  DsLosses losses;
  const Json result = json_or_discarded(trial::read_tail(result_json, trial::kMostJobFileBytes));
  const auto values = result.is_object() ? result.find("losses") : result.end();
  if (values == result.end() || !values->is_array()) return losses;
  for (const Json& value : *values) {
    losses.values.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  const auto number = [&](const char* key, double fallback) {
    const auto found = result.find(key);
    return found != result.end() && found->is_number() ? found->get<double>() : fallback;
  };
  losses.resolution = std::max(0.0, number("loss_resolution", 0.0));
  losses.interval = std::max<std::int64_t>(1, std::llround(std::min(number("loss_interval", 1.0), 1e6)));
  return losses;
}

}  // namespace krigtune::deepspeed
