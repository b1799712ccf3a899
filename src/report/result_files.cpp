#include "krigtune/report/result_files.h"

#include "krigtune/core/files.h"
#include "writers.h"

namespace krigtune {

std::vector<ResultFile> result_files() {
  return {{"trials.csv", trials_csv},
          {"best.json", best_json},
          {"ds_config_optimal.json", ds_config_optimal},
          {kBenchConfigFile, config_optimal},
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

void ResultFileWriter::write(const History& history) const {
  const Session& session = run_.session;
  write_result_files({session, history, run_.name, run_.options, run_.directory, run_.bench,
                      recommend(session, candidates_, history, run_.options.seed)});
}

}  // namespace krigtune
