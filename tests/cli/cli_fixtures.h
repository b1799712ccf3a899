#pragma once
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/files.h"
#include "programs/krigtune/command_line.h"
#include "trial/temporary_directory.h"

namespace krigtune {

struct Said {
  int code = 0;
  std::string out;
  std::string err;
};

/// Runs the program's command line with a clock that stands still, so that its output does not depend on time.
/// krigtune-bench is looked for beside `program`.
inline Said run_krigtune(const std::vector<std::string>& arguments,
                         const std::filesystem::path& program = "/nowhere/krigtune", const Clock& clock = ManualClock(),
                         const cli::Environment& environment = {}) {
  std::ostringstream out;
  std::ostringstream err;
  cli::Console console{out, err, clock, program};
  console.environment = environment;
  const int code = cli::run_command_line(arguments, console);
  return {code, out.str(), err.str()};
}

/// Does the same with KRIGTUNE_* variables.
inline Said run_with(const cli::Environment& environment, const std::vector<std::string>& arguments) {
  return run_krigtune(arguments, "/nowhere/krigtune", ManualClock(), environment);
}

inline std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// A session over a table of 12 measured configurations, one of which ran out of memory and one of which crashed. The
/// best is stage 2, micro-batch 4: 40.
inline std::filesystem::path replay_session(const TemporaryDirectory& directory, const std::string& more = "") {
  std::string table = "zero_stage,mb,speed,status\n";
  for (int stage = 0; stage < 3; ++stage) {
    for (const int micro_batch : {1, 2, 4, 8}) {
      const bool too_large = stage == 0 && micro_batch == 8;
      const bool crashes = stage == 1 && micro_batch == 8;
      const int speed = 10 * (micro_batch == 8   ? 3
                              : micro_batch == 4 ? 2
                                                 : 1) +
                        (stage == 2 && micro_batch == 4 ? 20 : 0);
      table += std::to_string(stage) + "," + std::to_string(micro_batch) + ",";
      table += too_large || crashes ? "," : std::to_string(speed) + ",";
      table += too_large ? "oom\n" : crashes ? "crash\n" : "ok\n";
    }
  }
  directory.write("table.csv", table);
  return directory.write("job.json", R"({
    "space": {"zero_stage": [0, 1, 2], "micro_batch": [1, 2, 4, 8]},
    "baseline": null,
    "objective": {"metric": "speed", "direction": "maximize"},
    "runner": {"kind": "replay", "table": "table.csv", "columns": {"micro_batch": "mb"}, "value": "speed",
               "status": "status"},
    "budget": {"trials": 8, "regret": 0, "least_gain": 0})" +
                                         more + "}");
}

}  // namespace krigtune
