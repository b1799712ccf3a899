#include "jobs/session/job_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "jobs/command/shell_line.h"
#include "jobs/session/job_paths.h"
#include "jobs/session/varied_command.h"
#include "space/configuration.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

constexpr const char* kExampleMetric = "tokens/s ([0-9.]+)";

// Spells "--micro-batch-size" and "model.Micro_Batch_Size" like the table of parameters.
std::string as_in_table(std::string name) {
  const std::size_t first = name.find_first_not_of("-+");
  name = first == std::string::npos ? "" : lower_case(name.substr(first));
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name = name.substr(dot + 1);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// A word of the command that has a value, in the FLAG syntax of --vary.
struct ValueWord {
  std::string flag;
  std::string value;  ///< "": a switch
};

std::optional<ValueWord> value_word(const std::vector<std::string>& command, std::size_t i) {
  const std::string& word = command[i];
  const std::size_t equals = word.find('=');
  const bool is_flag = word.size() > 1 && word.front() == '-' && !space::is_number(space::value_from_text(word));
  if (!is_flag) {
    if (equals == std::string::npos || equals == 0) return std::nullopt;
    const bool is_variable = i < leading_assignments(command);
    const std::string name = word.substr(0, equals);
    return ValueWord{is_variable ? "$" + name : name.substr(std::min(name.find_first_not_of('+'), name.size())) + "=",
                     word.substr(equals + 1)};
  }
  if (equals != std::string::npos) return ValueWord{word.substr(0, equals), word.substr(equals + 1)};
  const bool has_value = i + 1 < command.size() && command[i + 1].rfind('-', 0) != 0;
  return ValueWord{word, has_value ? command[i + 1] : ""};
}

// Returns powers of two around a count, or 0 to 3 for a stage.
std::string values_around(const std::string& parameter, const std::string& own) {
  const space::WellKnownParameter* known = space::find_well_known(parameter);
  if (own.empty() || space::value_from_text(own).index() == space::Value(false).index()) return "true,false";
  if (parameter == space::kZeroStage) return "0,1,2,3";
  const std::optional<std::int64_t> count = space::integer_of(space::value_from_text(own));
  if (!count || *count < 1) return known != nullptr && !count ? own : "1,2,4,8";
  const std::int64_t least = std::max<std::int64_t>(1, *count / 4);
  return fmt::format("{},{},{},{}", least, 2 * least, 4 * least, 8 * least);
}

bool is_number_text(const std::string& text) { return space::is_number(space::value_from_text(text)); }

// Returns an option for any flag with a number, for commands without known names.
std::string any_option(const std::vector<std::string>& command) {
  for (std::size_t i = script_word(command) + 1; i < command.size(); ++i) {
    const std::optional<ValueWord> word = value_word(command, i);
    if (!word || !is_number_text(word->value)) continue;
    const std::string name = as_in_table(word->flag.substr(0, word->flag.find('=')));
    const std::optional<std::int64_t> count = space::integer_of(space::value_from_text(word->value));
    const double number = space::as_number(space::value_from_text(word->value));
    const std::string values = count || number <= 0.0 ? values_around("", word->value)
                                                      : fmt::format("{:.0e}..{:.0e}:log", number / 10, number * 10);
    return fmt::format("{}={}:{}", name, word->flag, values);
  }
  return "batch_size=--batch-size:8,16,32";
}

std::vector<std::string> example_options(const std::vector<std::string>& command) {
  std::vector<std::string> options;
  for (const LooksLike& word : known_words(command)) options.push_back(word.option);
  return options.empty() ? std::vector<std::string>{any_option(command)} : options;
}

}  // namespace

std::vector<LooksLike> known_words(const std::vector<std::string>& command) {
  std::vector<LooksLike> found;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::optional<ValueWord> word = value_word(command, i);
    if (!word) continue;
    std::string name = word->flag.front() == '$' ? lower_case(word->flag.substr(1)) : word->flag;
    name = as_in_table(name.back() == '=' ? name.substr(0, name.size() - 1) : name);
    const std::string parameter(space::well_known_name(name));
    const bool is_twice = std::any_of(found.begin(), found.end(), [&](const LooksLike& other) {
      return other.parameter == parameter || other.flag == word->flag;
    });
    if (parameter.empty() || is_twice) continue;
    found.push_back(
        {word->flag, parameter, fmt::format("{}={}:{}", parameter, word->flag, values_around(parameter, word->value))});
  }
  return found;
}

std::string example_line(const std::string& typed_as, const std::vector<std::string>& command,
                         std::vector<std::string> vary, const std::string& metric) {
  if (vary.empty()) vary = example_options(command);
  std::vector<std::string> words;
  for (const std::string& option : vary) words.insert(words.end(), {"--vary", option});
  words.insert(words.end(), {"--metric", metric.empty() ? kExampleMetric : metric, "--"});
  words.insert(words.end(), command.begin(), command.end());
  return fmt::format("{} {}", typed_as, shell_line(words));
}

void refuse_unknown_job(const std::string& typed_as, const std::vector<std::string>& command,
                        const std::string& metric) {
  if (const std::string why_not = without_shell(command).why_not; !why_not.empty()) {
    throw UserError("the command within a shell is not read: " + why_not,
                    "put that line into a script, or write its words after -- without the shell");
  }
  std::vector<std::string> alike;
  for (const LooksLike& word : known_words(command)) {
    alike.push_back(fmt::format("{} looks like {}", word.flag, word.parameter));
  }
  throw UserError(
      fmt::format("{}: no recipe knows this job{}{}", job_name(command), alike.empty() ? "" : "; ", join(alike, ", ")),
      fmt::format("say what may vary{}: {}", metric.empty() ? " and which printed number counts" : "",
                  example_line(typed_as, command, {}, metric)));
}

}  // namespace krigtune::jobs
