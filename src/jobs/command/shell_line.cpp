// Reads a line as POSIX.1-2024, "Shell Command Language", 2.2 (quoting), 2.3 (tokens) and 2.9.1 (simple commands), as
// far as a line expands nothing.
#include "jobs/command/shell_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/text.h"
#include "jobs/command/command.h"

namespace krigtune::jobs {
namespace {

using ShellWords = std::vector<std::string>;

constexpr std::array<std::string_view, 5> kShells = {"bash", "dash", "ksh", "sh", "zsh"};
constexpr std::string_view kAllWords = "exec \"$@\"";

// What a shell does with an unquoted character, if it is more than a part of a word; "" if it is not.
std::string meaning_of(char c) {
  switch (c) {
    case '|':
      return "a pipe (|)";
    case '&':
      return "a command in the background (&)";
    case '<':
    case '>':
      return fmt::format("a redirection ({})", c);
    case '(':
    case ')':
      return "parentheses";
    case '$':
      return "a variable or a substitution ($)";
    case '`':
      return "a substitution (`)";
    case '*':
    case '?':
      return fmt::format("a pattern ({})", c);
    case '{':
    case '}':
      return "braces";
    default:
      return "";
  }
}

// The commands of a line, or why it is not read.
struct LineCommands {
  std::vector<ShellWords> commands;
  std::string why_not;
};

// Splits a line into commands and their words. Nothing is expanded.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  LineCommands read() {
    while (at_ < line_.size() && found_.why_not.empty()) see(line_[at_]);
    end_word();
    const bool is_open = needs_command_ && command_.empty();
    end_command();
    if (is_open && found_.why_not.empty()) found_.why_not = "an empty command";
    return std::move(found_);
  }

 private:
  void see(char c) {
    if (c == ' ' || c == '\t') {
      end_word();
      ++at_;
    } else if (c == ';' || c == '\n' || line_.substr(at_, 2) == "&&") {
      end_word();
      if (command_.empty() && c != '\n') found_.why_not = "an empty command";
      needs_command_ = c == '&' || (needs_command_ && command_.empty());
      end_command();
      at_ += c == '&' ? 2 : 1;
    } else if (c == '\'' || c == '"') {
      take_quoted(c);
    } else if (c == '\\') {
      take_escaped();
    } else if ((!word_ && (c == '#' || c == '!')) || (c == '~' && may_be_home())) {
      found_.why_not = fmt::format("a word that begins with {}", c);
    } else if (const std::string meaning = meaning_of(c); !meaning.empty()) {
      found_.why_not = meaning;
    } else {
      put(c);
      ++at_;
    }
  }

  // Where a shell takes ~ for a home directory.
  bool may_be_home() const { return !word_ || word_->empty() || word_->back() == '=' || word_->back() == ':'; }

  void put(char c) { word_ = word_.value_or("") + c; }

  // Within double quotes a backslash precedes $, `, ", \ and the end of a line; before others it is one itself.
  void take_quoted(char quote) {
    word_ = word_.value_or("");
    for (++at_; at_ < line_.size() && line_[at_] != quote; ++at_) {
      char c = line_[at_];
      if (quote == '"' && (c == '$' || c == '`')) {
        found_.why_not = meaning_of(c);
        return;
      }
      const bool is_escape = quote == '"' && c == '\\' && at_ + 1 < line_.size() &&
                             std::string_view("$`\"\\\n").find(line_[at_ + 1]) != std::string_view::npos;
      if (is_escape) c = line_[++at_];
      if (!is_escape || c != '\n') put(c);
    }
    if (at_ == line_.size()) found_.why_not = fmt::format("a quote ({}) without an end", quote);
    ++at_;
  }

  // A backslash before the end of a line continues it.
  void take_escaped() {
    if (at_ + 1 == line_.size()) found_.why_not = "a backslash at its end";
    if (at_ + 1 < line_.size() && line_[at_ + 1] != '\n') put(line_[at_ + 1]);
    at_ += 2;
  }

  void end_word() {
    if (word_) command_.push_back(std::move(*word_));
    word_.reset();
  }

  void end_command() {
    end_word();
    if (!command_.empty()) found_.commands.push_back(std::move(command_));
    command_.clear();
  }

  const std::string_view line_;
  std::size_t at_ = 0;
  std::optional<std::string> word_;  // empty: no word has begun
  ShellWords command_;
  bool needs_command_ = false;  // behind &&
  LineCommands found_;
};

std::size_t assignments_at(const ShellWords& words, std::size_t begin) {
  std::size_t end = begin;
  while (end < words.size() && is_assignment(words[end])) ++end;
  return end;
}

// Returns whether the command only exports variables, which it appends, or sets options of the shell.
bool prepares(const ShellWords& command, ShellWords& variables) {
  if (command.front() == "set") return true;
  if (command.front() != "export" || assignments_at(command, 1) != command.size()) return false;
  variables.insert(variables.end(), command.begin() + 1, command.end());
  return true;
}

// What a shell starts: variables and words of a program.
struct StartedProgram {
  ShellWords variables;
  ShellWords words;
  std::string why_not;
};

StartedProgram program_of(const std::string& line) {
  LineCommands read = LineReader(line).read();
  StartedProgram program;
  program.why_not = read.why_not;
  if (!program.why_not.empty()) return program;
  if (read.commands.empty()) return {{}, {}, "no command"};
  for (std::size_t i = 0; i + 1 < read.commands.size(); ++i) {
    if (!prepares(read.commands[i], program.variables))
      return {{}, {}, fmt::format("several commands (the first is {})", read.commands[i].front())};
  }
  const ShellWords& last = read.commands.back();
  std::size_t begin = assignments_at(last, 0);
  program.variables.insert(program.variables.end(), last.begin(), last.begin() + static_cast<std::ptrdiff_t>(begin));
  if (begin < last.size() && last[begin] == "exec") ++begin;
  program.words.assign(last.begin() + static_cast<std::ptrdiff_t>(begin), last.end());
  constexpr std::array<std::string_view, 12> kOfTheShell = {".",  "case", "cd",     "eval",  "export", "for",
                                                            "if", "set",  "source", "until", "while",  "ulimit"};
  if (program.words.empty() || is_one_of(program.words.front(), kOfTheShell))
    program.why_not = "no program, but a command of the shell";
  return program;
}

// Where the words say sh -c LINE.
struct ShellAt {
  std::size_t program = 0;
  std::size_t line = 0;
  bool is_login = false;
};

bool is_shell(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return is_one_of(name, kShells);
}

// Behind a script the word is an argument.
std::optional<ShellAt> find_shell(const ShellWords& words) {
  const auto found = std::find_if(words.begin(), words.end(), is_shell);
  if (std::any_of(words.begin(), found, [](const std::string& word) { return word.ends_with(".py"); }))
    return std::nullopt;
  ShellAt at{static_cast<std::size_t>(found - words.begin()), 0};
  bool takes_line = false;
  for (at.line = at.program + 1; at.line < words.size() && !takes_line; ++at.line) {
    const std::string& option = words[at.line];
    if (option.size() < 2 || option.front() != '-') return std::nullopt;
    const bool is_long = option[1] == '-';
    takes_line = !is_long && option.find('c') != std::string::npos;
    at.is_login = at.is_login || option == "--login" || (!is_long && option.find('l') != std::string::npos);
  }
  return takes_line && at.line < words.size() ? std::optional(at) : std::nullopt;
}

}  // namespace

PlainCommand without_shell(const std::vector<std::string>& words) {
  const std::optional<ShellAt> shell = find_shell(words);
  const bool is_plain = !shell || trimmed(words[shell->line]) == kAllWords;
  if (is_plain) return {words, "", ""};
  const auto word_at = [&](std::size_t i) { return words.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::string name = join(ShellWords(word_at(shell->program), word_at(shell->line)), " ");
  if (shell->line + 1 < words.size()) return {words, "", name + ": words follow its line"};
  const StartedProgram program = program_of(words[shell->line]);
  if (!program.why_not.empty()) return {words, "", fmt::format("{}: its line has {}", name, program.why_not)};
  PlainCommand plain;
  plain.words.assign(words.begin(), word_at(shell->program));
  const bool is_first = assignments_at(words, 0) == shell->program && !shell->is_login;
  if (shell->is_login) {
    plain.words.insert(plain.words.end(), word_at(shell->program), word_at(shell->line));
    plain.words.insert(plain.words.end(), {std::string(kAllWords), words[shell->program]});
  }
  if (!program.variables.empty() && !is_first) plain.words.emplace_back("env");
  plain.words.insert(plain.words.end(), program.variables.begin(), program.variables.end());
  plain.words.insert(plain.words.end(), program.words.begin(), program.words.end());
  plain.remark = fmt::format("the line of {} is one plain command: its words are read, and trials run them {}", name,
                             shell->is_login ? "in the same shell" : "without that shell");
  return plain;
}

}  // namespace krigtune::jobs
