#include <algorithm>
#include <string>
#include <typeinfo>
#include <vector>

#include "fuzz/fuzz.h"
#include "programs/krigtune/arguments.h"
#include "programs/krigtune/command.h"

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Reads every option in every way in which commands read theirs.
void read_all(const krigtune::cli::Command& command, const krigtune::cli::Arguments& arguments) {
  const boost::program_options::options_description options = krigtune::cli::options_of(command);
  for (const auto& option : options.options()) {
    const std::string& name = option->long_name();
    if (option->semantic()->max_tokens() == 0) {
      static_cast<void>(arguments.flag(name));
      continue;
    }
    const auto* typed = dynamic_cast<const boost::program_options::typed_value_base*>(option->semantic().get());
    if (typed != nullptr && typed->value_type() == typeid(std::vector<std::string>)) {
      static_cast<void>(arguments.texts(name));
      continue;
    }
    try {
      static_cast<void>(arguments.integer(name, 1, krigtune::cli::kMostTrials));
    } catch (const krigtune::UserError&) {
    }
    try {
      static_cast<void>(arguments.positive_number(name));
    } catch (const krigtune::UserError&) {
    }
    try {
      static_cast<void>(arguments.list(name));
    } catch (const krigtune::UserError&) {
    }
  }
}

}  // namespace

// What is typed behind `krigtune`, a word a line; lines that begin with KRIGTUNE_ are variables of the environment.
KRIGTUNE_FUZZ(options) {
  std::vector<std::string> words = lines_of(text);
  krigtune::cli::Environment environment;
  const auto is_variable = [](const std::string& word) { return word.starts_with("KRIGTUNE_"); };
  for (const std::string& word : words) {
    if (is_variable(word))
      environment[word.substr(0, word.find('='))] = word.substr(std::min(word.find('='), word.size() - 1) + 1);
  }
  std::erase_if(words, is_variable);
  static_cast<void>(krigtune::cli::unknown_variables(environment));
  if (words.empty()) return;
  static const std::vector<krigtune::cli::Command> all = krigtune::cli::commands();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& command) { return command.name == words.front(); });
  const krigtune::cli::Command& command = found == all.end() ? all.front() : *found;
  read_all(command, krigtune::cli::Arguments(command, {words.begin() + 1, words.end()}, environment));
}
