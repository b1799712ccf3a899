#include "arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "command.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

namespace po = boost::program_options;

constexpr const char* kOperands = "operands";

// Prefixes are not guessed: a script that says --tri would break with the next option that begins so.
constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;

std::vector<std::string> option_names(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

po::variables_map parse(const Command& command, const std::vector<std::string>& words) {
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
                    suggestion(name, option_names(visible)));
  } catch (const po::error& error) {
    throw UserError(fmt::format("{}: {}", command.name, error.what()),
                    fmt::format("see krigtune {} --help", command.name));
  }
  return values;
}

std::string only_operand(const Command& command, const po::variables_map& values) {
  std::vector<std::string> operands;
  if (values.count(kOperands) > 0) operands = values[kOperands].as<std::vector<std::string>>();
  const std::string wanted = command.operand;
  const std::string hint =
      fmt::format("usage: krigtune {}{}{} [options]", command.name, wanted.empty() ? "" : " ", wanted);
  if (operands.size() > (wanted.empty() ? 0U : 1U)) {
    throw UserError(fmt::format("{}: '{}' is too much", command.name, operands.back()), hint);
  }
  if (!wanted.empty() && operands.empty() && values.count("help") == 0) {
    throw UserError(fmt::format("{}: {} is missing", command.name, wanted), hint);
  }
  return operands.empty() ? "" : operands.front();
}

}  // namespace

po::value_semantic* value_named(const char* name) { return po::value<std::string>()->value_name(name); }

po::value_semantic* repeated_value_named(const char* name) {
  return po::value<std::vector<std::string>>()->value_name(name)->composing();
}

po::options_description options_of(const Command& command) {
  po::options_description options;
  command.declare(options);
  options.add_options()("json", "print one JSON document on stdout and nothing else there");
  options.add_options()("quiet,q", "no progress, only warnings and errors");
  options.add_options()("verbose,v", "more detail on stderr");
  options.add_options()("log-file", value_named("FILE"), "append everything that -v would say to FILE");
  options.add_options()("help,h", "print this help");
  return options;
}

Arguments::Arguments(const Command& command, const std::vector<std::string>& words)
    : words_(words), values_(parse(command, words)) {
  operand_ = only_operand(command, values_);
}

bool Arguments::flag(const std::string& name) const { return values_.count(name) > 0; }

std::optional<std::string> Arguments::text(const std::string& name) const {
  if (!flag(name)) return std::nullopt;
  return values_[name].as<std::string>();
}

std::string Arguments::text(const std::string& name, const std::string& fallback) const {
  return text(name).value_or(fallback);
}

std::vector<std::string> Arguments::texts(const std::string& name) const {
  return flag(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

std::vector<std::string> Arguments::list(const std::string& name) const {
  std::vector<std::string> items;
  const std::optional<std::string> typed = text(name);
  if (!typed) return items;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = typed->find(',', begin);
    items.push_back(typed->substr(begin, comma - begin));
    if (items.back().empty()) throw UserError(fmt::format("--{}: an empty name in '{}'", name, *typed), "write a,b,c");
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
    throw UserError(fmt::format("--{}: '{}' is not accepted", name, *typed),
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
    throw UserError(fmt::format("--{}: '{}' is not accepted", name, *typed), "write a number above 0");
  }
  return number;
}

}  // namespace krigtune
