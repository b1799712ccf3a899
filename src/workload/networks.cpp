// Bandwidths are the line rates of the standards, in bytes a direction and GPU. Latencies of a collective's launch and
// the fraction of the line rate that collectives reach: experiments/data/interconnects.csv, which names its sources.
#include "networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

struct NetworkLine {
  std::string_view id;
  Hop hop;
  double latency_us;
  double bytes_per_s;
  double reached;  ///< of the line rate
};
constexpr std::array kNetworkLines = {
    NetworkLine{"nvlink2", Hop::kNvlink, 8.0, 150e9, 0.85},
    NetworkLine{"nvlink3", Hop::kNvlink, 10.0, 300e9, 0.78},
    NetworkLine{"nvlink4", Hop::kNvlink, 10.0, 450e9, 0.8},
    NetworkLine{"nvlink5", Hop::kNvlink, 10.0, 900e9, 0.82},
    NetworkLine{"xgmi-mi300x", Hop::kNvlink, 12.0, 448e9, 0.7},
    NetworkLine{"nvlink-bridge", Hop::kNvlink, 10.0, 300e9, 0.75},
    NetworkLine{"pcie3", Hop::kPci, 10.0, 15.75e9, 0.75},
    NetworkLine{"pcie4", Hop::kPci, 10.0, 31.5e9, 0.75},
    NetworkLine{"pcie5", Hop::kPci, 10.0, 63e9, 0.75},
    NetworkLine{"eth-10", Hop::kNetwork, 30.0, 1.25e9, 0.9},
    NetworkLine{"eth-25", Hop::kNetwork, 30.0, 3.125e9, 0.85},
    NetworkLine{"eth-100", Hop::kNetwork, 12.0, 12.5e9, 0.85},
    NetworkLine{"ib-edr-100", Hop::kNetwork, 5.0, 12.5e9, 0.9},
    NetworkLine{"ib-hdr-200", Hop::kNetwork, 5.0, 25e9, 0.9},
    NetworkLine{"ib-ndr-400", Hop::kNetwork, 5.0, 50e9, 0.9},
    NetworkLine{"ib-xdr-800", Hop::kNetwork, 5.0, 100e9, 0.9},
    NetworkLine{"efa-p4d", Hop::kNetwork, 20.0, 6.25e9, 0.75},
    NetworkLine{"efa-p5", Hop::kNetwork, 20.0, 50e9, 0.75},
};

EmulatedNetwork known_network(const Link& link) { return {link.id, link.latency_s, link.bytes_per_s}; }

// "emulate_network" by its numbers.
struct NetworkNumbers {
  double latency_s = 0.0;
  double bytes_per_s = 0.0;
};

Block<NetworkNumbers> numbers_block() {
  Block<NetworkNumbers> block("A network by its numbers");
  block.key("latency_us", &NetworkNumbers::latency_s, in_microseconds(at_least(0)), "microseconds a collective")
      .required();
  block.key("bytes_per_s", &NetworkNumbers::bytes_per_s, number(above(0)), "bytes a second").required();
  return block;
}

// "emulate_network" by the ids of its links.
struct LinkIds {
  std::string intra;
  std::string inter;
};

Block<LinkIds> links_block() {
  Codec<std::string> id = text();
  id.schema = schema::either({schema::word(network_names(), "a known link"), schema::text("one of \"hardware\"")});
  Block<LinkIds> block("Links within nodes and between them");
  block.key("intra", &LinkIds::intra, id, "within a node").required();
  block.key("inter", &LinkIds::inter, id, "between nodes").required();
  return block;
}

EmulatedNetwork node_network(JsonObject& object, std::int64_t ranks_per_node, const Hardware& hardware) {
  LinkIds ids;
  links_block().read(object, ids);
  const auto where = [&](const char* key) { return object.source() + ": " + object.pointer(key); };
  NodeNetwork nodes{hardware.link(ids.intra, where("intra")).level(), hardware.link(ids.inter, where("inter")).level(),
                    ranks_per_node};
  const NetworkLevel& slower = nodes.intra.bytes_per_s < nodes.inter.bytes_per_s ? nodes.intra : nodes.inter;
  const EmulatedNetwork network{nodes.intra.name + " + " + nodes.inter.name, slower.latency_s, slower.bytes_per_s};
  return {network.name, network.latency_s, network.bytes_per_s, std::move(nodes)};
}

std::string stated_name(double latency_us, double bytes_per_s) {
  return fmt::format("{} us + {} MB/s", number_text(latency_us), number_text(bytes_per_s / 1e6));
}

}  // namespace

double microseconds(double seconds) {
  const double raw = seconds * kMicroseconds;
  const double rounded = std::round(raw * kMicroseconds) / kMicroseconds;
  return rounded / kMicroseconds == seconds ? rounded : raw;
}

Codec<std::string> hardware_id() {
  Codec<std::string> codec = text();
  codec.read = [](JsonObject& object, const std::string& key) { return lower_case(object.text(key, "")); };
  return codec;
}

Codec<double> in_microseconds(const NumberLimits& limits_us) {
  Codec<double> codec = number(limits_us);
  codec.read = [read = codec.read](JsonObject& object, const std::string& key) {
    return read(object, key) / kMicroseconds;
  };
  codec.write = [](const double& seconds) { return json_number(microseconds(seconds)); };
  return codec;
}

std::vector<Link> known_links() {
  std::vector<Link> links;
  for (const NetworkLine& line : kNetworkLines) {
    links.push_back({std::string(line.id), line.hop, line.latency_us / kMicroseconds, line.bytes_per_s, line.reached});
  }
  return links;
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const NetworkLine& line : kNetworkLines) names.emplace_back(line.id);
  return names;
}

EmulatedNetwork read_network(const Json& json, const std::string& source, const std::string& pointer,
                             std::int64_t ranks_per_node, const Hardware& hardware) {
  if (json.is_string()) return known_network(hardware.link(json.get<std::string>(), source + ": " + pointer));
  JsonObject object(json, source, pointer);
  if (object.has("intra") || object.has("inter")) return node_network(object, ranks_per_node, hardware);
  NetworkNumbers numbers;
  numbers_block().read(object, numbers);
  return {stated_name(microseconds(numbers.latency_s), numbers.bytes_per_s), numbers.latency_s, numbers.bytes_per_s};
}

Json network_schema() {
  return schema::either({schema::word(network_names(), "a known network (upper and lower case are alike)"),
                         numbers_block().schema(), links_block().schema(), schema::text("a link of \"hardware\"")});
}

bool is_stated(const EmulatedNetwork& network) {
  return !network.nodes && network.name == stated_name(microseconds(network.latency_s), network.bytes_per_s);
}

Json to_json(const EmulatedNetwork& network) {
  if (network.nodes) return {{"intra", network.nodes->intra.name}, {"inter", network.nodes->inter.name}};
  if (!is_stated(network)) return network.name;
  return numbers_block().written({network.latency_s, network.bytes_per_s});
}

}  // namespace krigtune
