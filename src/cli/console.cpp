// What this process has from outside, read here and nowhere else.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "krigtune/cli/command_line.h"

namespace krigtune {
namespace {

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
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
  console.width = terminal_width();
  console.environment = own_variables();
  return console;
}

}  // namespace krigtune
