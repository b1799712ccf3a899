#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "result/result_files.h"
#include "run/prepared.h"
#include "run/run_directory.h"

namespace krigtune::result {

/// Returns the recommendation in the directory's best.json, so that every reader names the same best configuration as
/// tune and tell without fitting a model. `changes` is empty. Empty if there is no such file, or if it does not match
/// this history.
std::optional<search::Recommendation> recorded_best(const std::filesystem::path& directory,
                                                    const search::History& history);

/// Returns the best configuration of a directory that other processes write to: the recorded one. If nothing is
/// recorded although a trial succeeded (the journal alone was copied, or another program told the result), it fits a
/// model after every new closed trial.
class BestReader {
 public:
  BestReader(std::filesystem::path directory, run::RunRecord record)
      : directory_(std::move(directory)), record_(std::move(record)) {}

  std::optional<search::Recommendation> look(const search::History& history);

 private:
  std::filesystem::path directory_;
  run::RunRecord record_;
  std::unique_ptr<run::Prepared> prepared_;
  int closed_ = -1;
  std::optional<search::Recommendation> fitted_;
};

}  // namespace krigtune::result
