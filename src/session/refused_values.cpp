// What frameworks and pipeline schedules refuse of the values that a space has.
#include "session/refused_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::session {

bool reaches(const std::vector<space::Parameter>& parameters, const char* name, double least) {
  const space::Parameter* parameter = space::find_usual(parameters, name);
  return parameter != nullptr &&
         std::any_of(parameter->values.begin(), parameter->values.end(), [&](const space::Value& value) {
           return space::is_number(value) && space::as_number(value) >= least;
         });
}

namespace {

// Whether the session says what a parameter is, or may be.
bool is_stated(const std::vector<space::Parameter>& parameters, const space::JobFacts& facts, const char* name) {
  return facts.fixed.has(name) ||
         std::ranges::any_of(parameters, [&](const space::Parameter& one) { return one.name == name; });
}

bool may_be_interleaved(const std::vector<space::Parameter>& parameters, const space::JobFacts& facts) {
  return reaches(parameters, space::kVirtualPipeline, 2.0) || facts.fixed.integer(space::kVirtualPipeline, 1) > 1;
}

// Whether a parameter of words may have another one than `usual`.
bool may_differ(const std::vector<space::Parameter>& parameters, const space::JobFacts& facts, const char* name,
                const char* usual) {
  const space::Value of_usual = std::string(usual);
  const auto differs = [&](const space::Value& value) { return !space::same_value(value, of_usual); };
  for (const space::Parameter& parameter : parameters) {
    if (parameter.name == name) return std::ranges::any_of(parameter.values, differs);
  }
  const space::Value* fixed = facts.fixed.find(name);
  return fixed != nullptr && differs(*fixed);
}

// Several stages a rank are interleaved 1F1B or ZB-H1; ZB-V has two of its own (schedule/knobs.cpp).
std::string refused_by_schedules(const std::vector<space::Parameter>& parameters, const space::JobFacts& facts) {
  if (!may_be_interleaved(parameters, facts) || !may_differ(parameters, facts, space::kPipelineSchedule, "1f1b"))
    return "";
  return "virtual_pipeline == 1 || pipeline_parallel == 1 || pipeline_schedule == '1f1b' || "
         "pipeline_schedule == 'zb-h1'";
}

// Returns what a framework refuses of values that the space has; "" for nothing.
std::string refused_by_framework(workload::Framework framework, const std::vector<space::Parameter>& parameters,
                                 const space::JobFacts& facts) {
  const auto states = [&](const char* name) { return is_stated(parameters, facts, name); };
  // DeepSpeed's pipeline engine (deepspeed/runtime/pipe/engine.py: "ZeRO-2 and ZeRO-3 are incompatible with pipeline
  // parallelism").
  if (framework == workload::Framework::kDeepSpeed && reaches(parameters, space::kZeroStage, 2.0) &&
      reaches(parameters, space::kPipelineParallel, 2.0))
    return "zero_stage <= 1 || pipeline_parallel == 1";
  // Megatron-LM's interleaved schedule (core/pipeline_parallel/schedules.py).
  if (framework != workload::Framework::kMegatron || !may_be_interleaved(parameters, facts)) return "";
  if (!states(space::kVirtualPipeline) || !states(space::kPipelineParallel)) return "";
  if (facts.train_batch_size && states(space::kMicroBatch))
    return "virtual_pipeline == 1 || train_batch_size % (micro_batch * dp * pipeline_parallel) == 0";
  if (!states(space::kAccumulation)) return "";
  return "virtual_pipeline == 1 || gradient_accumulation_steps % pipeline_parallel == 0";
}

// Megatron-LM's arguments.py: tokens of experts travel beside another micro-batch only where no layer is recomputed as
// a whole, and a pipeline has several stages a rank; they are gathered piece by piece only where they are split.
std::string refused_beside_others(workload::Framework framework, const std::vector<space::Parameter>& parameters,
                                  const space::JobFacts& facts) {
  if (framework != workload::Framework::kMegatron) return "";
  const auto states = [&](const char* name) { return is_stated(parameters, facts, name); };
  std::vector<std::string> needs;
  if (states(space::kCheckpointing)) needs.emplace_back("activation_checkpointing != 'full'");
  if (states(space::kMoeDispatch)) needs.emplace_back("moe_dispatch != 'allgather'");
  if (states(space::kPipelineParallel))
    needs.emplace_back(states(space::kVirtualPipeline) ? "(pipeline_parallel == 1 || virtual_pipeline > 1)"
                                                       : "pipeline_parallel == 1");
  std::vector<std::string> refused;
  if (states(space::kMoeOverlap) && !needs.empty())
    refused.push_back(fmt::format("(moe_overlap == false || ({}))", join(needs, " && ")));
  if (states(space::kTensorOverlap) && states(space::kSequenceParallel))
    refused.emplace_back("(tp_comm_overlap == false || sequence_parallel == true)");
  return join(refused, " && ");
}

// Groups of data-parallel ranks that share what is sharded are equal (schedule/knobs.cpp).
std::string refused_groups(const std::vector<space::Parameter>& parameters, const space::JobFacts& facts) {
  std::vector<std::string> needs;
  for (const auto& [name, none] : {std::pair(space::kHybridShard, 0), std::pair(space::kSecondaryShard, 1)}) {
    if (!reaches(parameters, name, none + 1.0) && facts.fixed.integer(name, none) <= none) continue;
    needs.push_back(fmt::format("({0} == {1} || dp == 1 || dp % {0} == 0)", name, none));
  }
  return join(needs, " && ");
}

}  // namespace

void add_refused(workload::Framework framework, const std::vector<space::Parameter>& parameters,
                 const space::JobFacts& facts, std::vector<space::Expression>& constraints) {
  for (const std::string& text :
       {refused_by_framework(framework, parameters, facts), refused_by_schedules(parameters, facts),
        refused_beside_others(framework, parameters, facts), refused_groups(parameters, facts)}) {
    const auto is_same = [&](const space::Expression& constraint) { return constraint.text() == text; };
    if (text.empty() || std::ranges::any_of(constraints, is_same)) continue;
    constraints.push_back(space::Expression::parse(text));
  }
}

}  // namespace krigtune::session
