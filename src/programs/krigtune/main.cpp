#include <csignal>

#include "programs/krigtune/command_line.h"

int main(int argc, char** argv) {
  // If a write exceeds the shell's limit on file sizes (ulimit -f), it should fail with an error, so that the journal
  // keeps whole lines. By default the system would kill the process in the middle of a line.
  std::signal(SIGXFSZ, SIG_IGN);
  const krigtune::SystemClock clock;
  return krigtune::cli::run_command_line({argv + 1, argv + argc}, krigtune::cli::process_console(clock, argv[0]));
}
