// The batch of a job whose ds_config.json leaves it to the script's flags, as that of the Hugging Face Trainer does.
#include <fmt/format.h>

#include <cmath>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/runner/deepspeed/ds_trial.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {

Configuration at_the_flags_batch(Configuration configuration, const DsCommand& command,
                                 const std::vector<FlagMapping>& mappings, const Json& user, std::int64_t ranks,
                                 const std::string& source) {
  const Configuration said = values_of_flags(command, mappings);
  const bool one = configuration.has(kMicroBatch) != configuration.has(kAccumulation);
  if (!one || !said.has(kMicroBatch) || train_batch_size_of(user, ranks, source)) return configuration;
  const char* given = configuration.has(kMicroBatch) ? kMicroBatch : kAccumulation;
  const char* other = given == kMicroBatch ? kAccumulation : kMicroBatch;
  const Value* steps = said.find(kAccumulation);
  const double batch = as_number(*said.find(kMicroBatch)) * (steps == nullptr ? 1.0 : as_number(*steps));
  const double rest = batch / as_number(*configuration.find(given));
  if (rest != std::trunc(rest)) {
    throw UserError(fmt::format("the flags' batch of {} a rank is no multiple of {} {}", batch, given,
                                to_string(*configuration.find(given))),
                    "leave that value out of the space");
  }
  configuration.set(other, number_value(rest));
  return configuration;
}

std::optional<std::int64_t> batch_of(const Configuration& configuration, const DsCommand& command,
                                     const std::vector<FlagMapping>& mappings, const Json& user, std::int64_t ranks,
                                     const std::string& source) {
  const Configuration chosen = at_the_flags_batch(configuration, command, mappings, user, ranks, source);
  const Configuration complete = with_batch(user, chosen, ranks, source);
  const Configuration said = values_of_flags(command, mappings);
  const auto count = [&](const char* name) -> std::optional<double> {
    const Value* value = complete.find(name);
    if (value == nullptr) value = said.find(name);
    return value == nullptr ? std::nullopt : std::optional(as_number(*value));
  };
  const std::optional<double> micro = count(kMicroBatch);
  if (!micro) return std::nullopt;
  const double model_ranks = static_cast<double>(configuration.integer(kTensorParallel, tensor_parallel_of(user)) *
                                                 configuration.integer(kPipelineParallel, 1));
  return std::llround(*micro * count(kAccumulation).value_or(1.0) * static_cast<double>(ranks) / model_ranks);
}

}  // namespace krigtune
