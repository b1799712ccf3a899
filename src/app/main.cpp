#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "krigtune/cli/command_line.h"

namespace {

int terminal_width() {
  constexpr int kUsual = 80;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// https://no-color.org
bool colors_are_welcome() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal != nullptr && std::string(terminal) == "dumb";
  return (no_color == nullptr || *no_color == '\0') && !is_dumb;
}

}  // namespace

int main(int argc, char** argv) {
  const krigtune::SystemClock clock;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  krigtune::Console console{std::cout, std::cerr, clock, error ? std::filesystem::path(argv[0]) : program};
  console.typed_as = argv[0];
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  console.colors = colors_are_welcome();
  console.width = terminal_width();
  return krigtune::run_command_line({argv + 1, argv + argc}, console);
}
