// The help is made from the declarations of commands and options, so that nothing is written twice.
#include "programs/krigtune/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace krigtune::cli {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kHelpWidth = 80;

// Breaks the words of `text` into lines of at most kHelpWidth, beginning at column `indent`.
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

// Joins the lines of a paragraph and breaks them again. Empty lines, and lines that begin with a space, stay unchanged.
std::string refilled(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += in_lines(paragraph, 0) + "\n";
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      result += line + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  end_paragraph();
  return result;
}

// Aligns the long names, whether or not an option has a letter.
std::string option_text(const po::option_description& option) {
  const std::string term = option_term(option);
  return term[1] == '-' ? "    " + term : term;
}

std::string options_text(const po::options_description& options) {
  std::size_t width = 0;
  for (const auto& option : options.options()) width = std::max(width, option_text(*option).size());
  std::string text;
  for (const auto& option : options.options()) {
    text += fmt::format("  {:<{}}  {}\n", option_text(*option), width, in_lines(option_meaning(*option), width + 4));
  }
  return text;
}

}  // namespace

std::string option_term(const po::option_description& option) {
  const std::string display = option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  return manual::option_term(display.size() == 2 ? display[1] : '\0', option.long_name(), option.format_parameter());
}

std::string option_meaning(const po::option_description& option) {
  const std::optional<std::string> variable = variable_of(option);
  return fmt::format("{}{}", option.description(), variable ? fmt::format("; also {}", *variable) : "");
}

std::string call_of(const Command& command) {
  return *command.operand == '\0' ? command.name : fmt::format("{} {}", command.name, command.operand);
}

std::string purpose_text() {
  return refilled(
      "krigtune finds the fastest way to train a given model on given devices. It proposes configurations by expected "
      "improvement, leaves out those that cannot fit in memory, measures the others, and learns from each result.");
}

std::string exit_code_text() {
  return refilled(
      "Exit codes: 0 done; 1 nothing fits in memory, no trial succeeded, or the best is slower than required; 2 bad "
      "usage or input; 3 the environment lacks something; 4 internal error; 130 interrupted.");
}

std::string precedence_text() {
  return refilled(
      "The value of an option comes from the command line, else from the environment variable KRIGTUNE_<OPTION> (an "
      "empty one counts as unset), else from the session file, else it is the default; --show-config shows which.");
}

std::string version_text() { return fmt::format("krigtune {}\n", KRIGTUNE_VERSION); }

std::string general_help() {
  std::string text = fmt::format("{}\nUsage: krigtune COMMAND [options]\n\nCommands:\n", purpose_text());
  constexpr std::size_t kSummaryColumn = 20;
  for (const Command& command : commands()) {
    text += fmt::format("  {:<16}  {}\n", call_of(command), in_lines(command.summary, kSummaryColumn));
  }
  const std::string more = "krigtune COMMAND --help documents a command; krigtune --version prints the version.";
  return fmt::format("{}\n{}\n{}\n{}", text, refilled(more), precedence_text(), exit_code_text());
}

std::string help_of(const Command& command) {
  std::string text = fmt::format("Usage: krigtune {} [options]\n\n", call_of(command));
  text += refilled(fmt::format("{}.", command.summary));
  if (*command.details != '\0') text += "\n" + refilled(command.details);
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
