#include "programs/krigtune/command_line.h"

int main(int argc, char** argv) {
  const krigtune::SystemClock clock;
  return krigtune::cli::run_command_line({argv + 1, argv + argc}, krigtune::cli::process_console(clock, argv[0]));
}
