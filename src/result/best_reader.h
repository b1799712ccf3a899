#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "result/result_files.h"
#include "run/prepared.h"
#include "run/run_directory.h"

namespace krigtune::result {

/// The recommendation in the directory's best.json, so that whoever reads it names the same best configuration as tune
/// and tell without fitting a model. Of `changes` it holds nothing. Empty where there is no such file, or one that this
/// history does not explain.
std::optional<search::Recommendation> recorded_best(const std::filesystem::path& directory,
                                                    const search::History& history);

/// The best of a directory that others write to: what they recorded; where nothing is recorded although a trial is ok
/// (the journal was copied alone, other programs told it), a fit of its own for every new closed trial.
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
