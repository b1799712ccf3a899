// A flat network: the alpha-beta model (Hockney 1994), t = alpha + w / beta, w = bytes that a rank sends.
//
// A network with nodes: NCCL's own model of a ring (2.28.9, src/graph/tuning.cc), the fastest of its three protocols p:
//
//   t_p = base_p + (steps - crossings) hop_p(intra) + crossings (hop_p(network) + c_p latency) + w / (f_p B)
//   steps = n - 1 (reduce-scatter, all-gather), 2 (n - 1) (all-reduce);   crossings = nodes - 1, or twice that
//   B = bandwidth of the ring: intra within a node, else min(intra, m inter), m ranks a node, each with a card of its
//   own f = 1/2 (LL; at most a limit that falls with the nodes), 0.92 (LL128), 1 (Simple);   c = 2 for Simple, else 1
//
// With S = the whole range, w = (n - 1) / n S per pass, so that w / B is S / algbw with nccl-tests' busbw = B.
#include "plan/collective_time.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

constexpr double kMicrosecond = 1e-6;

struct Protocol {
  double base_us;
  std::array<double, 3> hop_us;  ///< by Hop
  double cards;                  ///< how often the latency of the network cards counts at a crossing
  double fraction;
};
constexpr std::array kProtocols = {Protocol{6.6, {0.6, 1.0, 2.7}, 1.0, 0.5},    // LL
                                   Protocol{14.0, {1.9, 2.5, 4.0}, 1.0, 0.92},  // LL128
                                   Protocol{8.4, {3.4, 5.7, 14.0}, 2.0, 1.0}};  // Simple

// Upper limit of the bandwidth fraction with a flag beside every word: the values for Hopper.
double most_with_ll(std::int64_t nodes) {
  if (nodes == 1) return 141e9;
  return nodes == 2 ? 45e9 : 35e9;
}

double ring_bytes_per_s(const workload::NodeNetwork& network, const GroupSpan& span) {
  if (span.nodes == 1) return network.intra.bytes_per_s;
  const double cards = network.inter.bytes_per_s * static_cast<double>(span.ranks_per_node);
  // A ring with one rank per node uses no links within nodes.
  return span.ranks_per_node == 1 ? cards : std::min(network.intra.bytes_per_s, cards);
}

double ring_time_s(const workload::NodeNetwork& network, schedule::OpKind kind, const GroupSpan& span,
                   std::int64_t wire_bytes) {
  const double passes = traits_of(kind).wire_passes;
  const double steps = passes * static_cast<double>(span.ranks - 1);
  const double crossings = passes * static_cast<double>(span.nodes - 1);
  const auto intra = static_cast<std::size_t>(network.intra.hop);
  const auto inter = static_cast<std::size_t>(network.inter.hop);
  double fastest_s = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : kProtocols) {
    double bytes_per_s = protocol.fraction * ring_bytes_per_s(network, span);
    if (&protocol == kProtocols.data()) bytes_per_s = std::min(bytes_per_s, most_with_ll(span.nodes));
    const double crossing_s = protocol.hop_us[inter] * kMicrosecond + protocol.cards * network.inter.latency_s;
    const double hops_s = (steps - crossings) * protocol.hop_us[intra] * kMicrosecond + crossings * crossing_s;
    fastest_s =
        std::min(fastest_s, protocol.base_us * kMicrosecond + hops_s + static_cast<double>(wire_bytes) / bytes_per_s);
  }
  return fastest_s;
}

}  // namespace

GroupSpan group_span(const StepPlan& plan, schedule::Group group, std::int64_t world_rank,
                     std::int64_t ranks_per_node) {
  const std::int64_t data_rank = world_rank / plan.tensor_ranks;
  const std::int64_t tensor_rank = world_rank % plan.tensor_ranks;
  std::map<std::int64_t, std::int64_t> on_node;
  for (std::int64_t r = 0; r < plan.group_ranks(group); ++r) {
    const std::int64_t world =
        group == schedule::Group::kData ? r * plan.tensor_ranks + tensor_rank : data_rank * plan.tensor_ranks + r;
    ++on_node[world / ranks_per_node];
  }
  GroupSpan span{plan.group_ranks(group), static_cast<std::int64_t>(on_node.size()), plan.group_ranks(group)};
  for (const auto& [node, ranks] : on_node) span.ranks_per_node = std::min(span.ranks_per_node, ranks);
  return span;
}

double collective_time_s(const workload::EmulatedNetwork& network, schedule::OpKind kind, const GroupSpan& span,
                         std::int64_t wire_bytes) {
  if (wire_bytes == 0) return 0.0;
  if (network.nodes) return ring_time_s(*network.nodes, kind, span, wire_bytes);
  return network.latency_s + static_cast<double>(wire_bytes) / network.bytes_per_s;
}

}  // namespace krigtune::plan
