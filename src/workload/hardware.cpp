// The user's own devices and links. An entry starts from the one that it is "like", or from the built-in one of the
// same name.
#include "workload/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"
#include "workload/hardware_tables.h"

namespace krigtune::workload {

// Bandwidths are the line rates of the standards, in bytes per direction and GPU. The latencies of a collective's
// launch and the fraction of the line rate that collectives reach are in experiments/data/interconnects.csv, which
// names its sources.
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
    NetworkLine{"nvlink3-a800", Hop::kNvlink, 10.0, 200e9, 0.78},
    NetworkLine{"nvlink4", Hop::kNvlink, 10.0, 450e9, 0.8},
    NetworkLine{"nvlink4-h800", Hop::kNvlink, 10.0, 200e9, 0.8},
    NetworkLine{"nvlink5", Hop::kNvlink, 10.0, 900e9, 0.82},
    NetworkLine{"xgmi-mi300x", Hop::kNvlink, 12.0, 448e9, 0.7},
    NetworkLine{"xgmi-mi355x", Hop::kNvlink, 12.0, 537.6e9, 0.7},
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

// A named link is as fast as in a cluster of GPUs: what collectives reach of its line rate.
EmulatedNetwork known_network(const Link& link) { return {link.id, link.latency_s, link.level().bytes_per_s}; }

// "emulate_network" given by numbers.
struct NetworkNumbers {
  double latency_s = 0.0;
  double bytes_per_s = 0.0;
};

Block<NetworkNumbers> numbers_block() {
  Block<NetworkNumbers> block("A network by its latency and bandwidth");
  block
      .key("latency_us", &NetworkNumbers::latency_s, in_microseconds(at_least(0)),
           "latency of a collective in microseconds")
      .required();
  block.key("bytes_per_s", &NetworkNumbers::bytes_per_s, number(above(0)), "bandwidth in bytes per second").required();
  return block;
}

// "emulate_network" given by the ids of its links.
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

namespace {

constexpr EnumWords<Hop, 3> kHopWords = {{{"nvlink", Hop::kNvlink}, {"pci", Hop::kPci}, {"network", Hop::kNetwork}}};

template <class Item>
const Item* find(const std::vector<Item>& items, const std::string& id) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.id == id; });
  return found == items.end() ? nullptr : &*found;
}

template <class Item>
std::vector<std::string> ids_of(const std::vector<Item>& items) {
  std::vector<std::string> ids;
  for (const Item& item : items) ids.push_back(item.id);
  return ids;
}

template <class Item>
const Item& required_item(const std::vector<Item>& items, const char* what, const std::string& id,
                          const std::string& where) {
  const std::string wanted = lower_case(id);
  if (const Item* found = find(items, wanted)) return *found;
  throw UserError(fmt::format("{}: the {} '{}' is not known", where, what, id), suggestion(wanted, ids_of(items)));
}

template <class Item>
void put(std::vector<Item>& items, const Item& item) {
  const auto old = std::find_if(items.begin(), items.end(), [&](const Item& known) { return known.id == item.id; });
  if (old == items.end()) {
    items.push_back(item);
  } else {
    *old = item;
  }
}

// Returns the item from which an entry starts; `known` has the candidates.
template <class Item>
Item beginning(JsonObject& object, const char* what, const std::string& id, const std::vector<Item>& known) {
  Item item;
  if (object.has("like")) {
    item = required_item(known, what, object.text("like", ""), object.source() + ": " + object.pointer("like"));
  } else {
    object.find("like");
    if (const Item* same = find(known, id)) item = *same;
  }
  item.id = id;
  return item;
}

Codec<Bytes> gib(const NumberLimits& limits) {
  Codec<double> codec = number(limits);
  return {codec.schema,
          [read = codec.read](JsonObject& object, const std::string& key) { return from_gib(read(object, key)); },
          [](const Bytes& memory) { return json_number(to_gib(memory)); }};
}

constexpr const char* kLikeMeans =
    "a known id, from which missing keys are taken (default: the known one of this name)";
constexpr const char* kOrLike = "add it, or \"like\": an id that has it";

void add_links(Block<DeviceSpec>& block) {
  block
      .key("host_bytes_per_s", &DeviceSpec::host_bytes_per_s, number(above(0)),
           "bandwidth between device and host memory, in bytes/s per direction")
      .no_default();
  block
      .key("interconnect", &DeviceSpec::interconnect, hardware_id(), "the link within a node if the cluster names none")
      .no_default();
  block.key("gpus_per_domain", &DeviceSpec::domain, integer(at_least(0)),
            "GPUs that this link joins, if they are more than a node has; 0: those of a node");
}

// `item` starts as the device that the entry is "like".
Block<DeviceSpec> device_block() {
  const Codec<double> rate = number(above(0));
  const Codec<double> rate_if_any = number(at_least(0));
  const Codec<double> fraction = number(above_up_to(0, 1));
  Block<DeviceSpec> block("A GPU; missing keys are taken from \"like\"");
  block.noted("like", schema::text(), kLikeMeans);
  block.key("memory_gib", &DeviceSpec::memory, gib(above_up_to(0, 1e6)), "memory that a program can use, in GiB")
      .no_default();
  block.key("fp32_flops_per_s", &DeviceSpec::fp32_flops_per_s, rate, "peak rate of dense matrix products, in FLOP/s")
      .no_default();
  block.key("fp16_flops_per_s", &DeviceSpec::fp16_flops_per_s, rate_if_any,
            "peak rate of dense matrix products, in FLOP/s; 0: not supported");
  block.key("bf16_flops_per_s", &DeviceSpec::bf16_flops_per_s, rate_if_any,
            "peak rate of dense matrix products, in FLOP/s; 0: not supported");
  for (const auto& [key, rate_of] : {std::pair("fp8_flops_per_s", &DeviceSpec::fp8_flops_per_s),
                                     std::pair("fp4_flops_per_s", &DeviceSpec::fp4_flops_per_s)})
    block.key(key, rate_of, rate_if_any, "peak rate of dense matrix products, in FLOP/s; 0: not supported");
  block.key("memory_bytes_per_s", &DeviceSpec::memory_bytes_per_s, rate, "peak memory bandwidth in bytes/s")
      .no_default();
  block.key("gemm_fraction", &DeviceSpec::gemm_fraction, fraction,
            "fraction of the peak that large matrix products reach");
  block.key("gemm_half_flops", &DeviceSpec::gemm_half_flops, rate_if_any,
            "size in FLOPs of a matrix product that reaches half of gemm_fraction");
  block.key("attention_fraction", &DeviceSpec::attention_fraction, fraction,
            "fraction of the peak that flash attention reaches");
  block.key("vendor_attention_fraction", &DeviceSpec::vendor_attention_fraction, number(from_to(0, 1)),
            "the same for the vendor's kernel (cuDNN), which Megatron uses, and long sequences; 0: as flash attention");
  block.key("memory_fraction", &DeviceSpec::memory_fraction, fraction,
            "fraction of the peak memory bandwidth that kernels reach");
  block.key("launch_us", &DeviceSpec::launch_s, in_microseconds(at_least(0)), "launch of one kernel, in microseconds");
  add_links(block);
  block.check([](JsonObject& object, DeviceSpec& device) {
    for (const auto& [key, value] : {std::pair("memory_gib", static_cast<double>(device.memory.count)),
                                     std::pair("fp32_flops_per_s", device.fp32_flops_per_s),
                                     std::pair("memory_bytes_per_s", device.memory_bytes_per_s),
                                     std::pair("host_bytes_per_s", device.host_bytes_per_s)}) {
      if (!(value > 0.0)) object.fail(key, "is missing", kOrLike);
    }
  });
  return block;
}

Block<Link> link_block() {
  Block<Link> block("A link; missing keys are taken from \"like\"");
  block.noted("like", schema::text(), kLikeMeans);
  block.key("kind", &Link::hop, one_of(kHopWords), "the kind of link");
  block.key("latency_us", &Link::latency_s, in_microseconds(at_least(0)), "latency of a collective, in microseconds");
  block.key("bytes_per_s", &Link::bytes_per_s, number(above(0)), "line rate in bytes/s, per direction and GPU")
      .no_default();
  block.key("reached", &Link::reached, number(above_up_to(0, 1)), "fraction of the line rate that collectives reach");
  block.check([](JsonObject& object, Link& link) {
    if (!(link.bytes_per_s > 0.0)) object.fail("bytes_per_s", "is missing", kOrLike);
  });
  return block;
}

DeviceSpec read_device(JsonObject& object, const std::string& id, const Hardware& known) {
  DeviceSpec device = beginning(object, "GPU", id, known.devices);
  device_block().read(object, device);
  return device;
}

Link read_link(JsonObject& object, const std::string& id, const Hardware& known) {
  Link link = beginning(object, "link", id, known.links);
  link_block().read(object, link);
  return link;
}

// Entries may be "like" earlier ones of the same file.
void for_each_entry(JsonObject& root, const char* key,
                    const std::function<void(JsonObject&, const std::string&)>& read_entry) {
  if (!root.has(key)) return static_cast<void>(root.find(key));
  const JsonObject entries = root.object(key);
  for (const auto& [name, json] : entries.value().items()) {
    JsonObject entry(json, root.source(), entries.pointer(name));
    if (name.empty() || lower_case(name) == "local") entries.fail(name, "is not a name for it", "give it another");
    read_entry(entry, lower_case(name));
  }
}

// The bandwidth already includes the fraction that collectives reach.
Json link_json(Hop hop, double latency_s, double bytes_per_s) {
  Link link;
  link.hop = hop;
  link.latency_s = latency_s;
  link.bytes_per_s = bytes_per_s;
  return link_block().written(link);
}

void add_if_own(Json& gpus, const DeviceSpec& device) {
  const std::vector<DeviceSpec> known = known_devices();
  const DeviceSpec* same = find(known, device.id);
  if (same == nullptr || !(*same == device)) gpus[device.id] = device_block().written(device);
}

void add_if_own(Json& links, const Link& link) {
  const std::vector<Link> known = known_links();
  const Link* same = find(known, link.id);
  const Json json = link_block().written(link);
  if (same == nullptr || link_block().written(*same) != json) links[link.id] = json;
}

void add_if_own(Json& links, const NetworkLevel& level) {
  const std::vector<Link> known = known_links();
  const Link* link = find(known, level.name);
  if (link != nullptr && link->level() == level) return;
  links[level.name] = link_json(level.hop, level.latency_s, level.bytes_per_s);
}

void add_if_own(Json& links, const EmulatedNetwork& network) {
  if (network.nodes) {
    add_if_own(links, network.nodes->intra);
    add_if_own(links, network.nodes->inter);
  } else if (!is_stated(network)) {
    const std::vector<Link> known = known_links();
    const Link* link = find(known, network.name);
    const bool is_known = link != nullptr && link->latency_s == network.latency_s;
    if (is_known && link->level().bytes_per_s == network.bytes_per_s) return;
    links[network.name] = link_json(Hop::kNetwork, network.latency_s, network.bytes_per_s);
  }
}

}  // namespace

const DeviceSpec& Hardware::device(const std::string& id, const std::string& where) const {
  if (const DeviceSpec* own = find(devices, lower_case(id))) return *own;
  const std::string named = device_id_named(id);
  return required_item(devices, "GPU", named.empty() ? id : named, where);
}
const Link& Hardware::link(const std::string& id, const std::string& where) const {
  return required_item(links, "network", id, where);
}
std::vector<std::string> Hardware::device_ids() const { return ids_of(devices); }
std::vector<std::string> Hardware::link_ids() const { return ids_of(links); }

const MeasuredMachine* Hardware::measured(std::int64_t ranks, Precision precision) const {
  const auto found = std::find_if(local.begin(), local.end(), [&](const MeasuredMachine& machine) {
    return machine.key.ranks == ranks && machine.key.precision == precision;
  });
  return found == local.end() ? nullptr : &*found;
}

namespace {

void read_local_machines(JsonObject& root, Hardware& hardware) {
  const Json* list = root.find("local");
  if (list == nullptr) return;
  if (!list->is_array()) root.fail("local", "a list was expected", "write what krigtune doctor --measure wrote");
  for (std::size_t i = 0; i < list->size(); ++i) {
    hardware.local.push_back(
        read_measured_machine((*list)[i], root.source(), fmt::format("{}/{}", root.pointer("local"), i)));
  }
}

}  // namespace

Hardware read_hardware(const Json* json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir) {
  Hardware hardware{known_devices(), known_links()};
  if (json == nullptr) return hardware;
  if (!json->is_string() && !json->is_object()) {
    throw UserError(
        fmt::format("{}: {}: the name of a file or an object was expected, not {}", source, pointer, json->type_name()),
        "write \"my.json\" or {\"gpus\": {...}, \"links\": {...}}");
  }
  const bool in_file = json->is_string();
  const std::filesystem::path file = in_file ? base_dir / json->get<std::string>() : std::filesystem::path();
  const Json document = in_file ? load_json(file) : *json;
  JsonObject root(document, in_file ? file.string() : source, in_file ? "" : pointer);
  for_each_entry(root, "links", [&](JsonObject& entry, const std::string& id) {
    put(hardware.links, read_link(entry, id, hardware));
  });
  for_each_entry(root, "gpus", [&](JsonObject& entry, const std::string& id) {
    put(hardware.devices, read_device(entry, id, hardware));
  });
  read_local_machines(root, hardware);
  root.finish();
  return hardware;
}

Json hardware_schema() {
  return schema::either(
      {schema::text("the file"),
       schema::object("GPUs and links by their ids, which can be used like the known ones",
                      {{"gpus", schema::map(device_block().schema(), "GPUs, by id")},
                       {"links", schema::map(link_block().schema(), "links, by id")},
                       {"local", schema::list(Json{{"type", "object"}},
                                              "for gpu \"local\": CPU ranks as measured by krigtune doctor --measure, "
                                              "one entry for each number of ranks and precision")}})});
}

Json hardware_json(const DeviceSpec& device) { return device_block().written(device); }
Json hardware_json(const Link& link) { return link_block().written(link); }

Json own_hardware(const ClusterSpec& cluster) {
  Json gpus = Json::object();
  Json links = Json::object();
  Json local = Json::array();
  if (cluster.device && cluster.gpu != "local") add_if_own(gpus, *cluster.device);
  if (cluster.hardware) {
    for (const DeviceSpec& device : cluster.hardware->devices) add_if_own(gpus, device);
    for (const Link& link : cluster.hardware->links) add_if_own(links, link);
    for (const MeasuredMachine& machine : cluster.hardware->local) local.push_back(to_json(machine));
  }
  if (cluster.network) {
    add_if_own(links, cluster.network->intra);
    add_if_own(links, cluster.network->inter);
  }
  if (cluster.emulated_network) add_if_own(links, *cluster.emulated_network);
  Json json;
  if (!gpus.empty()) json["gpus"] = gpus;
  if (!links.empty()) json["links"] = links;
  if (!local.empty()) json["local"] = local;
  return json;
}

}  // namespace krigtune::workload
