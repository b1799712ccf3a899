#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "krigtune/cli/command_line.h"

namespace {

krigtune::TerminalSize terminal_size() {
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

}  // namespace

int main(int argc, char** argv) {
  const krigtune::SystemClock clock;
  std::error_code error;
  krigtune::Console console{std::cout, std::cerr, clock, std::filesystem::read_symlink("/proc/self/exe", error)};
  console.typed_as = argv[0];
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  console.colors = colors_are_welcome();
  console.width = terminal_size().width;
  console.terminal_size = &terminal_size;
  return krigtune::run_command_line({argv + 1, argv + argc}, console);
}
