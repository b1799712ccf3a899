// Finds the rates that explain the measurements in the same models that predict with them.
//
//   products   t = launch + (F + F_half) / rate, rate and F_half fitted (workload/rate_fit.h), launch as stated
//   memory     bytes / (memory rate * fraction) of the largest copy, read and written
//   links      cost::collective_time_s of the cluster, with the bandwidth, and between nodes the latency, that minimise
//              the mean of |log(measured / modelled)| over all sizes and collectives. They are found on a grid, which
//              the kinks of the model (the fastest of three protocols) do not mislead.
#include "machine/hardware_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "cost/machine.h"
#include "schedule/exchange.h"
#include "workload/rate_fit.h"

namespace krigtune::machine {
namespace {

double& peak_of(workload::DeviceSpec& device, workload::Precision precision) {
  return precision == workload::Precision::kFp32   ? device.fp32_flops_per_s
         : precision == workload::Precision::kFp16 ? device.fp16_flops_per_s
                                                   : device.bf16_flops_per_s;
}

workload::ClassRate product_rate(const workload::MeasuredRates& rates, workload::Precision precision) {
  std::vector<workload::RateSample> samples;
  for (const workload::MeasuredProduct& one : rates.products) {
    if (one.precision == precision) samples.push_back({one.flops(), 0.0, one.times.median_s});
  }
  return workload::fit_rate(samples, workload::BoundBy::kFlops);
}

// Returns the bytes per second of the largest copy; 0 if none was measured.
double copy_rate(const workload::MeasuredRates& rates, workload::CopyKind kind) {
  std::int64_t most_bytes = 0;
  double rate = 0.0;
  for (const workload::MeasuredCopy& one : rates.copies) {
    if (one.kind != kind || one.bytes < most_bytes) continue;
    most_bytes = one.bytes;
    rate = static_cast<double>(one.bytes) / one.times.median_s;
  }
  return rate;
}

// A rate above the stated peak replaces the peak.
void set_fraction(double& peak, double& fraction, double reached) {
  peak = std::max(peak, reached);
  fraction = reached / peak;
}

void fit_products(const workload::MeasuredRates& rates, workload::Precision precision, bool is_stated,
                  workload::DeviceSpec& device) {
  for (const auto each : {workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16}) {
    workload::ClassRate rate = product_rate(rates, each);
    if (!std::isfinite(rate.flops_per_s)) continue;
    // If the table states no peak, the measured rate is the peak.
    if (!is_stated) peak_of(device, each) = rate.flops_per_s;
    if (each != precision) continue;
    set_fraction(peak_of(device, each), device.gemm_fraction, rate.flops_per_s);
    workload::split_launch(rate, device.launch_s);
    device.gemm_half_flops = rate.half_flops;
  }
}

workload::DeviceSpec fitted_device(const workload::MeasuredRates& rates, workload::DeviceSpec device, bool is_stated,
                                   workload::Precision precision) {
  fit_products(rates, precision, is_stated, device);
  if (!is_stated) device.memory = Bytes{rates.memory_bytes};
  if (const double arrives = copy_rate(rates, workload::CopyKind::kMemory); arrives > 0.0) {
    set_fraction(device.memory_bytes_per_s, device.memory_fraction, 2.0 * arrives);
  }
  double host =
      std::min(copy_rate(rates, workload::CopyKind::kToDevice), copy_rate(rates, workload::CopyKind::kToHost));
  if (!(host > 0.0) && !is_stated) host = copy_rate(rates, workload::CopyKind::kMemory);  // CPU ranks: the same memory
  if (host > 0.0) device.host_bytes_per_s = host;
  return device;
}

workload::Link stated_link(const std::optional<workload::ClusterSpec>& cluster, const workload::NetworkLevel* level,
                           const std::string& otherwise) {
  workload::Link link;
  link.id = otherwise;
  if (!cluster || level == nullptr) return link;
  const auto known = workload::known_links();
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.id == level->name; });
  if (found != known.end()) return *found;
  return {level->name, level->hop, level->latency_s, level->bytes_per_s, 1.0};
}

/// The collectives of one scope, compared with their model.
class LinkFit {
 public:
  /// Uses sizes of at least 1 / `least_part` of the largest one.
  LinkFit(const workload::MeasuredRates& rates, workload::RankScope scope, const cost::Machine& machine,
          std::int64_t least_part)
      : machine_(machine) {
    std::int64_t most_bytes = 0;
    for (const workload::MeasuredCollective& one : rates.collectives) {
      if (one.scope == scope) most_bytes = std::max(most_bytes, one.bytes);
    }
    for (const workload::MeasuredCollective& one : rates.collectives) {
      if (one.scope == scope && one.bytes >= most_bytes / least_part) samples_.push_back(one);
    }
  }

  bool has_samples() const { return !samples_.empty(); }

  /// Fits `level` of the machine's network, including its latency if `with_latency`.
  FittedLink fit(workload::Link link, workload::NetworkLevel& level, bool with_latency) {
    double least = std::numeric_limits<double>::infinity();
    workload::NetworkLevel best = level;
    const auto attempt = [&](double latency_s, double bytes_per_s) {
      level.latency_s = latency_s;
      level.bytes_per_s = bytes_per_s;
      const double error = mean_log_error();
      if (error < least) {
        least = error;
        best = level;
      }
    };
    const std::vector<double> latencies = with_latency ? grid(0.5e-6, 20e-3, 1.25) : std::vector{link.latency_s};
    for (const double latency_s : latencies) {
      for (const double bytes_per_s : grid(1e6, 4e12, 1.1)) attempt(latency_s, bytes_per_s);
    }
    const workload::NetworkLevel coarse = best;
    for (const double part : grid(0.9, 1.1, 1.002)) attempt(coarse.latency_s, coarse.bytes_per_s * part);
    level = best;
    link.latency_s = best.latency_s;
    set_fraction(link.bytes_per_s, link.reached, best.bytes_per_s);
    return {link, least};
  }

  cost::Machine& machine() { return machine_; }

 private:
  static std::vector<double> grid(double from, double to, double factor) {
    std::vector<double> values;
    for (double value = from; value <= to; value *= factor) values.push_back(value);
    return values;
  }

  double mean_log_error() const {
    double sum = 0.0;
    for (const workload::MeasuredCollective& one : samples_) {
      const plan::GroupSpan span{one.ranks, one.nodes, one.ranks / one.nodes};
      const double modelled_s =
          cost::collective_time_s(machine_, schedule::collective_of(one.kind), span, std::llround(one.wire_bytes()));
      sum += std::abs(std::log(one.seconds / modelled_s));
    }
    return sum / static_cast<double>(samples_.size());
  }

  cost::Machine machine_;
  std::vector<workload::MeasuredCollective> samples_;
};

}  // namespace

MeasuredHardware fit_hardware(const workload::MeasuredRates& rates, const std::optional<workload::ClusterSpec>& cluster,
                              workload::Precision precision) {
  const bool on_gpus = rates.device == "cuda";
  const bool is_stated = cluster && cluster->device;
  MeasuredHardware hardware;
  workload::DeviceSpec device = is_stated ? *cluster->device : workload::DeviceSpec();
  if (!is_stated) device.id = on_gpus ? "measured-gpu" : "cpu-rank";
  hardware.device = fitted_device(rates, device, is_stated, precision);
  if (!rates.emulated_network.empty()) return hardware;

  const workload::NodeNetwork* network = is_stated && cluster->network ? &*cluster->network : nullptr;
  const std::string prefix = on_gpus ? "measured" : "cpu";
  workload::Link intra = stated_link(cluster, network ? &network->intra : nullptr, prefix + "-node");
  workload::Link inter = stated_link(cluster, network ? &network->inter : nullptr, prefix + "-network");
  // A network that was only named because none was known does not count as stated.
  if (inter.id == intra.id) inter = stated_link({}, nullptr, prefix + "-network");
  if (!is_stated && on_gpus) intra.hop = workload::Hop::kPci;

  workload::ClusterSpec fitted;
  fitted.nodes = static_cast<std::int64_t>(rates.hosts.size());
  fitted.gpus_per_node = rates.ranks_per_node();
  fitted.device = hardware.device;
  fitted.network = workload::NodeNetwork{intra.level(), inter.level(), fitted.gpus_per_node};
  workload::Workload workload;
  workload.precision = precision;
  const cost::Machine machine = cost::make_machine(workload, fitted);
  // The model has no separate latency for links within a node, so small messages would only distort the bandwidth.
  constexpr std::int64_t kLargeOnes = 64;
  constexpr std::int64_t kAllSizes = std::int64_t{1} << 40;
  if (LinkFit fit(rates, workload::RankScope::kNode, machine, kLargeOnes); fit.has_samples()) {
    hardware.intra = fit.fit(intra, fit.machine().network.nodes->intra, false);
  }
  if (LinkFit fit(rates, workload::RankScope::kAcross, machine, kAllSizes); fit.has_samples()) {
    hardware.inter = fit.fit(inter, fit.machine().network.nodes->inter, true);
  }
  if (hardware.device.interconnect.empty() && (hardware.intra || hardware.inter)) {
    hardware.device.interconnect = hardware.intra ? hardware.intra->link.id : hardware.inter->link.id;
  }
  return hardware;
}

nlohmann::ordered_json hardware_file(const MeasuredHardware& hardware) {
  nlohmann::ordered_json json;
  for (const auto* fitted : {&hardware.intra, &hardware.inter}) {
    if (*fitted) json["links"][(*fitted)->link.id] = workload::hardware_json((*fitted)->link);
  }
  nlohmann::ordered_json device = workload::hardware_json(hardware.device);
  if (hardware.device.interconnect.empty()) device.erase("interconnect");
  json["gpus"][hardware.device.id] = std::move(device);
  for (const workload::MeasuredMachine& machine : hardware.local) json["local"].push_back(workload::to_json(machine));
  return json;
}

nlohmann::ordered_json cluster_using(const MeasuredHardware& hardware, const workload::MeasuredRates& rates,
                                     const std::string& file) {
  nlohmann::ordered_json cluster;
  if (rates.hosts.size() > 1) cluster["nodes"] = rates.hosts.size();
  cluster["gpus_per_node"] = rates.ranks_per_node();
  cluster["gpu"] = hardware.local.empty() ? hardware.device.id : "local";
  if (hardware.local.empty() && hardware.intra) cluster["interconnect"] = hardware.intra->link.id;
  if (hardware.local.empty() && hardware.inter) cluster["network"] = hardware.inter->link.id;
  cluster["hardware"] = file;
  return cluster;
}

namespace {

std::string first_line_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return trimmed(line);
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

// Returns the known link between nodes of this kind ("ib-", "eth-") with this line rate, within a tenth.
std::optional<std::string> link_of_rate(double bits_per_s, const std::string& prefix) {
  constexpr double kTolerance = 0.1;
  constexpr double kBitsPerByte = 8.0;
  for (const workload::Link& link : workload::known_links()) {
    if (link.hop != workload::Hop::kNetwork || !link.id.starts_with(prefix)) continue;
    if (std::abs(bits_per_s / (kBitsPerByte * link.bytes_per_s) - 1.0) <= kTolerance) return link.id;
  }
  return std::nullopt;
}

double leading_number(const std::string& text) {
  try {
    return std::stod(text);
  } catch (const std::exception&) {
    return 0.0;  // "", "-1" for an interface without a carrier, "Unknown!"
  }
}

}  // namespace

// /sys/class/infiniband/<card>/ports/<n>/rate is "200 Gb/sec (4X HDR)", and link_layer in the same folder is
// "InfiniBand" or "Ethernet" (RoCE). /sys/class/net/<interface>/speed is in Mbit/s (Documentation/ABI of the Linux
// kernel).
std::optional<std::string> network_id_of(const std::filesystem::path& root) {
  constexpr double kGigabit = 1e9;
  constexpr double kMegabit = 1e6;
  double fastest = 0.0;
  std::string prefix = "ib-";
  for (const std::filesystem::path& card : entries_of(root / "sys/class/infiniband")) {
    for (const std::filesystem::path& port : entries_of(card / "ports")) {
      const double rate = kGigabit * leading_number(first_line_of(port / "rate"));
      if (rate <= fastest) continue;
      fastest = rate;
      prefix = first_line_of(port / "link_layer") == "Ethernet" ? "eth-" : "ib-";
    }
  }
  if (fastest > 0.0) return link_of_rate(fastest, prefix);
  for (const std::filesystem::path& interface : entries_of(root / "sys/class/net")) {
    if (interface.filename() == "lo") continue;
    fastest = std::max(fastest, kMegabit * leading_number(first_line_of(interface / "speed")));
  }
  return fastest > 0.0 ? link_of_rate(fastest, "eth-") : std::nullopt;
}

std::optional<workload::ClusterSpec> usual_cluster(const workload::MeasuredRates& rates,
                                                   const std::optional<std::string>& network) {
  if (rates.device != "cuda") return std::nullopt;
  const auto gpu = workload::device_id_of(rates.processor, Bytes{rates.memory_bytes});
  const bool several_nodes = rates.hosts.size() > 1;
  if (!gpu || (several_nodes && !network)) return std::nullopt;
  nlohmann::ordered_json json = {
      {"nodes", rates.hosts.size()}, {"gpus_per_node", rates.ranks_per_node()}, {"gpu", *gpu}};
  if (several_nodes) json["network"] = *network;
  return workload::read_cluster(json, "this machine", "");
}

}  // namespace krigtune::machine
