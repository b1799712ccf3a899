#include "programs/krigtune/command_line.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <new>
#include <ostream>
#include <system_error>

#include "core/error.h"
#include "core/processor.h"
#include "core/text.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {
namespace {

std::optional<Command> find_command(const std::string& name) {
  for (const Command& command : commands()) {
    if (name == command.name) return command;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_command(const std::string& name) {
  std::vector<std::string> known = {"--help", "--version"};
  for (const Command& command : commands()) known.emplace_back(command.name);
  const bool is_option = name.substr(0, 1) == "-";
  throw UserError(fmt::format("unknown {} '{}'", is_option ? "option" : "command", name), suggestion(name, known));
}

Verbosity verbosity_of(const Arguments& arguments) {
  if (arguments.flag("quiet") && arguments.flag("verbose"))
    throw UserError("-q and -v cannot be combined", "leave one out");
  if (arguments.flag("quiet")) return Verbosity::kQuiet;
  return arguments.flag("verbose") ? Verbosity::kVerbose : Verbosity::kNormal;
}

// Catches the errors of every command.
int guarded(Log& log, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception&) {
    const Trouble trouble = current_trouble();
    log.error(trouble.message);
    return trouble.exit_code;
  }
}

int run_command(const Command& command, const std::vector<std::string>& words, const Console& console) {
  const Arguments arguments(command, words, console.environment);
  if (arguments.flag("help") || arguments.flag("help-all")) {
    console.out << help_of(command, arguments.flag("help-all") ? HelpExtent::kAll : HelpExtent::kUsual);
    return ExitCode::kDone;
  }
  Log log(console, verbosity_of(arguments), arguments.text("log-file"), arguments.named("log-file"));
  for (const std::string& warning : unknown_variables(console.environment)) log.warning(warning);
  const int code = guarded(log, [&] {
    log.detail(fmt::format("vector unit: {}", to_string(chosen_vector_unit())));
    return command.run({console, arguments, log});
  });
  console.out.flush();
  if (console.out.good()) return code;
  log.error("the results could not be written to standard output; is its disk full?");
  return ExitCode::kEnvironment;
}

int dispatch(const std::vector<std::string>& arguments, const Console& console) {
  if (arguments.empty()) {
    console.err << general_help();
    return ExitCode::kBadInput;
  }
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h") {
    console.out << general_help();
    return ExitCode::kDone;
  }
  if (first == "--version") {
    console.out << version_text();
    return ExitCode::kDone;
  }
  const std::optional<Command> command = find_command(first);
  if (!command) refuse_command(first);
  return run_command(*command, {arguments.begin() + 1, arguments.end()}, console);
}

}  // namespace

Trouble current_trouble() {
  try {
    throw;
  } catch (const UserError& error) {
    return {ExitCode::kBadInput, error.what()};
  } catch (const EnvironmentError& error) {
    return {ExitCode::kEnvironment, error.what()};
  } catch (const std::filesystem::filesystem_error& error) {  // a name that is too long, a loop of links, no permission
    return {is_shortage(error.code().value()) ? ExitCode::kEnvironment : ExitCode::kBadInput,
            fmt::format("cannot use '{}': {}; check the path and its permissions", error.path1().string(),
                        error.code().message())};
  } catch (const std::system_error& error) {  // a thread that cannot be started
    return {ExitCode::kEnvironment,
            fmt::format("the system refused: {}; end other programs, or raise the limit on processes", error.what())};
  } catch (const std::bad_alloc&) {
    return {ExitCode::kEnvironment,
            "this machine's memory, or the limit of this process, is exhausted; ask for less, or raise the limit"};
  } catch (const std::exception& error) {
    return {ExitCode::kInternalError,
            fmt::format("internal error: {}; please report it with the command that led here", error.what())};
  }
}

std::vector<Command> commands() {
  std::vector<Command> all = {doctor_command(),  init_command(),    recipes_command(),   model_command(),
                              measure_command(), plan_command(),    tune_command(),      watch_command(),
                              ask_command(),     tell_command(),    serve_command(),     compare_command(),
                              predict_command(), results_command(), report_command(),    diagnose_command(),
                              export_command(),  repair_command(),  completion_command()};
  all.push_back(help_command(all));
  return all;
}

int run_command_line(const std::vector<std::string>& arguments, const Console& console) {
  Log log(console, Verbosity::kNormal, std::nullopt);
  return guarded(log, [&] { return dispatch(arguments, console); });
}

}  // namespace krigtune::cli
