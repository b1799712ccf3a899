#include <csignal>

#include "programs/krigtune/command_line.h"

int main(int argc, char** argv) {
  // Where a limit of the shell on the size of files is met (ulimit -f), the write fails and says so, and the journal
  // keeps its whole lines; as the system would have it, the process would be killed in the middle of one.
  std::signal(SIGXFSZ, SIG_IGN);
  const krigtune::SystemClock clock;
  return krigtune::cli::run_command_line({argv + 1, argv + argc}, krigtune::cli::process_console(clock, argv[0]));
}
