// The help is made from the declarations of commands and options, so that nothing is written twice.
#include "programs/krigtune/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace krigtune::cli {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kHelpWidth = 80;
constexpr const char* kHelpAll = "help-all";

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

// What every command takes; the usual help of a command with many options names them in a line.
constexpr std::array<const char*, 6> kOptionsOfAll = {"json", "quiet", "verbose", "log-file", "help", kHelpAll};

bool is_usual(const Command& command, const po::option_description& option) {
  const std::string& name = option.long_name();
  return std::ranges::find(kOptionsOfAll, name) == kOptionsOfAll.end() &&
         std::ranges::find(command.rare_options, name) == command.rare_options.end();
}

// "vary a parameter; may be repeated": up to the first full stop, behind which the details are.
std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

// A term, and its meaning in a column of its own. A long term has a line of its own.
std::string option_lines(const std::string& term, const std::string& meaning, std::size_t width) {
  const std::string indented = in_lines(meaning, width + 4);
  if (term.size() > width) return fmt::format("  {}\n{:{}}{}\n", term, "", width + 4, indented);
  return fmt::format("  {:<{}}  {}\n", term, width, indented);
}

std::string options_text(const Command& command, HelpExtent extent) {
  constexpr std::size_t kWidestTerm = 22;
  const po::options_description options = options_of(command);
  std::vector<std::pair<std::string, std::string>> shown;  // term, meaning
  for (const auto& option : options.options()) {
    if (extent == HelpExtent::kAll) {
      if (option->long_name() == kHelpAll && command.rare_options.empty()) continue;  // it is --help
      shown.emplace_back(option_text(*option), option_meaning(*option));
    } else if (is_usual(command, *option)) {
      shown.emplace_back(option_text(*option), first_sentence(option->description()));
    }
  }
  std::size_t width = 0;
  for (const auto& [term, meaning] : shown) {
    if (term.size() <= kWidestTerm) width = std::max(width, term.size());
  }
  std::string text;
  for (const auto& [term, meaning] : shown) text += option_lines(term, meaning, width);
  return text;
}

}  // namespace

std::string option_term(const po::option_description& option) {
  const std::string display = option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  return manual::option_term(display.size() == 2 && display[0] == '-' ? display[1] : '\0', option.long_name(),
                             option.format_parameter());
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
      "krigtune finds the fastest way to train a given model on given devices. It leaves out configurations that "
      "cannot fit in memory, measures those with the largest expected improvement, and learns from each result.");
}

std::string exit_code_text() {
  return refilled(
      "Exit codes: 0 done; 1 nothing fits in memory, no trial succeeded, or the best is slower than required; 2 bad "
      "usage or input; 3 the environment lacks something; 4 internal error; 130 interrupted.");
}

std::string precedence_text() {
  return refilled(
      "An option's value comes from the command line, the environment variable KRIGTUNE_<OPTION> (if it is not empty), "
      "the session file or the default, in this order; --show-config shows which.");
}

std::string version_text() { return fmt::format("krigtune {}\n", KRIGTUNE_VERSION); }

std::string general_help() {
  std::string text = fmt::format("{}\nUsage: krigtune COMMAND [options]\n\nCommands:\n", purpose_text());
  constexpr std::size_t kSummaryColumn = 20;
  for (const Command& command : commands()) {
    text += fmt::format("  {:<16}  {}\n", call_of(command), in_lines(command.summary, kSummaryColumn));
  }
  const std::string more =
      "krigtune COMMAND --help documents a command, --help-all all of its options. krigtune --version prints the "
      "version.";
  return fmt::format("{}\n{}\n{}\n{}", text, refilled(more), precedence_text(), exit_code_text());
}

std::string help_of(const Command& command, HelpExtent extent) {
  const bool is_whole = extent == HelpExtent::kAll || command.rare_options.empty();
  std::string text = fmt::format("Usage: krigtune {} [options]\n\n", call_of(command));
  text += refilled(fmt::format("{}.", command.summary));
  if (*command.details != '\0') text += "\n" + refilled(command.details);
  text += "\nOptions:\n" + options_text(command, is_whole ? HelpExtent::kAll : extent);
  if (is_whole) return text;
  return text + refilled(fmt::format("Also --json, -q (--quiet), -v (--verbose), --log-file FILE, -h (--help). "
                                     "krigtune {} --help-all explains all {} options.",
                                     command.name, options_of(command).options().size()));
}

std::string command_line_reference() {
  std::string text =
      "# Command line\n\nWhat `--help-all` prints. `--help` leaves out the options that few need, so that it fits one "
      "screen.\n\n## krigtune\n\n```text\n" +
      general_help() + "```\n";
  for (const Command& command : commands()) {
    text += fmt::format("\n## krigtune {}\n\n```text\n{}```\n", command.name, help_of(command, HelpExtent::kAll));
  }
  return text;
}

}  // namespace krigtune::cli
