// Limits of ranks that work together: exposed communication, by the group that communicates, and pipelines. With the
// times of the models, x(...) is what is exposed:
//
//   x(tensor), x(experts)   their collectives and exchanges, less what travels beside products or another micro-batch:
//                           what would be exposed more without that overlap
//   x(context)              what attention does not hide of the exchange of a sequence
//   x(pipeline)             sends between stages
//   x(data)                 the rest of what is exposed
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cost/context_split.h"
#include "cost/expert_split.h"
#include "cost/framework.h"
#include "cost/time/framework_step.h"
#include "diagnose/judge.h"
#include "schedule/knobs.h"
#include "session/memory_filter.h"
#include "space/well_known.h"

namespace krigtune::diagnose {
namespace {

// Returns why data-parallel communication is exposed, judging by the change that would help.
Reason reason_of(const Advice& advice) {
  for (const Change& change : advice.changes) {
    if (change.parameter == space::kOverlap || change.parameter == space::kMoeOverlap) return Reason::kNoOverlap;
    const bool is_bucket = change.parameter == space::kReduceBucket || change.parameter == space::kAllgatherBucket ||
                           change.parameter == space::kPrefetch;
    if (is_bucket) {
      return space::as_number(change.after) > space::as_number(change.before) ? Reason::kSmallBuckets
                                                                              : Reason::kLargeBuckets;
    }
    if (change.parameter == space::kZeroStage) return Reason::kSharding;
    if (change.parameter == space::kMicroBatch || change.parameter == space::kAccumulation) {
      return Reason::kLittleAccumulation;
    }
  }
  return Reason::kBandwidth;
}

bool is_mere_setting(const Advice& advice) {
  const Reason reason = reason_of(advice);
  return advice.changes.size() == 1 &&
         (reason == Reason::kNoOverlap || reason == Reason::kSmallBuckets || reason == Reason::kLargeBuckets);
}

// The reason is a mere setting if changing it gains at least half of what the best change gains; otherwise it is what
// the best change changes. The advice for the reason moves to the front.
Reason settle_reason(std::vector<Advice>& advice) {
  constexpr double kHalf = 0.5;
  if (advice.empty()) return Reason::kBandwidth;
  double most = 0.0;
  for (const Advice& one : advice) most = std::max(most, std::log(one.speedup));
  const auto setting = std::find_if(advice.begin(), advice.end(), [&](const Advice& one) {
    return is_mere_setting(one) && std::log(one.speedup) >= kHalf * most;
  });
  if (setting != advice.end()) std::rotate(advice.begin(), setting, setting + 1);
  return reason_of(advice.front());
}

std::string text_of(Reason reason) {
  switch (reason) {
    case Reason::kNoOverlap:
      return "gradients are not reduced while the backward pass goes on";
    case Reason::kSmallBuckets:
      return "buckets are so small that latency adds up";
    case Reason::kLargeBuckets:
      return "buckets are so large that the first is full too late to be hidden";
    case Reason::kLittleAccumulation:
      return "a micro-step, or a step, has too little work to hide it";
    case Reason::kSharding:
      return "another ZeRO stage sends less of it, or hides more";
    case Reason::kSlowNetwork:
      return "the network is slower than the session says";
    default:
      return "these links take that long for the data that is sent";
  }
}

// Returns the knobs of a configuration, which is modelled, with its framework's usual settings.
schedule::Knobs knobs_of(const JobModel& model, const space::Configuration& configuration) {
  const session::Session& session = model.session();
  return schedule::modelled(cost::framework_step_of(cost::in_framework_dialect(*session.workload), session.cluster,
                                                    session::modelled_part(configuration)))
      .knobs;
}

std::string across_text(const workload::ClusterSpec& cluster) {
  const bool is_node = cluster.domain() == cluster.gpus_per_node;
  return fmt::format("; {}, which have {} ranks each", is_node ? "they cross nodes" : "they leave the fast links",
                     cluster.domain());
}

std::string exchange_text(schedule::ContextKind kind, std::int64_t ranks, const std::string& duration) {
  switch (kind) {
    case schedule::ContextKind::kRing:
      return fmt::format("keys and values go round {} ranks, and take {} longer than the attention beside them", ranks,
                         duration);
    case schedule::ContextKind::kAllGather:
      return fmt::format(
          "{} ranks gather the keys and values of a sequence before attention for {}, and no kernel can "
          "run during them",
          ranks, duration);
    case schedule::ContextKind::kAllToAll:
    case schedule::ContextKind::kAllToAllAndRing:
      break;
  }
  return fmt::format(
      "{} ranks exchange tokens for heads before attention, and back, for {}, and no kernel can run "
      "during them",
      ranks, duration);
}

// "4 pipeline ranks of 2 stages (zb-v)".
std::string pipeline_text(const schedule::Knobs& knobs) {
  const std::int64_t each = knobs.virtual_stages;
  const std::string who = each == 1 ? fmt::format("{} pipeline stages", knobs.pipeline_ranks)
                                    : fmt::format("{} pipeline ranks of {} stages", knobs.pipeline_ranks, each);
  const bool is_plain = knobs.pipeline_schedule == schedule::PipelineSchedule::kOneForwardOneBackward;
  return fmt::format("{} ({}{})", who, is_plain && each > 1 ? "interleaved " : "",
                     is_plain ? "1F1B" : schedule::to_string(knobs.pipeline_schedule));
}

}  // namespace

double Judge::exposed_part_s(double all_s, const char* overlap) const {
  if (configuration_.find(overlap) == nullptr || *configuration_.find(overlap) != space::Value(true)) return all_s;
  space::Configuration alone = configuration_;
  alone.set(overlap, false);
  const std::optional<Prediction> without = model_.predict(alone);
  const double hidden_s = without ? without->cost.exposed_comm_s - cost_.exposed_comm_s : 0.0;
  return std::clamp(all_s - hidden_s, 0.0, all_s);
}

void Judge::look_at_communication() {
  const double tensor_s = exposed_part_s(cost_.tensor_comm_s, space::kTensorOverlap);
  const double expert_s = exposed_part_s(cost_.expert_comm_s, space::kMoeOverlap);
  const double others_s = tensor_s + expert_s + cost_.context_comm_s + cost_.pipeline_comm_s;
  look_at_data_communication(std::max(0.0, cost_.exposed_comm_s - others_s));
  look_at_tensor_communication(tensor_s);
  look_at_context_communication();
  look_at_expert_communication(expert_s);
  look_at_sends_between_stages();
}

void Judge::look_at_data_communication(double exposed_s) {
  const double share = share_of(exposed_s);
  if (share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kDataCommunication, share, share, thresholds_.share,
                         "exposed communication of data parallelism / step time");
  verdict.advice = advice_from({{space::kOverlap},
                                {space::kReduceBucket},
                                {space::kAllgatherBucket},
                                {space::kPrefetch},
                                {space::kZeroStage},
                                {space::kMicroBatch},
                                {space::kAccumulation},
                                {space::kTensorParallel},
                                {space::kZeroStage, space::kMicroBatch}});
  verdict.reason = settle_reason(verdict.advice);
  if (seen_ != nullptr && network_factor() >= thresholds_.slow_network) {
    cost::TimeCalibration factors = model_.factors();
    factors.collectives = kernel_factor();
    verdict.reason = Reason::kSlowNetwork;
    verdict.number = network_factor();
    verdict.threshold = thresholds_.slow_network;
    verdict.quantity = "collectives as measured / collectives as stated";
    if (const std::optional<Prediction> stated = model_.with(configuration_, factors)) {
      put_first(verdict, fixed("if the network reached the speed that the session states", *stated));
    }
  }
  verdict.sentence = fmt::format("data-parallel communication while no kernel runs takes {} per step, of {} in all: {}",
                                 duration_text(exposed_s), duration_text(cost_.data_comm_s), text_of(verdict.reason));
  if (verdict.reason == Reason::kSlowNetwork) {
    verdict.sentence += fmt::format(", collectives take {:.2g} times as long", network_factor());
  }
}

void Judge::look_at_tensor_communication(double exposed_s) {
  const double share = share_of(exposed_s);
  if (share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kTensorCommunication, share, share, thresholds_.share,
                         "exposed communication of tensor parallelism / step time");
  const std::int64_t ranks = configuration_.integer(space::kTensorParallel, 1);
  const std::int64_t per_node = model_.session().cluster.gpus_per_node;
  const bool across = model_.session().cluster.nodes > 1 && ranks > per_node;
  verdict.reason = across ? Reason::kAcrossNodes : Reason::kBandwidth;
  verdict.sentence = fmt::format("collectives of each layer over {} ranks take {}, and no kernel can run during them",
                                 ranks, duration_text(exposed_s));
  if (across) verdict.sentence += fmt::format("; they cross nodes, which have {} ranks each", per_node);
  verdict.advice = advice_from({{space::kTensorParallel},
                                {space::kSequenceParallel},
                                {space::kTensorOverlap},
                                {space::kTensorParallel, space::kMicroBatch},
                                {space::kTensorParallel, space::kCheckpointing},
                                {space::kTensorParallel, space::kZeroStage},
                                {space::kTensorParallel, space::kPipelineParallel}});
}

void Judge::look_at_context_communication() {
  const double share = share_of(cost_.context_comm_s);
  if (share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kContextCommunication, share, share, thresholds_.share,
                         "exposed communication of context parallelism / step time");
  const workload::ClusterSpec& cluster = model_.session().cluster;
  const schedule::Knobs knobs = knobs_of(model_, configuration_);
  const cost::ContextExchange exchange = cost::context_exchange(*model_.session().workload, knobs, cluster.domain());
  const bool across = exchange.span.nodes > 1 || exchange.head_ranks_per_node < exchange.head_ranks;
  verdict.reason = across ? Reason::kAcrossNodes : Reason::kBandwidth;
  verdict.sentence = exchange_text(knobs.context_kind, knobs.context_ranks, duration_text(cost_.context_comm_s));
  if (across) verdict.sentence += across_text(cluster);
  verdict.advice = advice_from({{space::kContextKind},
                                {space::kContextParallel},
                                {space::kTensorParallel},
                                {space::kCheckpointing},
                                {space::kContextKind, space::kContextParallel},
                                {space::kContextParallel, space::kMicroBatch},
                                {space::kContextParallel, space::kTensorParallel},
                                {space::kContextParallel, space::kCheckpointing},
                                {space::kContextParallel, space::kZeroStage}});
}

void Judge::look_at_expert_communication(double exposed_s) {
  const double share = share_of(exposed_s);
  if (share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kExpertCommunication, share, share, thresholds_.share,
                         "exposed communication of expert parallelism / step time");
  const workload::ClusterSpec& cluster = model_.session().cluster;
  const schedule::Knobs knobs = knobs_of(model_, configuration_);
  const cost::ExpertExchange exchange = cost::expert_exchange(*model_.session().workload, knobs, cluster.domain());
  const bool across = exchange.ranks_per_node < exchange.ranks;
  verdict.advice = advice_from({{space::kMoeOverlap},
                                {space::kMoeDispatch},
                                {space::kExpertParallel},
                                {space::kExpertTensorParallel},
                                {space::kCheckpointing},
                                {space::kMoeOverlap, space::kCheckpointing},
                                {space::kMoeOverlap, space::kVirtualPipeline},
                                {space::kMoeOverlap, space::kMoeDispatch},
                                {space::kExpertParallel, space::kTensorParallel},
                                {space::kExpertParallel, space::kPipelineParallel},
                                {space::kExpertParallel, space::kMicroBatch}});
  const bool is_late = !across && !verdict.advice.empty() && reason_of(verdict.advice.front()) == Reason::kNoOverlap;
  verdict.reason = across ? Reason::kAcrossNodes : is_late ? Reason::kNoOverlap : Reason::kBandwidth;
  verdict.sentence = fmt::format("tokens travel to the experts of {} ranks and back for {} while no kernel runs",
                                 knobs.expert_ranks, duration_text(exposed_s));
  constexpr double kNearlyAll = 0.99;
  if (exposed_s < kNearlyAll * cost_.expert_comm_s)
    verdict.sentence += fmt::format(", of {} in all", duration_text(cost_.expert_comm_s));
  if (is_late) verdict.sentence += "; they could travel while another micro-batch is computed";
  if (across) verdict.sentence += across_text(cluster);
}

void Judge::look_at_sends_between_stages() {
  const double share = share_of(cost_.pipeline_comm_s);
  if (share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kPipelineCommunication, share, share, thresholds_.share,
                         "time of sends between pipeline stages / step time");
  verdict.sentence = fmt::format("sends between pipeline stages take {}", duration_text(cost_.pipeline_comm_s));
  verdict.advice = advice_from(
      {{space::kPipelineParallel}, {space::kVirtualPipeline}, {space::kMicroBatch}, {space::kAccumulation}});
}

void Judge::look_at_the_pipeline() {
  const double share = share_of(cost_.bubble_s);
  if (share < thresholds_.share) return;
  Verdict& verdict =
      add(Limit::kPipelineBubble, share, share, thresholds_.share, "time of stages without work / step time");
  const schedule::Knobs knobs = knobs_of(model_, configuration_);
  verdict.sentence = fmt::format("{} fill and drain around {} micro-steps, and are idle for {} per step",
                                 pipeline_text(knobs), knobs.micro_steps, duration_text(cost_.bubble_s));
  verdict.advice = advice_from({{space::kMicroBatch},
                                {space::kPipelineParallel},
                                {space::kVirtualPipeline},
                                {space::kPipelineSchedule},
                                {space::kAccumulation},
                                {space::kVirtualPipeline, space::kMicroBatch},
                                {space::kPipelineSchedule, space::kMicroBatch},
                                {space::kPipelineParallel, space::kMicroBatch},
                                {space::kPipelineParallel, space::kTensorParallel},
                                {space::kPipelineParallel, space::kCheckpointing}});
}

}  // namespace krigtune::diagnose
