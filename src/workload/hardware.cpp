// The user's own devices and links. An entry begins as the one that it is "like", or as the built-in one of its name.
#include "hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "krigtune/core/block.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "networks.h"

namespace krigtune {
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

// What the entry begins as; `known`: among these.
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

constexpr const char* kLikeMeans = "an id to begin with (default: the known one of this name)";
constexpr const char* kOrLike = "add it, or \"like\": an id that has it";

// `item` begins as what it is like.
Block<DeviceSpec> device_block() {
  const Codec<double> rate = number(above(0));
  const Codec<double> rate_if_any = number(at_least(0));
  const Codec<double> fraction = number(above_up_to(0, 1));
  Block<DeviceSpec> block("A GPU; what is left out is that of \"like\"");
  block.noted("like", schema::text(), kLikeMeans);
  block.key("memory_gib", &DeviceSpec::memory, gib(above_up_to(0, 1e6)), "GiB that a program sees").no_default();
  block.key("fp32_flops_per_s", &DeviceSpec::fp32_flops_per_s, rate, "dense, at the most").no_default();
  block.key("fp16_flops_per_s", &DeviceSpec::fp16_flops_per_s, rate_if_any, "dense, at the most; 0: not supported");
  block.key("bf16_flops_per_s", &DeviceSpec::bf16_flops_per_s, rate_if_any, "dense, at the most; 0: not supported");
  block.key("memory_bytes_per_s", &DeviceSpec::memory_bytes_per_s, rate, "of its memory").no_default();
  block.key("gemm_fraction", &DeviceSpec::gemm_fraction, fraction, "of the peak that large matrix products reach");
  block.key("gemm_half_flops", &DeviceSpec::gemm_half_flops, rate_if_any,
            "a product of so many FLOPs reaches half of that");
  block.key("attention_fraction", &DeviceSpec::attention_fraction, fraction,
            "of the peak that flash attention reaches");
  block.key("memory_fraction", &DeviceSpec::memory_fraction, fraction, "of the memory's rate that kernels reach");
  block.key("launch_us", &DeviceSpec::launch_s, in_microseconds(at_least(0)), "of one kernel");
  block.key("host_bytes_per_s", &DeviceSpec::host_bytes_per_s, rate, "between device and host memory, a direction")
      .no_default();
  block
      .key("interconnect", &DeviceSpec::interconnect, hardware_id(),
           "the link within a node where the cluster names none")
      .no_default();
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
  Block<Link> block("A link; what is left out is that of \"like\"");
  block.noted("like", schema::text(), kLikeMeans);
  block.key("kind", &Link::hop, one_of(kHopWords), "what it is");
  block.key("latency_us", &Link::latency_s, in_microseconds(at_least(0)), "of a collective's launch");
  block.key("bytes_per_s", &Link::bytes_per_s, number(above(0)), "line rate, a direction and GPU").no_default();
  block.key("reached", &Link::reached, number(above_up_to(0, 1)), "of the line rate, by collectives");
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

// Entries may be like earlier ones of the same file.
void for_each_entry(JsonObject& root, const char* key,
                    const std::function<void(JsonObject&, const std::string&)>& read_entry) {
  if (!root.has(key)) return static_cast<void>(root.find(key));
  const JsonObject entries = root.object(key);
  for (const auto& [name, json] : entries.value().items()) {
    JsonObject entry(json, root.source(), entries.pointer(name));
    if (name.empty() || lower_case(name) == "local") entries.fail(name, "is no name for it", "give it another");
    read_entry(entry, lower_case(name));
  }
}

// What collectives reach of it is counted already.
Json link_json(Hop hop, double latency_s, double bytes_per_s) {
  Link link;
  link.hop = hop;
  link.latency_s = latency_s;
  link.bytes_per_s = bytes_per_s;
  return link_block().written(link);
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
    if (link != nullptr && link->latency_s == network.latency_s && link->bytes_per_s == network.bytes_per_s) return;
    links[network.name] = link_json(Hop::kNetwork, network.latency_s, network.bytes_per_s);
  }
}

}  // namespace

const DeviceSpec& Hardware::device(const std::string& id, const std::string& where) const {
  return required_item(devices, "GPU", id, where);
}
const Link& Hardware::link(const std::string& id, const std::string& where) const {
  return required_item(links, "network", id, where);
}
std::vector<std::string> Hardware::device_ids() const { return ids_of(devices); }
std::vector<std::string> Hardware::link_ids() const { return ids_of(links); }

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
  root.finish();
  return hardware;
}

Json hardware_schema() {
  return schema::either({schema::text("the file"),
                         schema::object("GPUs and links by their ids, which may be named wherever known ones may",
                                        {{"gpus", schema::map(device_block().schema(), "by id")},
                                         {"links", schema::map(link_block().schema(), "by id")}})});
}

Json own_hardware(const ClusterSpec& cluster) {
  Json gpus = Json::object();
  Json links = Json::object();
  if (cluster.device && cluster.gpu != "local") {
    const std::vector<DeviceSpec> known = known_devices();
    const DeviceSpec* device = find(known, cluster.device->id);
    if (device == nullptr || !(*device == *cluster.device))
      gpus[cluster.device->id] = device_block().written(*cluster.device);
  }
  if (cluster.network) {
    add_if_own(links, cluster.network->intra);
    add_if_own(links, cluster.network->inter);
  }
  if (cluster.emulated_network) add_if_own(links, *cluster.emulated_network);
  Json json;
  if (!gpus.empty()) json["gpus"] = gpus;
  if (!links.empty()) json["links"] = links;
  return json;
}

}  // namespace krigtune
