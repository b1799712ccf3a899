// The plan has one layer (of each kind, if there are several), two micro-steps (the second one's
// backward adds to gradients, which reads more) and one data rank at ZeRO stage 0.
#include "cost/time/block_plans.h"

#include <map>
#include <mutex>
#include <vector>

#include "cost/knob_keys.h"

namespace krigtune::cost {
namespace {

// What a block keeps then follows the framework's code.
bool depends_on_framework(const workload::Workload& workload) {
  return workload.model.has_experts() || workload.model.has_latents() || workload.training.freezes();
}

// `knobs`: from of_block.
plan::StepPlan plan_of_one_block(const workload::Workload& workload, const schedule::Knobs& knobs) {
  workload::Workload small = workload;
  small.model = workload::with_a_layer_of_each_kind(workload.model);
  small.train_batch_size.reset();
  small.dialect = workload::Dialect::kCanonical;
  workload::ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = knobs.tensor_ranks;
  return plan::build_plan(small, cluster, knobs);
}

}  // namespace

struct BlockPlans::Impl {
  // Of one model and its way to train, whatever its number of layers; found by comparison, because there are few.
  struct OfModel {
    workload::Workload workload;                                             ///< with one layer of each kind
    std::map<schedule::Knobs, std::unique_ptr<const plan::StepPlan>> plans;  ///< by of_block
    std::shared_ptr<TensorsCache> tensors;
  };

  OfModel& of_model(const workload::Workload& workload);

  std::mutex mutex;  // guards the member below
  std::vector<std::unique_ptr<OfModel>> models;
};

BlockPlans::Impl::OfModel& BlockPlans::Impl::of_model(const workload::Workload& workload) {
  const workload::ModelSpec model = workload::with_a_layer_of_each_kind(workload.model);
  for (const std::unique_ptr<OfModel>& known : models) {
    if (known->workload.model == model && known->workload.precision == workload.precision &&
        known->workload.optimizer == workload.optimizer && known->workload.training == workload.training &&
        known->workload.gradient_clipping == workload.gradient_clipping &&
        workload::has_eager_kernels(known->workload) == workload::has_eager_kernels(workload) &&
        (!depends_on_framework(workload) || known->workload.framework == workload.framework)) {
      return *known;
    }
  }
  models.push_back(std::make_unique<OfModel>(OfModel{workload, {}, std::make_shared<TensorsCache>(workload)}));
  models.back()->workload.model = model;
  return *models.back();
}

BlockPlans::BlockPlans() : impl_(std::make_unique<Impl>()) {}
BlockPlans::~BlockPlans() = default;

const plan::StepPlan& BlockPlans::of(const workload::Workload& workload, const schedule::Knobs& knobs) {
  const schedule::Knobs own = of_block(knobs);
  const std::lock_guard lock(impl_->mutex);
  auto& plan = impl_->of_model(workload).plans[own];
  if (!plan) plan = std::make_unique<const plan::StepPlan>(plan_of_one_block(workload, own));
  return *plan;
}

std::shared_ptr<TensorsCache> BlockPlans::tensors(const workload::Workload& workload) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->of_model(workload).tensors;
}

}  // namespace krigtune::cost
