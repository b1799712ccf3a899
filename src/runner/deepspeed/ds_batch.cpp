// The batch of a DeepSpeed job. DeepSpeed's rule (runtime/config.py, _set_batch_related_parameters):
//
//   train_batch_size = micro_batch * gradient_accumulation_steps * ranks
//
// with all ranks of the job where the script passes no mpu, though the ranks of one tensor-parallel group must be given
// the same sequences. The sequences that a step really learns from are those of ranks / tensor_parallel replicas.
#include <fmt/format.h>

#include "ds_knobs.h"
#include "krigtune/core/error.h"
#include "krigtune/space/batch.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

[[noreturn]] void refuse(const std::string& source, const std::string& what, const std::string& hint) {
  throw UserError(fmt::format("{}: /train_batch_size: {}", source, what), hint);
}

std::int64_t replicas(std::int64_t ranks, std::int64_t ranks_each, const std::string& source) {
  const std::optional<std::int64_t> dp = data_parallel_ranks(ranks, ranks_each, 1);
  if (dp && *dp >= 1) return *dp;
  throw UserError(fmt::format("{}: /tensor_parallel/autotp_size: {} ranks cannot be dealt out to replicas of {}",
                              source, ranks, ranks_each),
                  "choose a divisor of the ranks");
}

// AutoTP takes 0 and 1 for "off".
std::int64_t tensor_ranks(const std::vector<DsTunable>& tunables) {
  return std::max<std::int64_t>(1, number_in_file(tunables, kTensorParallel).value_or(1));
}

// The factor that is missing: batch = factor * known * groups.
std::int64_t share(std::int64_t batch, std::int64_t known, std::int64_t groups, const std::string& known_as,
                   const std::string& source) {
  if (const std::optional<std::int64_t> factor = accumulation_steps(batch, known, groups)) return *factor;
  refuse(source, fmt::format("{} sequences a step cannot be made of {} on {} ranks", batch, known_as, groups),
         "choose numbers whose product it is");
}

std::string micro_batches(std::int64_t of) { return fmt::format("micro-batches of {}", of); }
std::string micro_steps(std::int64_t count) { return fmt::format("{} micro-steps", count); }

// Sequences that the replicas of `tensor` ranks each learn from together, of what DeepSpeed counts for all ranks.
std::int64_t counted_once(std::int64_t batch, std::int64_t tensor, const std::string& source) {
  return share(batch, 1, tensor, "equal parts for tensor parallelism", source);
}

std::optional<std::int64_t> chosen(const Configuration& configuration, const char* name) {
  return configuration.has(name) ? std::optional(configuration.integer(name, 1)) : std::nullopt;
}

bool is_auto(const std::vector<DsTunable>& tunables, const char* name) {
  const DsTunable* tunable = find_tunable(tunables, name);
  return tunable != nullptr && tunable->setting == DsSetting::kAuto;
}

// The number that stands, no list and no "auto".
std::optional<std::int64_t> fixed(const std::vector<DsTunable>& tunables, const char* name) {
  const DsTunable* tunable = find_tunable(tunables, name);
  return tunable != nullptr && tunable->setting == DsSetting::kFixed ? number_in_file(tunables, name) : std::nullopt;
}

void check_identity(std::int64_t batch, const std::vector<DsTunable>& tunables, std::int64_t ranks,
                    const std::string& source) {
  const std::optional<std::int64_t> micro = fixed(tunables, kMicroBatch);
  const std::optional<std::int64_t> accumulation = fixed(tunables, kAccumulation);
  if (micro && accumulation && sequences_of_step(*micro, ranks, *accumulation) != batch) {
    refuse(source,
           fmt::format("{} is not train_micro_batch_size_per_gpu {} x gradient_accumulation_steps {} x {} ranks", batch,
                       *micro, *accumulation, ranks),
           "mend one of them, or start it on another number of ranks");
  }
  if (micro) share(batch, *micro, ranks, micro_batches(*micro), source);
  if (accumulation) share(batch, *accumulation, ranks, micro_steps(*accumulation), source);
}

}  // namespace

std::optional<std::int64_t> number_in_file(const std::vector<DsTunable>& tunables, const std::string& name) {
  const DsTunable* tunable = find_tunable(tunables, name);
  if (tunable == nullptr || tunable->values.empty()) return std::nullopt;
  return std::get<std::int64_t>(tunable->values.front());
}

std::optional<std::int64_t> written_train_batch_size(const Json& config, const std::string& source) {
  const auto found = config.find("train_batch_size");
  if (found == config.end() || found->is_null() || *found == "auto") return std::nullopt;
  const Value value = found->is_number() ? value_from_json(*found, source) : Value(false);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= 1) return *number;
  refuse(source, fmt::format("a whole number was expected, not {}", found->dump()), "write one from 1 on");
}

std::optional<std::int64_t> train_batch_size_of(const Json& config, std::int64_t ranks, const std::string& source) {
  const std::vector<DsTunable> tunables = tunables_of(config, source);
  const std::int64_t tensor = tensor_ranks(tunables);
  const std::int64_t groups = replicas(ranks, tensor, source);
  if (const std::optional<std::int64_t> batch = written_train_batch_size(config, source)) {
    check_identity(*batch, tunables, ranks, source);
    return counted_once(*batch, tensor, source);
  }
  const std::optional<std::int64_t> micro = fixed(tunables, kMicroBatch);
  const bool is_open = find_tunable(tunables, kAccumulation) != nullptr && !fixed(tunables, kAccumulation);
  if (!micro || is_open) return std::nullopt;
  return sequences_of_step(*micro, groups, fixed(tunables, kAccumulation).value_or(1));
}

Configuration with_batch(const Json& user, const Configuration& configuration, std::int64_t ranks,
                         const std::string& source) {
  const std::vector<DsTunable> tunables = tunables_of(user, source);
  std::optional<std::int64_t> micro = chosen(configuration, kMicroBatch);
  std::optional<std::int64_t> accumulation = chosen(configuration, kAccumulation);
  if (micro && accumulation) return configuration;
  const std::int64_t tensor = configuration.integer(kTensorParallel, tensor_ranks(tunables));
  const std::int64_t groups = replicas(ranks, tensor * configuration.integer(kPipelineParallel, 1), source);
  std::optional<std::int64_t> batch = written_train_batch_size(user, source);
  if (batch) batch = counted_once(*batch, tensor_ranks(tunables), source);

  const std::optional<std::int64_t> file_accumulation = number_in_file(tunables, kAccumulation);
  if (!micro && !is_auto(tunables, kMicroBatch)) {
    const std::optional<std::int64_t> in_file = number_in_file(tunables, kMicroBatch);
    const bool follows = batch && (accumulation || !in_file);
    const std::int64_t steps = accumulation.value_or(file_accumulation.value_or(1));
    micro = follows ? std::optional(share(*batch, steps, groups, micro_steps(steps), source)) : in_file;
  }
  if (!accumulation && !is_auto(tunables, kAccumulation)) {
    accumulation = batch && micro ? std::optional(share(*batch, *micro, groups, micro_batches(*micro), source))
                   : micro        ? std::optional(file_accumulation.value_or(1))
                                  : file_accumulation;
  }
  Configuration complete = configuration;
  if (micro) complete.set(kMicroBatch, *micro);
  if (accumulation) complete.set(kAccumulation, *accumulation);
  return complete;
}

}  // namespace krigtune
