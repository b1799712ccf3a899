// The model as the engine itself counts it. With the memory a_i of the first forward pass at two micro-batches m_i,
//
//   activations(m) = offset + slope m,   slope = (a_2 - a_1) / (m_2 - m_1),   offset = a_1 - slope m_1
//
// On CPU ranks the engine reports a difference of resident memory: noise, so one launch will do.
#include "programs/krigtune/deepspeed_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "deepspeed/job/ds_probe.h"
#include "session/session.h"
#include "space/well_known.h"

namespace krigtune::cli {
namespace {

constexpr std::int64_t kTimes = 4;  // between the two micro-batches

std::filesystem::path record_path(const std::filesystem::path& directory) { return directory / "model_info.json"; }

class Question {
 public:
  Question(const Context& context, const deepspeed::DsSessionInputs& inputs, const deepspeed::DsSession& session,
           const std::filesystem::path& directory)
      : context_(context),
        session_(session::read_session(session.json, inputs.ds_config.string(), inputs.directory)),
        directory_(directory),
        on_cpu_(inputs.machine.on_cpu) {
    if (session_.baseline) own_stage_ = session_.baseline->integer(space::kZeroStage, 0);
    const Json& space = session.json["space"];
    if (!space.contains(space::kMicroBatch)) return;
    for (const Json& value : space[space::kMicroBatch]) {
      if (value.is_number_integer()) micro_batches_.push_back(value.get<std::int64_t>());
    }
    std::sort(micro_batches_.begin(), micro_batches_.end());
  }

  // The record, less the job.
  Json ask() {
    const std::optional<std::int64_t> least = micro_batches_.empty() ? std::nullopt : std::optional(micro_batches_[0]);
    context_.log.progress("asking the job for the size of its model: one launch, until its first forward pass");
    deepspeed::DsModelAnswer first = launch(least);
    if (!first.model && first.verdict.what == deepspeed::DsClass::kOutOfMemory && own_stage_ != 3) {
      own_stage_ = 3;  // where most fits
      first = launch(least);
    }
    if (!first.model) {
      return {{"class", deepspeed::to_string(first.verdict.what)},
              {"sentence", first.verdict.sentence},
              {"wall_s", first.wall_s}};
    }
    Json record = {{"num_params", first.model->num_params}, {"wall_s", first.wall_s}};
    if (least && !on_cpu_) add_activations(*least, *first.model, record);
    return record;
  }

 private:
  deepspeed::DsModelAnswer launch(const std::optional<std::int64_t>& micro_batch) const {
    deepspeed::DsModelRun run{
        std::get<deepspeed::DeepSpeedSpec>(session_.runner), session_.cluster.ranks(), {}, directory_};
    run.configuration.set(space::kZeroStage, own_stage_);
    if (micro_batch) run.configuration.set(space::kMicroBatch, *micro_batch);
    run.dir /= micro_batch ? fmt::format("stage_{}_micro_batch_{}", own_stage_, *micro_batch)
                           : fmt::format("stage_{}", own_stage_);
    return deepspeed::run_for_model(run, context_.console.clock);
  }

  void add_activations(std::int64_t least, const deepspeed::DsCountedModel& first, Json& record) const {
    std::int64_t larger = 0;
    for (const std::int64_t micro_batch : micro_batches_) {
      if (micro_batch <= kTimes * least) larger = micro_batch;
    }
    if (larger <= least || !(first.activation_bytes > 0.0)) return;
    context_.log.progress(fmt::format("and once more with a micro-batch of {}, for its activations", larger));
    const deepspeed::DsModelAnswer second = launch(larger);
    if (!second.model) return;  // of activations the search then learns by itself
    const double slope =
        (second.model->activation_bytes - first.activation_bytes) / static_cast<double>(larger - least);
    if (!(slope > 0.0)) return;
    record["activation_slope_bytes"] = slope;
    record["activation_offset_bytes"] = first.activation_bytes - slope * static_cast<double>(least);
  }

  const Context& context_;
  session::Session session_;
  std::filesystem::path directory_;
  bool on_cpu_;
  std::int64_t own_stage_ = 0;
  std::vector<std::int64_t> micro_batches_;
};

std::string facts_text(const deepspeed::DsModelFacts& facts, const std::filesystem::path& directory) {
  std::string text = fmt::format("the model has {} parameters, as the job itself counts them", *facts.num_params);
  if (facts.activation_slope_bytes) {
    const auto bytes = [](double number) { return to_string(Bytes{std::llround(number)}); };
    text += fmt::format("; activations take {} a sequence and {} besides", bytes(*facts.activation_slope_bytes),
                        bytes(std::max(0.0, facts.activation_offset_bytes)));
  }
  return text + fmt::format(" ({})", record_path(directory).string());
}

deepspeed::DsModelFacts facts_of(const Json& record, const std::filesystem::path& directory,
                                 std::vector<std::string>& remarks) {
  deepspeed::DsModelFacts facts;
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
  remarks.push_back(facts_text(facts, directory));
  return facts;
}

}  // namespace

deepspeed::DsModelFacts model_of_job(const Context& context, const deepspeed::DsSessionInputs& inputs,
                                     const deepspeed::DsSession& session, const std::filesystem::path& directory,
                                     JobLaunches launches, std::vector<std::string>& remarks) {
  Json record = recorded_answer(inputs, record_path(directory), launches);
  const bool is_answer = record.contains("num_params");
  if (launches == JobLaunches::kAsNeeded && !is_answer) {
    record = record_answer(inputs, record_path(directory), Question(context, inputs, session, directory).ask());
  }
  return record.is_null() ? deepspeed::DsModelFacts{} : facts_of(record, directory, remarks);
}

}  // namespace krigtune::cli
