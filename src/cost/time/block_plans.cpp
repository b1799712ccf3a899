// The plan has one layer, two micro-steps (the second one's backward adds to gradients, which reads more) and one data
// rank at ZeRO stage 0.
#include "cost/time/block_plans.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "space/well_known.h"

namespace krigtune::cost {
namespace {

constexpr std::int64_t kLargeBucket = std::int64_t{1} << 50;

plan::StepPlan plan_of_one_block(const workload::Workload& workload, const schedule::Knobs& knobs) {
  workload::Workload small = workload;
  small.model.layers = 1;
  small.train_batch_size.reset();
  small.dialect = workload::Dialect::kCanonical;
  workload::ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = knobs.tensor_ranks;
  return plan::build_plan(small, cluster,
                          {{space::kZeroStage, std::int64_t{0}},
                           {space::kMicroBatch, knobs.micro_batch},
                           {space::kAccumulation, std::int64_t{2}},
                           {space::kTensorParallel, knobs.tensor_ranks},
                           {space::kSequenceParallel, knobs.sequence_parallel},
                           {space::kCheckpointing, std::string(schedule::to_string(knobs.checkpointing))},
                           {space::kCheckpointLayers, std::int64_t{1}},
                           {space::kOverlap, false},
                           {space::kReduceBucket, kLargeBucket}});
}

}  // namespace

struct BlockPlans::Impl {
  using Key = std::tuple<std::int64_t, std::int64_t, bool, schedule::Checkpointing>;

  // Of one model and its way to train; the others are found by comparison, because there are few.
  struct OfModel {
    workload::Workload workload;
    std::map<Key, std::unique_ptr<const plan::StepPlan>> plans;
  };

  struct TensorsOfModel {
    workload::ModelSpec model;
    workload::Precision precision;
    std::shared_ptr<TensorsCache> tensors;
  };

  std::mutex mutex;
  std::vector<std::unique_ptr<OfModel>> models;
  std::vector<TensorsOfModel> tensors;
};

BlockPlans::BlockPlans() : impl_(std::make_unique<Impl>()) {}
BlockPlans::~BlockPlans() = default;

const plan::StepPlan& BlockPlans::of(const workload::Workload& workload, const schedule::Knobs& knobs) {
  workload::ModelSpec model = workload.model;
  model.layers = 1;
  const std::lock_guard lock(impl_->mutex);
  const auto is_same = [&](const std::unique_ptr<Impl::OfModel>& known) {
    return known->workload.model == model && known->workload.precision == workload.precision &&
           known->workload.optimizer == workload.optimizer &&
           known->workload.gradient_clipping == workload.gradient_clipping;
  };
  auto known = std::find_if(impl_->models.begin(), impl_->models.end(), is_same);
  if (known == impl_->models.end()) {
    impl_->models.push_back(std::make_unique<Impl::OfModel>(Impl::OfModel{workload, {}}));
    impl_->models.back()->workload.model = model;
    known = std::prev(impl_->models.end());
  }
  auto& plan = (*known)->plans[{knobs.micro_batch, knobs.tensor_ranks, knobs.sequence_parallel, knobs.checkpointing}];
  if (!plan) plan = std::make_unique<const plan::StepPlan>(plan_of_one_block(workload, knobs));
  return *plan;
}

std::shared_ptr<TensorsCache> BlockPlans::tensors(const workload::Workload& workload) {
  const std::lock_guard lock(impl_->mutex);
  for (const Impl::TensorsOfModel& known : impl_->tensors) {
    if (known.model == workload.model && known.precision == workload.precision) return known.tensors;
  }
  impl_->tensors.push_back({workload.model, workload.precision, std::make_shared<TensorsCache>(workload)});
  return impl_->tensors.back().tensors;
}

}  // namespace krigtune::cost
