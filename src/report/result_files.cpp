#include "krigtune/report/result_files.h"

#include <algorithm>

#include "krigtune/core/files.h"
#include "krigtune/tuner/run_directory.h"
#include "writers.h"

namespace krigtune {
namespace {

std::ptrdiff_t closed(const History& history) {
  return std::count_if(history.begin(), history.end(), [](const Trial& trial) { return trial.outcome.has_value(); });
}

// What the journal holds by now; nothing where there is none.
History journalled(const std::filesystem::path& directory) {
  const std::filesystem::path journal = journal_path(directory);
  return std::filesystem::exists(journal) ? read_journal(journal) : History();
}

}  // namespace

std::vector<ResultFile> result_files() {
  return {{"trials.csv", trials_csv},
          {"best.json", best_json},
          {"ds_config_optimal.json", ds_config_optimal},
          {kConfigFile, config_optimal},
          {"cmd_optimal.txt", cmd_optimal}};
}

std::vector<std::string> write_result_files(const RunView& run) {
  std::vector<std::string> written;
  for (const ResultFile& file : result_files()) {
    const std::optional<std::string> text = file.text(run);
    if (!text) continue;
    write_atomically(run.directory / file.name, *text);
    written.emplace_back(file.name);
  }
  return written;
}

void ResultFileWriter::resumed(const History& history) { write(history); }

void ResultFileWriter::trial_ended(const Trial& /*trial*/, const History& history) { write(history); }

std::optional<Recommendation> ResultFileWriter::write(History history) const {
  const Session& session = run_.session;
  while (true) {
    std::optional<Recommendation> best = recommend(session, candidates_, history, run_.options.seed);
    write_result_files({session, history, run_.name, run_.options, run_.directory, run_.bench, best});
    History now = journalled(run_.directory);
    if (closed(now) <= closed(history)) return best;
    history = std::move(now);
  }
}

}  // namespace krigtune
