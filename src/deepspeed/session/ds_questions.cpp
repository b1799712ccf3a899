// Asks the engine for the model's size. With a_i the memory of the first forward pass at two micro-batches m_i,
//
//   activations(m) = offset + slope m,   slope = (a_2 - a_1) / (m_2 - m_1),   offset = a_1 - slope m_1
//
// On CPU ranks the engine reports a difference of resident memory, which is only noise, so a single launch is enough.
#include "deepspeed/session/ds_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "core/files.h"
#include "deepspeed/job/deepspeed_runner.h"
#include "deepspeed/job/ds_probe.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

std::filesystem::path answers_directory(const JobRequest& request) {
  return (request.run_directory / "").parent_path().string() + ".model";
}

// Identifies the job for which an answer is valid.
Json asked_job(const DsSessionInputs& inputs) {
  return {{"command", inputs.command->argv},
          {"directory", std::filesystem::absolute(inputs.directory).lexically_normal().string()},
          {"ds_config", inputs.config}};
}

// Returns the recorded answer of the same job: the same command in the same directory and, unless nothing may be
// launched (as when a run is continued), the same configuration. Null if there is none.
Json recorded_answer(const DsSessionInputs& inputs, const std::filesystem::path& file, JobLaunches launches) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  Json record = json_or_discarded(read_text(file));
  if (!record.is_object()) return {};
  Json asked = record.value("job", Json::object());
  Json now = asked_job(inputs);
  if (launches == JobLaunches::kNone) asked["ds_config"] = now["ds_config"];
  return asked == now ? record : Json();
}

// Adds the job to the answer, writes it and returns it.
Json record_answer(const DsSessionInputs& inputs, const std::filesystem::path& file, Json answer) {
  answer["job"] = asked_job(inputs);
  write_atomically(file, answer.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return answer;
}

class ModelQuestion {
 public:
  ModelQuestion(const DsSessionInputs& inputs, const DsSession& made, const JobRequest& request, const Clock& clock)
      : request_(request),
        clock_(clock),
        session_(session::read_session(made.json, inputs.ds_config.string(), inputs.directory)),
        on_cpu_(inputs.machine.on_cpu) {
    if (session_.baseline) own_stage_ = session_.baseline->integer(space::kZeroStage, 0);
    const Json& space = made.json["space"];
    if (!space.contains(space::kMicroBatch)) return;
    for (const Json& value : space[space::kMicroBatch]) {
      if (value.is_number_integer()) micro_batches_.push_back(value.get<std::int64_t>());
    }
    std::sort(micro_batches_.begin(), micro_batches_.end());
  }

  // Returns the record without the job.
  Json ask() {
    const std::optional<std::int64_t> least = micro_batches_.empty() ? std::nullopt : std::optional(micro_batches_[0]);
    request_.progress("asking the job for the size of its model: one launch, until its first forward pass");
    DsModelAnswer first = launch(least);
    if (!first.model && first.verdict.what == DsClass::kOutOfMemory && own_stage_ != 3) {
      own_stage_ = 3;  // the stage that needs the least memory
      first = launch(least);
    }
    if (!first.model) {
      return {{"class", to_string(first.verdict.what)}, {"sentence", first.verdict.sentence}, {"wall_s", first.wall_s}};
    }
    Json record = {{"num_params", first.model->num_params}, {"wall_s", first.wall_s}};
    if (least && !on_cpu_) add_activations(*least, *first.model, record);
    return record;
  }

 private:
  DsModelAnswer launch(const std::optional<std::int64_t>& micro_batch) const {
    DsModelRun run{*runner::ds_job_of(session_.runner), session_.cluster.ranks(), {}, answers_directory(request_)};
    run.configuration.set(space::kZeroStage, own_stage_);
    if (micro_batch) run.configuration.set(space::kMicroBatch, *micro_batch);
    run.dir /= micro_batch ? fmt::format("stage_{}_micro_batch_{}", own_stage_, *micro_batch)
                           : fmt::format("stage_{}", own_stage_);
    return run_for_model(run, clock_);
  }

  void add_activations(std::int64_t least, const DsCountedModel& first, Json& record) const {
    constexpr std::int64_t kTimes = 4;  // ratio of the two micro-batches
    std::int64_t larger = 0;
    for (const std::int64_t micro_batch : micro_batches_) {
      if (micro_batch <= kTimes * least) larger = micro_batch;
    }
    if (larger <= least || !(first.activation_bytes > 0.0)) return;
    request_.progress(fmt::format("and once more with a micro-batch of {}, for its activations", larger));
    const DsModelAnswer second = launch(larger);
    if (!second.model) return;  // the search then learns the activations by itself
    const double slope =
        (second.model->activation_bytes - first.activation_bytes) / static_cast<double>(larger - least);
    if (!(slope > 0.0)) return;
    record["activation_slope_bytes"] = slope;
    record["activation_offset_bytes"] = first.activation_bytes - slope * static_cast<double>(least);
  }

  const JobRequest& request_;
  const Clock& clock_;
  session::Session session_;
  bool on_cpu_;
  std::int64_t own_stage_ = 0;
  std::vector<std::int64_t> micro_batches_;
};

std::string facts_text(const DsModelFacts& facts, const std::filesystem::path& file) {
  std::string text = fmt::format("the model has {} parameters, as the job itself counts them", *facts.num_params);
  if (facts.activation_slope_bytes) {
    const auto bytes = [](double number) { return to_string(Bytes{std::llround(number)}); };
    text += fmt::format("; activations take {} a sequence and {} besides", bytes(*facts.activation_slope_bytes),
                        bytes(std::max(0.0, facts.activation_offset_bytes)));
  }
  return text + fmt::format(" ({})", file.string());
}

DsModelFacts facts_of(const Json& record, const std::filesystem::path& file, std::vector<std::string>& remarks) {
  DsModelFacts facts;
  if (!record.contains("num_params")) {
    remarks.push_back(fmt::format("the job did not tell the size of its model: {}, {}; --hf-config FILE tells it too",
                                  record.value("class", ""), record.value("sentence", "")));
    return facts;
  }
  facts.num_params = record["num_params"].get<std::int64_t>();
  if (record.contains("activation_slope_bytes")) {
    facts.activation_slope_bytes = record["activation_slope_bytes"].get<double>();
    facts.activation_offset_bytes = record.value("activation_offset_bytes", 0.0);
  }
  remarks.push_back(facts_text(facts, file));
  return facts;
}

}  // namespace

DsModelFacts ask_for_model(const DsSessionInputs& inputs, const JobRequest& request, const Clock& clock,
                           std::vector<std::string>& remarks) {
  const std::filesystem::path file = answers_directory(request) / "model_info.json";
  Json record = recorded_answer(inputs, file, request.launches);
  if (request.launches == JobLaunches::kAsNeeded && !record.contains("num_params")) {
    record = record_answer(inputs, file, ModelQuestion(inputs, deepspeed_session(inputs), request, clock).ask());
  }
  return record.is_null() ? DsModelFacts{} : facts_of(record, file, remarks);
}

namespace {

// The user's own configuration with its batch distributed over half as many replicas.
space::Configuration split_baseline(const session::Session& session, const DsSessionInputs& inputs) {
  space::Configuration split = session.baseline.value_or(space::Configuration{});
  split.erase("gradient_accumulation_steps");
  constexpr DsVersion kCurrent{0, 19, 8};
  const bool has_stage_3 = has(inputs.machine.version.value_or(kCurrent), DsFeature::kTensorParallelAtStage3);
  if (split.integer(space::kZeroStage, 0) == 3 && !has_stage_3) split.set(space::kZeroStage, std::int64_t{1});
  split.set(space::kTensorParallel, std::int64_t{2});
  return split;
}

// Returns "class" and "sentence" of the failure, if it failed.
Json try_to_split(const DsSessionInputs& inputs, const DsSession& made, const std::filesystem::path& trial_dir,
                  const Clock& clock) {
  const session::Session session = session::read_session(made.json, inputs.ds_config.string(), inputs.directory);
  make_writable_directory(trial_dir);
  DeepSpeedJob job;
  job.spec = *runner::ds_job_of(session.runner);
  job.metric = session.objective.reported_field();
  job.ranks = session.cluster.ranks();
  const auto runner = make_deepspeed_runner(std::move(job), clock);
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

bool searches_tensors(const DsSession& made) {
  const Json& space = made.json["space"];
  return space.contains(space::kTensorParallel) && space[space::kTensorParallel].is_array() &&
         space[space::kTensorParallel].size() > 1;
}

}  // namespace

bool splits_tensors(const DsSessionInputs& inputs, const DsSession& made, const JobRequest& request, const Clock& clock,
                    std::vector<std::string>& remarks) {
  if (!searches_tensors(made)) return true;  // the session itself says why
  const std::filesystem::path directory = answers_directory(request);
  const std::filesystem::path file = directory / "tensor_parallel.json";
  Json answer = recorded_answer(inputs, file, request.launches);
  if (request.launches != JobLaunches::kNone && !answer.contains("works")) {
    request.progress("trying tensor parallelism over 2 ranks: one launch");
    answer = record_answer(inputs, file, try_to_split(inputs, made, directory / "tensor_parallel_2", clock));
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

}  // namespace krigtune::deepspeed
