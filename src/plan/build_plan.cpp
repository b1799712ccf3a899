#include "plan/build_plan.h"

#include "plan/memory.h"
#include "plan/transformer.h"

namespace krigtune {

StepPlan build_plan(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration) {
  check_model(workload);
  const Knobs knobs = read_knobs(workload, cluster, configuration);
  check_planned(workload, cluster, knobs);
  const ParameterTable table = make_parameters(workload, knobs);

  StepPlan plan;
  plan.ranks = knobs.data_ranks;
  plan.tensor_ranks = knobs.tensor_ranks;
  plan.zero_stage = knobs.zero_stage;
  plan.dialect = workload.dialect;
  plan.micro_batch = knobs.micro_batch;
  plan.micro_steps = knobs.micro_steps;
  plan.seq_len = workload.model.seq_len;
  plan.tensors = table.tensors;
  plan.padded_parameter_elems = table.padded_elems;

  const schedule::StageTensors tensors(schedule::unit_tensors(table), {workload.model.layers, true, true},
                                       schedule::granule_elems(knobs.data_ranks, compute_type(workload.precision)));
  const schedule::Setting setting{tensors, knobs, make_policy(workload, knobs)};
  PlanBuilder builder(plan);
  ZeroOperations zero(builder, setting, table);
  plan.parameters = zero.homes();
  plan.copies = zero.copies();
  plan.windows = zero.windows();
  plan.control = zero.control();
  plan.first_loss_scale = first_loss_scale(workload.precision);
  plan.gradient_clipping = workload.gradient_clipping;
  plan.loss = builder.persistent("loss", Term::kInputs, knobs.micro_steps);
  TransformerStep model(builder, zero, table, workload, knobs, plan.loss);
  for (std::int64_t m = 0; m < knobs.micro_steps; ++m) {
    model.begin_micro_step(m);
    zero.micro_step(model);
  }
  builder.at(Phase::kOptimizer, knobs.micro_steps - 1);
  zero.update();
  lay_out(plan);
  return plan;
}

}  // namespace krigtune
