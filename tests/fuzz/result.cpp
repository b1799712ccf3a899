#include "fuzz/fuzz.h"
#include "runner/command_result.h"

KRIGTUNE_FUZZ(result) {
  static_cast<void>(krigtune::runner::interpret_result(text, "speed"));
  static_cast<void>(krigtune::runner::read_command_result(text, "speed"));
}
