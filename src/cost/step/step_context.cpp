#include "step/step_context.h"

#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

std::int64_t sent(OpKind kind, std::int64_t bytes, std::int64_t ranks) {
  return traits_of(kind).wire_passes * bytes * (ranks - 1) / ranks;
}

}  // namespace

Recorder::Collective CostContext::data_collective(OpKind kind, std::int64_t bytes) {
  const std::int64_t wire_bytes = sent(kind, bytes, setting.knobs.data_ranks);
  const double seconds = collective_time_s(machine, kind, data_span, wire_bytes);
  data_comm_s += seconds;
  data_wire_bytes += static_cast<double>(wire_bytes);
  return {link_time_s(machine, kind, data_span, wire_bytes), exchange_time_s(machine, kind, wire_bytes),
          lane_of(machine, Group::kData)};
}

double CostContext::more_issue_s() const {
  Operation operation;
  operation.kind = OpKind::kAllReduce;
  operation.stream = Stream::kReduce;
  operation.group = Group::kTensor;
  return issue_time_s(machine, operation, setting.knobs.tensor_ranks, setting.knobs.pipeline_ranks) - machine.issue_s;
}

Recorder::Collective CostContext::tensor_collective(OpKind kind, std::int64_t bytes) {
  const std::int64_t wire_bytes = sent(kind, bytes, setting.knobs.tensor_ranks);
  const double seconds = collective_time_s(machine, kind, tensor_span, wire_bytes);
  cost.tensor_comm_s += seconds;
  cost.tensor_wire_bytes += static_cast<double>(wire_bytes);
  return {link_time_s(machine, kind, tensor_span, wire_bytes), exchange_time_s(machine, kind, wire_bytes),
          lane_of(machine, Group::kTensor), more_issue_s()};
}

}  // namespace krigtune
