#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "session/session.h"

// Reads the results of `krigtune compare` again, to show them beside a tuned session.
namespace krigtune::report {

/// The best value of one strategy after each trial, over its runs, in the objective's unit.
struct ComparedCurve {
  std::string strategy;
  int runs = 0;
  std::vector<int> trials;  ///< numbered as in the journal, ascending
  /// One per trial; trials before the first success of every run are left out.
  std::vector<compare::SeedStatistics> best{};
};

struct ComparedCurves {
  std::filesystem::path directory;
  std::string runner;  ///< the runner of the trials
  std::vector<ComparedCurve> curves;
};

inline constexpr const char* kComparedFile = "compared.json";

/// Returns compared.json, which records what was compared, so that curves are only shown beside sessions of the same
/// kind.
nlohmann::ordered_json compared_record(const session::Session& session, int trials);

/// Reads comparison.csv and compared.json. Throws UserError if the directory has no comparison or a file is damaged,
/// and if workload, cluster, space, constraints, memory or objective differ from the session's: one line that says what
/// differs.
ComparedCurves compared_curves(const std::filesystem::path& directory, const session::Session& session);

/// Returns the curves of the same session in the run directory or beside it, where compare writes by default:
/// `runs/job-compare` for `runs/job`. Has no curves if there is no comparison or it belongs to another session.
ComparedCurves curves_beside(const std::filesystem::path& run_directory, const session::Session& session);

}  // namespace krigtune::report
