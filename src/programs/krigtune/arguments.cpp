#include "programs/krigtune/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/text.h"
#include "jobs/command/shell_line.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kOperands = "operands";
constexpr std::string_view kPrefix = "KRIGTUNE_";

// The properties of an option that Boost's values do not have.
struct Declared {
  Words words;
  bool typed_only = false;  // the environment cannot set it
  virtual ~Declared() = default;
};
template <class T>
struct DeclaredValue final : po::typed_value<T>, Declared {
  DeclaredValue() : po::typed_value<T>(nullptr) {}
};

// The caller takes ownership, as with po::value.
template <class T>
po::typed_value<T>* declared_value(const char* name, bool typed_only, const Words& words) {
  auto value = std::make_unique<DeclaredValue<T>>();
  value->value_name(name);
  value->words = words;
  value->typed_only = typed_only;
  return value.release();
}

const Declared* declared_of(const po::option_description& option) {
  return dynamic_cast<const Declared*>(option.semantic().get());
}

// Abbreviated options are refused: a script with --tri would break as soon as another option begins so.
constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;

std::string variable_name(const std::string& option) {
  std::string name = fmt::format("{}{}", kPrefix, option);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<std::string> option_names(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

bool takes_command(const Command& command) { return *command.command_option != '\0'; }

// An option of the user's own program stands before krigtune where "--" was forgotten.
std::string hint_for_unknown(const Command& command, const std::string& name, const std::vector<std::string>& known,
                             bool has_dashes) {
  if (has_dashes || !takes_command(command) || !nearest_names(name, known).empty()) return suggestion(name, known);
  return fmt::format("if it belongs to your own program, put -- before the program: krigtune {} -- python train.py {}",
                     command.name, name);
}

po::variables_map parse(const Command& command, const std::vector<std::string>& words, bool has_dashes) {
  const po::options_description visible = options_of(command);
  po::options_description all;
  all.add(visible).add_options()(kOperands, po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add(kOperands, -1);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(words).options(all).positional(positional).style(kStyle).run(), values);
  } catch (const po::unknown_option& error) {
    const std::string name = error.get_option_name();
    throw UserError(fmt::format("{}: unknown option '{}'", command.name, name),
                    hint_for_unknown(command, name, option_names(visible), has_dashes));
  } catch (const po::error& error) {
    throw UserError(fmt::format("{}: {}", command.name, error.what()),
                    fmt::format("see krigtune {} --help", command.name));
  }
  return values;
}

// Returns where the user's own command begins; krigtune does not interpret its words.
std::vector<std::string>::const_iterator end_of_own_words(const Command& command,
                                                          const std::vector<std::string>& words) {
  return takes_command(command) ? std::find(words.begin(), words.end(), "--") : words.end();
}

// Returns ", as in krigtune results runs/train", with the run directory that was used last; "" if there is none in the
// usual place.
std::string latest_run_for(const Command& command) {
  std::error_code error;
  std::pair<std::filesystem::file_time_type, std::filesystem::path> latest = {std::filesystem::file_time_type::min(),
                                                                              ""};
  for (const auto& entry : std::filesystem::directory_iterator("runs", error)) {
    const auto used = std::filesystem::last_write_time(entry.path() / "session.json", error);
    if (!error) latest = std::max(latest, {used, entry.path()});
  }
  return latest.second.empty() ? "" : fmt::format(", as in krigtune {} {}", command.name, latest.second.string());
}

std::string only_operand(const Command& command, const std::vector<std::string>& words, const po::variables_map& values,
                         bool is_of_a_job) {
  std::vector<std::string> operands;
  if (values.count(kOperands) > 0) operands = values[kOperands].as<std::vector<std::string>>();
  const std::string wanted = command.operand;
  const bool may_be_missing =
      wanted.empty() || wanted.front() == '[' || is_of_a_job;  // then a session is made from the command
  const std::string hint =
      fmt::format("usage: krigtune {}{}{} [options]", command.name, wanted.empty() ? "" : " ", wanted);
  const bool has_a_command = !takes_command(command) && std::find(words.begin(), words.end(), "--") != words.end();
  if (wanted == "SESSION" && operands.size() > 1 && has_a_command) {
    throw UserError(
        fmt::format("{}: it takes a session, and no command behind '--'", command.name),
        fmt::format("write a session for the command: krigtune init session.json -- COMMAND; then krigtune {} "
                    "session.json",
                    command.name));
  }
  if (operands.size() > (wanted.empty() ? 0U : 1U)) {
    throw UserError(fmt::format("{}: unexpected argument '{}'", command.name, operands.back()), hint);
  }
  if (!may_be_missing && operands.empty() && values.count("help") == 0 && values.count("help-all") == 0) {
    throw UserError(fmt::format("{}: {} is missing", command.name, wanted),
                    wanted == "DIR" ? hint + latest_run_for(command) : hint);
  }
  return operands.empty() ? "" : operands.front();
}

}  // namespace

po::value_semantic* value_named(const char* name, const Words& words) {
  return declared_value<std::string>(name, false, words);
}

po::value_semantic* typed_value_named(const char* name, const Words& words) {
  return declared_value<std::string>(name, true, words);
}

po::value_semantic* repeated_value_named(const char* name) {
  return declared_value<std::vector<std::string>>(name, true, {})->composing();
}

Words words_of(const po::option_description& option) {
  const Declared* declared = declared_of(option);
  return declared == nullptr ? Words() : declared->words;
}

std::optional<std::string> variable_of(const po::option_description& option) {
  const Declared* declared = declared_of(option);
  if (declared == nullptr || declared->typed_only) return std::nullopt;  // flags must be typed
  return variable_name(option.long_name());
}

std::vector<std::string> unknown_variables(const Environment& environment) {
  std::vector<std::string> known = {"CUDA", "CUDA_RELEASE", "INSTALL",
                                    "MPI",  "TESTS",        "WERROR"};  // of the build: CMakeLists.txt
  std::map<std::string, std::string> typed_only;                        // variable, option
  for (const Command& command : commands()) {
    const po::options_description options = options_of(command);
    for (const auto& option : options.options()) {
      const std::string rest = variable_name(option->long_name()).substr(kPrefix.size());
      if (variable_of(*option)) {
        known.push_back(rest);
      } else {
        typed_only[rest] = option->long_name();
      }
    }
  }
  known.emplace_back("CACHE");           // where runner/local_machine.h keeps what it measured
  known.emplace_back("CUDA_LIBRARIES");  // where engine/cuda/runtime/library_search.h looks first
  known.emplace_back("EXECUTABLE");      // which program the Python package starts
  known.emplace_back("PROGRAM");         // which program a loader has started, see core/short_program.h
  known.emplace_back("STEPS_FILE");      // where the trial reports its steps in which this process runs
  known.emplace_back("TOKEN");           // the secret of a job whose ranks krigtune-bench joins
  known.emplace_back("VECTOR_UNIT");     // which instructions this process uses, see core/processor.h
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) {
    if (name.rfind(kPrefix, 0) != 0 || name.rfind("KRIGTUNE_TEST_", 0) == 0) continue;
    const std::string rest = name.substr(kPrefix.size());
    if (std::find(known.begin(), known.end(), rest) != known.end()) continue;
    const std::string nearest = nearest_name(rest, known);
    const auto option = typed_only.find(rest);
    lines.push_back(
        option != typed_only.end()
            ? fmt::format("environment variable {} is ignored; type --{}", name, option->second)
            : fmt::format("environment variable {} is not an option of krigtune; {}", name,
                          nearest.empty() ? "unset it" : fmt::format("did you mean {}{}?", kPrefix, nearest)));
  }
  return lines;
}

po::options_description options_of(const Command& command) {
  po::options_description options;
  command.declare(options);
  options.add_options()("json", "print one JSON document on stdout, and nothing else");
  options.add_options()("quiet,q", "no progress, only warnings and errors");
  options.add_options()("verbose,v", "more detail on stderr");
  options.add_options()("log-file", value_named("FILE"), "append what -v prints to FILE");
  options.add_options()("help,h", "print this help");
  options.add_options()("help-all", "print this help with all options");
  return options;
}

Arguments::Arguments(const Command& command, const std::vector<std::string>& words, const Environment& environment)
    : words_(words),
      typed_(parse(command, {words.begin(), end_of_own_words(command, words)},
                   end_of_own_words(command, words) != words.end())) {
  const auto dashes = end_of_own_words(command, words_);
  if (dashes != words_.cend()) {
    jobs::PlainCommand plain = jobs::without_shell({dashes + 1, words_.cend()});
    users_command_ = std::move(plain.words);
    command_remark_ = std::move(plain.remark);
  }
  const bool is_of_a_job =
      !users_command_.empty() || (takes_command(command) && typed_.count(command.command_option) > 0);
  operand_ = only_operand(command, words_, typed_, is_of_a_job);
  const po::options_description options = options_of(command);
  for (const auto& option : options.options()) {
    const std::optional<std::string> variable = variable_of(*option);
    if (!variable || flag(option->long_name())) continue;
    const auto found = environment.find(*variable);
    if (found != environment.end() && !found->second.empty()) from_environment_[option->long_name()] = found->second;
  }
}

bool Arguments::flag(const std::string& name) const { return typed_.count(name) > 0; }

Arguments::Origin Arguments::origin(const std::string& name) const {
  if (flag(name)) return Origin::kTyped;
  return from_environment_.count(name) > 0 ? Origin::kEnvironment : Origin::kNone;
}

std::string Arguments::named(const std::string& name) const {
  return origin(name) == Origin::kEnvironment ? variable_name(name) : "--" + name;
}

std::optional<std::string> Arguments::text(const std::string& name) const {
  switch (origin(name)) {
    case Origin::kTyped:
      return typed_[name].as<std::string>();
    case Origin::kEnvironment:
      return from_environment_.at(name);
    case Origin::kNone:
      break;
  }
  return std::nullopt;
}

std::string Arguments::text(const std::string& name, const std::string& fallback) const {
  return text(name).value_or(fallback);
}

std::vector<std::string> Arguments::texts(const std::string& name) const {
  return flag(name) ? typed_[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

std::vector<std::string> Arguments::list(const std::string& name) const {
  std::vector<std::string> items;
  const std::optional<std::string> typed = text(name);
  if (!typed) return items;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = typed->find(',', begin);
    items.push_back(typed->substr(begin, comma - begin));
    if (items.back().empty())
      throw UserError(fmt::format("{}: an empty name in '{}'", named(name), *typed), "write a,b,c");
    if (comma == std::string::npos) return items;
    begin = comma + 1;
  }
}

std::optional<std::int64_t> Arguments::integer(const std::string& name, std::int64_t min, std::int64_t max) const {
  const std::optional<std::string> typed = text(name);
  if (!typed) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(typed->data(), typed->data() + typed->size(), number);
  if (error != std::errc() || end != typed->data() + typed->size() || number < min || number > max) {
    throw UserError(fmt::format("{}: '{}' is not accepted", named(name), *typed),
                    fmt::format("write a whole number from {} to {}", min, max));
  }
  return number;
}

std::optional<double> Arguments::positive_number(const std::string& name) const {
  const std::optional<std::string> typed = text(name);
  if (!typed) return std::nullopt;
  double number = 0.0;
  const auto [end, error] = std::from_chars(typed->data(), typed->data() + typed->size(), number);
  if (error != std::errc() || end != typed->data() + typed->size() || !(number > 0.0) || !std::isfinite(number)) {
    throw UserError(fmt::format("{}: '{}' is not accepted", named(name), *typed), "write a number above 0");
  }
  return number;
}

}  // namespace krigtune::cli
