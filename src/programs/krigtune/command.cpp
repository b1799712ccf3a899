// Help is made from the declarations of the commands and of their options; nothing is written twice.
#include "programs/krigtune/command.h"

#include <fmt/format.h>

#include <algorithm>

namespace krigtune::cli {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kHelpWidth = 100;

// Words of `text`, from column `indent` on, in lines of at most kHelpWidth.
std::string in_lines(const std::string& text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      result += fmt::format("\n{:{}}", "", indent);
      column = indent;
    } else if (column > indent) {
      result += " ";
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

// "-q, --quiet", "    --out DIR"
std::string option_text(const po::option_description& option) {
  const std::string display = option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  const std::string before = display.size() == 2 ? fmt::format("{}, ", display) : "    ";
  const std::string value = option.format_parameter();
  return fmt::format("{}--{}{}{}", before, option.long_name(), value.empty() ? "" : " ", value);
}

std::string options_text(const po::options_description& options) {
  std::size_t width = 0;
  for (const auto& option : options.options()) width = std::max(width, option_text(*option).size());
  std::string text;
  for (const auto& option : options.options()) {
    const std::optional<std::string> variable = variable_of(*option);
    const std::string meaning = option->description() + (variable ? fmt::format("; also {}", *variable) : "");
    text += fmt::format("  {:<{}}  {}\n", option_text(*option), width, in_lines(meaning, width + 4));
  }
  return text;
}

// "tune SESSION", "doctor"
std::string call_of(const Command& command) {
  return *command.operand == '\0' ? command.name : fmt::format("{} {}", command.name, command.operand);
}

std::string exit_codes() {
  return "Exit codes: 0 done; 1 nothing fits in memory, no trial is ok, or slower than asked for;\n"
         "2 bad usage or input; 3 the environment lacks something; 4 internal error; 130 interrupted.\n";
}

std::string precedence() {
  return "A value comes from the command line, else from the variable KRIGTUNE_<OPTION> (an empty one counts as\n"
         "unset), else from the session file, else it is the default; --show-config says which.\n\n";
}

}  // namespace

std::string version_text() { return fmt::format("krigtune {}\n", KRIGTUNE_VERSION); }

std::string general_help() {
  std::string text =
      "krigtune finds the fastest way to train a given model on given devices: it proposes configurations by\n"
      "expected improvement, leaves out those that cannot fit in memory, measures the others and learns.\n\n"
      "Usage: krigtune COMMAND [options]\n\nCommands:\n";
  for (const Command& command : commands()) {
    text += fmt::format("  {:<16}  {}\n", call_of(command), command.summary);
  }
  return text + "\n  krigtune COMMAND --help  documents a command\n  krigtune --version       prints the version\n\n" +
         precedence() + exit_codes();
}

std::string help_of(const Command& command) {
  std::string text = fmt::format("Usage: krigtune {} [options]\n\n", call_of(command));
  text += fmt::format("{}.\n", command.summary);
  if (*command.details != '\0') text += fmt::format("\n{}\n", command.details);
  return text + "\nOptions:\n" + options_text(options_of(command));
}

std::string command_line_reference() {
  std::string text = "# Command line\n\nWhat `--help` prints.\n\n## krigtune\n\n```text\n" + general_help() + "```\n";
  for (const Command& command : commands()) {
    text += fmt::format("\n## krigtune {}\n\n```text\n{}```\n", command.name, help_of(command));
  }
  return text;
}

}  // namespace krigtune::cli
