#include "programs/krigtune/deepspeed_tensor.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "core/files.h"
#include "deepspeed/job/deepspeed_runner.h"
#include "session/session.h"
#include "space/well_known.h"

namespace krigtune::cli {
namespace {

// The user's own, its batch dealt out to half as many replicas.
space::Configuration split_baseline(const session::Session& session, const deepspeed::DsSessionInputs& inputs) {
  space::Configuration split = session.baseline.value_or(space::Configuration{});
  split.erase("gradient_accumulation_steps");
  constexpr deepspeed::DsVersion kCurrent{0, 19, 8};
  const bool has_stage_3 =
      deepspeed::has(inputs.machine.version.value_or(kCurrent), deepspeed::DsFeature::kTensorParallelAtStage3);
  if (split.integer(space::kZeroStage, 0) == 3 && !has_stage_3) split.set(space::kZeroStage, std::int64_t{1});
  split.set(space::kTensorParallel, std::int64_t{2});
  return split;
}

// "class" and "sentence" where it failed.
Json try_it(const Context& context, const deepspeed::DsSessionInputs& inputs, const deepspeed::DsSession& made,
            const std::filesystem::path& trial_dir) {
  const session::Session session = session::read_session(made.json, inputs.ds_config.string(), inputs.directory);
  make_writable_directory(trial_dir);
  deepspeed::DeepSpeedJob job;
  job.spec = std::get<deepspeed::DeepSpeedSpec>(session.runner);
  job.metric = session.objective.reported_field();
  job.ranks = session.cluster.ranks();
  const auto runner = deepspeed::make_deepspeed_runner(std::move(job), context.console.clock);
  const trial::Outcome outcome = runner->run(split_baseline(session, inputs), trial_dir);
  if (std::holds_alternative<trial::Measured>(outcome)) return {{"works", true}};
  Json answer = {{"works", false}, {"class", "failed"}, {"sentence", ""}};
  if (const auto* failed = std::get_if<trial::Failed>(&outcome)) answer["sentence"] = failed->last_lines;
  std::error_code error;
  if (!std::filesystem::is_regular_file(trial_dir / "result.json", error)) return answer;
  const Json result = load_json(trial_dir / "result.json");
  for (const char* key : {"class", "sentence"}) answer[key] = result.value(key, "");
  return answer;
}

bool is_searched(const deepspeed::DsSession& session) {
  const Json& space = session.json["space"];
  return space.contains(space::kTensorParallel) && space[space::kTensorParallel].is_array() &&
         space[space::kTensorParallel].size() > 1;
}

}  // namespace

bool splits_tensors(const Context& context, const deepspeed::DsSessionInputs& inputs,
                    const deepspeed::DsSession& session, const std::filesystem::path& directory, JobLaunches launches,
                    std::vector<std::string>& remarks) {
  if (!is_searched(session)) return true;  // as the session itself says why
  const std::filesystem::path file = directory / "tensor_parallel.json";
  Json answer = recorded_answer(inputs, file, launches);
  if (launches != JobLaunches::kNone && !answer.contains("works")) {
    context.log.progress("trying tensor parallelism over 2 ranks: one launch");
    answer = record_answer(inputs, file, try_it(context, inputs, session, directory / "tensor_parallel_2"));
  }
  if (answer.is_null()) {
    remarks.emplace_back("tensor parallelism is left out: it was not tried before this run began");
    return false;
  }
  if (answer.value("works", false)) return true;
  remarks.push_back(fmt::format("tensor parallelism is left out: its trial failed: {}, {}", answer.value("class", ""),
                                answer.value("sentence", "")));
  return false;
}

}  // namespace krigtune::cli
