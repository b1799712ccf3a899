#include "workload/measured_machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/processor.h"
#include "workload/workload.h"

namespace krigtune::workload {
namespace {

constexpr std::array<const char*, kOpClassCount> kClassWords = {"product",   "attention", "memory",
                                                                "optimizer", "copy",      "host"};
constexpr std::array<const char*, kExchangeKindCount> kExchangeWords = {"all_reduce", "reduce_scatter", "all_gather"};

// Reads "model name : AMD EPYC": proc_cpuinfo(5). Empty if the kernel does not say.
std::string processor_name() {
  const std::string text = read_text("/proc/cpuinfo");
  const std::size_t key = text.find("model name");
  if (key == std::string::npos) return "";
  const std::size_t begin = text.find_first_not_of(" \t:", key + std::string("model name").size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return std::max<std::int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max<std::int64_t>(1, CPU_COUNT(&set));
}

// Infinite rates are left out.
Json to_json(const ClassRate& rate) {
  Json json = {{"launch_s", rate.launch_s}};
  if (std::isfinite(rate.flops_per_s)) json["flops_per_s"] = rate.flops_per_s;
  if (rate.half_flops > 0.0) json["half_flops"] = rate.half_flops;
  if (std::isfinite(rate.bytes_per_s)) json["bytes_per_s"] = rate.bytes_per_s;
  return json;
}

double read_number(JsonObject& object, const char* key, double least, double fallback) {
  const double value = object.number(key, fallback);
  if (!(value >= least)) object.fail(key, "is out of range", "measure again");
  return value;
}

ClassRate read_rate(JsonObject object) {
  constexpr double kLeastRate = 1.0;
  ClassRate rate;
  rate.launch_s = read_number(object, "launch_s", 0.0, rate.launch_s);
  rate.flops_per_s = read_number(object, "flops_per_s", kLeastRate, rate.flops_per_s);
  rate.half_flops = read_number(object, "half_flops", 0.0, rate.half_flops);
  rate.bytes_per_s = read_number(object, "bytes_per_s", kLeastRate, rate.bytes_per_s);
  object.finish();
  return rate;
}

template <std::size_t N>
Json to_json(const std::array<ClassRate, N>& rates, const std::array<const char*, N>& words) {
  Json json = Json::object();
  for (std::size_t i = 0; i < N; ++i) json[words[i]] = to_json(rates[i]);
  return json;
}

template <std::size_t N>
void read_rates(JsonObject object, const std::array<const char*, N>& words, std::array<ClassRate, N>& rates) {
  for (std::size_t i = 0; i < N; ++i) rates[i] = read_rate(object.object(words[i]));
  object.finish();
}

Block<MachineKey> key_block() {
  Block<MachineKey> block("What the measurement depends on");
  block.key("host", &MachineKey::host, text(), "its name");
  block.key("processor", &MachineKey::processor, text(), "as the system names it");
  block.key("vector_unit", &MachineKey::vector_unit, text(), "that the kernels use");
  block.key("version", &MachineKey::version, text(), "of krigtune");
  block.key("cores", &MachineKey::cores, integer(), "that may be used");
  block.key("ranks", &MachineKey::ranks, integer(), "that ran side by side");
  block.key("precision", &MachineKey::precision, one_of(kPrecisionWords), "number format of weights and activations");
  block.check([](JsonObject& object, const MachineKey& key) {
    if (key.cores < 1 || key.ranks < 1) object.fail("", "has no cores or no ranks", "measure again");
  });
  return block;
}

}  // namespace

const char* to_string(OpClass of) { return kClassWords.at(static_cast<std::size_t>(of)); }

double ClassRate::seconds(double flops, double bytes) const {
  const double computed_s = flops > 0.0 ? (flops + half_flops) / flops_per_s : 0.0;
  return launch_s + std::max(computed_s, bytes / bytes_per_s);
}

MachineKey machine_key(std::int64_t ranks, Precision precision) {
  return {host_name(), processor_name(), to_string(chosen_vector_unit()), KRIGTUNE_VERSION, usable_cores(),
          ranks,       precision};
}

Json to_json(const MeasuredMachine& machine) {
  return {{"key", key_block().written(machine.key)},
          {"rates", to_json(machine.rates, kClassWords)},
          {"exchanges", to_json(machine.exchanges, kExchangeWords)},
          {"wake_s", machine.wake_s},
          {"overlap_slowdown", machine.overlap_slowdown},
          {"step_overhead_s", machine.step_overhead_s}};
}

MeasuredMachine read_measured_machine(const Json& json, const std::string& source, const std::string& pointer) {
  JsonObject object(json, source, pointer);
  MeasuredMachine machine;
  JsonObject key = object.object("key");
  key_block().read(key, machine.key);
  read_rates(object.object("rates"), kClassWords, machine.rates);
  read_rates(object.object("exchanges"), kExchangeWords, machine.exchanges);
  machine.wake_s = read_number(object, "wake_s", 0.0, 0.0);
  machine.overlap_slowdown = read_number(object, "overlap_slowdown", 1.0, 1.0);
  machine.step_overhead_s = read_number(object, "step_overhead_s", 0.0, 0.0);
  object.finish();
  return machine;
}

}  // namespace krigtune::workload
