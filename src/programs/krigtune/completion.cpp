// krigtune completion: prints what a shell needs to complete command lines, from the declarations of commands and
// options.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/error.h"
#include "core/text.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {
namespace {

namespace po = boost::program_options;

enum class Completed { kNothing, kFile, kDirectory, kWords };  // how a value is completed

struct CompletedValue {
  Completed kind = Completed::kNothing;
  Words words;
};

struct CompletedOption {
  std::string name;     // "quiet"
  char letter;          // 'q'; '\0': none
  std::string value;    // "FILE"; "": none
  std::string meaning;  // without its remarks
  CompletedValue completed;
};

// Returns how a value with this name in the help is completed: "[SESSION]", "FILE", "DIR".
CompletedValue completed_value(const std::string& called, const Words& words) {
  if (!words.words.empty()) return {Completed::kWords, words};
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return called.find(name) != std::string::npos; });
  };
  if (is_one_of({"FILE", "SESSION"})) return {Completed::kFile, {}};
  if (is_one_of({"DIR", "FOLDER"})) return {Completed::kDirectory, {}};
  return {};
}

// Cuts the text before "; also KRIGTUNE_OUT" or " (default: 1)".
std::string without_remarks(const std::string& meaning) {
  return meaning.substr(0, std::min({meaning.find("; "), meaning.find(" ("), meaning.find(". ")}));
}

std::vector<CompletedOption> completed_options(const Command& command) {
  std::vector<CompletedOption> completed;
  const po::options_description options = options_of(command);
  for (const auto& option : options.options()) {
    const std::string letter = option->canonical_display_name(po::command_line_style::allow_dash_for_short);
    const std::string value = option->format_parameter();
    completed.push_back({option->long_name(), letter.size() == 2 ? letter[1] : '\0', value,
                         without_remarks(option->description()), completed_value(value, words_of(*option))});
  }
  return completed;
}

CompletedValue completed_operand(const Command& command) {
  return completed_value(command.operand, {command.operand_words, false});
}

bool takes_users_command(const Command& command) { return *command.command_option != '\0'; }

// --- bash

std::string bash_action(const CompletedValue& value) {
  switch (value.kind) {
    case Completed::kNothing:
      return ":";
    case Completed::kFile:
      return "_krigtune_files";
    case Completed::kDirectory:
      return "_krigtune_directories";
    case Completed::kWords:
      break;
  }
  return fmt::format("_krigtune_{} '{}'", value.words.several ? "list" : "words", join(value.words.words, " "));
}

// Placeholders: the words of the first position, the commands that take the user's own command, the cases of option
// values, and the cases of everything else.
constexpr char kBashScript[] = R"script(# bash completion of krigtune. In ~/.bashrc: eval "$(krigtune completion bash)"
_krigtune_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }}
_krigtune_list() {{
  local before=
  [[ $current != *,* ]] || before=${{current%,*}},
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${{current##*,}}")
  compopt -o nospace
}}
_krigtune_files() {{
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}}
_krigtune_directories() {{
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen -d -- "$current")
}}
_krigtune() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}} i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _krigtune_words '{}'
    return
  fi
  if [[ $current == '=' ]]; then # bash takes --name=value for three words
    current=
  elif [[ $previous == '=' ]] && ((COMP_CWORD > 2)); then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do # behind "--" stands a command of the user's own
    if [[ ${{COMP_WORDS[i]}} == -- && $command =~ ^({})$ ]]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else _krigtune_files; fi
      return
    fi
  done
  case "$command $previous" in
{}  esac
  case $command in
{}  esac
}}
complete -F _krigtune krigtune
)script";

std::string bash_script() {
  std::string values;
  std::string rest;
  std::vector<std::string> names = {"--help", "--version"};
  std::vector<std::string> launchers;
  for (const Command& command : commands()) {
    names.emplace_back(command.name);
    if (takes_users_command(command)) launchers.emplace_back(command.name);
    std::vector<std::string> options;
    for (const CompletedOption& option : completed_options(command)) {
      options.push_back("--" + option.name);
      if (option.value.empty()) continue;
      values += fmt::format("    '{} --{}') {}; return ;;\n", command.name, option.name, bash_action(option.completed));
    }
    rest += fmt::format("    {})\n      if [[ $current == -* ]]; then _krigtune_words '{}'\n      else {}; fi ;;\n",
                        command.name, join(options, " "), bash_action(completed_operand(command)));
  }
  return fmt::format(kBashScript, join(names, " "), join(launchers, "|"), values, rest);
}

// --- zsh

// Escapes text for a description of _arguments, which is in single quotes and brackets.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const CompletedValue& value) {
  switch (value.kind) {
    case Completed::kNothing:
      return "";
    case Completed::kFile:
      return "_files";
    case Completed::kDirectory:
      return "_files -/";
    case Completed::kWords:
      break;
  }
  const std::string words = join(value.words.words, " ");
  return value.words.several ? fmt::format("_sequence compadd - {}", words) : fmt::format("({})", words);
}

std::string zsh_option(const CompletedOption& option) {
  const std::string what = fmt::format(
      "[{}]{}", zsh_text(option.meaning),
      option.value.empty() ? "" : fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option.completed)));
  if (option.letter == '\0') {
    return fmt::format("'--{}{}{}'", option.name, option.value.empty() ? "" : "=", what);
  }
  return fmt::format("'(-{0} --{1})'{{-{0},--{1}}}'{2}'", option.letter, option.name, what);
}

// Placeholders: the commands with their summaries, and the case of each command.
constexpr char kZshScript[] = R"script(#compdef krigtune
# zsh completion of krigtune. In ~/.zshrc, after compinit: eval "$(krigtune completion zsh)"
_krigtune() {{
  local curcontext=$curcontext state line
  local -a commands
  commands=(
{}  )
  _arguments -C '(- *)'{{-h,--help}}'[print the help]' '(- *)--version[print the version]' '1:command:->command' '*:: :->rest' && return
  case $state in
  command) _describe command commands ;;
  rest)
    case $line[1] in
{}    esac
    ;;
  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _krigtune "$@"; else compdef _krigtune krigtune; fi
)script";

std::string zsh_script() {
  std::string names;
  std::string cases;
  for (const Command& command : commands()) {
    names += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    cases += fmt::format("    {})\n      _arguments -s", command.name);
    for (const CompletedOption& option : completed_options(command)) {
      cases += fmt::format(" \\\n        {}", zsh_option(option));
    }
    if (*command.operand != '\0') {
      cases += fmt::format(" \\\n        '1:{}:{}'", zsh_text(command.operand), zsh_action(completed_operand(command)));
    }
    if (takes_users_command(command)) cases += " \\\n        '*:: :_normal'";
    cases += "\n      ;;\n";
  }
  return fmt::format(kZshScript, names, cases);
}

// --- fish

std::string fish_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string fish_value(const CompletedValue& value) {
  switch (value.kind) {
    case Completed::kNothing:
      return " -x";
    case Completed::kFile:
      return " -rF";
    case Completed::kDirectory:
      return " -xa '(__fish_complete_directories)'";
    case Completed::kWords:
      break;
  }
  const std::string words = join(value.words.words, " ");
  return value.words.several
             ? fmt::format(R"script( -xa '(__fish_complete_list , "printf \'%s\\n\' {}")')script", words)
             : fmt::format(" -xa '{}'", words);
}

std::string fish_script() {
  std::string script =
      "# fish completion of krigtune: krigtune completion fish > ~/.config/fish/completions/krigtune.fish\n"
      "complete -c krigtune -f\n"
      "complete -c krigtune -n __fish_use_subcommand -s h -l help -d 'print the help'\n"
      "complete -c krigtune -n __fish_use_subcommand -l version -d 'print the version'\n";
  for (const Command& command : commands()) {
    script += fmt::format("complete -c krigtune -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                          fish_text(command.summary));
  }
  for (const Command& command : commands()) {
    const std::string begin = fmt::format("complete -c krigtune -n '__fish_seen_subcommand_from {}'", command.name);
    for (const CompletedOption& option : completed_options(command)) {
      script += fmt::format("{}{} -l {}{} -d '{}'\n", begin,
                            option.letter == '\0' ? "" : fmt::format(" -s {}", option.letter), option.name,
                            option.value.empty() ? "" : fish_value(option.completed), fish_text(option.meaning));
    }
    const CompletedValue operand = completed_operand(command);
    if (operand.kind == Completed::kFile || takes_users_command(command)) script += fmt::format("{} -F\n", begin);
    if (operand.kind == Completed::kDirectory)
      script += fmt::format("{}{}", begin, " -a '(__fish_complete_directories)'\n");
    if (operand.kind == Completed::kWords) {
      script += fmt::format("{} -a '{}'\n", begin, join(operand.words.words, " "));
    }
  }
  return script;
}

// --- the command

struct Shell {
  const char* name;
  std::string (*script)();
};
constexpr Shell kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  return names;
}

void declare_completion(po::options_description& /*options*/) {}

int completion(const Context& context) {
  const std::string& name = context.arguments.operand();
  for (const Shell& shell : kShells) {
    if (name != shell.name) continue;
    context.console.out << shell.script();
    return ExitCode::kDone;
  }
  throw UserError(fmt::format("completion: the shell '{}' is not known", name), suggestion(name, shell_names()));
}

}  // namespace

Command completion_command() {
  return {"completion",
          "SHELL",
          "Prints a script for completion in bash, zsh or fish",
          "The script completes commands, options and files. The Debian package and cmake --install put these scripts "
          "where the shells look for them. Otherwise add this line to ~/.bashrc, or to ~/.zshrc after compinit, or run "
          "it once for fish:\n  eval \"$(krigtune completion bash)\"\n  eval \"$(krigtune completion zsh)\"\n  "
          "krigtune completion fish > ~/.config/fish/completions/krigtune.fish",
          declare_completion,
          completion,
          "",
          shell_names()};
}

}  // namespace krigtune::cli
