// A step of the model consists of the steps of its pipeline stages (with one stage, of the whole model) and the
// schedule between them. Everything that depends on few knobs (the template of a block, the tensors of a stage) is
// computed once.
#include "cost/time/step_cost.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "cost/context_split.h"
#include "cost/expert_split.h"
#include "cost/knob_keys.h"
#include "cost/pipeline.h"
#include "cost/pipeline_order.h"
#include "cost/tensors_cache.h"
#include "cost/time/compressed_step.h"
#include "cost/time/framework_step.h"
#include "schedule/knobs.h"

namespace krigtune::cost {
namespace {

// What each pipeline rank holds and does; equal ranks are timed once.
struct Stages {
  std::vector<schedule::StageParts> parts;  ///< by rank
  std::vector<CompressedTimes> times;       ///< by rank
  std::vector<std::int64_t> layers;         ///< by stage; as many stages as ranks, or a multiple of that
};

bool is_interleaved(const schedule::Knobs& knobs) { return knobs.pipeline_ranks > 1 && knobs.virtual_stages > 1; }

void set_micro_steps(const CompressedTimes& times, const Machine& machine, StepCost& cost) {
  const double alone_s = times.cost.products_s + times.cost.memory_bound_s + times.optimizer_s;
  // Kernels are slower beside collectives.
  const double stretch = alone_s > 0.0 ? times.totals.kernels_s / alone_s : 1.0;
  cost.products_s = stretch * times.cost.products_s;
  cost.memory_bound_s = stretch * times.cost.memory_bound_s;
  cost.optimizer_s = stretch * times.optimizer_s;
  cost.exposed_comm_s = times.totals.exposed_comm_s;
  cost.offload_s = times.totals.exposed_copies_s;
  cost.idle_s = times.totals.idle_s + machine.step_overhead_s;
  cost.recompute_s = times.cost.recompute_s;
  cost.tensor_comm_s = times.cost.tensor_comm_s;
  cost.context_comm_s = times.cost.context_comm_s;
  cost.expert_comm_s = times.cost.expert_comm_s;
  cost.data_comm_s = times.data_comm_s;
  cost.tensor_wire_bytes = times.cost.tensor_wire_bytes;
  cost.data_wire_bytes = times.data_wire_bytes;
  cost.step_time_s = times.totals.span_s + machine.step_overhead_s;
}

}  // namespace

const char* to_string(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kCompute:
      return "compute";
    case Bottleneck::kCommunication:
      return "communication";
    case Bottleneck::kMemory:
      return "memory";
  }
  return "";
}

Bottleneck StepCost::bottleneck() const {
  const double communication_s = exposed_comm_s + offload_s;
  const double memory_s = memory_bound_s + optimizer_s;
  if (communication_s >= std::max(products_s, memory_s)) return Bottleneck::kCommunication;
  return memory_s > products_s ? Bottleneck::kMemory : Bottleneck::kCompute;
}

struct StepCostModel::Impl {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  Machine machine;
  std::shared_ptr<BlockPlans> plans;
  std::mutex mutex;
  std::map<schedule::Knobs, std::unique_ptr<const StepTemplate>> templates;  // by of_template
  std::shared_ptr<TensorsCache> tensors;
  std::map<schedule::Knobs, GroupSpans> spans;       // by of_spans
  std::vector<std::vector<TimedOperation>> scratch;  // as many as there are threads

  std::vector<TimedOperation> take_scratch() {
    const std::lock_guard lock(mutex);
    if (scratch.empty()) return {};
    std::vector<TimedOperation> taken = std::move(scratch.back());
    scratch.pop_back();
    return taken;
  }

  void give_back(std::vector<TimedOperation> taken) {
    const std::lock_guard lock(mutex);
    scratch.push_back(std::move(taken));
  }

  const StepTemplate& template_of(const schedule::Knobs& knobs) {
    const schedule::Knobs own = of_template(knobs);
    const std::lock_guard lock(mutex);
    auto& known = templates[own];
    if (!known) {
      const plan::StepPlan& block = plans->of(experts_of_rank(share_of_rank(workload, own), own), own);
      known = std::make_unique<const StepTemplate>(make_template(workload, machine, own, block));
    }
    return *known;
  }

  GroupSpans spans_of(const schedule::Knobs& knobs) {
    const schedule::Knobs own = of_spans(knobs);
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = spans.try_emplace(own);
    if (is_new) at->second = GroupSpans::of(own, machine.ranks_per_node);
    return at->second;
  }

  // The time of a unit's passes of one micro-step in one direction; kBackward is all of it.
  static double work_s(const StepTemplate& model, schedule::Unit unit, PassWork work) {
    const Pass& backward = model.pass(unit, PassKind::kBackward);
    if (work == PassWork::kWeights) return backward.weights_s;
    const double again_s = model.pass(unit, PassKind::kRecompute).all.work_s;
    return work == PassWork::kBackward ? again_s + backward.all.work_s
                                       : model.pass(unit, PassKind::kForward).all.work_s;
  }

  std::vector<std::int64_t> layers_of_stages(const StepTemplate& model, const schedule::Knobs& knobs) const {
    const std::int64_t layers = workload.model.layers;
    const std::int64_t further = workload.model.mtp.layers;
    const bool even = traits_of(workload.framework).even_stages;
    if (is_interleaved(knobs) || (even && further > 0 && knobs.pipeline_ranks > 1))
      return interleaved_layers(layers, knobs.pipeline_ranks * knobs.virtual_stages, further);
    const auto all_s = [&](schedule::Unit unit) {
      return work_s(model, unit, PassWork::kForward) + work_s(model, unit, PassWork::kBackward);
    };
    return stage_layers(layers, knobs.pipeline_ranks, even,
                        all_s(schedule::Unit::kHead) / all_s(schedule::Unit::kBlock));
  }

  std::int64_t type_bytes() const { return schedule::size_bytes(schedule::compute_type(workload.precision)); }

  // The time of a send from one stage to another.
  double send_s(const schedule::Knobs& knobs, schedule::OpKind kind, std::int64_t bytes) const {
    const bool leaves_node = knobs.tensor_ranks * knobs.data_ranks >= machine.ranks_per_node;
    const plan::GroupSpan pair{2, leaves_node ? 2 : 1, leaves_node ? 1 : 2};
    return collective_time_s(machine, kind, pair, bytes);
  }

  // The time to send activations to the next stage, and gradients back.
  double send_activations_s(const schedule::Knobs& knobs) const {
    const std::int64_t elems = knobs.micro_batch * tokens_of_rank(workload.model, knobs) * workload.model.hidden /
                               (knobs.sequence_parallel ? knobs.tensor_ranks : 1);
    return send_s(knobs, schedule::OpKind::kAllGather, elems * type_bytes()) + machine.send_wait_s;
  }

  // The first and the last stage each have a copy of a token table that the head uses or further tokens look up, whose
  // gradient is the sum of both (Megatron-LM, "embedding group").
  double sum_tied_table_s(const schedule::Knobs& knobs) const {
    const bool on_one_rank = schedule::is_vee(knobs.pipeline_schedule);
    const bool is_shared = workload.model.tied_embeddings || workload.model.mtp.layers > 0;
    if (!is_shared || on_one_rank) return 0.0;
    const std::int64_t elems = workload.model.vocab * workload.model.hidden / knobs.tensor_ranks;
    return send_s(knobs, schedule::OpKind::kAllReduce, elems * type_bytes());
  }

  Stages timed_stages(const FrameworkStep& step) {
    const StepTemplate& model = template_of(step.knobs);
    const StepSetting setting{machine, model, step.knobs, step.policy, spans_of(step.knobs), step.reduced_bytes};
    std::vector<TimedOperation> operations = take_scratch();
    Stages distinct;
    distinct.layers = layers_of_stages(model, step.knobs);
    distinct.parts = parts_of_ranks(workload.model, distinct.layers, pipeline_shape(step.knobs));
    for (std::size_t i = 0; i < distinct.parts.size(); ++i) {
      if (i > 0 && distinct.parts[i] == distinct.parts[i - 1]) {
        distinct.times.push_back(distinct.times.back());
      } else {
        distinct.times.push_back(time_step(setting, tensors->of(step.knobs, distinct.parts[i]), operations));
      }
    }
    give_back(std::move(operations));
    return distinct;
  }

  StepCost cost_of(const FrameworkStep& step) {
    const Stages distinct = timed_stages(step);
    if (distinct.times.size() > 1) return of_stages(distinct, step.knobs);
    StepCost cost;
    set_micro_steps(distinct.times.front(), machine, cost);
    return cost;
  }

  // Of a layer with experts; in a hybrid model the mean of the rank's layers.
  double block_work_s(const StepTemplate& model, const schedule::StageParts& rank, PassWork work) const {
    if (!workload.model.is_hybrid() || rank.layers == 0) return work_s(model, schedule::Unit::kBlock, work);
    double sum_s = 0.0;
    for (const schedule::Unit block : schedule::kBlocks)
      sum_s += static_cast<double>(rank.layers_of(block)) * work_s(model, block, work);
    return sum_s / static_cast<double>(rank.layers);
  }

  // The share of a rank's passes that one of its stages does, in one direction.
  double share_of_stage(const StepTemplate& model, const Stages& stages, const PipelineShape& shape, std::size_t stage,
                        PassWork work) const {
    const schedule::StageParts& rank = stages.parts[shape.rank_of(stage)];
    const double block_s = block_work_s(model, rank, work);
    const double first_s = rank.embedding ? work_s(model, schedule::Unit::kEmbedding, work) : 0.0;
    const double last_s = rank.head ? work_s(model, schedule::Unit::kHead, work) : 0.0;
    const double own_s = block_s * static_cast<double>(stages.layers[stage]) + (stage == 0 ? first_s : 0.0) +
                         (stage + 1 == stages.layers.size() ? last_s : 0.0);
    const double all_s = block_s * static_cast<double>(rank.layers) + first_s + last_s;
    return all_s > 0.0 ? own_s / all_s : 0.0;
  }

  std::vector<StageTime> as_pipeline(const Stages& stages, const schedule::Knobs& knobs) {
    const PipelineShape shape = pipeline_shape(knobs);
    std::vector<StageTime> times;
    for (std::size_t i = 0; i < stages.layers.size(); ++i) {
      const CompressedTimes& rank = stages.times[shape.rank_of(i)];
      const double micro_steps_s = static_cast<double>(knobs.micro_steps) * rank.micro_step_s;
      times.push_back({rank.micro_step_s - rank.backward_s, rank.backward_s,
                       std::max(0.0, rank.totals.span_s - micro_steps_s), rank.weights_s});
      if (!is_interleaved(knobs)) continue;
      const StepTemplate& model = template_of(knobs);
      const auto share = [&](PassWork work) { return share_of_stage(model, stages, shape, i, work); };
      times.back().forward_s *= share(PassWork::kForward);
      times.back().backward_s *= share(PassWork::kBackward);
      times.back().weights_s = std::min(rank.weights_s * share(PassWork::kWeights), times.back().backward_s);
    }
    return times;
  }

  StepCost of_stages(const Stages& stages, const schedule::Knobs& knobs) {
    const std::vector<StageTime> times = as_pipeline(stages, knobs);
    std::size_t slowest = 0;
    for (std::size_t i = 0; i < stages.times.size(); ++i) {
      if (stages.times[i].micro_step_s > stages.times[slowest].micro_step_s) slowest = i;
    }
    const double send = send_activations_s(knobs);
    const double tie_s = sum_tied_table_s(knobs);
    StepCost cost;
    set_micro_steps(stages.times[slowest], machine, cost);
    const PipelineShape shape = pipeline_shape(knobs);
    cost.pipeline_comm_s = sends(slowest, shape) * static_cast<double>(knobs.micro_steps) * send + tie_s;
    cost.exposed_comm_s += cost.pipeline_comm_s;
    const double alone_s = cost.step_time_s + cost.pipeline_comm_s;
    const bool overlaps_steps = traits_of(workload.framework).validates_later;
    const double all_s =
        pipeline_s(times, knobs.micro_steps, send, shape, overlaps_steps) + tie_s + machine.step_overhead_s;
    cost.step_time_s = std::max(alone_s, all_s);
    cost.bubble_s = cost.step_time_s - alone_s;
    return cost;
  }

  PipelineStep tasks_of(const Stages& stages, const schedule::Knobs& knobs) {
    PipelineStep step;
    step.shape = pipeline_shape(knobs);
    step.layers = stages.layers;
    step.stages = as_pipeline(stages, knobs);
    step.tasks = pipeline_tasks(step.stages, knobs.micro_steps, send_activations_s(knobs), step.shape);
    step.tie_s = sum_tied_table_s(knobs);
    step.step_time_s = of_stages(stages, knobs).step_time_s;
    return step;
  }
};

StepCostModel::StepCostModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                             const Machine& machine, std::shared_ptr<BlockPlans> plans)
    : impl_(std::make_unique<Impl>()) {
  schedule::check_model(workload);
  impl_->workload = in_framework_dialect(workload);
  impl_->cluster = cluster;
  impl_->machine = machine;
  impl_->plans = plans ? std::move(plans) : std::make_shared<BlockPlans>();
  impl_->tensors = impl_->plans->tensors(impl_->workload);
}

StepCostModel::StepCostModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                             const TimeCalibration& calibration, std::shared_ptr<BlockPlans> plans)
    : StepCostModel(workload, cluster, make_machine(workload, cluster, calibration), std::move(plans)) {}

StepCostModel::~StepCostModel() = default;

StepCost StepCostModel::operator()(const space::Configuration& configuration) const {
  return impl_->cost_of(schedule::modelled(framework_step_of(impl_->workload, impl_->cluster, configuration)));
}

std::optional<PipelineStep> StepCostModel::pipeline_step(const space::Configuration& configuration) const {
  const FrameworkStep step = schedule::modelled(framework_step_of(impl_->workload, impl_->cluster, configuration));
  if (step.knobs.pipeline_ranks == 1) return std::nullopt;
  return impl_->tasks_of(impl_->timed_stages(step), step.knobs);
}

std::optional<StepCost> StepCostModel::if_modelled(const space::Configuration& configuration) const {
  const auto step = framework_step_of(impl_->workload, impl_->cluster, configuration);
  if (std::holds_alternative<schedule::NotModelled>(step)) return std::nullopt;
  return impl_->cost_of(std::get<FrameworkStep>(step));
}

}  // namespace krigtune::cost
