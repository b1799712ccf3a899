#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "session/session.h"

// What `krigtune compare` found, read again, to be shown beside a session that was tuned.
namespace krigtune::report {

/// The best so far of one strategy after each trial, over its runs, in the objective's unit.
struct ComparedCurve {
  std::string strategy;
  int runs = 0;
  std::vector<int> trials;                      ///< numbered as in the journal, ascending
  std::vector<compare::SeedStatistics> best{};  ///< as many; trials are left out at which a run has no success yet
};

struct ComparedCurves {
  std::filesystem::path directory;
  std::string runner;  ///< that ran the trials
  std::vector<ComparedCurve> curves;
};

inline constexpr const char* kComparedFile = "compared.json";

/// compared.json: what was compared, so that the curves are shown beside sessions of the same kind only.
nlohmann::ordered_json compared_record(const session::Session& session, int trials);

/// What is in the directory: comparison.csv and compared.json. Throws UserError where there is no comparison, where a
/// file is damaged, and where workload, cluster, space, constraints, memory or objective are not the session's: one
/// line with what differs.
ComparedCurves compared_curves(const std::filesystem::path& directory, const session::Session& session);

/// Of the same session, in the run directory itself or beside it, where compare puts it by itself:
/// `runs/job-compare` for `runs/job`. Without curves where there is none, or it is of another session.
ComparedCurves curves_beside(const std::filesystem::path& run_directory, const session::Session& session);

}  // namespace krigtune::report
