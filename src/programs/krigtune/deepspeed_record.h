#pragma once
#include <filesystem>

#include "core/json.h"
#include "deepspeed/session/deepspeed_session.h"

namespace krigtune::cli {

/// What the user's job may be launched for before the session is made. An answer of the same job that is recorded
/// counts in any case.
enum class JobLaunches {
  kAsNeeded,
  kNotForModel,  ///< not for the size of its model
  kNone,         ///< a recorded failure counts too
};

/// What the same job answered, as it was recorded: the same command in the same directory, and unless nothing may be
/// launched, as where a run goes on, the same configuration. Null: nothing.
Json recorded_answer(const deepspeed::DsSessionInputs& inputs, const std::filesystem::path& file, JobLaunches launches);
/// Returns what it writes: the answer with the job.
Json record_answer(const deepspeed::DsSessionInputs& inputs, const std::filesystem::path& file, Json answer);

}  // namespace krigtune::cli
