// krigtune help: prints the same as --help, because many users try this name first.
#include <fmt/format.h>

#include <ostream>

#include "core/error.h"
#include "core/text.h"
#include "programs/krigtune/document.h"

namespace krigtune::cli {
namespace {

constexpr const char* kAll = "all";

void declare_help(boost::program_options::options_description& options) {
  options.add_options()(kAll, "explain all options of COMMAND, as krigtune COMMAND --help-all does");
}

std::string help_text_for(const std::string& name, HelpExtent extent) {
  if (name.empty()) return general_help();
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (name == command.name) return help_of(command, extent);
    names.emplace_back(command.name);
  }
  throw UserError(fmt::format("help: unknown command '{}'", name), suggestion(name, names));
}

int help(const Context& context) {
  const std::string text =
      help_text_for(context.arguments.operand(), context.arguments.flag(kAll) ? HelpExtent::kAll : HelpExtent::kUsual);
  if (!context.arguments.flag("json")) {
    context.console.out << text;
    return ExitCode::kDone;
  }
  Json json = new_document("help");
  json["text"] = text;
  print(context, json);
  return ExitCode::kDone;
}

}  // namespace

Command help_command(const std::vector<Command>& others) {
  Command command{
      "help",
      "[COMMAND]",
      "Documents krigtune or one of its commands",
      "krigtune help COMMAND prints what krigtune COMMAND --help prints, and with --all what --help-all prints.",
      declare_help,
      help};
  for (const Command& other : others) command.operand_words.emplace_back(other.name);
  return command;
}

}  // namespace krigtune::cli
