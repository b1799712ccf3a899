// One block represents all of its kind (block_plans.h). The template contains every kernel and every collective of the
// tensor group in a step of any depth and stage. The stages only add ZeRO's own operations.
#include "cost/time/step_template.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>
#include <vector>

#include "cost/context_split.h"
#include "cost/expert_split.h"
#include "cost/framework.h"
#include "cost/time/block_time.h"
#include "cost/time/expert_overlap.h"
#include "cost/time/tensor_overlap.h"
#include "cost/weight_gradients.h"
#include "plan/build_plan.h"
#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

std::int64_t sent(schedule::OpKind kind, std::int64_t bytes, std::int64_t ranks) {
  return plan::traits_of(kind).wire_passes * bytes * (ranks - 1) / ranks;
}

}  // namespace

GroupSpans GroupSpans::of(const schedule::Knobs& knobs, std::int64_t ranks_per_node) {
  const std::int64_t tensor = knobs.tensor_ranks;
  const std::int64_t apart = knobs.expert_ranks * knobs.parts_of_expert();
  const std::int64_t shards = knobs.shard_ranks();
  const std::int64_t of_expert = knobs.shards_of_expert();
  const auto span = [&](std::int64_t ranks, std::int64_t apart_by) {
    return group_span(ranks, apart_by, ranks_per_node);
  };
  return {.data = span(knobs.data_ranks, tensor),
          .tensor = span(tensor, 1),
          .experts = span(knobs.ranks_of_expert(), apart),
          .shards = span(shards, tensor),
          .shards_of_experts = span(of_expert, apart),
          .copies = span(knobs.copies, tensor * shards),
          .copies_of_experts = span(knobs.copies, apart * of_expert),
          .secondary = span(knobs.secondary_ranks, tensor)};
}

Recorder::Collective CostContext::collective(schedule::OpKind kind, const plan::GroupSpan& span, std::int64_t bytes) {
  const std::int64_t wire_bytes = sent(kind, bytes, span.ranks);
  data_comm_s += collective_time_s(machine, kind, span, wire_bytes);
  data_wire_bytes += static_cast<double>(wire_bytes);
  return {link_time_s(machine, kind, span, wire_bytes), exchange_time_s(machine, kind, wire_bytes),
          lane_of(machine, schedule::Group::kData)};
}

Recorder::Collective CostContext::collective(schedule::OpKind kind, const plan::GroupSpan& of_all,
                                             const plan::GroupSpan& of_experts, const SharedBytes& shared) {
  const bool is_one_group = setting.knobs.expert_ranks == 1 && !setting.knobs.whole_experts;
  if (is_one_group) return collective(kind, of_all, shared.of_all + shared.of_experts);
  Recorder::Collective first = collective(kind, of_all, shared.of_all);
  return first.then(collective(kind, of_experts, shared.of_experts));
}

Recorder::Collective CostContext::data_collective(schedule::OpKind kind, const SharedBytes& shared) {
  if (kind == schedule::OpKind::kAllReduce) return collective(kind, spans.data, spans.experts, shared);
  return collective(kind, spans.shards, spans.shards_of_experts, shared);
}

Recorder::Collective CostContext::gather_again(const SharedBytes& shared) {
  return collective(schedule::OpKind::kAllGather, spans.secondary, shared.of_all + shared.of_experts);
}

Recorder::Collective CostContext::sum_of_copies(const SharedBytes& shared) {
  const schedule::Knobs& knobs = setting.knobs;
  return collective(schedule::OpKind::kAllReduce, spans.copies, spans.copies_of_experts,
                    {shared.of_all / knobs.shard_ranks(), shared.of_experts / knobs.shards_of_expert()});
}

double CostContext::more_issue_s() const {
  plan::Operation operation;
  operation.kind = schedule::OpKind::kAllReduce;
  operation.stream = schedule::Stream::kReduce;
  operation.group = schedule::Group::kTensor;
  return issue_time_s(machine, operation, setting.knobs.tensor_ranks, setting.knobs.pipeline_ranks) - machine.issue_s;
}

Recorder::Collective CostContext::tensor_collective(schedule::OpKind kind, std::int64_t bytes) {
  const std::int64_t wire_bytes = sent(kind, bytes, setting.knobs.tensor_ranks);
  const double seconds = collective_time_s(machine, kind, spans.tensor, wire_bytes);
  cost.tensor_comm_s += seconds;
  cost.tensor_wire_bytes += static_cast<double>(wire_bytes);
  return {link_time_s(machine, kind, spans.tensor, wire_bytes), exchange_time_s(machine, kind, wire_bytes),
          lane_of(machine, schedule::Group::kTensor), more_issue_s()};
}

namespace {

bool reads_parameter(schedule::OpKind kind) {
  return std::ranges::any_of(plan::traits_of(kind).operands,
                             [](const plan::OperandTraits& o) { return o.role == plan::Role::kHeld; });
}

class TemplateReader {
 public:
  TemplateReader(const plan::StepPlan& plan, const Machine& machine, const BlockTime& time,
                 const schedule::Knobs& knobs, const ContextExchange& exchange, const ExpertExchange& experts,
                 const FrameworkTraits& traits)
      : plan_(plan),
        machine_(machine),
        time_(time),
        knobs_(knobs),
        exchange_(exchange),
        tokens_s_(exchange_s(machine, experts)),
        stops_early_(traits.recompute_stops_early && knobs.checkpoint_layers == 1) {
    if (traits.hides_tensor_backward) beside_ = products_beside_collectives(plan, knobs.overlaps_tensor);
  }

  StepTemplate read() {
    for (const plan::Operation& operation : plan_.operations) {
      last_layer_ = std::max<std::int64_t>(last_layer_, operation.layer);
      if (operation.kind == schedule::OpKind::kRouteForward) layers_of_experts_.insert(operation.layer);
    }
    for (const plan::Operation& operation : plan_.operations) add(operation);
    for (std::size_t unit = 0; knobs_.overlaps_experts && unit < result_.passes.size(); ++unit) hide_exchanges(unit);
    for (auto& of_unit : result_.passes) {
      for (Pass& pass : of_unit) keep_last_ends(pass);
    }
    return std::move(result_);
  }

 private:
  void add(const plan::Operation& operation) {
    if (operation.phase == schedule::Phase::kOptimizer || operation.stream != schedule::Stream::kCompute) return;
    const schedule::Unit unit = unit_of(operation);
    Pass& pass = result_.passes[static_cast<std::size_t>(unit)][static_cast<std::size_t>(kind_of(operation))];
    if (operation.micro_step > 0 && kind_of(operation) != PassKind::kBackwardAgain) return;
    if (is_not_needed(operation)) return;
    const std::optional<SharedAttention> shared = shared_by_ranks(operation);
    if (shared && shared->exposed_s > 0.0) pass.cost.context_comm_s += add_exchange(shared->exposed_s, pass);
    if (tokens_s_ > 0.0 && moves_tokens(operation.kind)) {
      exchanges_[static_cast<std::size_t>(unit)][static_cast<std::size_t>(kind_of(operation))].push_back(
          pass.operations.size());
      pass.cost.expert_comm_s += add_exchange(tokens_s_, pass);
    }
    const double seconds = shared ? shared->compute_s : time_.seconds(operation);
    TemplateOperation& next = pass.operations.emplace_back();
    next.collective = plan::is_collective(operation.kind);
    double exposed_s = seconds;
    if (next.collective) {
      exposed_s = exposed(operation, seconds);
      const plan::GroupSpan span = plan::group_span(plan_, operation.group, 0, machine_.ranks_per_node);
      next.link_s = std::min(exposed_s, link_time_s(machine_, operation.kind, span, operation.wire_bytes));
      next.core_s = exchange_time_s(machine_, operation.kind, operation.wire_bytes);
    }
    next.segment = single(exposed_s, issue_time_s(machine_, operation, knobs_.tensor_ranks, knobs_.pipeline_ranks),
                          next.collective);
    pass.all.append(next.segment);
    if (only_makes_weight_gradients(plan_, operation)) pass.weights_s += seconds;
    add_cost(operation, seconds, pass.cost);
    add_operands(operation, next);
  }

  // The part of a collective of the tensor group that the product beside it does not hide.
  double exposed(const plan::Operation& operation, double seconds) const {
    if (beside_.empty()) return seconds;
    const Beside beside = beside_[static_cast<std::size_t>(&operation - plan_.operations.data())];
    if (beside.product < 0) return seconds;
    const double product_s = time_.seconds(plan_.operations[static_cast<std::size_t>(beside.product)]);
    if (!beside.by_pieces) return exposed_beside_s(seconds, product_s, machine_.overlap_slowdown);
    return exposed_by_pieces_s(seconds, product_s, machine_.overlap_slowdown, static_cast<double>(knobs_.tensor_ranks));
  }

  // The exchanges of a steady state; those of the first and the last passes of a pipeline have nothing beside them,
  // which is left out.
  void hide_exchanges(std::size_t unit) {
    const auto pass_of = [&](PassKind kind) {
      const auto at = static_cast<std::size_t>(kind);
      return PassWithExchanges{result_.passes[unit][at], exchanges_[unit][at]};
    };
    const PassWithExchanges forward = pass_of(PassKind::kForward);
    const TimeAround of_forward = time_around(forward);
    const TimeAround of_backward = time_around(pass_of(PassKind::kBackwardAgain));
    hide(forward, of_backward.between_s, of_backward.outside_s, machine_.overlap_slowdown);
    for (const PassKind kind : {PassKind::kBackward, PassKind::kBackwardAgain})
      hide(pass_of(kind), of_forward.outside_s, of_forward.between_s, machine_.overlap_slowdown);
  }

  // A gradient to which several operations add, as those of a fused loss, ends with the last of them.
  static void keep_last_ends(Pass& pass) {
    std::set<int> ended;
    for (auto at = pass.operations.rbegin(); at != pass.operations.rend(); ++at)
      std::erase_if(at->ends, [&](int tensor) { return !ended.insert(tensor).second; });
  }

  std::optional<SharedAttention> shared_by_ranks(const plan::Operation& operation) const {
    if (!is_shared(exchange_, operation)) return std::nullopt;
    return shared_attention(machine_, operation, exchange_);
  }

  // Of keys and values, as far as attention does not hide it, or of tokens between ranks with other experts. Returns
  // its seconds.
  double add_exchange(double seconds, Pass& pass) const {
    TemplateOperation& next = pass.operations.emplace_back();
    next.collective = true;
    next.link_s = seconds;
    next.segment = single(seconds, machine_.issue_s, true);
    pass.all.append(next.segment);
    return seconds;
  }

  // Layers are of one kind each, in the order of their units. Embedding and head belong to no layer; the head's
  // operations come between the blocks' forward and backward.
  schedule::Unit unit_of(const plan::Operation& operation) {
    if (operation.layer >= 0) {
      forward_is_done_ = operation.phase == schedule::Phase::kForward;
      return schedule::block_unit(static_cast<std::size_t>(operation.layer), static_cast<std::size_t>(last_layer_ + 1));
    }
    return forward_is_done_ ? schedule::Unit::kHead : schedule::Unit::kEmbedding;
  }

  // During recomputation of a layer, nothing after its activation is kept for the backward pass; of experts, nothing
  // after their outputs.
  bool is_not_needed(const plan::Operation& operation) {
    using schedule::OpKind;
    if (!stops_early_ || kind_of(operation) != PassKind::kRecompute) return is_again_ = false;
    const bool is_activation = operation.kind == OpKind::kGeluForward || operation.kind == OpKind::kSwigluForward;
    if (!is_again_ && operation.kind == OpKind::kCombineForward) is_again_ = true;
    if (is_again_) return true;
    is_again_ = is_activation && !layers_of_experts_.contains(operation.layer);
    return false;
  }

  // The recomputation of selective checkpointing is a part of the backward pass, and so is that of the blocks of
  // further tokens.
  PassKind kind_of(const plan::Operation& operation) const {
    if (operation.phase == schedule::Phase::kForward) return PassKind::kForward;
    const bool is_of_block = operation.layer >= 0;
    if (operation.phase == schedule::Phase::kRecompute && knobs_.checkpointing == schedule::Checkpointing::kFull &&
        is_of_block) {
      return PassKind::kRecompute;
    }
    return operation.micro_step == 0 ? PassKind::kBackward : PassKind::kBackwardAgain;
  }

  void add_cost(const plan::Operation& operation, double seconds, PassCost& cost) const {
    if (plan::is_collective(operation.kind)) {
      cost.tensor_comm_s += seconds;
      cost.tensor_wire_bytes += static_cast<double>(operation.wire_bytes);
      return;
    }
    (plan::is_product(operation.kind) ? cost.products_s : cost.memory_bound_s) += seconds;
    if (operation.phase == schedule::Phase::kRecompute) cost.recompute_s += seconds;
  }

  void add_operands(const plan::Operation& operation, TemplateOperation& next) const {
    for (const plan::Operand& operand : operation.operands) {
      const plan::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.range.buffer)];
      if (!buffer.persistent) continue;
      if (buffer.term == schedule::Term::kParameters)
        next.reads.push_back(plan_.tensor_at(buffer.term, operand.range.begin_elems));
      if (buffer.term != schedule::Term::kGradients) continue;
      const int tensor = plan_.tensor_at(buffer.term, operand.range.begin_elems);
      if (operand.access == plan::Access::kWrite) next.begins.push_back(tensor);
      next.ends.push_back(tensor);
      // If parameters are sharded, every unit keeps them through its backward.
      if (reads_parameter(operation.kind)) next.reads.push_back(tensor);
    }
  }

  const plan::StepPlan& plan_;
  const Machine& machine_;
  const BlockTime& time_;
  const schedule::Knobs& knobs_;
  const ContextExchange& exchange_;
  double tokens_s_;  ///< of one exchange of tokens between ranks with other experts
  bool stops_early_;
  std::vector<Beside> beside_;  ///< see products_beside_collectives; empty: nothing is hidden
  /// Where a pass exchanges tokens with experts, by unit and kind.
  std::array<std::array<std::vector<std::size_t>, kPassKindCount>, schedule::kUnitCount> exchanges_;
  StepTemplate result_;
  bool forward_is_done_ = false;
  std::int64_t last_layer_ = 0;
  std::set<std::int64_t> layers_of_experts_;
  bool is_again_ = false;  ///< all that backward needs of the layer that is recomputed
};

}  // namespace

void PassCost::add(const PassCost& other, double times) {
  products_s += times * other.products_s;
  memory_bound_s += times * other.memory_bound_s;
  recompute_s += times * other.recompute_s;
  tensor_comm_s += times * other.tensor_comm_s;
  context_comm_s += times * other.context_comm_s;
  expert_comm_s += times * other.expert_comm_s;
  tensor_wire_bytes += times * other.tensor_wire_bytes;
}

StepTemplate make_template(const workload::Workload& workload, const Machine& machine, const schedule::Knobs& knobs,
                           const plan::StepPlan& plan) {
  const ContextExchange exchange = context_exchange(workload, knobs, machine.ranks_per_node);
  const ExpertExchange experts = expert_exchange(workload, knobs, machine.ranks_per_node);
  const BlockTime time(workload, machine, plan);
  return TemplateReader(plan, machine, time, knobs, exchange, experts, traits_of(workload.framework)).read();
}

}  // namespace krigtune::cost
