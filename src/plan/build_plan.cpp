#include "plan/build_plan.h"

#include <algorithm>
#include <cassert>

#include "plan/memory.h"
#include "plan/transformer.h"

namespace krigtune::plan {

// Stores of whole tensors are in model order; one of gradients has the trained ones only.
int StepPlan::tensor_at(schedule::Term term, std::int64_t begin_elems) const {
  const bool of_trained = term == schedule::Term::kGradients;
  const auto begins_here = [&](const schedule::ParameterTensor& tensor) {
    return of_trained ? tensor.trained && tensor.begin_trained_elems == begin_elems : tensor.begin_elems == begin_elems;
  };
  const auto at = std::find_if(tensors.begin(), tensors.end(), begins_here);
  assert(at != tensors.end());
  return static_cast<int>(at - tensors.begin());
}

namespace {

// Without buffers and operations.
StepPlan empty_plan(const workload::Workload& workload, const schedule::Knobs& knobs,
                    const schedule::ParameterTable& table) {
  StepPlan plan;
  plan.ranks = knobs.data_ranks;
  plan.tensor_ranks = knobs.tensor_ranks;
  plan.zero_stage = knobs.zero_stage;
  plan.dialect = workload.dialect;
  plan.micro_batch = knobs.micro_batch;
  plan.micro_steps = knobs.micro_steps;
  plan.nccl = knobs.nccl;
  plan.seq_len = workload.model.seq_len;
  plan.tensors = table.tensors;
  plan.padded_parameter_elems = table.padded_elems;
  return plan;
}

}  // namespace

StepPlan build_plan(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                    const space::Configuration& configuration) {
  schedule::check_model(workload);
  return build_plan(workload, cluster, schedule::read_knobs(workload, cluster, configuration));
}

StepPlan build_plan(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                    const schedule::Knobs& knobs) {
  schedule::check_planned(workload, cluster, knobs);
  const schedule::ParameterTable table = schedule::make_parameters(workload, knobs);

  StepPlan plan = empty_plan(workload, knobs, table);
  const schedule::StageTensors tensors(
      schedule::unit_tensors(table),
      {workload.model.layers, true, true, workload.model.other_layers_in(0, workload.model.layers)},
      schedule::granule_elems(knobs.data_ranks, schedule::compute_type(workload.precision)));
  const schedule::Setting setting{tensors, knobs, schedule::make_policy(workload, knobs)};
  PlanBuilder builder(plan);
  ZeroOperations zero(builder, setting, table);
  plan.parameters = zero.homes();
  plan.copies = zero.copies();
  plan.windows = zero.windows();
  plan.control = zero.control();
  plan.first_loss_scale = schedule::first_loss_scale(workload.precision);
  plan.gradient_clipping = workload.gradient_clipping;
  plan.loss = builder.persistent("loss", schedule::Term::kInputs, knobs.micro_steps);
  TransformerStep model(builder, zero, table, workload, knobs, plan.loss);
  for (std::int64_t m = 0; m < knobs.micro_steps; ++m) {
    model.begin_micro_step(m);
    zero.micro_step(model);
  }
  builder.at(schedule::Phase::kOptimizer, knobs.micro_steps - 1);
  zero.update();
  lay_out(plan);
  return plan;
}

}  // namespace krigtune::plan
