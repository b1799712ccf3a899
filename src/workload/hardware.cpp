// The user's own devices and links. An entry begins as the one that it is "like", or as the built-in one of its name.
#include "hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "networks.h"
#include "words.h"

namespace krigtune {
namespace {

constexpr Words<Hop, 3> kHopWords = {{{"nvlink", Hop::kNvlink}, {"pci", Hop::kPci}, {"network", Hop::kNetwork}}};

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

enum class Allowed { kPositive, kNotNegative, kFraction };

void read(JsonObject& object, const char* key, Allowed allowed, double& value) {
  const std::optional<double> given = object.optional_number(key);
  if (!given) return;
  const bool good = std::isfinite(*given) && *given >= 0.0 && (allowed == Allowed::kNotNegative || *given > 0.0) &&
                    (allowed != Allowed::kFraction || *given <= 1.0);
  const char* mend = allowed == Allowed::kFraction   ? "write a number above 0 and up to 1"
                     : allowed == Allowed::kPositive ? "write a number above 0"
                                                     : "write a number of 0 or more";
  if (!good) object.fail(key, fmt::format("{} is out of range", number_text(*given)), mend);
  value = *given;
}

void read_microseconds(JsonObject& object, const char* key, double& seconds) {
  double value_us = microseconds(seconds);
  read(object, key, Allowed::kNotNegative, value_us);
  seconds = value_us / kMicroseconds;
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

void check_complete(const JsonObject& object, const DeviceSpec& device) {
  const auto need = [&](const char* key, double value) {
    if (!(value > 0.0)) object.fail(key, "is missing", "add it, or \"like\": an id that has it");
  };
  need("memory_gib", static_cast<double>(device.memory.count));
  need("fp32_flops_per_s", device.fp32_flops_per_s);
  need("memory_bytes_per_s", device.memory_bytes_per_s);
  need("host_bytes_per_s", device.host_bytes_per_s);
}

DeviceSpec read_device(JsonObject& object, const std::string& id, const Hardware& known) {
  DeviceSpec device = beginning(object, "GPU", id, known.devices);
  double memory_gib = to_gib(device.memory);
  constexpr double kLargestGib = 1e6;
  read(object, "memory_gib", Allowed::kPositive, memory_gib);
  if (memory_gib > kLargestGib) object.fail("memory_gib", "is more than a million", "write GiB, not bytes");
  device.memory = from_gib(memory_gib);
  read(object, "fp32_flops_per_s", Allowed::kPositive, device.fp32_flops_per_s);
  read(object, "fp16_flops_per_s", Allowed::kNotNegative, device.fp16_flops_per_s);
  read(object, "bf16_flops_per_s", Allowed::kNotNegative, device.bf16_flops_per_s);
  read(object, "memory_bytes_per_s", Allowed::kPositive, device.memory_bytes_per_s);
  read(object, "gemm_fraction", Allowed::kFraction, device.gemm_fraction);
  read(object, "gemm_half_flops", Allowed::kNotNegative, device.gemm_half_flops);
  read(object, "attention_fraction", Allowed::kFraction, device.attention_fraction);
  read(object, "memory_fraction", Allowed::kFraction, device.memory_fraction);
  read_microseconds(object, "launch_us", device.launch_s);
  read(object, "host_bytes_per_s", Allowed::kPositive, device.host_bytes_per_s);
  device.interconnect = lower_case(object.text("interconnect", device.interconnect));
  object.finish();
  check_complete(object, device);
  return device;
}

Link read_link(JsonObject& object, const std::string& id, const Hardware& known) {
  Link link = beginning(object, "link", id, known.links);
  link.hop = read_word(object, "kind", kHopWords, link.hop);
  read_microseconds(object, "latency_us", link.latency_s);
  read(object, "bytes_per_s", Allowed::kPositive, link.bytes_per_s);
  read(object, "reached", Allowed::kFraction, link.reached);
  object.finish();
  if (!(link.bytes_per_s > 0.0)) object.fail("bytes_per_s", "is missing", "add it, or \"like\": an id that has it");
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

Json to_json(const DeviceSpec& device) {
  return {{"memory_gib", json_number(to_gib(device.memory))},
          {"fp32_flops_per_s", json_number(device.fp32_flops_per_s)},
          {"fp16_flops_per_s", json_number(device.fp16_flops_per_s)},
          {"bf16_flops_per_s", json_number(device.bf16_flops_per_s)},
          {"memory_bytes_per_s", json_number(device.memory_bytes_per_s)},
          {"gemm_fraction", json_number(device.gemm_fraction)},
          {"gemm_half_flops", json_number(device.gemm_half_flops)},
          {"attention_fraction", json_number(device.attention_fraction)},
          {"memory_fraction", json_number(device.memory_fraction)},
          {"launch_us", json_number(microseconds(device.launch_s))},
          {"host_bytes_per_s", json_number(device.host_bytes_per_s)},
          {"interconnect", device.interconnect}};
}

void add_link(Json& links, const std::string& id, Hop hop, double latency_s, double bytes_per_s) {
  links[id] = {{"kind", word_of(hop, kHopWords)},
               {"latency_us", json_number(microseconds(latency_s))},
               {"bytes_per_s", json_number(bytes_per_s)},
               {"reached", 1}};
}

void add_if_own(Json& links, const NetworkLevel& level) {
  const std::vector<Link> known = known_links();
  const Link* link = find(known, level.name);
  if (link != nullptr && link->level() == level) return;
  add_link(links, level.name, level.hop, level.latency_s, level.bytes_per_s);
}

void add_if_own(Json& links, const EmulatedNetwork& network) {
  if (network.nodes) {
    add_if_own(links, network.nodes->intra);
    add_if_own(links, network.nodes->inter);
  } else if (!is_stated(network)) {
    const std::vector<Link> known = known_links();
    const Link* link = find(known, network.name);
    if (link != nullptr && link->latency_s == network.latency_s && link->bytes_per_s == network.bytes_per_s) return;
    add_link(links, network.name, Hop::kNetwork, network.latency_s, network.bytes_per_s);
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

Json own_hardware(const ClusterSpec& cluster) {
  Json gpus = Json::object();
  Json links = Json::object();
  if (cluster.device && cluster.gpu != "local") {
    const std::vector<DeviceSpec> known = known_devices();
    const DeviceSpec* device = find(known, cluster.device->id);
    if (device == nullptr || !(*device == *cluster.device)) gpus[cluster.device->id] = to_json(*cluster.device);
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
