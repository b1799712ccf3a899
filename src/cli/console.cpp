// What this process has from outside, read here and nowhere else.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "krigtune/cli/command_line.h"

namespace krigtune {
namespace {

TerminalSize terminal_size() {
  for (const int file : {STDERR_FILENO, STDOUT_FILENO}) {
    winsize size{};
    if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      return {size.ws_col, size.ws_row > 0 ? size.ws_row : 24};
  }
  return {};
}

// https://no-color.org
bool colors_are_welcome() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && (terminal == nullptr || std::string(terminal) != "dumb");
}

Environment own_variables() {
  Environment variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t sign = text.find('=');
    if (text.rfind("KRIGTUNE_", 0) == 0 && sign != std::string_view::npos) {
      variables.emplace(text.substr(0, sign), text.substr(sign + 1));
    }
  }
  return variables;
}

}  // namespace

Console process_console(const Clock& clock, const std::string& typed_as) {
  std::error_code error;
  Console console{std::cout, std::cerr, clock, std::filesystem::read_symlink("/proc/self/exe", error)};
  console.typed_as = typed_as;
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  console.colors = colors_are_welcome();
  console.width = terminal_size().width;
  console.terminal_size = &terminal_size;
  console.environment = own_variables();
  return console;
}

}  // namespace krigtune
